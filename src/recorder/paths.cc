// SPDX-License-Identifier: Apache-2.0
#include "recorder/paths.h"

#include <algorithm>

namespace clew::recorder {

namespace {

// A path up to `block`, which is its last so far and `depth` blocks behind the first.
struct Branch {
  uint32_t block = 0;
  uint32_t depth = 0;
  uint32_t bits = 0;      // That probes have set on it.
  uint32_t sure = kNone;  // See Path::sure.
};

}  // namespace

class PathFinder {
 public:
  PathFinder(const Paths& paths, uint32_t bits, const Behind& behind)
      : paths_(paths), flow_(paths.flow_), bits_(bits), behind_(behind) {
    if (!behind.stopped_at) return;
    const auto block = paths.blocks_.block_at(*behind.stopped_at);
    stop_block_ = block ? *block : kNone;
  }

  Path run(uint32_t first) {
    std::vector<Branch> open = {{first, 0, 0}};
    while (!open.empty()) {
      const Branch at = open.back();
      open.pop_back();
      blocks_.resize(at.depth);
      blocks_.push_back(at.block);
      visit(at, open);
    }
    if (fits_ != 0) {
      path_.is_ambiguous = fits_ > 1 && is_end_known();
      if (fits_ > 1) path_.end = PathEnd::Open;
      return path_;
    }
    path_.end = has_bits_ ? PathEnd::Misfit : PathEnd::Violation;
    return path_;
  }

 private:
  [[nodiscard]] bool is_end_known() const { return behind_.next || behind_.stopped_at; }

  void visit(const Branch& at, std::vector<Branch>& open) {
    const Node& node = flow_.nodes()[at.block];
    if (at.block == stop_block_) end(at, PathEnd::Stopped);
    if (node.call != CallKind::None) {
      const bool is_copied = node.call == CallKind::Copied;
      return end(at, is_copied ? PathEnd::Call : PathEnd::CallOut, node.callee);
    }
    const auto ways = flow_.ways_of(at.block);
    if (ways.empty()) return end(at, PathEnd::Trap);
    const BitSite* site = node.is_branch ? site_of(at.block) : nullptr;
    if (site != nullptr) {
      const uint32_t bit = 1U << site->bit;
      const bool is_set = (bits_ & bit) != 0;
      if (!is_set && site->on_target) stop_before_bit(at, ways[site->edge]);
      Branch behind = at;
      behind.sure = is_set ? kNone : std::min(at.sure, at.depth + 1);
      return go(behind, ways[is_set ? site->edge : 1 - site->edge], is_set ? bit : 0, open);
    }
    if (node.is_branch && ways[0] == ways[1]) return go(at, ways[0], 0, open);
    for (const Way& way : ways)
      go(at, way, 0, open);
  }

  // Control may be where the bit is about to be set, at the start of the block that it is for.
  void stop_before_bit(const Branch& at, const Way& way) {
    if (way.kind != WayKind::Block || way.block != stop_block_) return;
    if (paths_.blocks_.blocks()[way.block].begin != *behind_.stopped_at) return;
    blocks_.push_back(way.block);
    end(at, PathEnd::Stopped);
    blocks_.pop_back();
  }

  [[nodiscard]] const BitSite* site_of(uint32_t block) const {
    const auto& bits = paths_.tiling_.bits;
    const auto found =
        std::lower_bound(bits.begin(), bits.end(), block,
                         [](const BitSite& site, uint32_t value) { return site.block < value; });
    return found != bits.end() && found->block == block ? &*found : nullptr;
  }

  // Round a loop that is recorded once.
  [[nodiscard]] bool is_back(uint32_t block, uint32_t to) const {
    const auto& loops = paths_.tiling_.loops;
    const auto found =
        std::lower_bound(loops.begin(), loops.end(), block,
                         [](const OnceLoop& loop, uint32_t value) { return loop.latch < value; });
    return found != loops.end() && found->latch == block && found->head == to;
  }

  void go(const Branch& at, const Way& way, uint32_t bit, std::vector<Branch>& open) {
    Branch behind = at;
    behind.bits |= bit;
    switch (way.kind) {
      case WayKind::Return:
        return end(behind, PathEnd::Return);
      case WayKind::Tail:
        return end(behind, PathEnd::Tail, way.function);
      case WayKind::TailOut:
        return end(behind, PathEnd::TailOut);
      case WayKind::Block:
        if (is_back(at.block, way.block)) return;  // It was there before.
        if (paths_.dag_of(way.block) != kNone) return end(behind, PathEnd::Head, way.block);
        return open.push_back({way.block, at.depth + 1, behind.bits, at.sure});
    }
  }

  void end(const Branch& at, PathEnd end, uint32_t to = kNone) {
    const bool is_short = end == PathEnd::Stopped && behind_.is_interrupted;
    if (at.bits != bits_ && !is_short) return;
    has_bits_ = true;
    if (!fits(end, to)) return;
    const bool is_same = fits_ != 0 && end == path_.end && to == path_.to;
    if (is_same && blocks_ == path_.blocks) return;
    if (++fits_ == 1) {
      path_.blocks = blocks_;
      path_.end = end;
      path_.to = to;
      path_.sure = at.sure;
      return;
    }
    // What the paths have in common.
    const auto differ =
        std::mismatch(path_.blocks.begin(), path_.blocks.end(), blocks_.begin(), blocks_.end());
    path_.blocks.erase(differ.first, path_.blocks.end());
    path_.to = kNone;
    path_.sure = std::min(path_.sure, at.sure);
  }

  [[nodiscard]] bool fits(PathEnd end, uint32_t to) const {
    if (behind_.stopped_at) return end == PathEnd::Stopped;
    if (!behind_.next) return true;
    const DagName& next = *behind_.next;
    switch (end) {
      case PathEnd::Head:
        return next.function == flow_.function() && next.dag == paths_.dag_of(to);
      case PathEnd::Call:
      case PathEnd::Tail:
        return next.function == to && next.is_entry;
      case PathEnd::Return:
      case PathEnd::CallOut:
      case PathEnd::TailOut:
      case PathEnd::Trap:
        return true;
      case PathEnd::Stopped:
      case PathEnd::Open:
      case PathEnd::Misfit:
      case PathEnd::Violation:
        return false;
    }
    return false;
  }

  const Paths& paths_;
  const Flow& flow_;
  uint32_t bits_;
  const Behind& behind_;
  uint32_t stop_block_ = kNone;
  std::vector<uint32_t> blocks_;
  bool has_bits_ = false;
  uint32_t fits_ = 0;
  Path path_;
};

Paths::Paths(const code::Blocks& blocks, const Flow& flow, const FunctionTiling& tiling)
    : blocks_(blocks), flow_(flow), tiling_(tiling) {}

Path Paths::behind_head(uint32_t dag, uint32_t bits, const Behind& behind) const {
  return PathFinder(*this, bits, behind).run(tiling_.heads[dag].block);
}

Path Paths::behind_call(uint32_t block, const Behind& behind) const {
  return PathFinder(*this, 0, behind).run(block);
}

uint32_t Paths::dag_of(uint32_t block) const {
  const auto& heads = tiling_.heads;
  const auto found =
      std::lower_bound(heads.begin(), heads.end(), block,
                       [](const DagHead& head, uint32_t value) { return head.block < value; });
  return found != heads.end() && found->block == block ? found->dag : kNone;
}

}  // namespace clew::recorder

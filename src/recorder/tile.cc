// SPDX-License-Identifier: Apache-2.0
#include "recorder/tile.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "recorder/futures.h"

namespace clew::recorder {

namespace {

constexpr uint32_t kAllBits = (1U << abi::kPathBits) - 1;

struct Open {
  uint32_t block = 0;
  uint32_t way = 0;
};

class Tiler {
 public:
  Tiler(const copy::Facts& facts, const copy::Proved& proved, const Flow& flow,
        const Copied& copied)
      : facts_(facts),
        edges_(proved.blocks),
        blocks_(proved.blocks.blocks()),
        flow_(flow),
        copied_(copied),
        size_(static_cast<uint32_t>(flow.nodes().size())),
        is_head_(size_),
        ways_in_(size_),
        from_(size_, kNone) {}

  FunctionTiling run(Loops loops) {
    count_ways_in();
    add_fixed_heads();
    add_loop_heads();
    find_dying();
    if (loops == Loops::Once) find_cycles();
    // Heads are only added, so this ends.
    while (true) {
      const Futures futures(flow_, is_head_, cycles_);
      const bool is_stable =
          !add_heads_behind_calls(futures) && !share(futures) && !colour(futures);
      if (is_stable) return result(futures);
    }
  }

 private:
  [[nodiscard]] bool is_inner(uint32_t block) const { return block != kNone && !is_head_[block]; }

  // Calls come back to a block just as jumps lead to it.
  void count_ways_in() {
    for (uint32_t block = 0; block < size_; ++block) {
      for (const Way& way : flow_.ways_of(block)) {
        if (way.block == kNone) continue;
        ++ways_in_[way.block];
        from_[way.block] = block;
      }
      const uint32_t behind = flow_.nodes()[block].behind;
      if (behind != kNone) ++ways_in_[behind];
    }
  }

  void add_fixed_heads() {
    is_head_[flow_.entry()] = true;
    for (const uint32_t block : flow_.landing_pads())
      is_head_[block] = true;
    for (const uint32_t block : flow_.cases())
      is_head_[block] = true;
    for (uint32_t block = 0; block < size_; ++block) {
      const Node& node = flow_.nodes()[block];
      if (ways_in_[block] == 0) is_head_[block] = true;  // A way that the blocks do not show.
      if (node.behind == kNone || node.call == CallKind::None) continue;
      if (node.call != CallKind::Copied || !copied_.returns_itself(node.callee)) {
        is_head_[node.behind] = true;
      }
    }
  }

  // To where a depth-first walk comes back that goes through no call which may record: such a call
  // ends a DAG, so a way round through it is none. The walk begins at the entry, and goes on behind
  // calls as they were met, so a loop's first block is its head.
  void add_loop_heads() {
    std::vector<bool> seen(size_);
    std::vector<bool> is_open(size_);
    behind_ = {flow_.entry()};
    for (size_t i = 0; i < behind_.size(); ++i) {
      if (!seen[behind_[i]]) walk_from(behind_[i], seen, is_open);
    }
    for (uint32_t block = 0; block < size_; ++block) {
      if (!seen[block] && is_head_[block]) walk_from(block, seen, is_open);
    }
    for (uint32_t block = 0; block < size_; ++block) {
      if (!seen[block]) walk_from(block, seen, is_open);
    }
  }

  void walk_from(uint32_t root, std::vector<bool>& seen, std::vector<bool>& is_open) {
    std::vector<Open> open;
    const auto enter = [&](uint32_t block) {
      if (block == kNone) return;
      if (is_open[block]) {
        is_head_[block] = true;
        back_.push_back({block, open.back().block});
      }
      if (seen[block]) return;
      seen[block] = is_open[block] = true;
      open.push_back({block});
    };
    const auto enter_behind = [&](const Node& node) {
      if (node.call == CallKind::None) return enter(node.behind);
      if (node.behind != kNone) behind_.push_back(node.behind);
    };
    enter(root);
    while (!open.empty()) {
      Open& top = open.back();
      const auto ways = flow_.ways_of(top.block);
      const uint32_t at = top.way++;
      if (at < ways.size()) {
        enter(ways[at].block);
      } else if (at == ways.size()) {
        enter_behind(flow_.nodes()[top.block]);
      } else {
        is_open[top.block] = false;
        open.pop_back();
      }
    }
  }

  // Loops that are recorded once.
  void find_cycles() {
    std::sort(back_.begin(), back_.end());
    for (size_t i = 0; i < back_.size(); ++i) {
      const uint32_t head = back_[i].first;
      const bool is_only = (i == 0 || back_[i - 1].first != head) &&
                           (i + 1 == back_.size() || back_[i + 1].first != head);
      if (!is_only) continue;
      Cycle cycle = {back_[i].second};
      while (cycle.back() != head) {
        const uint32_t block = cycle.back();
        if (is_head_[block] || ways_in_[block] != 1 || from_[block] == kNone) break;
        cycle.push_back(from_[block]);
      }
      if (cycle.back() != head) continue;
      std::reverse(cycle.begin(), cycle.end());
      if (has_one_way_round(cycle)) cycles_.push_back(std::move(cycle));
    }
  }

  // Without calls and switches, and with an exit.
  [[nodiscard]] bool has_one_way_round(const Cycle& cycle) const {
    bool has_exit = false;
    for (size_t i = 0; i < cycle.size(); ++i) {
      const uint32_t next = cycle[(i + 1) % cycle.size()];
      const auto ways = flow_.ways_of(cycle[i]);
      const auto on = std::count_if(ways.begin(), ways.end(),
                                    [next](const Way& way) { return way.block == next; });
      const bool is_branch = flow_.nodes()[cycle[i]].is_branch;
      if (on != 1 || ways.size() != (is_branch ? 2U : 1U)) return false;
      has_exit = has_exit || is_branch;
    }
    return has_exit;
  }

  // Blocks from which control neither returns nor loops: traps, calls that do not come back, and
  // what leads to those alone.
  void find_dying() {
    is_dying_.resize(size_);
    const Futures futures(flow_, is_head_, {});
    const auto& order = futures.order();
    for (auto block = order.rbegin(); block != order.rend(); ++block) {
      const auto ways = flow_.ways_of(*block);
      const bool goes_on = flow_.nodes()[*block].behind != kNone;
      is_dying_[*block] = !goes_on && std::all_of(ways.begin(), ways.end(), [this](const Way& way) {
        return is_inner(way.block) && is_dying_[way.block];
      });
    }
  }

  bool add_heads_behind_calls(const Futures& futures) {
    bool added = false;
    for (const Node& node : flow_.nodes()) {
      if (!is_inner(node.behind) || !futures.decides(node.behind)) continue;
      is_head_[node.behind] = true;
      added = true;
    }
    return added;
  }

  // Which DAGs each block is in. Too many: it becomes the head of one.
  bool share(const Futures& futures) {
    bool added = false;
    owners_.assign(size_, {});
    for (const uint32_t block : futures.order()) {
      if (owners_[block].size() > kOwnersMax) {
        is_head_[block] = true;
        added = true;
      }
      if (is_head_[block]) owners_[block] = {block};
      for (const Way& way : flow_.ways_of(block))
        if (is_inner(way.block)) add_owners(owners_[way.block], owners_[block]);
    }
    return added;
  }

  static void add_owners(std::vector<uint32_t>& to, const std::vector<uint32_t>& from) {
    for (const uint32_t owner : from) {
      if (to.size() > kOwnersMax) return;
      if (std::find(to.begin(), to.end(), owner) == to.end()) to.push_back(owner);
    }
  }

  // A bit for each branch that needs one. None left: the branch begins a DAG, unless one was begun
  // in one of its DAGs already, which may be enough.
  bool colour(const Futures& futures) {
    std::vector<uint32_t> used(size_);  // By head.
    std::vector<bool> is_cut(size_);
    std::vector<uint32_t> cuts;
    bits_.assign(size_, abi::kPathBits);
    for (const uint32_t block : futures.order()) {
      if (!futures.needs_bit(block)) continue;
      uint32_t taken = 0;
      bool touches_cut = false;
      for (const uint32_t owner : owners_[block]) {
        taken |= used[owner];
        touches_cut = touches_cut || is_cut[owner];
      }
      if (taken == kAllBits) {
        if (touches_cut) continue;
        cuts.push_back(block);
        for (const uint32_t owner : owners_[block])
          is_cut[owner] = true;
        continue;
      }
      const auto bit = static_cast<uint8_t>(std::countr_one(taken));
      bits_[block] = bit;
      for (const uint32_t owner : owners_[block])
        used[owner] |= 1U << bit;
    }
    for (const uint32_t block : cuts) {
      is_head_[block] = true;
      std::erase_if(cycles_, [block](const Cycle& cycle) {
        return std::find(cycle.begin(), cycle.end(), block) != cycle.end();
      });
    }
    return !cuts.empty();
  }

  FunctionTiling result(const Futures& futures) {
    FunctionTiling tiling;
    for (uint32_t block = 0; block < size_; ++block) {
      if (is_head_[block]) {
        tiling.heads.push_back({block, static_cast<uint32_t>(tiling.heads.size())});
      }
      if (bits_[block] == abi::kPathBits) continue;
      const auto ways = flow_.ways_of(block);
      uint32_t side = rank(block, ways[1]) > rank(block, ways[0]) ? 1 : 0;
      // What is done once must not be done each time round.
      if (futures.is_in_cycle(block, ways[side])) side = 1 - side;
      tiling.bits.push_back({block, side, bits_[block], can_stand_at(ways[side])});
    }
    for (const Cycle& cycle : cycles_) {
      const uint32_t latch = cycle.back();
      const auto edges = edges_.edges_of(blocks_[latch]);
      const bool runs_on = std::any_of(edges.begin(), edges.end(), [&](const code::Edge& edge) {
        return edge.kind == code::EdgeKind::Next && edge.block == cycle.front();
      });
      tiling.loops.push_back({cycle.front(), latch, runs_on});
    }
    std::sort(tiling.loops.begin(), tiling.loops.end(),
              [](const OnceLoop& a, const OnceLoop& b) { return a.latch < b.latch; });
    return tiling;
  }

  [[nodiscard]] bool can_stand_at(const Way& way) const {
    return is_inner(way.block) && ways_in_[way.block] == 1;
  }

  // How little a bit on that side costs: cold first, then without a stub.
  [[nodiscard]] unsigned rank(uint32_t block, const Way& way) const {
    const unsigned place = can_stand_at(way) ? 1 : 0;
    if (way.block == kNone) return place;
    const bool is_cold = (is_inner(way.block) && is_dying_[way.block]) ||
                         facts_.code.range_at(blocks_[way.block].begin) !=
                             facts_.code.range_at(blocks_[block].begin);
    return place + (is_cold ? 2 : 0);
  }

  const copy::Facts& facts_;
  const code::Blocks& edges_;
  const std::vector<code::Block>& blocks_;
  const Flow& flow_;
  const Copied& copied_;
  uint32_t size_;
  std::vector<bool> is_head_;
  std::vector<uint32_t> ways_in_;
  std::vector<uint32_t> from_;    // By block: where a way of those is from; kNone behind calls.
  std::vector<uint32_t> behind_;  // Where walks begin: the entry, and behind calls.
  std::vector<std::pair<uint32_t, uint32_t>> back_;  // Loop heads, and what leads back to them.
  std::vector<Cycle> cycles_;
  std::vector<bool> is_dying_;
  std::vector<std::vector<uint32_t>> owners_;  // Heads, by block.
  std::vector<uint8_t> bits_;                  // By block; kPathBits: none.
};

}  // namespace

FunctionTiling tile(const copy::Facts& facts, const copy::Proved& proved, const Flow& flow,
                    const Copied& copied, Loops loops) {
  return Tiler(facts, proved, flow, copied).run(loops);
}

ModuleTiling tile_module(const copy::Facts& facts, const copy::ModuleProof& proof,
                         const Copied& copied, Loops loops) {
  ModuleTiling tiling;
  for (const copy::Proved& proved : proof.proved) {
    const Flow flow(facts, proved, copied);
    tiling.functions.push_back(tile(facts, proved, flow, copied, loops));
    tiling.first_dag.push_back(tiling.dag_count);
    tiling.dag_count += static_cast<uint32_t>(tiling.functions.back().heads.size());
  }
  return tiling;
}

}  // namespace clew::recorder

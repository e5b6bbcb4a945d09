// SPDX-License-Identifier: Apache-2.0
#include "recorder/guarded_paths.h"

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

namespace clew::recorder {

namespace {

struct End {
  PathEnd kind = PathEnd::Open;
  uint32_t to = kNone;     // See PathEnd.
  uint32_t block = kNone;  // A block more, up to where control stopped in it.

  bool operator==(const End&) const = default;
};

struct Reached {
  uint32_t block = 0;
  std::vector<uint32_t> next;  // In all that are reached.
  std::vector<uint32_t> from;
  std::vector<End> ends;  // That are believed.
  bool is_kept = false;   // One of these is reached from here.
};

class GuardedPathFinder {
 public:
  GuardedPathFinder(const Paths& paths, const Behind& behind, Ends wanted)
      : paths_(paths), flow_(paths.flow()), behind_(behind), wanted_(wanted) {
    if (behind.stopped_at) stop_block_ = paths.block_at(*behind.stopped_at);
  }

  Path run(const GuardedStart& start) {
    if (!start.is_recorded && is_head(start.block)) return at_head(start.block);
    first_ = start;
    (void)reach(start.block);
    while (!open_.empty()) {
      const uint32_t at = open_.back();
      open_.pop_back();
      look_behind(at);
    }
    keep();
    return follow();
  }

 private:
  [[nodiscard]] bool is_head(uint32_t block) const { return paths_.dag_of(block) != kNone; }

  // A head whose guard has not recorded yet.
  Path at_head(uint32_t block) {
    Path path;
    path.end = PathEnd::Misfit;
    for (const End& end : ends_at_head(block)) {
      if (!is_believed(end)) continue;
      path.end = end.kind;
      path.to = end.to;
      if (end.block != kNone) path.blocks = {end.block};
    }
    return path;
  }

  [[nodiscard]] std::vector<End> ends_at_head(uint32_t block) const {
    std::vector<End> ends = {{.kind = PathEnd::Head, .to = block}};
    if (block == stop_block_ && is_in_front_of_guard())
      ends.push_back({.kind = PathEnd::Stopped, .block = block});
    return ends;
  }

  // A head's last instruction calls the guard.
  [[nodiscard]] bool is_in_front_of_guard() const {
    return *behind_.stopped_at < paths_.last_of(stop_block_);
  }

  uint32_t reach(uint32_t block) {
    const auto known = numbers_.emplace(block, static_cast<uint32_t>(reached_.size()));
    if (known.second) {
      open_.push_back(known.first->second);
      reached_.emplace_back().block = block;
    }
    return known.first->second;
  }

  void look_behind(uint32_t at) {
    const uint32_t block = reached_[at].block;
    const Node& node = flow_.nodes()[block];
    const bool is_start = first_.is_recorded && block == first_.block;
    if (block == stop_block_ && !(is_start && is_in_front_of_guard()))
      add(at, {.kind = PathEnd::Stopped});
    if (node.call == CallKind::Copied) return add(at, {.kind = PathEnd::Call, .to = node.callee});
    if (node.call != CallKind::None) {
      add_out(at, node);
      if (node.behind != kNone) go(at, node.behind);
      for (const uint32_t landing : landings_of(flow_, node))
        go(at, landing);
      return;
    }
    const auto ways = flow_.ways_of(block);
    if (ways.empty()) add(at, {.kind = PathEnd::Trap});
    for (const Way& way : ways) {
      switch (way.kind) {
        case WayKind::Block:
          go(at, way.block);
          break;
        case WayKind::Return:
          add(at, {.kind = PathEnd::Return});
          break;
        case WayKind::Tail:
          add(at, {.kind = PathEnd::Tail, .to = way.function});
          break;
        case WayKind::TailOut:  // It may come back without a trace.
          add(at, {.kind = wanted_ == Ends::Return ? PathEnd::Return : PathEnd::TailOut});
          break;
      }
    }
  }

  void go(uint32_t from, uint32_t block) {
    if (is_head(block)) {
      for (const End& end : ends_at_head(block))
        add(from, end);
      return;
    }
    const uint32_t to = reach(block);
    auto& next = reached_[from].next;
    if (std::find(next.begin(), next.end(), to) != next.end()) return;
    next.push_back(to);
    reached_[to].from.push_back(from);
  }

  // What is called through a pointer may be anything that records; what is named is believed to
  // call back where nothing else fits. A record of another module has no other explanation here.
  void add_out(uint32_t at, const Node& node) {
    const bool is_next = wanted_ == Ends::Next && behind_.next && behind_.next->is_entry &&
                         (node.call == CallKind::Indirect || behind_.next->function == kNone);
    if (is_next) {
      reached_[at].ends.push_back({.kind = PathEnd::CallOut});
    } else {
      add(at, {.kind = PathEnd::CallOut});
    }
  }

  void add(uint32_t at, const End& end) {
    auto& ends = reached_[at].ends;
    if (is_believed(end) && std::find(ends.begin(), ends.end(), end) == ends.end())
      ends.push_back(end);
  }

  [[nodiscard]] bool is_believed(const End& end) const {
    switch (wanted_) {
      case Ends::Next:
        return is_next(end);
      case Ends::Return:
        return end.kind == PathEnd::Return;
      case Ends::Out:
        return end.kind == PathEnd::CallOut || end.kind == PathEnd::TailOut ||
               end.kind == PathEnd::Trap;
      case Ends::Any:
        return end.kind != PathEnd::Stopped;
    }
    return false;
  }

  [[nodiscard]] bool is_next(const End& end) const {
    if (behind_.stopped_at) return end.kind == PathEnd::Stopped;
    if (!behind_.next) return false;
    const DagName& next = *behind_.next;
    if (end.kind == PathEnd::Head)
      return next.function == flow_.function() && next.dag == paths_.dag_of(end.to);
    const bool is_entered = end.kind == PathEnd::Call || end.kind == PathEnd::Tail;
    return is_entered && next.is_entry && next.function == end.to;
  }

  void keep() {
    std::vector<uint32_t> open;
    for (uint32_t i = 0; i < reached_.size(); ++i) {
      if (!reached_[i].ends.empty()) open.push_back(i);
    }
    while (!open.empty()) {
      Reached& at = reached_[open.back()];
      open.pop_back();
      if (std::exchange(at.is_kept, true)) continue;
      open.insert(open.end(), at.from.begin(), at.from.end());
    }
  }

  // As far as one way is left. Blocks that were passed are those of a loop.
  Path follow() {
    Path path;
    path.end = PathEnd::Misfit;
    if (!reached_[0].is_kept) return path;
    std::vector<bool> is_passed(reached_.size());
    uint32_t at = 0;
    while (true) {
      is_passed[at] = true;
      path.blocks.push_back(reached_[at].block);
      const Reached& here = reached_[at];
      std::vector<uint32_t> ways;
      for (const uint32_t next : here.next) {
        if (reached_[next].is_kept && !is_passed[next]) ways.push_back(next);
      }
      if (here.ends.empty() && ways.size() == 1) {
        at = ways.front();
        continue;
      }
      // None: in a loop whose end was passed, which is the same to all that go round.
      const bool is_whole = here.ends.size() == 1 && ways.empty();
      if (is_whole && !leaves_before(is_passed, at)) return ended(std::move(path), here.ends[0]);
      return end_openly(std::move(path));
    }
  }

  // A block that was passed, but for the last one, ends the path as well.
  [[nodiscard]] bool leaves_before(const std::vector<bool>& is_passed, uint32_t last) const {
    for (uint32_t i = 0; i < reached_.size(); ++i) {
      if (is_passed[i] && i != last && !reached_[i].ends.empty()) return true;
    }
    return false;
  }

  static Path ended(Path path, const End& end) {
    path.end = end.kind;
    path.to = end.to;
    if (end.block != kNone) path.blocks.push_back(end.block);
    return path;
  }

  Path end_openly(Path path) const {
    const End* only = nullptr;
    for (const Reached& one : reached_) {
      for (const End& end : one.ends) {
        const bool is_other = only != nullptr && !(end == *only);
        const bool has_place = end.kind == PathEnd::CallOut || end.kind == PathEnd::Call;
        if (is_other || has_place) {
          path.end = PathEnd::Open;
          path.is_ambiguous = true;
          return path;
        }
        only = &end;
      }
    }
    path.is_ambiguous = true;
    return ended(std::move(path), *only);
  }

  const Paths& paths_;
  const Flow& flow_;
  const Behind& behind_;
  Ends wanted_;
  uint32_t stop_block_ = kNone;
  GuardedStart first_;
  std::vector<Reached> reached_;
  std::vector<uint32_t> open_;
  std::unordered_map<uint32_t, uint32_t> numbers_;  // By block.
};

}  // namespace

Path guarded_path(const Paths& paths, const GuardedStart& start, const Behind& behind, Ends ends) {
  return GuardedPathFinder(paths, behind, ends).run(start);
}

}  // namespace clew::recorder

// SPDX-License-Identifier: Apache-2.0
#include "recorder/guard_search.h"

#include <algorithm>
#include <utility>

namespace clew::recorder {

namespace {

constexpr uint32_t kGoal = 0;  // The state that is the goal.

struct State {
  uint32_t block = kNone;
  uint32_t callees = 0;  // That have been.
  bool is_in_call = false;

  [[nodiscard]] uint64_t key() const {
    return uint64_t{callees} << 33 | uint64_t{block} << 1 | (is_in_call ? 1U : 0U);
  }
};

class WayFinder {
 public:
  explicit WayFinder(const GuardQuery& query)
      : query_(query),
        paths_(*query.modules[query.module]),
        flow_(paths_.flow(query.function)),
        count_(static_cast<uint32_t>(query.callees.size())) {}

  std::optional<GuardWay> run() {
    states_.push_back({});
    ways_.emplace_back();
    const uint32_t first = first_block();
    if (first == kNone) return std::nullopt;
    const uint32_t start = number_of({first, 0, false});
    for (uint32_t i = start; i < states_.size(); ++i) {
      if (states_.size() > kGuardStatesMax || edges_ > kGuardEdgesMax) return std::nullopt;
      if (states_[i].is_in_call) {
        leave_call(i);
      } else {
        leave_block(i);
      }
    }
    find_leading();
    if (!leads_[start]) return std::nullopt;
    find_order(start);
    return way();
  }

  [[nodiscard]] uint32_t first_block() const {
    return query_.behind ? flow_.nodes()[*query_.behind].behind : flow_.entry();
  }

 private:
  uint32_t number_of(const State& state) {
    const auto [found, is_new] =
        numbers_.emplace(state.key(), static_cast<uint32_t>(states_.size()));
    if (is_new) {
      states_.push_back(state);
      ways_.emplace_back();
    }
    return found->second;
  }

  void lead(uint32_t from, const State& to) {
    const uint32_t number = number_of(to);
    ways_[from].push_back(number);
    ++edges_;
  }

  void leave_block(uint32_t number) {
    const State at = states_[number];
    const bool has_all = at.callees == count_;
    const bool is_goals = at.block == query_.block && has_all;
    const bool is_site = paths_.is_site(query_.function, at.block);
    const bool is_wanted =
        query_.goal == GuardGoal::Stop || (is_site && query_.goal == GuardGoal::Site);
    if (is_goals && is_wanted) ways_[number].push_back(kGoal);
    if (is_site) return;
    resume(number);
    const Node& node = flow_.nodes()[at.block];
    if (node.call == CallKind::None) return leave_by_ways(number);
    if (!paths_.is_told(query_.function, at.block))
      return lead(number, {at.block, at.callees, true});
    if (at.callees < count_ && is_entered(at)) take_callee(number);
  }

  void leave_by_ways(uint32_t number) {
    const State at = states_[number];
    for (const Way& way : flow_.ways_of(at.block)) {
      if (way.kind == WayKind::Block) {
        lead(number, {way.block, at.callees, false});
      } else if (at.callees == count_ && is_end(way)) {
        ways_[number].push_back(kGoal);
      }
    }
  }

  [[nodiscard]] bool is_end(const Way& way) const {
    if (query_.goal != GuardGoal::Return && query_.goal != GuardGoal::Tail) return false;
    if (way.kind == WayKind::TailOut) return true;
    if (query_.goal == GuardGoal::Return)
      return way.kind == WayKind::Return || !paths_.tells_entry(way.function);
    if (way.kind == WayKind::Return) return false;
    return !paths_.tells_entry(way.function) ||
           (query_.next.module == query_.module && query_.next.function == way.function);
  }

  [[nodiscard]] std::optional<int64_t> entered_frame(uint32_t block) const {
    return paths_.callee_frame(query_.function, block, query_.frame);
  }

  // By the call itself.
  [[nodiscard]] bool is_entered(const State& at) const {
    const GuardCallee& callee = query_.callees[at.callees];
    const Node& node = flow_.nodes()[at.block];
    if (callee.module != query_.module || callee.function != node.callee) return false;
    const auto frame = entered_frame(at.block);
    return !frame || !callee.frame || *frame == *callee.frame;
  }

  // By what the call has led to.
  [[nodiscard]] bool may_be_entered(const State& at) const {
    const GuardCallee& callee = query_.callees[at.callees];
    const auto frame = entered_frame(at.block);
    if (frame && callee.frame && *callee.frame > *frame) return false;
    if (!paths_.is_told(query_.function, at.block)) return true;
    const GuardCallee& before = query_.callees[at.callees - 1];
    return query_.modules[before.module]->may_tail(before.function);
  }

  void take_callee(uint32_t number) {
    const State at = states_[number];
    if (query_.goal == GuardGoal::Call && at.callees + 1 == count_) {
      ways_[number].push_back(kGoal);
    } else {
      lead(number, {at.block, at.callees + 1, true});
    }
  }

  void leave_call(uint32_t number) {
    const State at = states_[number];
    if (at.callees < count_ && may_be_entered(at)) take_callee(number);
    for (const uint32_t block : paths_.behind_call(query_.function, at.block))
      lead(number, {block, at.callees, false});
  }

  void resume(uint32_t number) {
    const uint32_t callees = states_[number].callees;
    for (const uint32_t block : paths_.resumes(query_.function))
      lead(number, {block, callees, false});
  }

  // From which states control comes to the goal.
  void find_leading() {
    std::vector<std::vector<uint32_t>> back(states_.size());
    for (uint32_t i = 0; i < states_.size(); ++i) {
      for (const uint32_t to : ways_[i])
        back[to].push_back(i);
    }
    leads_.resize(states_.size());
    std::vector<uint32_t> pending = {kGoal};
    while (!pending.empty()) {
      const uint32_t at = pending.back();
      pending.pop_back();
      if (leads_[at]) continue;
      leads_[at] = true;
      pending.insert(pending.end(), back[at].begin(), back[at].end());
    }
  }

  // Of those, each in front of what it leads to; those of a loop lie together. After Tarjan,
  // "Depth-first search and linear graph algorithms", SIAM J. Comput. 1(2), 1972.
  void find_order(uint32_t start) {
    struct Visit {
      uint32_t state;
      size_t next = 0;
    };
    loops_.resize(states_.size());
    std::vector<uint32_t> found(states_.size());   // Number of the visit, from 1.
    std::vector<uint32_t> lowest(states_.size());  // Of a state that is reached and still open.
    std::vector<bool> is_ordered(states_.size());
    std::vector<uint32_t> waiting;
    std::vector<Visit> open;
    uint32_t visits = 0;
    const auto begin = [&](uint32_t state) {
      found[state] = lowest[state] = ++visits;
      waiting.push_back(state);
      open.push_back({state});
    };
    begin(start);
    while (!open.empty()) {
      const uint32_t at = open.back().state;
      if (open.back().next < ways_[at].size()) {
        const uint32_t to = ways_[at][open.back().next++];
        if (!leads_[to] || is_ordered[to]) continue;
        if (to == at) loops_[at] = true;
        if (found[to] == 0) {
          begin(to);
        } else {
          lowest[at] = std::min(lowest[at], found[to]);
        }
        continue;
      }
      open.pop_back();
      if (!open.empty()) {
        uint32_t& above = lowest[open.back().state];
        above = std::min(above, lowest[at]);
      }
      if (lowest[at] == found[at]) put_loop(at, waiting, is_ordered);
    }
    std::reverse(order_.begin(), order_.end());
  }

  void put_loop(uint32_t first, std::vector<uint32_t>& waiting, std::vector<bool>& is_ordered) {
    const bool is_loop = waiting.back() != first;
    uint32_t state = kNone;
    while (state != first) {
      state = waiting.back();
      waiting.pop_back();
      is_ordered[state] = true;
      loops_[state] = loops_[state] || is_loop;
      order_.push_back(state);
    }
  }

  // Which of order_ all ways pass, and once.
  [[nodiscard]] std::vector<bool> find_common() const {
    std::vector<size_t> place(states_.size());
    for (size_t i = 0; i < order_.size(); ++i)
      place[order_[i]] = i;
    std::vector<bool> common(order_.size());
    size_t reach = 0;
    for (size_t i = 0; i < order_.size(); ++i) {
      common[i] = reach <= i && !loops_[order_[i]];
      for (const uint32_t to : ways_[order_[i]]) {
        if (leads_[to]) reach = std::max(reach, place[to]);
      }
    }
    return common;
  }

  GuardWay way() {
    const std::vector<bool> common = find_common();
    std::vector<GuardItem> all;
    std::vector<size_t> called;  // Callees in `all` of the call that `call` is.
    uint32_t call = kNone;
    uint32_t callees = 0;
    bool is_doubtful = false;
    for (size_t i = 0; i < order_.size(); ++i) {
      if (!common[i]) {
        is_doubtful = true;
        continue;
      }
      const bool is_goal = order_[i] == kGoal;
      const State at = is_goal ? State{kNone, count_, false} : states_[order_[i]];
      if (is_doubtful) called.clear();
      for (; callees < at.callees; ++callees) {
        if (!is_doubtful) called.push_back(all.size());
        all.push_back({.is_callee = true,
                       .number = callees,
                       .is_doubtful = is_doubtful,
                       .end = GuardEnd::Unknown});
        if (is_goal && query_.goal == GuardGoal::Call && callees + 1 == count_)
          all.back().end = GuardEnd::Runs;
      }
      if (is_goal || at.is_in_call) continue;
      if (call != kNone && at.block == flow_.nodes()[call].behind) came_back(all, called, call);
      called.clear();
      all.push_back({.is_callee = false, .number = at.block, .is_doubtful = is_doubtful});
      call = flow_.nodes()[at.block].call == CallKind::None ? kNone : at.block;
      is_doubtful = false;
    }
    if (is_doubtful && query_.goal == GuardGoal::Stop) {
      all.push_back({.is_callee = false, .number = query_.block, .is_doubtful = true});
      is_doubtful = false;
    }
    return {.items = std::move(all), .ends_in_doubt = is_doubtful};
  }

  // Those that the call entered itself have ended before it did.
  void came_back(std::vector<GuardItem>& all, const std::vector<size_t>& called,
                 uint32_t call) const {
    const auto frame = entered_frame(call);
    const auto is_its = [&](size_t item) {
      const auto callees = query_.callees[all[item].number].frame;
      return frame && callees && *frame == *callees;
    };
    for (size_t i = 0; i < called.size(); ++i) {
      if (!is_its(called[i])) continue;
      const bool is_last = i + 1 == called.size() || !is_its(called[i + 1]);
      all[called[i]].end = is_last ? GuardEnd::Returned : GuardEnd::Jumped;
    }
  }

  const GuardQuery& query_;
  const GuardPaths& paths_;
  const Flow& flow_;
  uint32_t count_;
  std::vector<State> states_;  // The first is kGoal.
  std::vector<std::vector<uint32_t>> ways_;
  std::unordered_map<uint64_t, uint32_t> numbers_;
  size_t edges_ = 0;
  std::vector<bool> leads_;
  std::vector<bool> loops_;  // It may be passed again.
  std::vector<uint32_t> order_;
};

}  // namespace

std::optional<GuardWay> find_way(const GuardQuery& query) {
  return WayFinder(query).run();
}

std::vector<uint32_t> sure_blocks(const GuardQuery& query) {
  std::vector<uint32_t> blocks;
  const GuardPaths& paths = *query.modules[query.module];
  const Flow& flow = paths.flow(query.function);
  if (!paths.resumes(query.function).empty()) return blocks;
  uint32_t at = WayFinder(query).first_block();
  while (at != kNone && !paths.is_site(query.function, at) && blocks.size() < flow.nodes().size()) {
    blocks.push_back(at);
    const auto ways = flow.ways_of(at);
    const bool goes_on = flow.nodes()[at].call == CallKind::None && ways.size() == 1 &&
                         ways.front().kind == WayKind::Block;
    at = goes_on ? ways.front().block : kNone;
  }
  return blocks;
}

}  // namespace clew::recorder

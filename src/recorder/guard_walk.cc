// SPDX-License-Identifier: Apache-2.0
#include "recorder/guard_walk.h"

#include <algorithm>
#include <utility>

#include "recorder/guard_search.h"
#include "recorder/guard_tree.h"

namespace clew::recorder {

namespace {

// What an activation did, in order.
struct Done {
  bool is_activation = false;
  uint32_t number = 0;  // A block, or an activation.
  uint8_t marks = 0;    // Of what is in front of it.
};

class GuardWalker {
 public:
  GuardWalker(std::span<const WalkedModule> modules, const ThreadRecords& records)
      : records_(records), tree_(read_tree(modules, records)) {
    for (const WalkedModule& one : modules)
      modules_.push_back(one.guards);
    done_.resize(tree_.activations.size());
    ends_.resize(tree_.activations.size(), GuardEnd::Unknown);
    behind_.resize(tree_.activations.size(), kNone);
    is_cut_off_.resize(tree_.activations.size());
    is_open_.resize(tree_.activations.size());
    ends_loosely_.resize(tree_.activations.size());
    for (auto i = static_cast<uint32_t>(ends_loosely_.size()); i-- > 0;)
      ends_loosely_[i] = find_loose_end(tree_.activations[i]);
  }

  Walk run() {
    walk_.records = tree_.records;
    walk_.gaps = tree_.gaps;
    if (tree_.is_at_stop) stop_ = modules_[records_.stopped_in]->block_at(*records_.stopped_at);
    const size_t runs = tree_.is_at_stop ? tree_.open.size() : tree_.surely_open;
    for (size_t i = 0; i < tree_.open.size(); ++i) {
      is_open_[tree_.open[i]] = true;
      if (i < runs) ends_[tree_.open[i]] = GuardEnd::Runs;
    }
    // Who called one has a lower number.
    for (uint32_t i = 0; i < tree_.activations.size(); ++i)
      find_done(i);
    for (const uint32_t root : tree_.roots)
      put(root);
    if (!walk_.is_cut && is_at_stop_) walk_.end = PathEnd::Stopped;
    return std::move(walk_);
  }

 private:
  // From behind so many of its guards, with what it called there.
  [[nodiscard]] GuardQuery query_behind(uint32_t number, size_t hits) const {
    const GuardActivation& at = tree_.activations[number];
    GuardQuery query{
        .modules = modules_, .module = at.module, .function = at.function, .frame = at.frame};
    if (hits != 0) query.behind = at.hits[hits - 1].block;
    for (const TreeCallee& one : at.callees) {
      const GuardActivation& callee = tree_.activations[one.activation];
      if (one.behind_hits == hits && !callee.is_loose)
        query.callees.push_back({callee.module, callee.function, callee.frame});
    }
    return query;
  }

  [[nodiscard]] std::vector<uint32_t> callees_behind(uint32_t number, size_t hits) const {
    std::vector<uint32_t> all;
    for (const TreeCallee& one : tree_.activations[number].callees) {
      if (one.behind_hits == hits) all.push_back(one.activation);
    }
    return all;
  }

  [[nodiscard]] bool find_loose_end(const GuardActivation& at) const {
    return std::any_of(at.callees.begin(), at.callees.end(), [&](const TreeCallee& one) {
      return one.behind_hits == at.hits.size() &&
             (tree_.activations[one.activation].is_loose || ends_loosely_[one.activation]);
    });
  }

  void find_done(uint32_t number) {
    const GuardActivation& at = tree_.activations[number];
    marks_ = 0;
    for (size_t i = 0; i < at.hits.size(); ++i) {
      marks_ |= at.hits[i].marks;
      if (i == 0 && !at.has_begun) {
        add_block(number, at.hits[i].block);
        continue;
      }
      GuardQuery query = query_behind(number, i);
      query.goal = GuardGoal::Site;
      query.block = at.hits[i].block;
      if (go(number, i, query)) continue;
      add_callees(number, i);
      doubt();
      add_block(number, at.hits[i].block);
    }
    find_end(number);
  }

  void find_end(uint32_t number) {
    const GuardActivation& at = tree_.activations[number];
    const size_t hits = at.hits.size();
    marks_ = 0;
    GuardQuery query = query_behind(number, hits);
    switch (ends_[number]) {
      case GuardEnd::Runs:
        return find_stop(number, query);
      case GuardEnd::Returned:
        query.goal = GuardGoal::Return;
        if (go(number, hits, query)) return;
        break;
      case GuardEnd::Jumped: {
        const GuardActivation& next = tree_.activations[behind_[number]];
        query.goal = GuardGoal::Tail;
        query.next = {next.module, next.function, next.frame};
        if (go(number, hits, query)) return;
        break;
      }
      case GuardEnd::Unknown:
        if (!is_open_[number]) break;
        is_cut_off_[number] = true;
        return add_callees(number, hits);
    }
    add_sure(number, query);
  }

  void find_stop(uint32_t number, GuardQuery& query) {
    const size_t hits = tree_.activations[number].hits.size();
    if (!tree_.is_at_stop || number != tree_.open.back()) {
      query.goal = GuardGoal::Call;
      if (go(number, hits, query)) return;
      return add_sure(number, query);
    }
    query.goal = GuardGoal::Stop;
    query.block = stop_->block;
    is_at_stop_ = go(number, hits, query);
    if (!is_at_stop_) add_callees(number, hits);
  }

  // Up to the first call or decision.
  void add_sure(uint32_t number, const GuardQuery& query) {
    const GuardActivation& at = tree_.activations[number];
    const std::vector<uint32_t> callees = callees_behind(number, at.hits.size());
    const bool is_known = !at.hits.empty() || at.has_begun;
    std::vector<uint32_t> blocks;
    if (is_known && !has_loose(callees)) blocks = sure_blocks(query);
    for (const uint32_t block : blocks)
      add_block(number, block);
    add_callees(number, at.hits.size());
    const bool is_whole = callees.empty() && !blocks.empty() &&
                          modules_[at.module]->only_returns(at.function, blocks.back());
    if (!is_whole) is_cut_off_[number] = true;
  }

  [[nodiscard]] bool has_loose(const std::vector<uint32_t>& callees) const {
    return std::any_of(callees.begin(), callees.end(),
                       [this](uint32_t one) { return tree_.activations[one].is_loose; });
  }

  // Handlers that began before all else ran first; of others the place is not known.
  bool go(uint32_t number, size_t hits, const GuardQuery& query) {
    const std::vector<uint32_t> callees = callees_behind(number, hits);
    size_t loose = 0;
    while (loose < callees.size() && tree_.activations[callees[loose]].is_loose)
      ++loose;
    if (loose + query.callees.size() != callees.size()) return false;
    const auto way = find_way(query);
    if (!way) return false;
    for (size_t i = 0; i < loose; ++i)
      add_callee(number, callees[i]);
    if (loose != 0) doubt();
    // Blocks in front of the next callee, or of the goal, may have run before or behind these.
    bool is_placed = loose == 0;
    const bool ends_with_goal = query.goal == GuardGoal::Site || query.goal == GuardGoal::Stop;
    for (const GuardItem& item : way->items) {
      if (item.is_callee || (ends_with_goal && &item == &way->items.back())) is_placed = true;
      if (item.is_doubtful || !is_placed) doubt();
      if (!is_placed) continue;
      if (!item.is_callee) {
        add_block(number, item.number);
        continue;
      }
      const uint32_t callee = callees[loose + item.number];
      if (!is_open_[callee]) ends_[callee] = item.end;
      if (item.end == GuardEnd::Jumped) behind_[callee] = callees[loose + item.number + 1];
      add_callee(number, callee);
      is_placed = !ends_loosely_[callee];
    }
    if (way->ends_in_doubt || !is_placed) is_cut_off_[number] = true;
    return true;
  }

  void doubt() { marks_ |= kUncertain; }

  void add_block(uint32_t number, uint32_t block) {
    done_[number].push_back({false, block, std::exchange(marks_, uint8_t{0})});
  }
  void add_callee(uint32_t number, uint32_t callee) {
    done_[number].push_back({true, callee, std::exchange(marks_, uint8_t{0})});
  }
  void add_callees(uint32_t number, size_t hits) {
    for (const uint32_t callee : callees_behind(number, hits)) {
      doubt();
      add_callee(number, callee);
    }
  }

  struct Open {
    uint32_t activation = 0;
    int32_t depth = 0;
    size_t next = 0;
  };

  void put(uint32_t root) {
    uint8_t marks = pending_;
    std::vector<Open> open = {{root, tree_.activations[root].depth}};
    bool is_entry = tree_.activations[root].has_begun;
    pending_ = 0;
    while (!open.empty() && !walk_.is_cut) {
      Open& top = open.back();
      if (top.next == done_[top.activation].size()) {
        is_entry = false;
        if (is_cut_off_[top.activation]) marks |= kUncertain;
        open.pop_back();
        continue;
      }
      const Done& one = done_[top.activation][top.next++];
      marks |= one.marks;
      if (one.is_activation) {
        is_entry = tree_.activations[one.number].has_begun;
        open.push_back({one.number, top.depth + 1});
        continue;
      }
      put_step(tree_.activations[top.activation], one.number, top.depth,
               std::exchange(marks, uint8_t{0}), std::exchange(is_entry, false));
    }
    pending_ = marks;
  }

  void put_step(const GuardActivation& at, uint32_t block, int32_t depth, uint8_t marks,
                bool is_entry) {
    if (walk_.steps.size() == kStepsMax) {
      walk_.is_cut = true;
      return;
    }
    if ((marks & kUncertain) != 0) ++walk_.uncertain;
    walk_.steps.push_back({.module = at.module,
                           .function = at.function,
                           .block = block,
                           .depth = depth,
                           .marks = marks,
                           .is_entry = is_entry});
  }

  const ThreadRecords& records_;
  GuardTree tree_;
  std::vector<const GuardPaths*> modules_;
  std::optional<GuardSite> stop_;
  bool is_at_stop_ = false;
  std::vector<std::vector<Done>> done_;  // By activation, and so are the others.
  std::vector<GuardEnd> ends_;
  std::vector<uint32_t> behind_;
  std::vector<bool> is_open_;  // It has not ended, as far as guards say.
  // Behind its last guard was something loose, in it or in what has gone on then.
  std::vector<bool> ends_loosely_;
  std::vector<bool> is_cut_off_;  // Something ran behind what is known.
  uint8_t marks_ = 0;
  uint8_t pending_ = 0;  // Of the next root.
  Walk walk_;
};

}  // namespace

Walk walk_guards(std::span<const WalkedModule> modules, const ThreadRecords& records) {
  return GuardWalker(modules, records).run();
}

}  // namespace clew::recorder

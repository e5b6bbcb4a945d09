// SPDX-License-Identifier: Apache-2.0
#include "recorder/guard_tree.h"

#include <algorithm>
#include <utility>

#include "recorder/signal_records.h"

namespace clew::recorder {

namespace {

constexpr int64_t kUnitBytes = 8;  // Of a Frame record, and of a return address.

// A guard that a thread was at.
struct Met {
  uint32_t module = 0;
  GuardSite site;
  bool is_first = false;
  int64_t stack = 0;               // In front of the call.
  std::optional<int64_t> frame{};  // At its function's entry.
};

class TreeReader {
 public:
  explicit TreeReader(std::span<const WalkedModule> modules) : modules_(modules) {
    for (const WalkedModule& one : modules)
      paths_.push_back(one.guards);
  }

  GuardTree run(const ThreadRecords& records) {
    const std::vector<Record> all = parse_records(records.words);
    size_t at = !all.empty() && is_frame(all.front()) ? 1 : 0;
    for (; at < all.size(); ++at) {
      if (all[at].kind == RecordKind::Signal) {
        is_handler_ = true;
        interrupt();
        continue;
      }
      const bool is_whole =
          all[at].kind == RecordKind::Dag && at + 1 < all.size() && is_frame(all[at + 1]);
      const auto met = is_whole ? met_at(all[at].word, all[at + 1].word) : std::nullopt;
      if (is_whole) ++at;
      if (met) {
        add(*met);
      } else {
        lose();
      }
    }
    stop(records);
    return std::move(tree_);
  }

 private:
  static bool is_frame(const Record& record) {
    return record.kind == RecordKind::Gap && abi::is_frame(record.word);
  }

  void lose() {
    ++tree_.gaps;
    pending_ |= kGap;
    tree_.open.clear();
    interrupted_.clear();
  }

  void interrupt() {
    const size_t open = tree_.open.size();
    if (open != 0 && (interrupted_.empty() || interrupted_.back() < open))
      interrupted_.push_back(open);
  }

  // As so many are open now.
  void cut_interrupted() {
    const size_t open = tree_.open.size();
    while (interrupted_.size() > 1 && interrupted_[interrupted_.size() - 2] >= open)
      interrupted_.pop_back();
    if (!interrupted_.empty()) interrupted_.back() = std::min(interrupted_.back(), open);
  }

  std::optional<Met> met_at(uint32_t word, uint32_t frame) {
    move_stack(frame);
    for (uint32_t i = 0; i < modules_.size(); ++i) {
      const uint32_t first = abi::dag_record(modules_[i].first_id);
      if (word < first) continue;
      const GuardPaths& paths = *modules_[i].guards;
      const auto site = paths.site_of(word - first);
      if (!site) continue;
      Met met{.module = i,
              .site = *site,
              .is_first = paths.is_first(site->function, site->block),
              .stack = stack_};
      if (const auto depth = paths.depth_in(site->function, site->block))
        met.frame = stack_ + *depth;
      return met;
    }
    return std::nullopt;
  }

  // Of the stack pointer only some bits are there: it is where it was, and so far from it.
  void move_stack(uint32_t frame) {
    constexpr unsigned kUnused = 32 - abi::kFrameBits;
    const auto moved = static_cast<int32_t>((frame - last_frame_) << kUnused) >> kUnused;
    last_frame_ = frame;
    stack_ += moved * kUnitBytes;
  }

  [[nodiscard]] GuardActivation& top() { return tree_.activations[tree_.open.back()]; }

  void add(const Met& met) {
    ++tree_.records;
    while (!tree_.open.empty() && is_over(met))
      tree_.open.pop_back();
    cut_interrupted();
    const bool is_handler = std::exchange(is_handler_, false) && met.is_first;
    if (!tree_.open.empty() && goes_on(met)) {
      if (!interrupted_.empty() && interrupted_.back() == tree_.open.size())
        interrupted_.pop_back();
      return add_hit(met);
    }
    bool is_loose = is_handler || !met.is_first;
    if (!tree_.open.empty() && top().frame && top().frame == met.frame) {
      // Has it ended, or come to its first guard once more?
      const bool repeats =
          is_of_top(met) && modules_[met.module].guards->repeats(met.site.function, met.site.block);
      if (repeats) top().is_loose = is_loose = true;
      tree_.open.pop_back();
    }
    if (!is_loose) is_loose = !find_caller({met.module, met.site.function, met.frame}, false);
    if (is_loose) pending_ |= kUncertain;
    if (is_handler) pending_ |= kHandler;
    begin(met, is_loose);
    add_hit(met);
  }

  // The innermost activation, now that there is this guard.
  [[nodiscard]] bool is_over(const Met& met) {
    const GuardActivation& one = top();
    if (one.frame && met.frame) return *one.frame < *met.frame;
    if (one.frame) return *one.frame <= met.stack;
    return met.frame && *met.frame >= one.last_stack;
  }

  [[nodiscard]] bool is_of_top(const Met& met) {
    return top().module == met.module && top().function == met.site.function;
  }

  [[nodiscard]] bool goes_on(const Met& met) {
    if (met.is_first || !is_of_top(met)) return false;
    return !top().frame || !met.frame || *top().frame == *met.frame;
  }

  // Makes it the innermost one: the activations behind it have ended. False: not exactly one may
  // have called this. `is_stop`: it is wanted as the place of `stop_`, or of who calls that.
  bool find_caller(const GuardCallee& callee, bool is_stop) {
    constexpr size_t kCallersMax = 256;
    struct May {
      size_t count = 0;  // Of open ones.
      std::vector<uint32_t> calls;
      bool is_there = false;
    };
    if (tree_.open.empty()) return true;
    std::vector<May> all;
    bool may_be_other = false;  // All may have ended; then what is not recorded has called.
    size_t left = tree_.open.size();
    for (size_t i = 0; left != 0; ++i, --left) {
      const GuardActivation& one = tree_.activations[tree_.open[left - 1]];
      const bool is_stops = is_stop && one.module == callee.module &&
                            one.function == callee.function && may_be_at_stop(one);
      GuardNext next = next_of(paths_, one.front, is_stop && !is_in_front_ ? nullptr : &callee,
                               is_stops ? stop_->block : kNone);
      if (next.may_stop) all.push_back({left, {}, true});
      if (!next.calls.empty()) all.push_back({left, std::move(next.calls)});
      const bool may_be_over =
          next.may_end || (next.may_unwind && left > 1 && may_catch(tree_.open[left - 2]));
      if (!may_be_over || i == kCallersMax) break;
      may_be_other = left == 1;
    }
    tree_.surely_open = left == 0 ? 0 : left - 1;
    // Of an activation that has been at its first guard that would be known.
    if (is_stop && !is_in_front_) may_be_other = false;
    if (!is_stop && !all.empty() && is_interrupted(all.front().count)) may_be_other = true;
    const bool is_sure = all.size() == 1 && !may_be_other && left + kCallersMax > tree_.open.size();
    if (is_stop) {
      if (!is_sure) return false;
      tree_.open.resize(all.front().count);
      tree_.is_at_stop = true;
      if (!all.front().is_there) begin_stopped(callee);
      return true;
    }
    tree_.open.resize(all.empty() ? std::max<size_t>(left, 1) : all.back().count);
    GuardFront& front = top().front;
    front.callee = callee;
    if (is_sure) front.calls = std::move(all.front().calls);
    front.is_unknown = front.is_unknown || !is_sure;
    return is_sure;
  }

  [[nodiscard]] bool is_interrupted(size_t count) const {
    return !interrupted_.empty() && count <= interrupted_.back();
  }

  [[nodiscard]] bool may_catch(uint32_t number) const {
    const GuardActivation& one = tree_.activations[number];
    const GuardPaths& paths = *paths_[one.module];
    return !paths.flow(one.function).landing_pads().empty() ||
           !paths.resumes(one.function).empty() || one.front.is_unknown;
  }

  [[nodiscard]] bool may_be_at_stop(const GuardActivation& one) const {
    return !stop_frame_ || !one.frame || *stop_frame_ == *one.frame;
  }

  void stop(const ThreadRecords& records) {
    tree_.surely_open = 0;
    if (!records.stopped_at || tree_.open.empty()) return;
    const GuardPaths& paths = *paths_[records.stopped_in];
    stop_ = paths.block_at(*records.stopped_at);
    if (!stop_) return;
    is_in_front_ = paths.is_in_front(stop_->function, stop_->block);
    const auto depth = paths.depth_at(stop_->function, *records.stopped_at);
    if (records.stopped_stack && depth) {
      move_stack(static_cast<uint32_t>(*records.stopped_stack / kUnitBytes));
      stop_frame_ = stack_ - kUnitBytes + *depth;
    }
    (void)find_caller({records.stopped_in, stop_->function, stop_frame_}, true);
  }

  // In front of its first guard.
  void begin_stopped(const GuardCallee& callee) {
    const auto number = static_cast<uint32_t>(tree_.activations.size());
    top().callees.push_back({number, top().hits.size()});
    tree_.activations.push_back({.module = callee.module,
                                 .function = callee.function,
                                 .frame = callee.frame,
                                 .has_begun = true});
    tree_.open.push_back(number);
  }

  void begin(const Met& met, bool is_loose) {
    const auto number = static_cast<uint32_t>(tree_.activations.size());
    GuardActivation one{.module = met.module,
                        .function = met.site.function,
                        .frame = met.frame,
                        .has_begun = met.is_first,
                        .is_loose = is_loose};
    if (tree_.open.empty()) {
      if (!tree_.roots.empty()) {
        const GuardActivation& before = tree_.activations[tree_.roots.back()];
        const bool is_further_out = !before.frame || !met.frame || *before.frame < *met.frame;
        one.depth = before.depth - (is_further_out ? 1 : 0);
        pending_ |= kUncertain;
      }
      tree_.roots.push_back(number);
    } else {
      top().callees.push_back({number, top().hits.size()});
    }
    tree_.activations.push_back(std::move(one));
    tree_.open.push_back(number);
  }

  void add_hit(const Met& met) {
    if (!top().frame) top().frame = met.frame;
    top().last_stack = met.stack;
    top().front = {.module = met.module,
                   .function = met.site.function,
                   .frame = top().frame,
                   .behind = met.site.block};
    top().hits.push_back({met.site.block, std::exchange(pending_, uint8_t{0})});
  }

  std::span<const WalkedModule> modules_;
  std::vector<const GuardPaths*> paths_;
  std::optional<GuardSite> stop_;
  std::optional<int64_t> stop_frame_;
  bool is_in_front_ = false;  // The stop, of its function's first guard.
  GuardTree tree_;
  int64_t stack_ = 0;
  uint32_t last_frame_ = 0;
  bool is_handler_ = false;
  // So many of tree_.open have not come to a guard since a signal: a handler may be behind them,
  // which comes to none itself, and calls. Ascending.
  std::vector<size_t> interrupted_;
  uint8_t pending_ = 0;
};

}  // namespace

GuardTree read_tree(std::span<const WalkedModule> modules, const ThreadRecords& records) {
  return TreeReader(modules).run(records);
}

}  // namespace clew::recorder

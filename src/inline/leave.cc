// SPDX-License-Identifier: Apache-2.0
// The end of a session. What it changed is in the process and in all that it has forked since, and
// goes from all of them, also when the process itself has ended or runs another program.
#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "inline/attachment_state.h"
#include "inline/brief_wait.h"
#include "inline/forked_children.h"
#include "inline/removal.h"

namespace clew::inline_ {
namespace {

// A thread that gets a signal whenever it may run does not leave a probe while it is let run for
// moments only; free, it does.
constexpr unsigned kRoundsMax = 5;
constexpr std::chrono::microseconds kPauseOfLeaving{20'000};

class Leaving {
 public:
  // With the locks held, as far as the process still has the arena.
  Leaving(Attachment::State& state, bool has_first)
      : state_(state),
        arena_(state.arena),
        has_first_(has_first),
        children_(state.arena, state.pid),
        mine_(1U << state.geometry.session),
        leaving_(mine_ | dead_sessions(state.arena)),
        is_last_((live_sessions(state.arena) & ~mine_) == 0) {}

  Expected<DetachReport> run() {
    const std::vector<pid_t> known = children_.look();
    if (has_first_ || !known.empty()) CLEW_TRY(take_out(known));
    for (const pid_t child : left_)
      note_left(child);
    note_changed_text();
    if (has_first_) log_detached(state_.pid, report_, removal_->sites());
    // That is told, and no mistake: they have to return, and harm nobody.
    if (keeps_copies_) report_.residue = false;
    if (!has_first_) log_step(state_.pid, "is gone: there is nothing to take out");
    state_.attached = false;
    for (uint32_t s = 0; s < abi::kSessionsMax; ++s) {
      uint32_t* const there = &arena_.header().sessions[s].state;
      if ((leaving_ >> s & 1) != 0) __atomic_store_n(there, 0U, __ATOMIC_RELEASE);
    }
    return std::move(report_);
  }

 private:
  struct Attempt {
    bool is_done = false;
    bool is_final = false;  // Another one would not change anything.
    std::string reason;
    std::vector<TextChange> changed = {};
  };

  Expected<void> take_out(std::span<const pid_t> known) {
    state_.journal.emplace(arena_);
    removal_.emplace(arena_, *state_.journal,
                     RemovalRequest{.leaving = leaving_, .everything = is_last_});
    if (has_first_) look_before_the_stop(state_.pid);
    for (const pid_t child : known)
      look_before_the_stop(child);
    CLEW_TRY(take_out_at_once(known));
    try_again();
    if (!report_.residue && left_.empty()) removal_->forget();
    return {};
  }

  void look_before_the_stop(pid_t pid) {
    removal_->look_for_resting_frames(pid, state_.gadgets.restorer);
    removal_->look_at_text(pid);
  }

  // All that run the code are stopped before any of it changes.
  Expected<void> take_out_at_once(std::span<const pid_t> known) {
    children_.stop(known, state_.options.stop_timeout);
    std::optional<StoppedTarget> first;
    if (has_first_) {
      auto stopped = stop_target(state_.pid, state_.options);
      if (stopped) {
        first.emplace(std::move(*stopped));
      } else if (stopped.error().code != ErrorCode::NotFound) {
        return tl::unexpected(stopped.error());
      }
    }
    const bool all_stand = children_.stop_those_in_between();
    CLEW_TRY(check_links(all_stand));
    for (StoppedTarget& child : children_.stopped())
      take_out_of_child(child);
    if (first) CLEW_TRY(take_out_of_first(*first));
    children_.resume();
    if (first) log_stop(*first, "take out the jumps");
    return {};
  }

  // The links between the layers of sessions change only where nobody runs.
  [[nodiscard]] Expected<void> check_links(bool all_stand) const {
    if (is_last_ || all_stand) return {};
    const auto& unstopped = children_.unstopped();
    return fail(ErrorCode::Io,
                fmt::format("not all forked children of process {} can be stopped ({}), and "
                            "another session traces them, too",
                            state_.pid, unstopped.empty() ? "too many" : unstopped.front().reason));
  }

  void take_out_of_child(StoppedTarget& child) {
    child.use_gadgets(state_.gadgets);
    Attempt& attempt = attempts_[child.pid()];
    const auto report = removal_->run(child);
    attempt.is_done = report && (!report->residue || removal_->keeps_copies_alone());
    attempt.is_final = !report || (report->residue && !removal_->waits_for_a_thread());
    attempt.reason = report ? report->residue_reason : report.error().message;
    if (report) attempt.changed = report->left;
  }

  Expected<void> take_out_of_first(StoppedTarget& first) {
    first.use_gadgets(state_.gadgets);
    if (leaving_ != mine_) CLEW_TRY(first.finish_calls_of_dead_tracers());
    report_ = CLEW_TRY(removal_->run(first));
    first_waits_ = removal_->waits_for_a_thread();
    keeps_copies_ = report_.residue && removal_->keeps_copies_alone();
    first.resume();
    state_.note_stop(first);
    return {};
  }

  // One after the other: those that a thread was inside of, or that did not stop.
  void try_again() {
    for (unsigned round = 0;; ++round) {
      left_ = find_left();
      const bool has_more = first_waits_ || std::any_of(left_.begin(), left_.end(), [&](pid_t pid) {
                              return !attempts_[pid].is_final;
                            });
      if (!has_more || round == kRoundsMax) return;
      wait_briefly(kPauseOfLeaving);
      for (const pid_t child : left_)
        try_child(child);
      if (first_waits_) first_waits_ = try_first();
    }
  }

  // Children of who has been left already have the other sessions' arena, and nothing of this one.
  [[nodiscard]] std::vector<pid_t> find_left() const {
    std::vector<pid_t> left = children_with(arena_, state_.pid);
    std::erase_if(left, [&](pid_t pid) {
      const auto attempt = attempts_.find(pid);
      return attempt != attempts_.end() ? attempt->second.is_done : !is_last_;
    });
    return left;
  }

  void try_child(pid_t pid) {
    Attempt& attempt = attempts_[pid];
    if (attempt.is_final) return;
    auto stopped = stop_target(pid, state_.options.stop_timeout);
    if (stopped) return take_out_of_child(*stopped);
    attempt.is_final = true;
    attempt.reason = stopped.error().message;
  }

  // Whether it has to be tried once more.
  bool try_first() {
    auto stopped = stop_target(state_.pid, state_.options);
    return stopped && take_out_of_first(*stopped) && first_waits_;
  }

  void note_left(pid_t child) {
    const Attempt& attempt = attempts_[child];
    const std::string why = attempt.reason.empty() ? "it was made just now" : attempt.reason;
    report_.children.push_back({.pid = child, .reason = why, .left = attempt.changed});
  }

  void note_changed_text() {
    for (const auto& [child, attempt] : attempts_) {
      if (!attempt.is_done || attempt.changed.empty()) continue;
      report_.children.push_back(
          {.pid = child, .reason = "its text is not its files'", .left = attempt.changed});
    }
  }

  Attachment::State& state_;
  const Arena& arena_;
  bool has_first_;
  ForkedChildren children_;
  uint32_t mine_;
  uint32_t leaving_;
  bool is_last_;
  std::optional<Removal> removal_;
  std::map<pid_t, Attempt> attempts_;  // Of children.
  std::vector<pid_t> left_;
  bool first_waits_ = false;
  bool keeps_copies_ = false;
  DetachReport report_;
};

}  // namespace

void let_loaders_go(Attachment::State& state) {
  abi::TargetPage& page = state.arena.target_page();
  state.loader_seen =
      __atomic_load_n(&page.loader_requests[state.geometry.session], __ATOMIC_ACQUIRE);
  answer_loader(state);
  __atomic_fetch_and(&page.loader_sessions, ~(1U << state.geometry.session), __ATOMIC_ACQ_REL);
}

Expected<DetachReport> Attachment::detach() {
  if (!state_->attached) return DetachReport{};
  let_loaders_go(*state_);
  std::optional<ProcessLock::Hold> hold;
  if (state() == TargetState::Running) {
    auto taken = state_->lock->hold_to_leave();
    if (!taken && taken.error().code != ErrorCode::NotFound) {
      return tl::unexpected(taken.error());
    }
    if (taken) hold.emplace(std::move(*taken));
  }
  const ArenaLock lock = CLEW_TRY(ArenaLock::take(state_->arena));
  return Leaving(*state_, hold.has_value()).run();
}

}  // namespace clew::inline_

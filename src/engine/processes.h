// SPDX-License-Identifier: Apache-2.0
// The traced processes of a session as its source of events and counts: their arming one after the
// other, their common window of time, and the programs that they begin.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/error.h"
#include "engine/begun_programs.h"
#include "engine/chosen.h"
#include "engine/cost_meter.h"
#include "engine/exec_watch.h"
#include "engine/tracee.h"
#include "inline/process_lock.h"
#include "plan/lower.h"
#include "plan/plan.h"
#include "session/numbers.h"
#include "session/source.h"

namespace clew::engine {

// Borrowed, but for what is shared.
struct ProcessesInput {
  const plan::Plan& plan;
  const plan::Lowered& lowered;
  plan::Grouping& grouping;
  Tracee::Shared shared;
  session::Numbers& numbers;
  bool follow_forks = false;
  bool checks_memory = true;
  std::optional<LaterProcesses> later = {};  // Then forks are followed, too, and no execs.
  std::function<void(const std::string&)> progress = {};
  std::optional<double> max_overhead = {};  // Request::max_overhead
};

class Processes final : public session::Source {
 public:
  // `tracees`: at least one, with their sites found.
  Processes(ProcessesInput input, std::vector<std::unique_ptr<Tracee>> tracees)
      : input_(std::move(input)), tracees_(std::move(tracees)) {}

  // Refused when what the probes need is more than the machine can give.
  Expected<void> check_room() const;
  // Of many processes, before anything is done to them: a sentence; else empty.
  [[nodiscard]] std::string what_it_takes() const;
  // One of several that cannot be traced is left out: it is told by `wait`, and in the losses. An
  // error leaves nothing in any of them, once this object is gone.
  Expected<void> attach(const inline_::LockWait& wait);

  [[nodiscard]] const std::vector<std::unique_ptr<Tracee>>& tracees() const { return tracees_; }
  [[nodiscard]] std::set<pid_t> pids() const;
  [[nodiscard]] bool has_ended(pid_t pid) const;

  [[nodiscard]] bool gone() const override;
  void begin_window() override;
  Expected<void> start(uint64_t begin_ticks) override;
  void settle_window() override;
  void stop(uint64_t end_ticks) override;
  void add_descriptors(std::vector<pollfd>& descriptors) override;
  std::chrono::nanoseconds patience() override;
  Expected<void> turn() override;
  void keep_house() override;
  std::vector<collect::DisarmedProbe> disarm_spinning() override;
  [[nodiscard]] bool has_events() const override;
  [[nodiscard]] uint64_t now() const override;
  Expected<void> read_events(collect::EventBatch& round) override;
  void take_events(const collect::EventBatch& events, collect::EventRange range,
                   answer::RowBatch& rows) override;
  uint64_t passed() override;
  Expected<aggregate::Table> interval() override;
  Expected<aggregate::Table> total() override;
  void fire(uint16_t source, int64_t monotonic_ns, answer::RowBatch& rows) override;
  void take_open_calls(uint64_t end_ticks, answer::RowBatch& rows) override;
  Expected<void> detach() override;
  collect::Losses losses() override;

 private:
  using Part = Expected<aggregate::Table> (Tracee::*)();

  [[nodiscard]] bool follows() const { return input_.follow_forks || input_.later; }
  void watch_execs();
  void add_missed();
  [[nodiscard]] bool is_traced(pid_t pid) const;
  void number(Tracee& tracee);
  Expected<void> follow_modules();
  void follow_execs();
  void end_execs();
  void note_unmatched();
  void add(std::unique_ptr<Tracee> tracee);
  void read_samples();
  void drain_tables();
  Expected<void> fold_ended();
  Expected<void> fold(Tracee& tracee);
  [[nodiscard]] size_t room() const;
  void pace_events(const collect::EventBatch& read);
  Expected<aggregate::Table> merged(Part part);
  [[nodiscard]] bool has_generations() const { return input_.lowered.layout.generations == 2; }

  ProcessesInput input_;
  std::vector<std::unique_ptr<Tracee>> tracees_;
  size_t began_with_ = 0;           // Of them: the others came later.
  std::vector<Tracee*> by_number_;  // Null where another source has the number.
  inline_::LockWait wait_;
  std::vector<collect::LeftOut> left_out_;
  std::vector<std::string> unmatched_;  // Sources, at the end.
  // What those that have ended and are no tracees any more have counted: in all, and in this
  // interval.
  struct Folded {
    aggregate::Table total;
    aggregate::Table interval;
    collect::Losses losses;
    uint64_t passed = 0;
  };
  std::optional<Folded> folded_;
  std::set<uint16_t> folded_sources_;  // That matched in them.
  // With follow_forks.
  std::optional<ExecWatch> execs_;
  std::optional<BegunPrograms> begun_;
  std::optional<pid_t> command_;  // That was started for the session.
  std::chrono::milliseconds table_period_;
  std::chrono::milliseconds event_period_{20};  // At first.
  std::optional<CostMeter> meter_;              // From attach() on.
  bool has_new_samples_ = false;
  bool has_window_ = false;
  bool is_started_ = false;
  // Events before and after do not count.
  uint64_t begin_ticks_ = 0;
  uint64_t end_ticks_ = UINT64_MAX;
};

}  // namespace clew::engine

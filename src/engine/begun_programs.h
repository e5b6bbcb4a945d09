// SPDX-License-Identifier: Apache-2.0
// Programs that followed processes begin by exec, made tracees of the session as soon as they are
// seen, and processes that get a module which is looked for on the whole machine. Nobody is stopped
// at its exec, as the parent of a stopped process may wait for just that: what a program calls
// before it is armed is not counted, and told.
//
// One is looked at when its loader has mapped the libraries that it begins with. What none of the
// sources match is left alone; libraries that match and that such a program opens later are seen
// where they are looked for on the whole machine.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "engine/exec_watch.h"
#include "engine/tracee.h"
#include "inline/process_lock.h"
#include "plan/lower.h"
#include "plan/plan.h"

namespace clew::engine {

// Whether its loader has mapped what it begins with.
enum class Readiness : uint8_t { Early, Ready, Gone };
Readiness readiness_of(BegunProgram& program);

class BegunPrograms {
 public:
  struct Session {  // Borrowed, but for what is shared.
    const plan::Plan& plan;
    const plan::Lowered& lowered;
    plan::Grouping& grouping;
    Tracee::Shared shared;
    bool checks_memory = true;
    // Of a session for a whole machine: whether one is meant. Asked again when it is armed.
    std::function<bool(pid_t)> is_meant = {};
  };
  explicit BegunPrograms(Session session);

  void add(std::vector<BegunProgram> programs);
  // Whether some wait for their loaders.
  [[nodiscard]] bool empty() const { return waiting_.empty(); }
  struct Takers {
    // Of the program that a process has now; one that was looked at while it began the next has
    // probes in that already.
    std::function<bool(pid_t)> is_traced;
    std::function<size_t()> room;                       // How many more there may be.
    std::function<void(std::unique_ptr<Tracee>)> take;  // At once: its probes count.
  };
  // Arms those that are ready.
  void arm_ready(const inline_::LockWait& wait, const Takers& takers);
  // Those that still wait get no probes: the session ends.
  void end();
  // What is not in the answer: sentences for collect::Losses::lost.
  [[nodiscard]] std::vector<std::string> told() const;

 private:
  using Time = std::chrono::steady_clock;
  [[nodiscard]] bool may_match(const BegunProgram& program) const;
  void arm_one(BegunProgram& begun, const inline_::LockWait& wait, const Takers& takers);
  void note_ended(const BegunProgram& program);
  Expected<std::unique_ptr<Tracee>> arm(BegunProgram& program, const inline_::LockWait& wait);
  void note_armed(const BegunProgram& program);
  void note_refused(const Error& error);

  Session session_;
  // The main programs that sources name, if all of them do.
  std::optional<std::vector<std::string>> only_;
  std::list<BegunProgram> waiting_;
  uint64_t armed_ = 0;
  std::chrono::nanoseconds shortest_{std::chrono::nanoseconds::max()};  // From exec to arming.
  std::chrono::nanoseconds longest_{0};
  uint64_t ended_ = 0;     // Before they could be looked at.
  uint64_t unlooked_ = 0;  // When the session ended.
  uint64_t refused_ = 0;
  std::string first_reason_;
};

}  // namespace clew::engine

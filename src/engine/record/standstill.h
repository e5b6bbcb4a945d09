// SPDX-License-Identifier: Apache-2.0
// All threads of a recorded process stand, while one looks at them. Those that run are stopped. One
// that waits in a system call is left in it: some calls would come back with EINTR, though no
// handler has run (signal(7): epoll_wait, and others), and one that waits for a disk cannot be
// stopped at all. Whether it has run meanwhile is asked afterwards, and whoever has copied what it
// writes copies it again. Where code is going to be changed, those are stopped, too, and their
// calls begin again (inline/interrupted_call.h).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <sys/types.h>
#include <sys/user.h>

#include "engine/record/stops.h"

namespace clew::engine {

struct WatchedThread {
  pid_t thread = 0;
  // Of one that waits in a system call: rip and rsp, the call's number in orig_rax, its arguments.
  user_regs_struct registers{};
};

class Standstill {
 public:
  // `standing` stands already, and stays when the others go on; 0: none does. Stops that have
  // another cause are held in `stops`, and must be told before the threads end.
  enum class Calls : uint8_t { Left, Stopped };  // Those who wait in one.
  Standstill(Stops& stops, pid_t process, pid_t standing, Calls calls = Calls::Left);
  Standstill(const Standstill&) = delete;
  Standstill& operator=(const Standstill&) = delete;
  ~Standstill();  // The threads go on.

  // The one that stood is the first.
  [[nodiscard]] std::vector<WatchedThread> threads() const;
  // Has one that waited run since? It is stopped then, or waits again.
  bool has_moved();

  [[nodiscard]] size_t stopped_count() const;
  // Does every thread stand?
  [[nodiscard]] bool is_complete() const;
  // Does one of them wait for a child that has the same memory?
  [[nodiscard]] bool has_vforked() const;

 private:
  enum class State : uint8_t {
    Other,      // Stopped by something else, which is told later.
    Asked,      // To stop; it has not yet.
    Stopped,    // By us.
    InCall,     // Waits in a system call.
    InVfork,    // Asked to stop, and wakes up for nothing else: waits_for_vfork().
    Unwilling,  // Does not stop in time; where it is was the kernel's last word.
  };
  struct Thread {
    pid_t thread = 0;
    State state = State::Other;
    uint64_t switches = 0;
    std::optional<user_regs_struct> registers = {};
  };

  // Nothing when it has ended.
  [[nodiscard]] std::optional<Thread> look_at(pid_t thread) const;
  void stop(const std::vector<Thread*>& running);
  bool look_for_others();
  void take(Thread& thread, Stops::Deadline deadline);

  Stops& stops_;
  pid_t process_;
  Calls calls_;
  std::vector<Thread> threads_;
};

user_regs_struct registers_of(pid_t thread);

}  // namespace clew::engine

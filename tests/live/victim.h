// SPDX-License-Identifier: Apache-2.0
// A running program of tests/victims: commands and answers (victims/victim.h has the protocol).
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "live/child.h"

namespace clew::live {

using Numbers = std::map<std::string, uint64_t>;

class Victim {
 public:
  // Starts the program and waits until it is ready.
  explicit Victim(const std::string& name);
  // Arguments and all; the program is what they start, or its only child (unshare --fork).
  enum class Place : uint8_t { Started, ItsChild };
  Victim(const ChildOptions& options, Place place);

  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] Child& child() { return child_; }
  void tell(const std::string& command) { child_.write_line(command); }
  Numbers answer();
  Numbers ask(const std::string& command);
  // Runs `rounds` rounds and returns the result; the victim's own checks must all have passed.
  uint64_t run(uint64_t rounds);
  Numbers counts() { return ask("counts"); }

 private:
  Child child_;
  pid_t pid_;
};

// The only child of a process; -1 when it has none.
pid_t only_child_of(pid_t pid);

// The path of a victim's program.
std::string victim_path(const std::string& name);

// The same rounds in a victim that nobody traces.
uint64_t untraced_result(const std::string& name, uint64_t rounds);

// `after` - `before`, by name.
Numbers difference(const Numbers& before, const Numbers& after);

}  // namespace clew::live

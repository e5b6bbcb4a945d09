// SPDX-License-Identifier: Apache-2.0
// Machines for `clew cluster try`: processes of this one, each with namespaces of its own (its
// name, its processes, its network), and a NATS server that they reach over virtual cables.
//
//     here ── clew (holds the world) ── world: server, cables, clew run
//                                         ├── n1: the traced program, clew node
//                                         └── n2 …
//
// All of it lies within one namespace of processes, network and mounts, whose first process is the
// world. When that ends, or when whoever holds it is killed, the kernel ends every process in it,
// and with them goes all else: no file, no cable and no name of a namespace is left here.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/error.h"
#include "base/file_descriptor.h"

namespace clew::cmd {

// What is missing for it, with what to do. Errors: Refused, NotFound.
Expected<void> check_trial();

// Runs `body` as the world: its status. A signal that asks us to end ends the world at once.
Expected<int> in_trial_world(const std::function<int()>& body);

// A program, and what it says (both outputs, in its order).
class TrialProgram {
 public:
  TrialProgram(pid_t pid, FileDescriptor output) : pid_(pid), output_(std::move(output)) {}
  TrialProgram(TrialProgram&& other) noexcept;
  TrialProgram& operator=(TrialProgram&&) = delete;
  TrialProgram(const TrialProgram&) = delete;
  TrialProgram& operator=(const TrialProgram&) = delete;
  ~TrialProgram();  // Ends it with SIGKILL when it still runs.

  // The next line, without its end. Nothing: it has ended, or nothing came until then
  // (CLOCK_MONOTONIC).
  std::optional<std::string> line(int64_t until_ns);
  // Until it has said this; what it said instead, if it ended or it took too long.
  Expected<void> wait_for(const std::string& what, int64_t until_ns);
  void signal(int number) const;
  // As wait status.
  int wait();
  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
  FileDescriptor output_;
  std::string pending_;
};

// One of them, in the world. What is begun there is gone at the latest when the world is.
class TrialMachine {
 public:
  // `number` counts from 1: its name is n1.
  static Expected<std::unique_ptr<TrialMachine>> begin(int number);

  [[nodiscard]] const std::string& name() const { return name_; }
  // The cable to the world.
  Expected<void> plug(bool is_in) const;
  [[nodiscard]] Expected<TrialProgram> start(const std::vector<std::string>& words) const;

  explicit TrialMachine(int number);  // For begin().

 private:
  Expected<void> enter_for(const std::function<Expected<void>()>& body) const;
  Expected<void> lay_cable() const;

  int number_;
  std::string name_;
  std::optional<TrialProgram> first_;  // Whose namespaces they are.
  FileDescriptor processes_;
  FileDescriptor network_;
  FileDescriptor mounts_;
  FileDescriptor names_;
};

// In the world: listens at trial_url().
Expected<TrialProgram> start_trial_server();
std::string trial_url();
Expected<TrialProgram> start_here(const std::vector<std::string>& words);

}  // namespace clew::cmd

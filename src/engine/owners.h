// SPDX-License-Identifier: Apache-2.0
// To whom processes, control groups and user ids belong: each is looked up once, and its names are
// kept for as long as the session runs.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include <sys/types.h>

#include "answer/owner.h"
#include "target/container_names.h"
#include "target/control_groups.h"

namespace clew::engine {

class Owners {
 public:
  // As it is now, without the name of its user: of_user() has that, as it may take its time.
  // All is unknown when the process has gone.
  answer::Owner of_process(pid_t pid);
  // Container, unit and control group, by the number of the group. Asks no process.
  const answer::Owner& of_group(uint64_t number);
  // User and uid.
  const answer::Owner& of_user(uint32_t uid);
  // Reads which groups there are, so that they are known when they are gone.
  void keep_groups() { groups_.keep(); }
  // What of_group() would want for a process; 0: nothing that there is.
  [[nodiscard]] uint64_t group_of(pid_t pid) const;

 private:
  target::ControlGroups groups_;
  target::ContainerNames containers_;
  std::map<uint64_t, answer::Owner> by_group_;
  std::map<uint32_t, answer::Owner> by_user_;
};

}  // namespace clew::engine

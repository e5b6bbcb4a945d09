// SPDX-License-Identifier: Apache-2.0
// Whose processes are meant: those of a container, a unit of systemd, a control group, a user, or
// with some words in their command line.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "target/container_names.h"
#include "target/pattern.h"
#include "target/process.h"

namespace clew::engine {

// Each list that is not empty has to hold for a process, by one of its entries.
struct Whose {
  std::vector<std::string> containers = {};     // Names (patterns), or the begin of an id.
  std::vector<std::string> units = {};          // Names (patterns), with or without ".service".
  std::vector<std::string> cgroups = {};        // Paths, with or without /sys/fs/cgroup: and below.
  std::vector<std::string> users = {};          // Names or numbers: who it may act as (effective).
  std::vector<std::string> command_lines = {};  // Words that it has, with blanks in between.

  [[nodiscard]] bool empty() const {
    return containers.empty() && units.empty() && cgroups.empty() && users.empty() &&
           command_lines.empty();
  }
};

class WhoseFilter {
 public:
  // Errors: InvalidQuery for a broken pattern or too short an id; NotFound for a user that is none.
  static Expected<WhoseFilter> make(const Whose& whose);

  // Notes what it met, for none().
  bool holds(const target::Process& process);
  // NotFound, where no process was whose it should be: what there is instead, the nearest first.
  [[nodiscard]] Error none() const;

 private:
  WhoseFilter() = default;
  bool holds_container(const target::Belonging& belonging);
  bool holds_unit(const std::string& unit);
  [[nodiscard]] bool holds_cgroup(const std::string& cgroup) const;

  Whose whose_;
  std::vector<target::Pattern> containers_;
  std::vector<target::Pattern> units_;
  std::vector<uid_t> users_;
  target::ContainerNames names_;
  std::vector<std::string> met_containers_;  // What there is, each once.
  std::vector<std::string> met_units_;
};

}  // namespace clew::engine

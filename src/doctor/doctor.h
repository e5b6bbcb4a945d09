// SPDX-License-Identifier: Apache-2.0
// clew doctor: what stands in the way of tracing on this machine and in a process, before anything
// is changed. Text for people, or one JSON object a line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <sys/types.h>

namespace clew::doctor {

// Checks of the machine and, with a pid, of the process; `problems` counts those that stand in the
// way of tracing.
struct Request {
  std::optional<pid_t> pid;
  bool may_stop = false;  // The process, for a moment: to look at its threads.
  bool json = false;
};
struct Diagnosis {
  std::string text;
  uint32_t problems = 0;
};
Diagnosis diagnose(const Request& request);

}  // namespace clew::doctor

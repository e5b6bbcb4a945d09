// SPDX-License-Identifier: Apache-2.0
// What joins by cause know of a process, and what they cannot see of it. Reading is apart from
// judging.
#pragma once

#include <string>
#include <vector>

#include <sys/types.h>

#include "base/error.h"
#include "doctor/findings.h"
#include "engine/known_causes.h"

namespace clew::doctor {

struct CauseView {
  pid_t pid = 0;
  bool is_root = false;  // Who asks.
  engine::KnownCauses known{};
  engine::OpenCarriers open{};
};

// An error when there is no such process, it runs no program, or it may not be read.
Expected<CauseView> read_cause_view(pid_t pid, const std::vector<std::string>& vocabulary_paths);
Findings judge(const CauseView& view);

}  // namespace clew::doctor

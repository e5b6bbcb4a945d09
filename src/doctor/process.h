// SPDX-License-Identifier: Apache-2.0
// What can be traced in one process, as far as it can be seen without touching it; with
// `may_stop`, also what its threads' registers say. Reading is apart from judging.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/error.h"
#include "doctor/findings.h"
#include "doctor/machine.h"
#include "inline/attachment.h"
#include "target/memory_room.h"
#include "target/process.h"

namespace clew::doctor {

struct Limit {
  uint64_t used = 0;
  uint64_t most = UINT64_MAX;
};

// Entries of functions that could take probes, by what a uprobe of somebody else does that is set
// there later (inline/later_uprobe.h).
struct LaterUprobes {
  uint32_t safe = 0;
  uint32_t hides_probe = 0;
  uint32_t refused = 0;  // For it would end the process.

  [[nodiscard]] uint32_t all() const { return safe + hides_probe + refused; }
};

struct ProcessView {
  pid_t pid = 0;
  uid_t user = 0;  // Effective.
  // errno of opening its memory, for which the kernel asks the same as for ptrace(2); 0 = allowed.
  int memory_error = 0;
  bool has_base_instructions = true;
  std::string load_refusal;  // As in Machine.
  bool is_dumpable = true;   // Its files in /proc are its own.
  Expected<target::ProcessFacts> facts = target::ProcessFacts{};
  bool in_our_user_namespace = true;
  bool in_our_pid_namespace = true;
  bool in_our_mount_namespace = true;
  pid_t tracer = 0;  // Of any thread: a debugger may hold some threads only.
  std::string tracer_name = {};
  Limit address_space = {};
  Limit descriptors = {};
  uint64_t threads = 0;
  target::MemoryRoom memory = {};
  std::vector<std::string> uprobes;  // Where they are: file+offset (owner).
  Expected<std::vector<target::ProcessModule>> modules = std::vector<target::ProcessModule>{};
  LaterUprobes later_uprobes = {};
  std::optional<inline_::ArenaInfo> arena = std::nullopt;
  // None = not tried.
  std::optional<Expected<inline_::TrialStop>> stop = std::nullopt;
};

// An error when there is no such process, or it runs no program.
Expected<ProcessView> read_process_view(pid_t pid, bool may_stop);
Findings judge(const ProcessView& view, const Machine& machine);

}  // namespace clew::doctor

// SPDX-License-Identifier: Apache-2.0
// Which programs a session needs: enablings that differ only in what a cookie or a table can say
// share one. Internal to machine_session.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "kernel/bpf_object.h"
#include "kernel/link.h"
#include "kernel/machine_session.h"
#include "target/btf_files.h"

namespace clew::kernel {

// All that makes one program differ from another.
struct ProgramKey {
  std::string main;
  abi::MachineActivity run_when = abi::MachineActivity::Active;
  ProgramType type = ProgramType::RawTracepoint;
  bool wants_arguments = false;
  uint32_t argument_count = 0;
  std::vector<uint8_t> argument_map;
  uint32_t load_offset_bytes = 0;
  std::vector<ProbeFilter> filters;
  bool is_first_thread_only = false;
  int64_t lock_pid = 0;        // Of LockWait,
  uint64_t lock_function = 0;  // and the function's offset.
  Moves moves;
  std::string static_arguments;  // Probe::usdt_arguments, when a clause looks at them.
  uint64_t cookie = 0;           // When the kernel keeps none: the program is for one enabling.
  uint32_t attach_type = 0;      // Image::attach_type
  bool has_result = false;       // FunctionExit: whether the function returns something,
  uint64_t used_arguments = 0;   // and a bit for each of its arguments that is looked at.
  std::vector<uint32_t> clauses;

  auto operator<=>(const ProgramKey&) const = default;
};

struct ProgramGroup {
  ProgramKey key;
  std::vector<uint32_t> enablings;  // Their indices.
  uint32_t system_calls_begin = 0;  // Of its table of system calls.
};

struct ProgramPlan {
  std::vector<Function> clauses;         // By clause; behind them functions of extensions.
  std::vector<uint32_t> arguments_read;  // By clause: to_bpf.h.
  std::vector<ProgramGroup> groups;
  uint32_t system_call_tables = 0;
};

// Errors: Refused for what cannot be attached here, naming the probe.
Expected<ProgramPlan> plan_programs(const MachinePrograms& programs,
                                    std::span<const MachineEnabling> enablings,
                                    target::BtfFiles& types);

// Adds an enabling of a process's probe to the plan: its group, which may be a new one. Errors as
// above.
Expected<uint32_t> add_to_plan(ProgramPlan& plan, const MachineEnabling& enabling, uint32_t index);

// "provider:module:function:name"
std::string full_name(const Probe& probe);

// The numbers of one program, and those of the kernel's structs that `names` asks for.
void add_program_numbers(const ProgramGroup& group, Symbols& symbols);
Expected<void> add_kernel_numbers(const ProgramPlan& plan, target::BtfFiles& types,
                                  Symbols& symbols);

// Whether any clause, or what it calls, is or uses the function.
bool uses(const ProgramPlan& plan, std::string_view function);

}  // namespace clew::kernel

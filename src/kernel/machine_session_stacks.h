// SPDX-License-Identifier: Apache-2.0
// Which stacks the clauses of a session ask for; and which functions of the kernel are left out of
// its stacks: those by which it calls programs at tracepoints. Internal to machine_session.
#pragma once

#include <cstdint>
#include <vector>

#include "abi/machine/tables.h"
#include "kernel/machine_session_programs.h"

namespace clew::kernel {

// Whether a clause may ask for a stack of the kernel.
bool wants_stack(const ProgramPlan& plan);
// A clause asks for arguments that the caller of a function has put on the stack.
bool wants_stack_arguments(const ProgramPlan& plan);

// Whether a clause may ask for a stack of a process; whether for one of this process, where BEGIN
// and END fire; and whether for one of any process.
bool wants_user_stack(const ProgramPlan& plan);
bool wants_our_stack(const ProgramPlan& plan, std::span<const MachineEnabling> enablings);
bool wants_all_user_stacks(const ProgramPlan& plan, std::span<const MachineEnabling> enablings);

// Sorted; none when no clause asks for a kernel stack.
std::vector<abi::MachineCodeRange> skipped_functions(const ProgramPlan& plan);

}  // namespace clew::kernel

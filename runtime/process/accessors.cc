// SPDX-License-Identifier: Apache-2.0
// The D accessors for processes: one unit, as in the kernel. What is of runtime/kernel is the
// kernel's code as well.
#include "runtime/kernel/aggregate.cc"
#include "runtime/kernel/builtins.cc"
#include "runtime/kernel/json.cc"
#include "runtime/kernel/memory.cc"
#include "runtime/kernel/network.cc"
#include "runtime/kernel/numbers.cc"
#include "runtime/kernel/records.cc"
#include "runtime/kernel/strings.cc"
#include "runtime/kernel/texts.cc"
#include "runtime/kernel/variables.cc"
#include "runtime/process/firing.cc"
#include "runtime/process/machine.cc"
#include "runtime/process/task.cc"

// SPDX-License-Identifier: Apache-2.0
// The D accessors (abi/machine/accessor.h) and the main programs, for the kernel: one BPF object,
// since nothing links BPF objects before the session does. Each extern "C" function is a *global*
// BPF function, which the verifier looks at once and alone; its first argument is a window that is
// not null (src/kernel/link.h writes the types that say so).
#include "runtime/kernel/aggregate.cc"
#include "runtime/kernel/builtins.cc"
#include "runtime/kernel/extensions.cc"
#include "runtime/kernel/json.cc"
#include "runtime/kernel/main.cc"
#include "runtime/kernel/memory.cc"
#include "runtime/kernel/moved.cc"
#include "runtime/kernel/network.cc"
#include "runtime/kernel/numbers.cc"
#include "runtime/kernel/paths.cc"
#include "runtime/kernel/query.cc"
#include "runtime/kernel/records.cc"
#include "runtime/kernel/stacks.cc"
#include "runtime/kernel/strings.cc"
#include "runtime/kernel/task.cc"
#include "runtime/kernel/texts.cc"
#include "runtime/kernel/user_stacks.cc"
#include "runtime/kernel/variables.cc"

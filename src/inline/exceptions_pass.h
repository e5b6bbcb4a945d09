// SPDX-License-Identifier: Apache-2.0
// Whether exceptions may be thrown in a process, which then go through whatever is on the stack:
// also through code in C that has a callback.
#pragma once

#include <sys/types.h>

namespace clew::inline_ {

// Also when that cannot be read.
bool exceptions_pass(pid_t pid);

}  // namespace clew::inline_

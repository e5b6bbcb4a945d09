// SPDX-License-Identifier: Apache-2.0
// What to say when the kernel does not let this user trace.
#pragma once

#include <string>
#include <string_view>

#include <sys/types.h>

#include "base/error.h"

namespace clew::inline_ {

// Refused, [no-permission]: `what` ("process 12", "the command") may not be traced, for the reason
// that is the likeliest: Yama's setting (kernel.yama.ptrace_scope, Documentation/admin-guide/LSM/
// Yama.rst), else whose process it is.
tl::unexpected<Error> no_permission(std::string_view what);

// Refused: somebody holds the process, [recorded] by a recorder of ours, or [already-traced].
tl::unexpected<Error> traced_by(pid_t pid, pid_t tracer);

}  // namespace clew::inline_

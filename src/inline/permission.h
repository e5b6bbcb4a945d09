// SPDX-License-Identifier: Apache-2.0
// What to say when the kernel does not let this user trace.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace clew::inline_ {

// Refused, [no-permission]: `what` ("process 12", "the command") may not be traced, for the reason
// that is the likeliest: Yama's setting (kernel.yama.ptrace_scope, Documentation/admin-guide/LSM/
// Yama.rst), else whose process it is.
tl::unexpected<Error> no_permission(std::string_view what);

}  // namespace clew::inline_

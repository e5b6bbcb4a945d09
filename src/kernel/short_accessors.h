// SPDX-License-Identifier: Apache-2.0
// Which accessors stand in their callers (isa/inline_calls.h). What is not short stays a call: the
// verifier looks at such a function once, however often it is called. Internal to link.
#pragma once

#include <string_view>

namespace clew::kernel {

// The accessors that do little beside what their callers make them do.
bool is_short_accessor(std::string_view name);

}  // namespace clew::kernel

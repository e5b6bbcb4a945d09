// SPDX-License-Identifier: Apache-2.0
// Puts the code of short functions where they are called. Where the processor's returns are
// mitigated a call and its return take 7 to 14 ns, as much as all that most accessors do
// (bench/run build/release --only d). Internal to link.
//
//     [frame - 8] = r6 … ; the function's code, its frame below, each exit a jump here ; r6 = …
//
// What is not short stays a call: the verifier looks at such a function once, however often it is
// called.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "kernel/bpf_object.h"

namespace clew::kernel {

using FindFunction = std::function<const Function*(const std::string&)>;

// `wants` says which functions are to stand in their callers; none may call itself. Where the
// result would be too large for a frame or a jump, the function comes back as it is.
Function with_inlined_calls(const Function& function, const FindFunction& find,
                            const std::function<bool(std::string_view)>& wants);

// The accessors that do little beside what their callers make them do.
bool is_short_accessor(std::string_view name);

}  // namespace clew::kernel

// SPDX-License-Identifier: Apache-2.0
// Go's functions look for room on their stack first. When there is none they have a larger one made
// and begin again, so their entries are heads of loops:
//
//     entry:  cmp rsp, [r14 + 16]     also: lea r12, [rsp - size] ; cmp r12, [r14 + 16]
//             jbe more
//     site:   …                       once for each call, with all registers as at the entry
//     more:   mov [rsp + 8], rax …    arguments put aside
//             call runtime.morestack
//             mov rax, [rsp + 8] …
//             jmp entry
#pragma once

#include <cstdint>
#include <optional>

#include "code/module_code.h"

namespace clew::code {

// `site` of the function that starts there; none when it does not begin so, or something else jumps
// to its entry as well.
std::optional<uint64_t> behind_stack_check(const ModuleCode& code, uint64_t function);

}  // namespace clew::code

// SPDX-License-Identifier: Apache-2.0
// What programs and manuals call a system call.
#pragma once

#include <cstdint>
#include <string_view>

namespace clew::engine {

// Empty when the number is not known.
std::string_view system_call_name(uint64_t number);

}  // namespace clew::engine

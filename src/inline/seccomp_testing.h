// SPDX-License-Identifier: Apache-2.0
// For tests: one instruction of a seccomp filter.
#pragma once

#include <cstdint>

#include <linux/filter.h>

namespace clew::inline_ {

inline sock_filter step(int code, uint32_t k, uint8_t jt = 0, uint8_t jf = 0) {
  return {.code = static_cast<uint16_t>(code), .jt = jt, .jf = jf, .k = k};
}

}  // namespace clew::inline_

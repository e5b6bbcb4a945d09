// SPDX-License-Identifier: Apache-2.0
// CLEW_ASSERT: for what cannot happen, on in all builds. What can happen is an Expected.
#pragma once

namespace clew::detail {
[[noreturn]] void assertion_failed(const char* condition, const char* file, int line);
}

#define CLEW_ASSERT(condition) \
  ((condition) ? (void)0 : clew::detail::assertion_failed(#condition, __FILE__, __LINE__))

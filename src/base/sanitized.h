// SPDX-License-Identifier: Apache-2.0
// Whether this program has been built with a sanitizer, for tests.
#pragma once

#include <cstddef>
#include <cstdlib>

namespace clew {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#elif defined(__has_feature)
inline constexpr bool kSanitized =
    __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
inline constexpr bool kSanitized = false;
#endif

// How many random steps a test takes: a tenth of the usual ones with a sanitizer, which takes ten
// times as long; CLEW_STEPS, where it is set.
inline size_t wanted_steps(size_t usual) {
  const char* const text = std::getenv("CLEW_STEPS");
  if (text != nullptr) return std::strtoul(text, nullptr, 10);
  return kSanitized ? usual / 10 : usual;
}

}  // namespace clew

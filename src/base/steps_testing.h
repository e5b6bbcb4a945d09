// SPDX-License-Identifier: Apache-2.0
// How long tests of random steps are.
#pragma once

#include <cstddef>
#include <cstdlib>

namespace clew {

// A tenth in a program with sanitizers, which takes ten times as long; CLEW_STEPS, where it is set.
inline size_t wanted_steps(size_t usual) {
  const char* const text = std::getenv("CLEW_STEPS");
  if (text != nullptr) return std::strtoul(text, nullptr, 10);
#if defined(__SANITIZE_ADDRESS__)
  return usual / 10;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
  return usual / 10;
#endif
#endif
  return usual;
}

}  // namespace clew

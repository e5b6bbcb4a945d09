// SPDX-License-Identifier: Apache-2.0
// A library that throws, linked with its own copies of libgcc and libstdc++'s runtime.
#include <cstdint>
#include <stdexcept>

extern "C" __attribute__((noinline)) uint64_t library_throws(uint64_t x) {
  if (x % 2 == 1) throw std::runtime_error("odd");
  return x + 3;
}

// Throws and catches inside the library.
extern "C" __attribute__((noinline)) uint64_t library_catches(uint64_t x) {
  try {
    return library_throws(x);
  } catch (const std::runtime_error&) {
    return x + 4;
  }
}

// SPDX-License-Identifier: Apache-2.0
// A library that throws, with its own copies of libgcc and libstdc++'s runtime, stripped and
// loaded late.
#include <cstdint>

extern "C" __attribute__((noinline)) uint64_t late_throws(uint64_t x) {
  if (x % 2 == 1) throw x;
  return x + 3;
}

extern "C" __attribute__((noinline)) uint64_t late_catches(uint64_t x) {
  try {
    return late_throws(x);
  } catch (uint64_t thrown) {
    return thrown + 4;
  }
}

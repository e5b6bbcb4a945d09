// SPDX-License-Identifier: Apache-2.0
// A library that the victim loads when it is told to. Behind the first instruction is room for a
// jump.
__attribute__((noinline)) long plug(long value) {
  __asm__ volatile("" : : : "memory");
  return value + (value >> 3);
}

// SPDX-License-Identifier: Apache-2.0
// A library that the victim loads when it is told to.
__attribute__((noinline)) long plug(long value) {
  __asm__ volatile("" : : : "memory");
  return value + 7;
}

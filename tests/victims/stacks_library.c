// SPDX-License-Identifier: Apache-2.0
// A library between two functions of stacks.c.
static __attribute__((noinline)) void call_back(void (*callback)(void)) {
  callback();
  __asm__ volatile("" ::: "memory");
}

void through_library(void (*callback)(void)) {
  call_back(callback);
  __asm__ volatile("" ::: "memory");
}

// SPDX-License-Identifier: Apache-2.0
// Loaded by victim.cc when tracing is on already.
int plugin_work(int value);

int plugin_work(int value) {
  __asm__ volatile("" : "+r"(value));
  return value * 2;
}

// SPDX-License-Identifier: Apache-2.0
// Loaded by victim.cc when tracing is on already.
extern const unsigned char plugin_first_byte;
int plugin_work(int value);

int plugin_work(int value) {
  __asm__ volatile("" : "+r"(value));
  return value * 2;
}

// endbr64, which every function begins with here.
const unsigned char plugin_first_byte = 0xf3;

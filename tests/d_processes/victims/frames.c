// SPDX-License-Identifier: Apache-2.0
// Built without call frame information and with frame pointers, as programs of Go are: a stack at
// the first instruction of a function needs more than those.
int frames_leaf(int value) {
  __asm__ volatile("" : "+r"(value));
  return value + 1;
}

int frames_middle(int value) {
  int result = frames_leaf(value);
  __asm__ volatile("" : "+r"(result));
  return result + 1;
}

int frames_outer(int value) {
  int result = frames_middle(value);
  __asm__ volatile("" : "+r"(result));
  return result + 1;
}

int main(void) {
  return frames_outer(1);
}

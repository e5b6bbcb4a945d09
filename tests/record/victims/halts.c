// SPDX-License-Identifier: Apache-2.0
// Calls itself, and the C library that calls it back, and halts there: at each line of standard
// input it goes on. The line "fault" ends it there.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KEPT __attribute__((noinline, noclone))

static int* volatile nowhere;
static volatile int odd;

KEPT static int halt(int value) {
  char line[16];
  printf("%d\n", value);
  fflush(stdout);
  if (fgets(line, sizeof line, stdin) == NULL) exit(2);
  if (strcmp(line, "fault\n") == 0) *nowhere = value;
  odd += 1;
  return value;
}

KEPT static int order(const void* left, const void* right) {
  const int a = *(const int*)left;
  const int b = *(const int*)right;
  if (odd < 2) halt(a + b);
  odd += 1;
  return a - b;
}

KEPT static int sort_them(int first) {
  int values[] = {first, 2, 1};
  qsort(values, 3, sizeof *values, order);
  odd += 1;
  return values[0];
}

KEPT static int go_down(int depth) {
  const int below = depth > 0 ? go_down(depth - 1) : sort_them(5);
  odd += 1;
  return below + depth;
}

int main(void) {
  halt((int)getpid());
  return go_down(3) == 7 ? 9 : 1;
}

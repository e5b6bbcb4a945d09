// SPDX-License-Identifier: Apache-2.0
// Two children crash while the parent lives; it says who they were and how they ended, computes on,
// and ends with 7.
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#define KEPT __attribute__((noinline, noclone))

static int* volatile nowhere;
static volatile unsigned sum;

KEPT static void first_child(void) {
  *(volatile int*)nowhere = 1;  // LAST: first
}

KEPT static void second_child(void) {
  sum += (unsigned)*(volatile int*)nowhere;  // LAST: second
}

KEPT static void work(unsigned i) {
  if (i % 3 == 0) sum += i;
  sum ^= i << 1;
}

int main(void) {
  void (*const children[])(void) = {first_child, second_child};
  for (int i = 0; i < 2; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      children[i]();
      _exit(1);
    }
    int status = 0;
    if (waitpid(child, &status, 0) != child) return 2;
    printf("%d %d\n", (int)child, WTERMSIG(status));
    for (unsigned turn = 0; turn < 1000; ++turn)
      work(turn);
  }
  printf("%u\n", sum);
  return 7;
}

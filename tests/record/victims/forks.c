// SPDX-License-Identifier: Apache-2.0
// A child goes on from fork() by direct calls alone, while its parent computes; then the parent
// crashes.
#include <sys/wait.h>
#include <unistd.h>

#define KEPT __attribute__((noinline, noclone))

static int* volatile nowhere;
static volatile unsigned sum;

KEPT static void of_the_child(unsigned turn) {
  if (turn % 3 == 0) sum += turn;
  sum ^= turn << 1;
}

KEPT static void of_the_parent(unsigned turn) {
  if (turn % 5 == 0) sum += turn;
  sum ^= turn << 2;
}

int main(void) {
  const pid_t child = fork();
  if (child == 0) {
    for (unsigned turn = 0; turn < 3000; ++turn)
      of_the_child(turn);
    _exit(0);
  }
  for (unsigned turn = 0; turn < 3000; ++turn)
    of_the_parent(turn);
  int status = 0;
  if (waitpid(child, &status, 0) != child) return 2;
  *nowhere = 1;  // LAST: parent
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
// Says two lines. With an argument it is sent signals before that, which it ignores.
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

int main(int count, char** words) {
  (void)words;
  if (count > 1) {
    signal(SIGSEGV, SIG_IGN);
    signal(SIGFPE, SIG_IGN);
    raise(SIGSEGV);
    kill(getpid(), SIGFPE);
  }
  puts("said");
  putchar('!');
  putchar('\n');
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
// A program that makes a system call in NAME() for each line that it reads, and becomes its
// argument at the end of its input's first part, "next". Both have the same code at the same
// addresses.
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

__attribute__((noinline, noclone)) void NAME(void) {
  syscall(SYS_getppid);
  __asm__ volatile("" ::: "memory");
}

int main(int count, char** arguments) {
  char line[16];
  setvbuf(stdin, NULL, _IONBF, 0);
  setvbuf(stdout, NULL, _IOLBF, 0);
  while (fgets(line, sizeof line, stdin) != NULL) {
    if (strcmp(line, "next\n") == 0 && count > 1) execl(arguments[1], arguments[1], (char*)NULL);
    NAME();
    puts("called");
  }
  return 0;
}

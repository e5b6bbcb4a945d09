// SPDX-License-Identifier: Apache-2.0
// A signal that interrupts the first instruction of a function, in front of which another one ends.
// Its handler calls leaf(). Once for each line that is read.
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#define FUNCTION(name, code)                                                       \
  ".globl " #name "\n.type " #name ", @function\n" #name ": .cfi_startproc\n" code \
  "\n ret\n.cfi_endproc\n.size " #name ", . - " #name "\n"
__asm__(".text\n" FUNCTION(innocent, "nop") FUNCTION(struck, "ud2"));
void struck(void);

__attribute__((noinline, noclone)) void leaf(void) {
  syscall(SYS_getppid);
  __asm__ volatile("" ::: "memory");
}

static void on_signal(int number, siginfo_t* info, void* context) {
  (void)number;
  (void)info;
  leaf();
  ((ucontext_t*)context)->uc_mcontext.gregs[REG_RIP] += 2;  // Behind the ud2.
}

int main(void) {
  struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO};
  sigaction(SIGILL, &action, NULL);
  setvbuf(stdout, NULL, _IOLBF, 0);
  for (char line[16]; fgets(line, sizeof line, stdin) != NULL; puts("called"))
    struck();
  return 0;
}

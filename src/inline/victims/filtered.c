// SPDX-License-Identifier: Apache-2.0
// Allows itself read, write and exit_group and is killed for any other system call.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

long plugin_work(long value);

#define ALLOW(number) \
  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static int install_filter(void) {
  struct sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      ALLOW(SYS_read),
      ALLOW(SYS_write),
      ALLOW(SYS_exit_group),
      ALLOW(SYS_restart_syscall),
      ALLOW(SYS_rt_sigreturn),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
  };
  struct sock_fprog filter = {sizeof program / sizeof program[0], program};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return -1;
  return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
}

int main(void) {
  char byte = 0;
  if (install_filter() != 0 || write(1, "ready\n", 6) != 6) return 1;
  while (read(0, &byte, 1) == 1) {
    if (byte != '\n') continue;
    for (long i = 0; i < 20; ++i)
      plugin_work(i);
    if (write(1, "done\n", 5) != 5) return 2;
  }
  return 0;
}

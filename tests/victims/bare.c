// SPDX-License-Identifier: Apache-2.0
// Victim `bare`: no C library, and thread pointers of its own that do not point to themselves, as
// Go's. Answers the commands of victim.h, `threads N`, whose threads work 100 times each, one after
// the other, and `lock`, after which arch_prctl(2) is its death. A command is known by its first
// letter.
#include <asm/prctl.h>
#include <linux/filter.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>

enum { kBlocks = 64, kWorkOfAThread = 100 };

static uint64_t blocks[kBlocks][8];
static uint64_t threads_made;
static uint64_t calls;
static volatile int32_t thread_runs;
static uint8_t stack[16384] __attribute__((aligned(16)));

static long call(long number, long a, long b, long c) {
  long result = number;
  __asm__ volatile("syscall" : "+a"(result) : "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
  return result;
}

__attribute__((noinline, noclone)) uint64_t bare_work(uint64_t x) {
  __atomic_fetch_add(&calls, (uint64_t)1, __ATOMIC_RELAXED);
  return (x ^ 17) * 0x9E3779B97F4A7C15ULL;
}

static void print(const char* text) {
  size_t length = 0;
  while (text[length] != 0)
    ++length;
  (void)call(SYS_write, 1, (long)text, (long)length);
}

static void print_value(const char* name, uint64_t value) {
  char digits[24];
  char* at = digits + sizeof digits - 1;
  *at = 0;
  *--at = '\n';
  do {
    *--at = (char)('0' + value % 10);
    value /= 10;
  } while (value != 0);
  print(name);
  print(" ");
  print(at);
}

static uint64_t work(uint64_t rounds) {
  uint64_t digest = 0;
  for (uint64_t i = 0; i < rounds; ++i)
    digest = bare_work(digest);
  return digest;
}

// fs:0 is in the middle of the block, and 0.
static void take_block(uint64_t number) {
  (void)call(SYS_arch_prctl, ARCH_SET_FS, (long)&blocks[number % kBlocks][1], 0);
}

__attribute__((used)) static void run_thread(void) {
  take_block(++threads_made);
  (void)work(kWorkOfAThread);
  (void)call(SYS_exit, 0, 0, 0);  // The kernel clears thread_runs.
}

__attribute__((noinline, noclone)) static void make_thread(void) {
  const long flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
                     CLONE_SYSVSEM | CLONE_CHILD_CLEARTID;
  long result = SYS_clone;
  register long tid_word __asm__("r10") = (long)&thread_runs;
  register long unused __asm__("r8") = 0;
  thread_runs = 1;
  __asm__ volatile(
      "syscall\n test %%rax, %%rax\n jnz 1f\n xor %%ebp, %%ebp\n call run_thread\n 1:\n"
      : "+a"(result)
      : "D"(flags), "S"(stack + sizeof stack), "d"(0L), "r"(tid_word), "r"(unused)
      : "rcx", "r11", "memory");
  while (thread_runs != 0)
    (void)call(SYS_sched_yield, 0, 0, 0);
}

static void lock(void) {
  struct sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_arch_prctl, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)};
  const struct sock_fprog program = {.len = sizeof filter / sizeof *filter, .filter = filter};
  __asm__ volatile("" : : "r"(&program) : "memory");
  (void)call(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0);
  (void)call(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, (long)&program);
}

static void obey(const char* line) {
  uint64_t argument = 0;
  for (const char* at = line; *at != 0; ++at) {
    if (*at >= '0' && *at <= '9') argument = argument * 10 + (uint64_t)(*at - '0');
  }
  if (line[0] == 'e') (void)call(SYS_exit_group, 0, 0, 0);
  if (line[0] == 'r') {
    print_value("result", work(argument));
    print_value("errors", 0);
  }
  if (line[0] == 'c') print_value("bare_work", calls);
  if (line[0] == 'l') lock();
  for (uint64_t i = 0; line[0] == 't' && i < argument; ++i)
    make_thread();
  print("end\n");
}

__attribute__((used)) static void serve(void) {
  char line[64];
  size_t length = 0;
  char byte = 0;
  take_block(0);
  print("ready\n");
  while (call(SYS_read, 0, (long)&byte, 1) == 1) {
    if (byte != '\n' && length + 1 < sizeof line) {
      line[length++] = byte;
      continue;
    }
    line[length] = 0;
    length = 0;
    obey(line);
  }
  (void)call(SYS_exit_group, 0, 0, 0);
}

__asm__(
    ".globl _start\n"
    "_start: xor %ebp, %ebp\n"
    "and $-16, %rsp\n"
    "call serve\n"
    "hlt\n");

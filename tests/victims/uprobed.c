// SPDX-License-Identifier: Apache-2.0
// Victim `uprobed`: functions whose first instruction changes what a probe at their entry may ask
// for, so that a jump over it would be needed (later-uprobe): with texts, nested calls and calls
// that take time; and libc's shortest ones. It is too long for bytes that serve both ways.
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "victim.h"

#define FUNCTION(name, type, parameters, code)                                      \
  VICTIM_COUNTER(name);                                                             \
  type name parameters;                                                             \
  __asm__(".text\n.balign 16\n.globl " #name "\n.type " #name ", @function\n" #name \
          ":\n.cfi_startproc\n" code "\n.cfi_endproc\n.size " #name ", . - " #name "\n")

// The text's first byte.
FUNCTION(takes_text, uint64_t, (const char* text),
         "{disp32} movzbl (%rdi), %edi\n lea (%rdi), %rax\n nop\n nop\n nop\n ret");
// Calls itself until the number is 0; so many calls deep.
FUNCTION(nests, uint64_t, (uint64_t depth),
         "{disp32} lea (%edi), %edi\n xor %eax, %eax\n test %rdi, %rdi\n jz 1f\n sub $8, %rsp\n"
         ".cfi_adjust_cfa_offset 8\n dec %rdi\n call nests\n inc %rax\n add $8, %rsp\n"
         ".cfi_adjust_cfa_offset -8\n 1: ret");
// Sleeps for so many microseconds.
FUNCTION(naps, int, (unsigned microseconds),
         "{disp32} lea (%edi), %edi\n sub $8, %rsp\n .cfi_adjust_cfa_offset 8\n call usleep@PLT\n"
         "add $8, %rsp\n .cfi_adjust_cfa_offset -8\n ret");
// Leaves by a jump to it.
FUNCTION(passes_on, int, (unsigned microseconds), "{disp32} lea (%edi), %edi\n jmp naps");
// Has nothing behind its first instruction that may be copied.
VICTIM_COUNTER(getpid);

static const char* const kTexts[] = {"alpha", "beta", "gamma"};

uint64_t victim_run(uint64_t rounds) {
  uint64_t digest = 1;
  for (uint64_t i = 0; i < rounds; ++i) {
    VICTIM_COUNT(takes_text);
    digest = victim_mix(digest, takes_text(kTexts[i % 3]));
    VICTIM_COUNT(getpid);
    VICTIM_CHECK(getpid() > 0);
  }
  return digest;
}

static void nest(uint64_t depth) {
  victim_print("depth", nests(depth));
}

static void nap(uint64_t times) {
  for (uint64_t i = 0; i < times; ++i) {
    VICTIM_COUNT(naps);
    naps(1000);
  }
  victim_print("naps", times);
}

static void pass(uint64_t times) {
  for (uint64_t i = 0; i < times; ++i) {
    VICTIM_COUNT(passes_on);
    VICTIM_COUNT(naps);
    passes_on(10);
  }
  victim_print("passed", times);
}

// A child that calls, too.
static void fork_and_run(uint64_t rounds) {
  const pid_t child = fork();
  if (child == 0) {
    victim_run(rounds);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  victim_print("status", (uint64_t)status);
}

// Makes getpid give 7, as a program that changes its own text: mov $7, %eax; ret.
static void patch_getpid(uint64_t unused) {
  (void)unused;
  static const unsigned char kCode[] = {0xb8, 7, 0, 0, 0, 0xc3};
  const uint64_t page = (uint64_t)&getpid & ~(uint64_t)4095;
  VICTIM_CHECK(mprotect((void*)page, 8192, PROT_READ | PROT_WRITE) == 0);
  memcpy((void*)(uint64_t)&getpid, kCode, sizeof kCode);
  VICTIM_CHECK(mprotect((void*)page, 8192, PROT_READ | PROT_EXEC) == 0);
  victim_print("pid", (uint64_t)getpid());
}

const struct VictimCommand victim_commands[] = {{"nest", nest},
                                                {"nap", nap},
                                                {"pass", pass},
                                                {"fork", fork_and_run},
                                                {"patch_getpid", patch_getpid},
                                                {0}};

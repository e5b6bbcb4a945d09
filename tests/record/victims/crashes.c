// SPDX-License-Identifier: Apache-2.0
// Ends by a signal in the way that its argument names. The line that is to be shown last has the
// mark LAST: way. With --tell in front, a handler prints the file address of the faulting
// instruction: what is shown for the same way can be compared with it.
#define _GNU_SOURCE
#include <assert.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#define KEPT __attribute__((noinline, noclone))

extern const char __executable_start[];
static volatile int kept[16];
static jmp_buf way_out;
static int* volatile nowhere;  // Null, as only the machine knows.

static void tell(int signal, siginfo_t* info, void* context) {
  const uintptr_t at = (uintptr_t)((ucontext_t*)context)->uc_mcontext.gregs[REG_RIP];
  char text[64];
  const int size = snprintf(text, sizeof text, "%lx\n", at - (uintptr_t)__executable_start);
  (void)signal;
  (void)info;
  if (write(STDOUT_FILENO, text, (size_t)size) != size) _exit(2);
  _exit(0);
}

KEPT static void store(int value) {
  kept[0] = value;
  kept[1] = value + 1;
  kept[2] = value * 3;
  kept[3] = value ^ 5;
  kept[4] = value - 7;
  kept[5] = value << 2;
  *(volatile int*)nowhere = value;  // LAST: store
  kept[7] = value | 9;
  kept[8] = value & 6;
  kept[9] = value + 10;
  kept[10] = value - 11;
  kept[11] = value * 12;
}

static inline __attribute__((always_inline)) void put(volatile int* place, int value) {
  kept[0] = value;
  *place = value;  // LAST: inlined
  kept[1] = value;
}

KEPT static void inlined(int value) {
  kept[2] = value;
  put(nowhere, value);
  kept[3] = value;
}

KEPT static int recursion(int depth) {
  volatile char room[256];
  room[depth & 255] = (char)depth;
  return kept[15] == 0 ? recursion(depth + 1) + room[(depth + 1) & 255] : 0;
}

KEPT static void aborts(int value) {
  kept[0] = value;
  abort();  // LAST: abort
}

KEPT static void asserts(int value) {
  kept[0] = value;
  assert(kept[0] == value + 1);  // LAST: assert
}

KEPT static void callee(int value) {
  kept[0] = value;
  void* (*volatile copy)(void*, const void*, size_t) = memcpy;
  copy(nowhere, (const void*)kept, (size_t)value + 40);  // LAST: callee
  kept[1] = value;
}

KEPT static void wild(int value) {
  kept[0] = value;
  void** const frame = __builtin_frame_address(0);
  *(void* volatile*)(frame + 1) = (void*)(uintptr_t)0x123456789000;
  kept[1] = value;
}

KEPT static void switches(int value) {
  for (int i = 0; i < 12; ++i) {
    switch ((i + value) % 9) {
      case 0:
        kept[0] += 3;
        break;
      case 1:
        kept[1] ^= i;
        break;
      case 2:
        kept[2] -= 4;
        break;
      case 3:
        kept[3] *= 5;
        break;
      case 4:
        kept[4] |= 6;
        break;
      case 5:
        kept[5] &= 7;
        break;
      case 6:
        kept[6] += 8 + kept[1];
        break;
      case 7:
        *(volatile int*)nowhere = i;  // LAST: switch
        break;
      case 8:
        kept[8] += 9 - kept[2];
        break;
    }
  }
}

KEPT static void deep(int depth) {
  kept[depth & 15] = depth;
  if (depth == 0) longjmp(way_out, 5);
  if (kept[15] == 0) deep(depth - 1);
  kept[depth & 15] = 0;
}

KEPT static void jumps(int value) {
  for (volatile int i = 0; i < 5; ++i) {
    const int came = setjmp(way_out);
    if (came == 0) deep(3 + value);
    kept[1] = came;
  }
  *(volatile int*)nowhere = value;  // LAST: longjmp
}

KEPT static void divides(int value) {
  kept[0] = value;
  kept[1] = kept[0] / kept[15];  // LAST: divide
}

KEPT static void traps(int value) {
  kept[0] = value;
  if (kept[0] == value) __builtin_trap();  // LAST: trap
  kept[1] = value;
}

KEPT static void file_ends(int value) {
  char name[] = "/tmp/clew_record_XXXXXX";
  const int file = mkstemp(name);
  unlink(name);
  volatile int* const at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  *at = value;  // LAST: bus
}

static const struct {
  const char* name;
  void (*run)(int);
} kWays[] = {{"store", store},    {"inlined", inlined}, {"abort", aborts},    {"assert", asserts},
             {"callee", callee},  {"wild", wild},       {"switch", switches}, {"longjmp", jumps},
             {"divide", divides}, {"trap", traps},      {"bus", file_ends}};

int main(int count, char** words) {
  int at = 1;
  if (count == 3 && strcmp(words[1], "--tell") == 0) {
    const struct sigaction action = {.sa_sigaction = tell, .sa_flags = SA_SIGINFO};
    for (int number = 1; number < 32; ++number)
      sigaction(number, &action, NULL);
    at = 2;
  }
  if (at >= count) return 2;
  if (strcmp(words[at], "recursion") == 0) return recursion(count);
  for (size_t i = 0; i < sizeof kWays / sizeof *kWays; ++i) {
    if (strcmp(words[at], kWays[i].name) == 0) kWays[i].run(2);
  }
  return 3;
}

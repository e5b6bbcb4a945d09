// SPDX-License-Identifier: Apache-2.0
// Victim `pointers`: gives a function pointers to what can be read and to what cannot, also while
// another thread maps, protects, cuts off and unmaps it.
#define _GNU_SOURCE
#include <execinfo.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "victim.h"

VICTIM_COUNTER(take_node);

enum { kPage = 4096, kValue = 7, kNextValue = 9 };

struct node {
  uint64_t value;
  const struct node* next;
  char name[16];
};

static const struct node second = {kNextValue, 0, "second"};
static const struct node first = {kValue, &second, "first of two"};

VICTIM_FUNCTION uint64_t take_node(const struct node* node) {
  // In front of the counter, a write, behind which no probe may look at memory.
  __asm__ volatile("nop" ::: "memory");
  VICTIM_COUNT(take_node);
  return (uint64_t)node >> 3;
}

static char* map_page(char* place, int protection) {
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | (place != 0 ? MAP_FIXED : 0);
  char* const page = mmap(place, kPage, protection, flags, -1, 0);
  VICTIM_CHECK(page != MAP_FAILED);
  return page;
}

// A page that can be read, and one behind it that cannot.
static char* edge(void) {
  char* const pages =
      mmap(0, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  VICTIM_CHECK(pages != MAP_FAILED && mprotect(pages + kPage, kPage, PROT_NONE) == 0);
  return pages + kPage;
}

static char* behind_end_of_file(void) {
  const int file = memfd_create("cut", MFD_CLOEXEC);
  VICTIM_CHECK(file >= 0 && ftruncate(file, 2 * kPage) == 0);
  char* const pages = mmap(0, 2 * kPage, PROT_READ, MAP_SHARED, file, 0);
  VICTIM_CHECK(pages != MAP_FAILED && ftruncate(file, kPage) == 0 && close(file) == 0);
  return pages + kPage;
}

// Of the mapping that this address is in.
static uint64_t begin_of(const void* address) {
  FILE* const maps = fopen("/proc/self/maps", "re");
  VICTIM_CHECK(maps != 0);
  char line[512];
  unsigned long begin = 0;
  while (fgets(line, sizeof line, maps) != 0) {
    unsigned long low = 0;
    unsigned long high = 0;
    const int is_range = sscanf(line, "%lx-%lx", &low, &high) == 2;
    if (is_range && low <= (unsigned long)address && (unsigned long)address < high) begin = low;
  }
  VICTIM_CHECK(fclose(maps) == 0);
  return begin;
}

static void give(const void* pointer) {
  (void)take_node(pointer);
}

// Until the next command comes.
static void steadily(uint64_t unused) {
  (void)unused;
  enum { kBetweenLooks = 1000 };
  struct pollfd input = {.fd = 0, .events = POLLIN};
  do {
    for (int i = 0; i < kBetweenLooks; ++i)
      give(&first);
  } while (poll(&input, 1, 0) != 1);
}

// Each kind once.
static void kinds(uint64_t rounds) {
  char* const closed = edge();
  // A whole value, and the rest behind the edge.
  memcpy(closed - sizeof(uint64_t), &first.value, sizeof(uint64_t));
  memcpy(closed - kPage, "to the edge", 12);
  char* const gone = map_page(0, PROT_READ);
  VICTIM_CHECK(munmap(gone, kPage) == 0);
  const void* const cut = behind_end_of_file();
  for (uint64_t round = 0; round < rounds; ++round) {
    give(&first);
    give(closed - sizeof(uint64_t));
    give(closed - 4);  // Half of a value.
    give(closed);
    give(gone);
    give(cut);
    give(0);
    give((const void*)0x8000000000000000);  // No address at all.
    give((const void*)0xFFFFFFFF81000000);  // The kernel's.
    give((const void*)~(uint64_t)0);
  }
  victim_print("given", 10 * rounds);
}

// Below the stack pointer, where only the stack can grow.
static void below_stack(uint64_t rounds) {
  const uint64_t before = begin_of(&rounds);
  for (uint64_t round = 0; round < rounds; ++round)
    give((const void*)(before - 16 * kPage));
  victim_print("grown", before - begin_of(&rounds));
}

// A stack with room below, where nobody else maps anything: the kernel keeps other mappings away,
// and from those that are closed no distance.
static char* map_stack(void) {
  enum { kRoom = 4 * kPage };
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS;
  char* const closed = mmap(0, kPage + kRoom + kPage, PROT_NONE, flags, -1, 0);
  VICTIM_CHECK(closed != MAP_FAILED);
  char* const stack = closed + kPage + kRoom;
  const int protection = PROT_READ | PROT_WRITE;
  VICTIM_CHECK(mmap(stack, kPage, protection, flags | MAP_FIXED | MAP_GROWSDOWN, -1, 0) == stack);
  VICTIM_CHECK(munmap(closed + kPage, kRoom) == 0);
  return stack;
}

// The same of a stack of its own, which a load of its own makes grow: the last command of that.
static char* own_stack;

static void below_own_stack(uint64_t rounds) {
  if (own_stack == 0) own_stack = map_stack();
  for (uint64_t round = 0; round < rounds; ++round)
    give(own_stack - kPage);
  victim_print("grown", (uint64_t)own_stack - begin_of(own_stack));
}

static void load_below_own_stack(uint64_t unused) {
  (void)unused;
  (void)*(volatile char*)(own_stack - kPage);
  victim_print("grown", (uint64_t)own_stack - begin_of(own_stack));
}

// A node in the file that the environment names.
static void in_file(uint64_t rounds) {
  static const void* page;
  if (page == 0) {
    const int file = open(getenv("NODE_FILE"), O_RDONLY | O_CLOEXEC);
    VICTIM_CHECK(file >= 0);
    page = mmap(0, kPage, PROT_READ, MAP_PRIVATE, file, 0);
    VICTIM_CHECK(page != MAP_FAILED && close(file) == 0);
  }
  for (uint64_t round = 0; round < rounds; ++round)
    give(page);
}

// The shaken page is mapped, of a file that is cut off, closed and unmapped by turns.
static char* shaken;
static int shaken_file;
static _Atomic int is_over;

static void cut_off(int is_cut) {
  VICTIM_CHECK(ftruncate(shaken_file, is_cut ? 0 : kPage) == 0);
}

static void* shake(void* unused) {
  uint64_t turns = 0;
  for (; !atomic_load(&is_over); ++turns) {
    map_page(shaken, PROT_READ | PROT_WRITE);
    *(volatile uint64_t*)shaken = kValue;
    VICTIM_CHECK(mprotect(shaken, kPage, PROT_NONE) == 0);
    const int flags = MAP_SHARED | MAP_FIXED;
    VICTIM_CHECK(mmap(shaken, kPage, PROT_READ, flags, shaken_file, 0) != MAP_FAILED);
    cut_off(1);
    cut_off(0);
    VICTIM_CHECK(munmap(shaken, kPage) == 0);
  }
  victim_print("shaken", turns != 0);
  return unused;
}

static void race(uint64_t rounds) {
  shaken = map_page(0, PROT_READ);
  shaken_file = memfd_create("shaken", MFD_CLOEXEC);
  VICTIM_CHECK(shaken_file >= 0);
  cut_off(0);
  atomic_store(&is_over, 0);
  pthread_t thread;
  VICTIM_CHECK(pthread_create(&thread, 0, shake, 0) == 0);
  for (uint64_t round = 0; round < rounds; ++round)
    give(shaken);
  atomic_store(&is_over, 1);
  VICTIM_CHECK(pthread_join(thread, 0) == 0);
  VICTIM_CHECK(close(shaken_file) == 0);
}

// Looks at its own stack, too, as profilers do.
static void give_both(int number) {
  (void)number;
  void* callers[32];
  VICTIM_CHECK(backtrace(callers, 32) > 0);
  give(&first);
  give(0);
}

static void set_timer(long microseconds) {
  void* caller[1];
  (void)backtrace(caller, 1);  // What it needs is loaded here, not in the handler.
  const struct sigaction act = {.sa_handler = give_both, .sa_flags = SA_RESTART};
  VICTIM_CHECK(sigaction(SIGALRM, &act, 0) == 0);
  const struct itimerval timer = {.it_interval = {.tv_usec = microseconds},
                                  .it_value = {.tv_usec = microseconds}};
  VICTIM_CHECK(setitimer(ITIMER_REAL, &timer, 0) == 0);
}

// The same under signals, whose handlers give pointers as well.
static void storm(uint64_t rounds) {
  set_timer(100);
  race(rounds);
  set_timer(0);
}

// Children that give each pointer once, and end by what their own counts say.
static void children(uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      kinds(1);
      _exit(42);
    }
    int status = 0;
    VICTIM_CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) &&
                 WEXITSTATUS(status) == 42);
  }
  victim_print("children", count);
}

// A child that gives a pointer, maps a stack, and lives as long as its parent.
static void stray(uint64_t unused) {
  (void)unused;
  int life[2];
  int born[2];
  VICTIM_CHECK(pipe(life) == 0 && pipe(born) == 0);
  const pid_t child = fork();
  if (child == 0) {
    char byte = 0;
    give(&first);
    (void)map_stack();
    const int is_told = close(life[1]) == 0 && write(born[1], &byte, 1) == 1;
    while (is_told && read(life[0], &byte, 1) > 0) {
    }
    _exit(0);
  }
  char byte;
  VICTIM_CHECK(child > 0 && read(born[0], &byte, 1) == 1);
  victim_print("child", (uint64_t)child);
}

// From now on, reading memory by the kernel is the process's death.
static void forbid(uint64_t unused) {
  (void)unused;
  struct sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)};
  const struct sock_fprog program = {.len = sizeof filter / sizeof *filter, .filter = filter};
  VICTIM_CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
  VICTIM_CHECK(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0);
  victim_print("forbidden", 1);
}

const struct VictimCommand victim_commands[] = {{"kinds", kinds},
                                                {"below", below_stack},
                                                {"race", race},
                                                {"storm", storm},
                                                {"children", children},
                                                {"forbid", forbid},
                                                {"steadily", steadily},
                                                {"below_own", below_own_stack},
                                                {"load_below_own", load_below_own_stack},
                                                {"in_file", in_file},
                                                {"stray", stray},
                                                {0}};

uint64_t victim_run(uint64_t rounds) {
  uint64_t digest = 0;
  for (uint64_t round = 0; round < rounds; ++round) {
    VICTIM_CHECK(take_node(&first) == (uint64_t)&first >> 3);
    digest = victim_mix(digest, round);
  }
  return digest;
}

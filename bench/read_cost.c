// SPDX-License-Identifier: Apache-2.0
// What does it cost to read 8 bytes of this process that may not be there? Prints one line for each
// way: its name, and ns: the median, the lower tenth and the upper tenth of bursts that take turns.
//
//     load            a plain load, out of line: what a cached range with a fix-up would be
//     kernel          process_vm_readv of the process itself: what try_read is
//     kernel-fails    the same, of an address that is not mapped
//     look-up         PROCMAP_QUERY: what filling the cache would cost at each miss
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/types.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { kBursts = 101, kReads = 2000, kWays = 4 };

// PROCMAP_QUERY of linux/fs.h (6.11), which older headers do not have.
struct map_query {
  uint64_t size, flags, address, start, end, map_flags, page_size, offset, inode;
  uint32_t major, minor, name_size, build_id_size;
  uint64_t name, build_id;
};
#define MAP_QUERY _IOWR('f', 17, struct map_query)

static uint64_t word = 1;
static int maps;
static pid_t self;

__attribute__((noinline)) static uint64_t load(const uint64_t* from) {
  return *(const volatile uint64_t*)from;
}

static uint64_t by_kernel(void* from) {
  uint64_t value = 0;
  const struct iovec local = {&value, sizeof value}, remote = {from, sizeof value};
  (void)process_vm_readv(self, &local, 1, &remote, 1, 0);
  return value;
}

static uint64_t by_load(void) {
  return load(&word);
}
static uint64_t kernel(void) {
  return by_kernel(&word);
}
static uint64_t kernel_fails(void) {
  return by_kernel((void*)4096);
}
static uint64_t look_up(void) {
  struct map_query query = {.size = sizeof query, .address = (uintptr_t)&word};
  return ioctl(maps, MAP_QUERY, &query) == 0 ? query.start : 0;
}

static int compare(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

int main(void) {
  static const struct {
    const char* name;
    uint64_t (*read)(void);
  } ways[kWays] = {
      {"load", by_load}, {"kernel", kernel}, {"kernel-fails", kernel_fails}, {"look-up", look_up}};
  static double ns[kWays][kBursts];
  self = getpid();
  maps = open("/proc/self/maps", O_RDONLY);
  for (int burst = 0; burst < kBursts; ++burst) {
    for (int way = 0; way < kWays; ++way) {
      struct timespec begin, end;
      volatile uint64_t sum = 0;
      clock_gettime(CLOCK_MONOTONIC, &begin);
      for (int i = 0; i < kReads; ++i)
        sum += ways[way].read();
      clock_gettime(CLOCK_MONOTONIC, &end);
      ns[way][burst] =
          ((double)(end.tv_sec - begin.tv_sec) * 1e9 + (double)(end.tv_nsec - begin.tv_nsec)) /
          kReads;
    }
  }
  for (int way = 0; way < kWays; ++way) {
    qsort(ns[way], kBursts, sizeof ns[way][0], compare);
    printf("%s %.2f %.2f %.2f\n", ways[way].name, ns[way][kBursts / 2], ns[way][kBursts / 10],
           ns[way][kBursts * 9 / 10]);
  }
  return 0;
}

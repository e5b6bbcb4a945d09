// SPDX-License-Identifier: Apache-2.0
// A program that gives up its rights in a forked child, which then attacks its parent through the
// memory that they share. One command per line, one line as the answer:
//
//   calls N    calls work() N times    -> number of calls so far
//   usurp      the child tries to change each mapping of the arena that it may not write, and fills
//              those that it may  -> how many it changed of how many, "1 of 3"
//   confine    has a root folder without /proc from now on  -> 0
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kPage = 4096, kMappingsMax = 64 };

static long calls;
static int proc_folder;  // Known from before the program was confined.

__attribute__((noinline)) long work(long value) {
  __asm__ volatile("" : : : "memory");
  return value * 3 + 1;
}

struct Mapping {
  unsigned char* start;
  unsigned long size;
  unsigned long offset;  // In the file.
  int writable;
};

static struct Mapping mappings[kMappingsMax];
static int mapping_count;

static void find_mappings(void) {
  char line[512];
  const int file = openat(proc_folder, "self/maps", O_RDONLY);
  FILE* const maps = file < 0 ? NULL : fdopen(file, "r");
  while (maps != NULL && fgets(line, sizeof line, maps) != NULL) {
    unsigned long start = 0, end = 0, offset = 0;
    char rights[8] = "";
    if (strstr(line, "/memfd:clew-arena") == NULL || mapping_count == kMappingsMax) continue;
    if (sscanf(line, "%lx-%lx %7s %lx", &start, &end, rights, &offset) != 4) continue;
    mappings[mapping_count++] = (struct Mapping){.start = (unsigned char*)start,
                                                 .size = end - start,
                                                 .offset = offset,
                                                 .writable = rights[1] == 'w'};
  }
  if (maps != NULL) fclose(maps);
}

// Does a byte written at `to` change the mapping? It gets its value back.
static int changes(volatile unsigned char* to, const struct Mapping* mapping) {
  volatile unsigned char* const seen = mapping->start;
  const unsigned char before = *seen;
  *to = (unsigned char)~before;
  const int changed = *seen != before;
  *to = before;
  return changed;
}

// The same file at another offset, through a mapping that is writable.
static int is_reached_from(const struct Mapping* writable, const struct Mapping* mapping) {
  void* const copy = mremap(writable->start, 0, kPage, MREMAP_MAYMOVE);
  if (copy == MAP_FAILED) return 0;
  int reached =
      remap_file_pages(copy, kPage, 0, mapping->offset / kPage, 0) == 0 && changes(copy, mapping);
  munmap(copy, kPage);
  if (mapping->offset < writable->offset) return reached;
  const unsigned long distance = mapping->offset - writable->offset;
  unsigned char* const grown = mremap(writable->start, 0, distance + kPage, MREMAP_MAYMOVE);
  if (grown == MAP_FAILED) return reached;
  // Behind the end of the file is SIGBUS: what ends there is not the file of `mapping`.
  unsigned char there = 0;
  if (mincore(grown + distance, kPage, &there) == 0 && there != 0)
    reached |= changes(grown + distance, mapping);
  munmap(grown, distance + kPage);
  return reached;
}

static int can_be_changed(const struct Mapping* mapping) {
  if (mprotect(mapping->start, kPage, PROT_READ | PROT_WRITE) == 0) {
    return changes(mapping->start, mapping);
  }
  const unsigned char before = mapping->start[0];
  const int removed = madvise(mapping->start, kPage, MADV_REMOVE) == 0;
  if (removed && mapping->start[0] != before) return 1;
  for (int i = 0; i < mapping_count; ++i) {
    if (mappings[i].writable && is_reached_from(&mappings[i], mapping)) return 1;
  }
  return 0;
}

// Only pages that are there already: the others are those of no thread.
static void fill(const struct Mapping* mapping) {
  const unsigned long size = mapping->size < (64UL << 20) ? mapping->size : 64UL << 20;
  unsigned char* const there = malloc(size / kPage);
  if (there == NULL || mincore(mapping->start, size, there) != 0) return;
  for (unsigned long i = 0; i < size / kPage; ++i) {
    if ((there[i] & 1) != 0) memset(mapping->start + i * kPage, 0x41, kPage);
  }
  free(there);
}

static int attack(void) {
  if (geteuid() == 0 && setuid(65534) != 0) return 255;
  int changed = 0;
  find_mappings();
  for (int i = 0; i < mapping_count; ++i) {
    if (!mappings[i].writable) changed += can_be_changed(&mappings[i]);
  }
  for (int i = 0; i < mapping_count; ++i) {
    if (mappings[i].writable) fill(&mappings[i]);
  }
  return changed;
}

static void usurp(void) {
  const pid_t child = fork();
  if (child == 0) _exit(attack());
  int status = -1;
  waitpid(child, &status, 0);
  find_mappings();
  int read_only = 0;
  for (int i = 0; i < mapping_count; ++i)
    read_only += !mappings[i].writable;
  mapping_count = 0;
  printf("%d of %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_only);
}

static int confine(void) {
  return chroot("/sys") == 0 ? chdir("/") : -1;
}

int main(void) {
  char line[64];
  setvbuf(stdout, NULL, _IOLBF, 0);
  proc_folder = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
  printf("ready\n");
  while (fgets(line, sizeof line, stdin) != NULL) {
    long count = 0;
    long sum = 0;
    if (strncmp(line, "usurp", 5) == 0) {
      usurp();
    } else if (strncmp(line, "confine", 7) == 0) {
      printf("%d\n", confine());
    } else if (sscanf(line, "calls %ld", &count) == 1) {
      for (long i = 0; i < count; ++i)
        sum += work(i) - (i * 3 + 1);
      calls += count;
      printf("%ld\n", sum == 0 ? calls : -1);
    }
  }
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
// Victim `uring`: reads a file by io_uring(7) whose submissions a thread of the kernel polls
// (IORING_SETUP_SQPOLL), and writes to a pipe by it. That thread is in /proc/PID/task like any
// other, and never executes a program's instruction. `begin` makes the ring and prints
// `poller`: 1 when there is such a thread, 0 where the kernel allows no ring.
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <linux/io_uring.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "victim.h"

VICTIM_COUNTER(ring_submit);
VICTIM_COUNTER(ring_reap);

enum { kEntries = 8, kBlockSize = 512, kIdleMs = 50 };

static struct {
  int descriptor;
  int source;   // A file whose every word is told by its place.
  int pipe[2];  // What the ring writes, and what is read of it.
  unsigned* sq_tail;
  unsigned* sq_mask;
  unsigned* sq_flags;
  unsigned* sq_array;
  unsigned* cq_head;
  unsigned* cq_tail;
  unsigned* cq_mask;
  struct io_uring_sqe* sqes;
  struct io_uring_cqe* cqes;
} ring = {.descriptor = -1};

static void* map_part(size_t size, off_t offset) {
  void* const part =
      mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring.descriptor, offset);
  VICTIM_CHECK(part != MAP_FAILED);
  return part;
}

static int make_ring(void) {
  struct io_uring_params set = {.flags = IORING_SETUP_SQPOLL, .sq_thread_idle = kIdleMs};
  ring.descriptor = (int)syscall(SYS_io_uring_setup, kEntries, &set);
  if (ring.descriptor < 0) return 0;
  char* const sq =
      map_part(set.sq_off.array + set.sq_entries * sizeof(unsigned), IORING_OFF_SQ_RING);
  char* const cq =
      map_part(set.cq_off.cqes + set.cq_entries * sizeof(struct io_uring_cqe), IORING_OFF_CQ_RING);
  ring.sqes = map_part(set.sq_entries * sizeof(struct io_uring_sqe), IORING_OFF_SQES);
  ring.sq_tail = (unsigned*)(sq + set.sq_off.tail);
  ring.sq_mask = (unsigned*)(sq + set.sq_off.ring_mask);
  ring.sq_flags = (unsigned*)(sq + set.sq_off.flags);
  ring.sq_array = (unsigned*)(sq + set.sq_off.array);
  ring.cq_head = (unsigned*)(cq + set.cq_off.head);
  ring.cq_tail = (unsigned*)(cq + set.cq_off.tail);
  ring.cq_mask = (unsigned*)(cq + set.cq_off.ring_mask);
  ring.cqes = (struct io_uring_cqe*)(cq + set.cq_off.cqes);
  return 1;
}

static void make_files(void) {
  uint64_t words[kEntries * kBlockSize / sizeof(uint64_t)];
  for (uint64_t i = 0; i < sizeof words / sizeof *words; ++i)
    words[i] = victim_mix(i, 7);
  ring.source = memfd_create("uring", MFD_CLOEXEC);
  VICTIM_CHECK(write(ring.source, words, sizeof words) == sizeof words);
  VICTIM_CHECK(pipe(ring.pipe) == 0);
}

// Threads by the names that the kernel gives those of rings.
static uint64_t pollers(void) {
  uint64_t found = 0;
  DIR* const tasks = opendir("/proc/self/task");
  for (struct dirent* task = readdir(tasks); task != NULL; task = readdir(tasks)) {
    char path[300];
    char name[32] = "";
    snprintf(path, sizeof path, "/proc/self/task/%s/comm", task->d_name);
    FILE* const file = fopen(path, "r");
    if (file == NULL) continue;
    if (fgets(name, sizeof name, file) != NULL && strncmp(name, "iou-", 4) == 0) ++found;
    fclose(file);
  }
  closedir(tasks);
  return found;
}

static void begin(uint64_t unused) {
  (void)unused;
  const int made = make_ring();
  if (made) make_files();
  while (made && pollers() == 0)  // It gives itself its name.
    sched_yield();
  victim_print("poller", (uint64_t)made);
}

// The kernel sees it by itself, unless its thread has gone to sleep.
VICTIM_FUNCTION void ring_submit(uint8_t operation, int file, void* data, uint64_t offset) {
  VICTIM_COUNT(ring_submit);
  const unsigned tail = *ring.sq_tail;
  const unsigned at = tail & *ring.sq_mask;
  ring.sqes[at] = (struct io_uring_sqe){.opcode = operation,
                                        .fd = file,
                                        .addr = (uint64_t)data,
                                        .len = kBlockSize,
                                        .off = offset,
                                        .user_data = (uint64_t)data};
  ring.sq_array[at] = at;
  __atomic_store_n(ring.sq_tail, tail + 1, __ATOMIC_RELEASE);
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  if (__atomic_load_n(ring.sq_flags, __ATOMIC_RELAXED) & IORING_SQ_NEED_WAKEUP)
    VICTIM_CHECK(
        syscall(SYS_io_uring_enter, ring.descriptor, 1, 0, IORING_ENTER_SQ_WAKEUP, NULL, 0) >= 0);
}

VICTIM_FUNCTION uint64_t ring_reap(void) {
  VICTIM_COUNT(ring_reap);
  const unsigned head = *ring.cq_head;
  while (__atomic_load_n(ring.cq_tail, __ATOMIC_ACQUIRE) == head)
    sched_yield();
  const struct io_uring_cqe done = ring.cqes[head & *ring.cq_mask];
  VICTIM_CHECK(done.res == kBlockSize);
  __atomic_store_n(ring.cq_head, head + 1, __ATOMIC_RELEASE);
  return done.user_data;
}

static uint64_t digest_of(uint64_t digest, const uint64_t* words) {
  for (int i = 0; i < kBlockSize / 8; ++i)
    digest = victim_mix(digest, words[i]);
  return digest;
}

// Reads all blocks at once; then one of them goes through the pipe.
uint64_t victim_run(uint64_t rounds) {
  static uint64_t blocks[kEntries][kBlockSize / 8];
  uint64_t digest = 0;
  if (ring.descriptor < 0) begin(0);
  for (uint64_t round = 0; round < rounds; ++round) {
    memset(blocks, 0, sizeof blocks);
    for (uint64_t i = 0; i < kEntries; ++i)
      ring_submit(IORING_OP_READ, ring.source, blocks[i], i * kBlockSize);
    for (int i = 0; i < kEntries; ++i)
      (void)ring_reap();
    for (int i = 0; i < kEntries; ++i)
      digest = digest_of(digest, blocks[i]);
    ring_submit(IORING_OP_WRITE, ring.pipe[1], blocks[round % kEntries], 0);
    VICTIM_CHECK(ring_reap() == (uint64_t)blocks[round % kEntries]);
    uint64_t block[kBlockSize / 8];
    VICTIM_CHECK(read(ring.pipe[0], block, sizeof block) == sizeof block);
    digest = digest_of(digest, block);
  }
  return digest;
}

const struct VictimCommand victim_commands[] = {{"begin", begin}, {0}};

// SPDX-License-Identifier: Apache-2.0
// A client of a file system: opens files at random, reads 8 KiB of each somewhere, and says at the
// end how often it has read which. Copies of it with other names are other programs to whoever
// looks at processes.
//
//     reader SEED OPERATIONS FILE...        without a number (0): until its standard input ends
//
// It begins when it reads a byte.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kPiece = 8192, kBlock = 65536, kBlocks = 16, kPauseMs = 5, kFilesMax = 1000 };

static uint64_t next_random(uint64_t* state) {  // xorshift64 (Marsaglia)
  *state ^= *state << 13;
  *state ^= *state >> 7;
  *state ^= *state << 17;
  return *state >> 16;
}

// Waits for the time between two operations.
static int is_told_to_end(void) {
  struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
  return poll(&input, 1, kPauseMs) != 0;
}

// Within a block of the file system, as others would ask for two. Few pieces begin at one place.
static uint64_t place_of(uint64_t number) {
  return number % kBlocks * kBlock + number / kBlocks % (kBlock - kPiece);
}

__attribute__((noinline)) void next_operation(const char* path, uint64_t place) {
  static char piece[kPiece];
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0 || pread(file, piece, kPiece, (off_t)place) != kPiece) {
    fprintf(stderr, "reader: %s: %s\n", path, strerror(errno));
    exit(1);
  }
  close(file);
}

int main(int argc, char** argv) {
  if (argc < 4 || argc - 3 > kFilesMax) {
    fprintf(stderr, "usage: reader SEED OPERATIONS FILE...\n");
    return 2;
  }
  uint64_t state = strtoull(argv[1], NULL, 10) * 2654435761u + 1;
  const uint64_t operations = strtoull(argv[2], NULL, 10);
  char** files = argv + 3;
  const uint64_t count = (uint64_t)(argc - 3);
  static uint64_t done[kFilesMax];
  char go = 0;
  if (read(STDIN_FILENO, &go, 1) != 1) return 0;
  for (uint64_t i = 0; (operations == 0 || i < operations) && !is_told_to_end(); ++i) {
    const uint64_t file = next_random(&state) % count;
    next_operation(files[file], place_of(next_random(&state)));
    ++done[file];
  }
  for (uint64_t i = 0; i < count; ++i)
    printf("%s %llu\n", files[i], (unsigned long long)done[i]);
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
// Each line of standard input is read by one more call, and "throw" throws through all of them,
// also through those that ran as copies. Nobody recorded it as it began.
#include <cstdio>
#include <cstring>

#include <unistd.h>

#define KEPT __attribute__((noinline, noclone))

static int destroyed;

struct Counted {
  ~Counted() { ++destroyed; }
};

KEPT static int obey(int depth) {
  const Counted counted;
  char line[64];
  if (std::fgets(line, sizeof line, stdin) == nullptr) return depth;
  if (std::strcmp(line, "throw\n") == 0) throw depth;
  std::printf("%d\n", depth);
  std::fflush(stdout);
  const int below = obey(depth + 1);
  return below + (line[0] == 0 ? 1 : 0);
}

int main() {
  std::printf("%d\n", static_cast<int>(getpid()));
  std::fflush(stdout);
  try {
    return obey(0);
  } catch (int depth) {
    std::printf("caught %d, %d destroyed\n", depth, destroyed);
  }
  return 9;
}

// SPDX-License-Identifier: Apache-2.0
// Counts its own calls, exceptions and turns, says so, and faults: all of it fits into its history.
#include <cstdio>

#define KEPT __attribute__((noinline, noclone))

static int* volatile nowhere;
static int calls_of_left, calls_of_right, calls_of_down, calls_by_down, caught, turns;

KEPT static int left(int value) {
  ++calls_of_left;
  return value * 3;
}

KEPT static int right(int value) {
  ++calls_of_right;
  if (value % 7 == 0) throw value;
  return left(value) + 1;
}

KEPT static int down(int depth) {
  ++calls_of_down;
  if (depth == 0) return 1;
  ++calls_by_down;
  return down(depth - 1) + 1;
}

KEPT static void fault() {
  *nowhere = 1;  // LAST: counted
}

int main() {
  int sum = 0;
  for (int i = 0; i < 100; ++i) {
    ++turns;  // LAST: turn
    try {
      sum += i % 3 == 0 ? left(i) : right(i);
    } catch (const int value) {
      sum += value;
      ++caught;
    }
    if (i % 20 == 0) sum += down(i / 10);
  }
  std::printf("left %d\nright %d\ndown %d\nby_down %d\ncaught %d\nturns %d\n", calls_of_left,
              calls_of_right, calls_of_down, calls_by_down, caught, turns);
  std::fflush(stdout);
  fault();
  return sum;
}

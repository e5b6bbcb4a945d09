// SPDX-License-Identifier: Apache-2.0
// Functions whose guards are read back: nobody runs them. Calls of each kind, loops, switches,
// recursion, jumps into other functions, and a second return.
#include <setjmp.h>
#include <stdlib.h>

typedef int (*Step)(int);

static jmp_buf back;
int total;

__attribute__((noinline)) static int leaf(int x) {
  return x > 3 ? x * 3 : x + 7;
}

__attribute__((noinline)) static int sum_to(int x) {
  int sum = 0;
  for (int i = 0; i < x; ++i) {
    if (i % 3 == 0) continue;
    sum += leaf(i);
  }
  return sum;
}

__attribute__((noinline)) static int depth_of(int x) {
  if (x <= 0) return leaf(x);
  return depth_of(x - 1) + depth_of(x - 2);
}

__attribute__((noinline)) int chosen(int x) {
  switch (x % 6) {
    case 0:
      return leaf(x);
    case 1:
      return sum_to(x);
    case 2:
      total += x;
      break;
    case 3:
      return depth_of(x % 4);
    default:
      total -= leaf(total);
  }
  return x;
}

__attribute__((noinline)) int through(Step step, int x) {
  int sum = 0;
  while (x-- > 0)
    sum += step(x);
  return sum;
}

static int compare(const void* a, const void* b) {
  return *(const int*)a - *(const int*)b;
}

__attribute__((noinline)) int sorted(int* all, int count) {
  qsort(all, (size_t)count, sizeof *all, compare);
  return count > 0 ? all[0] : 0;
}

__attribute__((noinline)) int tail_of(int x) {
  total += x;
  if (x % 2 == 0) return chosen(x + 1);
  return sum_to(x);
}

__attribute__((noinline)) int twice(int x) {
  if (setjmp(back) != 0) return leaf(x);
  if (x > 5) longjmp(back, 1);
  return sum_to(x);
}

int all_of(int x, int* some, int count) {
  total += chosen(x) + through(chosen, x) + through(tail_of, x) + sorted(some, count);
  return total > 100 ? twice(x) : tail_of(x);
}

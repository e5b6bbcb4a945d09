// SPDX-License-Identifier: Apache-2.0
// Victim `begun N`: a program that others begin by exec. Calls begun_work() N times, as soon as
// that has a probe; its status says whether it got one. `begun N --` does not wait for that.
// `begun held` begins another one, which does not get as far as its loader before this one ends.
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { kLooked = 32, kSecondsMax = 20 };

__attribute__((noinline)) long begun_work(long value) {
  long twice = value + value;
  __asm__ volatile("" : "+r"(twice));
  return twice * 3 + value;
}

// Whether somebody writes a jump there before the time is over.
static int wait_for_probe(void) {
  unsigned char before[kLooked];
  const volatile unsigned char* const now = (const volatile unsigned char*)&begun_work;
  for (int i = 0; i < kLooked; ++i)
    before[i] = now[i];
  const time_t end = time(NULL) + kSecondsMax;
  while (time(NULL) < end) {
    for (int i = 0; i < kLooked; ++i) {
      if (before[i] != now[i]) return 1;
    }
  }
  return 0;
}

// A process that lets its parent trace it stops as its exec is done.
static int begin_held(void) {
  const pid_t child = fork();
  if (child == 0) {
    ptrace(PTRACE_TRACEME, 0, NULL, NULL);
    execl("/proc/self/exe", "begun", "1", "--", (char*)NULL);
    _exit(3);
  }
  int status = 0;
  return waitpid(child, &status, 0) == child && WIFSTOPPED(status) ? 0 : 3;
}

int main(int count, char** arguments) {
  if (count == 2 && strcmp(arguments[1], "held") == 0) return begin_held();
  const long calls = count > 1 ? atol(arguments[1]) : 1;
  const int has_probe = count > 2 || wait_for_probe();
  long sum = 0;
  for (long i = 0; i < calls; ++i)
    sum += begun_work(i);
  return has_probe && sum == 7 * calls * (calls - 1) / 2 ? 0 : 3;
}

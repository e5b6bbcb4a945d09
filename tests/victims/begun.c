// SPDX-License-Identifier: Apache-2.0
// Victim `begun N`: a program that others begin by exec. Calls begun_work() N times, and passes
// the static probe clew_begun:told as often, as soon as one of them has a probe; its status says
// whether one got one, and that the second was passed always or never. `begun N --` does not wait.
// `begun held` begins another one, which does not get as far as its loader before this one ends.
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "static_probe.h"

enum { kLooked = 32, kSecondsMax = 20 };

__attribute__((noinline)) long begun_work(long value) {
  long twice = value + value;
  __asm__ volatile("" : "+r"(twice));
  return twice * 3 + value;
}

__attribute__((section(".probes"), used)) volatile unsigned short begun_semaphore;

// Whether somebody listens.
__attribute__((noinline)) long begun_told(long value) {
  if (begun_semaphore == 0) return 0;
  __asm__ volatile(VICTIM_STATIC_PROBE("clew_begun", "told", "begun_semaphore", "-8@%0")
                   :
                   : "r"(value));
  return 1;
}

static int has_changed(const unsigned char* before, const volatile unsigned char* now) {
  for (int i = 0; i < kLooked; ++i) {
    if (before[i] != now[i]) return 1;
  }
  return 0;
}

// Whether somebody writes a jump there before the time is over.
static int wait_for_probe(void) {
  unsigned char before[2][kLooked];
  const volatile unsigned char* const works[] = {(const volatile unsigned char*)&begun_work,
                                                 (const volatile unsigned char*)&begun_told};
  for (int i = 0; i < 2 * kLooked; ++i)
    before[i / kLooked][i % kLooked] = works[i / kLooked][i % kLooked];
  const time_t end = time(NULL) + kSecondsMax;
  while (time(NULL) < end) {
    if (has_changed(before[0], works[0]) || has_changed(before[1], works[1])) return 1;
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
  long told = 0;
  for (long i = 0; i < calls; ++i) {
    sum += begun_work(i);
    told += begun_told(i);
  }
  const int is_right = sum == 7 * calls * (calls - 1) / 2 && (told == 0 || told == calls);
  return has_probe && is_right ? 0 : 3;
}

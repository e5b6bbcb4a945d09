// SPDX-License-Identifier: Apache-2.0
// C whose frames have something to do when a thread is cancelled or ends: attributes, and what
// pthread_cleanup_push() is with -fexceptions. The walk of the C library goes through all of them.
#define _GNU_SOURCE
#include <execinfo.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define KEPT __attribute__((noinline, noclone))

static volatile int changing = 1;

static void note(const char* what, long value) {
  printf("%s %ld\n", what, value);
}

static void end_of(int* value) {
  note("end of", *value);
}

static int compare(const void* a, const void* b) {
  void* frames[32];
  static int told;
  if (told++ == 0) note("frames below qsort", backtrace(frames, 32));
  return *(const int*)a - *(const int*)b;
}

KEPT static long waits(long how, int depth) {
  __attribute__((cleanup(end_of))) int mine = (int)how * 10 + depth;
  if (depth > 0) return waits(how, depth - 1) + mine;
  if (how == 0) pthread_exit((void*)5L);
  while (how == 1)
    pause();
  void* frames[32];
  note("frames", backtrace(frames, 32));
  return mine * changing;
}

static void give_back(void* argument) {
  note("given back", *(long*)argument);
}

static void* in_thread(void* argument) {
  long result = 0;
  pthread_cleanup_push(give_back, argument);
  result = waits(*(long*)argument, 4);
  pthread_cleanup_pop(1);
  return (void*)result;
}

int main(void) {
  for (long how = 0; how < 3; ++how) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, in_thread, &how) != 0) abort();
    if (how == 1) pthread_cancel(thread);
    void* result = NULL;
    pthread_join(thread, &result);
    note("thread", (intptr_t)result);
  }
  int all[] = {5, 3, 9, 1, 7};
  qsort(all, 5, sizeof all[0], compare);
  note("least", all[0]);
  return 0;
}

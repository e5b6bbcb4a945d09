// SPDX-License-Identifier: Apache-2.0
// Loads the library that its first word names, as often as its second one says, while other threads
// compute if there is a third. Each time it calls it; at last it has it fault.
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define KEPT __attribute__((noinline, noclone))

enum { kThreads = 3 };
static _Atomic(unsigned) sum;

KEPT static unsigned mix(unsigned value) {
  return value % 3 == 0 ? value * 31 : value ^ value >> 7;
}

static void* compute(void* unused) {
  (void)unused;
  for (unsigned i = 1;; i = mix(i) + 1)
    atomic_fetch_add(&sum, i & 1);
  return NULL;
}

// Who calls dlopen() is not recorded.
KEPT static void use(unsigned (*calls)(unsigned), void (*faults)(int), int is_last) {
  printf("%u\n", calls(1000));
  fflush(stdout);
  if (is_last) faults(3);
}

KEPT static int load_and_call(const char* library, int is_last) {
  void* const loaded = dlopen(library, RTLD_NOW);
  if (loaded == NULL) return puts(dlerror());
  unsigned (*const calls)(unsigned) = (unsigned (*)(unsigned))dlsym(loaded, "loaded_calls");
  void (*const faults)(int) = (void (*)(int))dlsym(loaded, "loaded_faults");
  use(calls, faults, is_last);
  return dlclose(loaded);
}

int main(int count, char** words) {
  if (count < 3) return 2;
  pthread_t thread;
  for (int i = 0; count > 3 && i < kThreads; ++i)
    pthread_create(&thread, NULL, compute, NULL);
  const int times = atoi(words[2]);
  for (int i = 0; i < times; ++i) {
    if (load_and_call(words[1], i + 1 == times) != 0) return 3;
  }
  return 4;
}

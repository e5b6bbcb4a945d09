// SPDX-License-Identifier: Apache-2.0
// In C, and linked with no unwinder: loads the library (argument 1), which brings one, and lets it
// go its way (argument 2). With one argument: lets the C library load one, to cancel a thread.
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static pthread_barrier_t reached;
static volatile int odd;

static __attribute__((noinline)) void say(void* name) {
  odd += 1;
  printf("handler of %s\n", (const char*)name);
}

static __attribute__((noinline)) void waits(int depth) {
  pthread_cleanup_push(say, depth > 0 ? "outer" : "inner");
  if (depth > 0) {
    waits(depth - 1);
  } else {
    pthread_barrier_wait(&reached);
    while (odd >= 0)
      pthread_testcancel();
  }
  pthread_cleanup_pop(0);
  odd += 1;
}

static void* run(void* unused) {
  waits(3);
  return unused;
}

static int cancels(void) {
  pthread_t thread;
  void* result = NULL;
  pthread_barrier_init(&reached, NULL, 2);
  if (pthread_create(&thread, NULL, run, NULL) != 0) return 2;
  pthread_barrier_wait(&reached);
  pthread_cancel(thread);
  pthread_join(thread, &result);
  return puts(result == PTHREAD_CANCELED ? "canceled" : "ended") < 0;
}

int main(int words_count, char** words) {
  if (words_count == 2) return cancels();
  if (words_count != 3) return 2;
  void* const library = dlopen(words[1], RTLD_NOW);
  if (library == NULL) return puts(dlerror()) < 0 || 2;
  int (*run_way)(const char*) = 0;
  *(void**)&run_way = dlsym(library, "run_way");
  return run_way != 0 ? run_way(words[2]) : 2;
}

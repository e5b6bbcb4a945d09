// SPDX-License-Identifier: Apache-2.0
// Its first thread ends. Another one waits until that is so, and then faults, or loads, forks or
// executes something, as the first word says.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define KEPT __attribute__((noinline, noclone))

static int* volatile nowhere;
static volatile unsigned sum;

static void until_the_first_has_ended(void) {
  char path[64];
  char text[512] = "";
  snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)getpid());
  for (const char* name_end = NULL; name_end == NULL || name_end[2] != 'Z';) {
    FILE* const file = fopen(path, "r");
    if (file == NULL || fgets(text, sizeof text, file) == NULL) _exit(5);
    fclose(file);
    name_end = strrchr(text, ')');
    sched_yield();
  }
}

KEPT static int faults(unsigned turns) {
  for (unsigned i = 0; i < turns; ++i) {
    if (i % 3 == 0) sum += i;
  }
  *(volatile int*)nowhere = 1;  // LAST: leaderless
  return 3;
}

KEPT static int loads(const char* library) {
  void* const loaded = dlopen(library, RTLD_NOW);
  if (loaded == NULL) return puts(dlerror());
  unsigned (*const calls)(unsigned) = (unsigned (*)(unsigned))dlsym(loaded, "loaded_calls");
  void (*const fails)(int) = (void (*)(int))dlsym(loaded, "loaded_faults");
  printf("%u\n", calls(1000));
  fflush(stdout);
  fails(3);
  return dlclose(loaded);
}

KEPT static int forks(void) {
  int (*volatile called)(unsigned) = faults;  // From outside: the child gets a lobe of its own.
  const pid_t child = fork();
  if (child == 0) _exit(called(100));
  int status = 0;
  if (waitpid(child, &status, 0) != child) return 6;
  printf("status %#x\n", status);
  fflush(stdout);
  return 7;
}

static void* goes_on(void* argument) {
  char** const words = argument;
  until_the_first_has_ended();
  if (strcmp(words[1], "faults") == 0) _exit(faults(100));
  if (strcmp(words[1], "loads") == 0) _exit(loads(words[2]));
  if (strcmp(words[1], "forks") == 0) _exit(forks());
  execv(words[2], words + 2);
  _exit(4);
}

int main(int count, char** words) {
  pthread_t thread;
  if (count < 2 || pthread_create(&thread, NULL, goes_on, words) != 0) return 2;
  pthread_exit(NULL);
}

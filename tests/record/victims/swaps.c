// SPDX-License-Identifier: Apache-2.0
// Opens one library after the other, and closes each before the next, so that the next one can have
// its addresses. Says what it computes, and at last whether all of them were at one place.
//
//     swaps ROUNDS LIBRARY...    the last one faults at its end
//     swaps serve LIBRARY...     its number; then a round for each line of standard input
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KEPT __attribute__((noinline, noclone))

static const void* first;
static int moved;

KEPT static void use(unsigned (*calls)(unsigned), void (*faults)(int), int is_last) {
  const unsigned result = calls(100);
  printf("%u\n", result);
  if (!is_last) return;
  printf("%d moved\n", moved);
  fflush(stdout);
  faults(3);
}

KEPT static int open_and_use(const char* library, int is_last) {
  void* const loaded = dlopen(library, RTLD_NOW);
  if (loaded == NULL) {
    puts(dlerror());
    return 1;
  }
  void* const calls = dlsym(loaded, "loaded_calls");
  Dl_info info;
  if (dladdr(calls, &info) == 0) return 1;
  if (first == NULL) first = info.dli_fbase;
  moved += info.dli_fbase != first;
  use((unsigned (*)(unsigned))calls, (void (*)(int))dlsym(loaded, "loaded_faults"), is_last);
  return dlclose(loaded);
}

KEPT static int round_of(int count, char** libraries, int is_last) {
  for (int i = 0; i < count; ++i) {
    if (open_and_use(libraries[i], is_last && i + 1 == count) != 0) return 3;
  }
  return 0;
}

static int serve(int count, char** libraries) {
  char line[64];
  printf("%ld\n", (long)getpid());
  fflush(stdout);
  while (fgets(line, sizeof line, stdin) != NULL) {
    const int status = round_of(count, libraries, 0);
    puts("done");
    fflush(stdout);
    if (status != 0) return status;
  }
  return 9;
}

int main(int count, char** words) {
  if (count < 3) return 2;
  if (strcmp(words[1], "serve") == 0) return serve(count - 2, words + 2);
  const int rounds = atoi(words[1]);
  for (int i = 0; i < rounds; ++i) {
    const int status = round_of(count - 2, words + 2, i + 1 == rounds);
    if (status != 0) return status;
  }
  return 4;
}

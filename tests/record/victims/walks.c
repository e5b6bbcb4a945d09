// SPDX-License-Identifier: Apache-2.0
// Walks its own stack by an unwinder that it loads (argument 1): of calls in each other, and of a
// callback of the C library. With one more argument: lists the objects of the process.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct context;
typedef int take_frame(struct context* at, void* count);

static int (*walk)(take_frame* take, void* count);
static unsigned long (*place_of)(struct context* at);
static volatile int odd;

static int count_frame(struct context* at, void* count) {
  if (place_of(at) != 0) ++*(int*)count;
  return 0;
}

static __attribute__((noinline)) int look(int depth) {
  if (depth > 0) return look(depth - 1) + (odd |= 1);
  int count = 0;
  const int end = walk(count_frame, &count);
  return printf("%d frames, and %d\n", count, end);
}

static int order(const void* left, const void* right) {
  if ((odd += 2) < 8) look(3);
  return *(const char*)left - *(const char*)right;
}

static int list(struct dl_phdr_info* object, size_t size, void* count) {
  const char* const name = strrchr(object->dlpi_name, '/');
  ++*(int*)count;
  return printf("%s, %d segments, %zu\n", name != NULL ? name + 1 : object->dlpi_name,
                object->dlpi_phnum, size) < 0;
}

int main(int words_count, char** words) {
  void* const library = words_count > 1 ? dlopen(words[1], RTLD_NOW) : NULL;
  if (library == NULL) return 2;
  *(void**)&walk = dlsym(library, "_Unwind_Backtrace");
  *(void**)&place_of = dlsym(library, "_Unwind_GetIP");
  if (walk == NULL || place_of == NULL) return 3;
  for (int depth = 0; depth < 4; ++depth)
    look(depth * depth);
  char letters[] = "letters";
  qsort(letters, 7, 1, order);
  int count = 0;
  return words_count > 2 && dl_iterate_phdr(list, &count) + count < 4;
}

// SPDX-License-Identifier: Apache-2.0
// A program to trace whose functions have exits without room of their own (exit_shapes.S). It knows
// by a model in C what each gives and how often each is called. Commands come one per line on
// stdin; each is answered with one line on stdout.
//
//   shapes N    calls every shape N times       -> "early 3 loop 3 …", the calls of each until now,
//                                                  or "wrong NAME"
//   copies N    calls checking functions of the C library, each N times -> number of calls
//   strings N   calls functions of the C library on strings, N rounds -> a checksum of all results
//   storm T     T threads call shapes until "calm" -> "storming"
//   calm        -> "right", or "wrong"
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <wchar.h>
#include <wctype.h>

#include "code/victims/exit_shapes.h"

#define NUMBER_SHAPE(name) kShape_##name,
enum { CLEW_EXIT_SHAPES(NUMBER_SHAPE) kShapes };

#define NAME_SHAPE(name) #name,
static const char* const kNames[] = {CLEW_EXIT_SHAPES(NAME_SHAPE)};

static atomic_long counts[kShapes];

static void note(int shape) {
  atomic_fetch_add_explicit(&counts[shape], 1, memory_order_relaxed);
}

// Sums wrap around, as those of the processor.
typedef unsigned long word;

static word target(word a) {
  note(kShape_target);
  return 3 * a + 11;
}

static word early(word a, word b) {
  note(kShape_early);
  return a == 0 ? 0 : target(a + b);
}

static word loop(word a, word b) {
  note(kShape_loop);
  return b * (1 + a % 16);
}

static word pop(word a, word b) {
  note(kShape_pop);
  return (long)a < 0 ? b : a * b + a;
}

static word count(word a, word b) {
  note(kShape_count);
  return a % 8 == 0 ? b : -(b + a % 8 * a);
}

static word both(word a, word b) {
  note(kShape_both);
  return a + b;
}

static word jump(word a, word b) {
  note(kShape_jump);
  return (long)a < 0 ? target(a) : a + 4 * b;
}

static word zero(word a, word b) {
  note(kShape_zero);
  return (long)a < 0 || (long)a >= (long)b ? 0 : target(a);
}

static word frame(word a, word b) {
  note(kShape_frame);
  return a == 0 ? b : a * b - b;
}

static word address(word a, word b) {
  note(kShape_address);
  return __builtin_bswap32((unsigned)((long)b < 0 ? a - b - 77 : a + b));
}

static word unchecked(word a, word b) {
  note(kShape_unchecked);
  return a + 2 * b + 3;
}

static word checked(word a, word b) {
  note(kShape_checked);
  return a > b ? target(a) : unchecked(a, b);
}

// It goes on with what the one in front of it left in a third register: not called by itself.
static word behind(word a) {
  note(kShape_behind);
  return target(a);
}

static word padded(word a, word b) {
  note(kShape_padded);
  (void)a;
  return behind(b);
}

// The first shape that is wrong, or kShapes.
static int call_all(long a, long b) {
  const word x = (word)a;
  const word y = (word)b;
#define CHECK_SHAPE(name) \
  if ((word)shape_##name(a, b) != name(x, y)) return kShape_##name;
  CHECK_SHAPE(early)
  CHECK_SHAPE(loop)
  CHECK_SHAPE(pop)
  CHECK_SHAPE(count)
  CHECK_SHAPE(both)
  CHECK_SHAPE(jump)
  CHECK_SHAPE(zero)
  CHECK_SHAPE(frame)
  CHECK_SHAPE(address)
  CHECK_SHAPE(checked)
  CHECK_SHAPE(unchecked)
  CHECK_SHAPE(padded)
  if ((word)shape_target(a, b) != target(x)) return kShape_target;
  return kShapes;
}

static void answer_shapes(long rounds) {
  for (long i = 0; i < rounds; ++i) {
    const int wrong = call_all(i % 19 - 5, i % 7 - 2);
    if (wrong == kShapes) continue;
    printf("wrong %s\n", kNames[wrong]);
    return;
  }
  for (int i = 0; i < kShapes; ++i)
    printf("%s%s %ld", i == 0 ? "" : " ", kNames[i], atomic_load(&counts[i]));
  printf("\n");
}

// The sizes are not known to the compiler.
void* __memcpy_chk(void* to, const void* from, size_t size, size_t room);
void* __mempcpy_chk(void* to, const void* from, size_t size, size_t room);
void* __memmove_chk(void* to, const void* from, size_t size, size_t room);
void* __memset_chk(void* to, int value, size_t size, size_t room);

static long copy(volatile size_t size) {
  char from[256];
  char to[256];
  long wrong = 0;
  wrong += __memset_chk(from, 'a' + (int)(size % 20), size, sizeof from) != from;
  wrong += __memcpy_chk(to, from, size, sizeof to) != to || memcmp(to, from, size) != 0;
  wrong += __mempcpy_chk(to, from, size, sizeof to) != to + size;
  wrong += __memmove_chk(to + 1, to, size - 1, sizeof to - 1) != to + 1;
  return wrong;
}

static void answer_copies(long rounds) {
  long wrong = 0;
  for (long i = 0; i < rounds; ++i)
    wrong += copy((size_t)(i % 200) + 2);
  printf("%ld\n", wrong == 0 ? 4 * rounds : -wrong);
}

// Where a result is a pointer into the text, its offset; 0 when there is none.
static long offset_of(const void* found, const void* text) {
  return found == NULL ? 0 : (const char*)found - (const char*)text + 1;
}

static int sign(int order) {
  return (order > 0) - (order < 0);
}

// Two texts that differ at `at`, if that is less than `size`.
static long narrow(size_t size, size_t at) {
  char one[256];
  char other[256];
  memset(one, 'q', size);
  memset(other, 'q', size);
  one[size] = other[size] = 0;
  if (at < size) other[at] = (char)('A' + (int)(at % 50));
  const char byte = at % 2 == 0 ? 'z' : other[at % size];
  long sum = sign(strcmp(one, other)) + 3 * sign(strncmp(one, other, size - 1));
  sum += 5 * sign(strcasecmp(one, other)) + 7 * sign(strncasecmp(one, other, size + 1));
  sum += 11 * sign(memcmp(one, other, size)) + (long)strnlen(one, at) + (long)strlen(other);
  sum += offset_of(memchr(other, byte, size), other) + offset_of(strchr(other, byte), other);
  sum += 3 * offset_of(memrchr(other, byte, size), other);
  sum += 7 * offset_of(strrchr(other, byte), other);
  sum += offset_of(strstr(one, other + at % size), one) + (long)strcspn(one, other);
  sum += offset_of(memmove(one + 1, one, size - 1), one) + one[at % size];
  return sum + offset_of(memcpy(one, other, at % size), one) + one[size / 2];
}

static long wide(size_t size, size_t at) {
  wchar_t one[256];
  wchar_t other[256];
  wmemset(one, L'q', size);
  wmemset(other, L'q', size);
  one[size] = other[size] = 0;
  if (at < size) other[at] = (wchar_t)(L'A' + (int)(at % 50));
  const wchar_t letter = at % 2 == 0 ? L'z' : other[at % size];
  long sum = sign(wcscmp(one, other)) + 3 * sign(wcsncmp(one, other, size - 1));
  sum += 5 * sign(wmemcmp(one, other, size)) + (long)wcsnlen(one, at) + (long)wcslen(other);
  sum += offset_of(wmemchr(other, letter, size), other) + offset_of(wcschr(other, letter), other);
  sum += 3 * offset_of(wcsrchr(other, letter), other);
  sum += 7 * offset_of(wcsstr(one, other + at % size), one);
  sum += (iswalnum((wint_t)letter) != 0) + 2 * (iswdigit((wint_t)at) != 0);
  sum += 4 * (iswpunct((wint_t)at) != 0) + 8 * (iswspace((wint_t)at) != 0);
  return sum + (long)towlower((wint_t)letter) + (long)towupper((wint_t)at);
}

static long strings(long rounds) {
  word sum = 0;
  for (long i = 0; i < rounds; ++i) {
    const size_t size = (size_t)(i % 190) + 2;
    const size_t at = (size_t)(i * 7 % 211);
    sum = 31 * sum + (word)(narrow(size, at) + wide(size, at));
  }
  return (long)sum;
}

static atomic_int storming;
static atomic_int any_wrong;
static pthread_t threads[64];
static long thread_count;

static void* storm_main(void* unused) {
  for (long i = 0; atomic_load(&storming); ++i) {
    if (call_all(i % 19 - 5, i % 7 - 2) != kShapes) atomic_store(&any_wrong, 1);
  }
  return unused;
}

static void start_storm(long wanted) {
  atomic_store(&storming, 1);
  thread_count = wanted > 64 ? 64 : wanted;
  for (long i = 0; i < thread_count; ++i)
    pthread_create(&threads[i], NULL, storm_main, NULL);
}

static void stop_storm(void) {
  atomic_store(&storming, 0);
  for (long i = 0; i < thread_count; ++i)
    pthread_join(threads[i], NULL);
}

int main(void) {
  char line[256];
  setvbuf(stdout, NULL, _IOLBF, 0);
  printf("ready\n");
  while (fgets(line, sizeof line, stdin) != NULL) {
    long a = 0;
    char verb[32] = "";
    if (sscanf(line, "%31s %ld", verb, &a) < 1) continue;
    if (strcmp(verb, "shapes") == 0) {
      answer_shapes(a);
    } else if (strcmp(verb, "copies") == 0) {
      answer_copies(a);
    } else if (strcmp(verb, "strings") == 0) {
      printf("%ld\n", strings(a));
    } else if (strcmp(verb, "storm") == 0) {
      start_storm(a);
      printf("storming\n");
    } else if (strcmp(verb, "calm") == 0) {
      stop_storm();
      printf("%s\n", atomic_load(&any_wrong) == 0 ? "right" : "wrong");
    } else {
      break;
    }
  }
  return 0;
}

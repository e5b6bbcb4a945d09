// SPDX-License-Identifier: Apache-2.0
// The callback of a compiler's guards, which writes down the number of each (number_guards): what a
// program ran, as it tells itself. kInOriginal is added where the call is in no copy. The file, of
// the variable GUARDS_FILE, outlives the program.
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { kNumbersMax = 1 << 20 };
static const uint32_t kInOriginal = 1U << 31;

extern const char __executable_start, etext;
static uint32_t* count;

static void open_file(void) {
  const char* const path = getenv("GUARDS_FILE");
  const size_t size = (kNumbersMax + 1) * sizeof *count;
  const int file = path == NULL ? -1 : open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
  if (file < 0 || ftruncate(file, (off_t)size) != 0) _exit(2);
  void* const place = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (place == MAP_FAILED) _exit(2);
  count = place;
}

void __sanitizer_cov_trace_pc_guard(uintptr_t number) {
  if (count == NULL) open_file();
  const uintptr_t from = (uintptr_t)__builtin_return_address(0);
  const int is_original = from >= (uintptr_t)&__executable_start && from < (uintptr_t)&etext;
  const uint32_t at = (*count)++ % kNumbersMax;
  count[1 + at] = (uint32_t)number | (is_original ? kInOriginal : 0);
}

void __sanitizer_cov_trace_pc_guard_init(uint32_t* begin, uint32_t* end) {
  (void)begin;
  (void)end;
}

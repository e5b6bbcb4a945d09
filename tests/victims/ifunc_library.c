// SPDX-License-Identifier: Apache-2.0
// A library with an IFUNC: `copy_bytes` is whichever implementation the resolver chooses, and is
// called through the PLT, through a pointer, and from inside the library.
#include <stddef.h>
#include <stdint.h>

typedef void* copy_function(void* to, const void* from, size_t size);

static void* copy_bytes_forward(void* to, const void* from, size_t size) {
  volatile unsigned char* out = to;
  const unsigned char* in = from;
  for (size_t i = 0; i < size; ++i)
    out[i] = in[i];
  return to;
}

static void* copy_bytes_backward(void* to, const void* from, size_t size) {
  volatile unsigned char* out = to;
  const unsigned char* in = from;
  for (size_t i = size; i > 0; --i)
    out[i - 1] = in[i - 1];
  return to;
}

// Chosen by the CPU, so that the compiler cannot choose.
static copy_function* resolve_copy_bytes(void) {
  __builtin_cpu_init();
  return __builtin_cpu_supports("sse2") ? copy_bytes_forward : copy_bytes_backward;
}

void* copy_bytes(void* to, const void* from, size_t size)
    __attribute__((ifunc("resolve_copy_bytes")));

// The call from inside.
__attribute__((noinline)) void* copy_word(void* to, const uint64_t* from) {
  return copy_bytes(to, from, sizeof *from);
}

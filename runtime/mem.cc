// SPDX-License-Identifier: Apache-2.0
// memcpy and kin: compilers call them on their own, and the blob may have no undefined symbol.
#include <cstddef>
#include <cstdint>

extern "C" {

__attribute__((visibility("hidden"))) void* memcpy(void* to, const void* from, size_t size) {
  void* const result = to;
  asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(size) : : "memory");
  return result;
}

__attribute__((visibility("hidden"))) void* memset(void* to, int value, size_t size) {
  void* const result = to;
  asm volatile("rep stosb" : "+D"(to), "+c"(size) : "a"(value) : "memory");
  return result;
}

__attribute__((visibility("hidden"))) void* memmove(void* to, const void* from, size_t size) {
  if (to <= from) return memcpy(to, from, size);
  auto* const target = static_cast<uint8_t*>(to);
  const auto* const source = static_cast<const uint8_t*>(from);
  // `volatile` keeps the compiler from turning the loop into a call of this function.
  for (size_t i = size; i != 0; --i)
    *const_cast<volatile uint8_t*>(target + i - 1) = source[i - 1];
  return to;
}

__attribute__((visibility("hidden"))) int memcmp(const void* a, const void* b, size_t size) {
  const auto* const left = static_cast<const volatile uint8_t*>(a);
  const auto* const right = static_cast<const volatile uint8_t*>(b);
  for (size_t i = 0; i < size; ++i) {
    if (left[i] != right[i]) return left[i] < right[i] ? -1 : 1;
  }
  return 0;
}
}

// SPDX-License-Identifier: Apache-2.0
// Words of memory that a traced program writes at the same time. Each is loaded once, whole, into
// private memory; x86-64 does not tear aligned words. Private to the folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace clew::collect {

inline uint64_t load_word(const std::byte* from) {
  return __atomic_load_n(reinterpret_cast<const uint64_t*>(from), __ATOMIC_ACQUIRE);
}

inline uint32_t load_half(const std::byte* from) {
  return __atomic_load_n(reinterpret_cast<const uint32_t*>(from), __ATOMIC_ACQUIRE);
}

inline void store_word(std::byte* to, uint64_t value) {
  __atomic_store_n(reinterpret_cast<uint64_t*>(to), value, __ATOMIC_RELEASE);
}

inline void store_half(std::byte* to, uint32_t value) {
  __atomic_store_n(reinterpret_cast<uint32_t*>(to), value, __ATOMIC_RELEASE);
}

// True when it was `expected` and is `value` now.
inline bool exchange_half(std::byte* at, uint32_t expected, uint32_t value) {
  return __atomic_compare_exchange_n(reinterpret_cast<uint32_t*>(at), &expected, value, false,
                                     __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

inline void load_words(std::span<uint64_t> to, const std::byte* from) {
  for (size_t i = 0; i < to.size(); ++i) {
    to[i] = __atomic_load_n(reinterpret_cast<const uint64_t*>(from) + i, __ATOMIC_RELAXED);
  }
}

inline void zero_words(std::byte* at, size_t size_bytes) {
  for (size_t i = 0; i < size_bytes; i += 8) {
    __atomic_store_n(reinterpret_cast<uint64_t*>(at + i), uint64_t{0}, __ATOMIC_RELAXED);
  }
}

}  // namespace clew::collect

// SPDX-License-Identifier: Apache-2.0
// The arguments of a firing: whether the attach point's pass the probe's filters, and which of them
// become the provider's. What a filter and a map say are numbers that the linker puts in, so that
// the kernel's verifier takes out what does not apply.
#pragma once

#include "runtime/kernel/walk.h"

namespace clew::runtime::kernel {

inline constexpr uint32_t kArguments = 10;
inline constexpr uint32_t kFilterRoom = 16;  // An argument's number is masked with 15.

// Entries of a map beyond the attach point's arguments: src/kernel/probe.h.
inline constexpr uint64_t kMapLoaded = 0xED;
inline constexpr uint64_t kMapTask = 0xEE;
inline constexpr uint64_t kMapErrno = 0xEF;
inline constexpr uint64_t kMapNumber = 0xF0;

// `what`: argument | load_bytes << 8 | is_inverted << 16 | load_offset_bytes << 32
struct Filter {
  uint64_t what;
  uint64_t mask;
  uint64_t value;
};

[[gnu::always_inline]] inline void clear_arguments(uint64_t* arguments) {
#pragma unroll
  for (uint32_t i = 0; i < kArguments; ++i)
    arguments[i] = 0;
}

// Memory that cannot be read is 0.
[[gnu::always_inline]] inline bool passes(const uint64_t* arguments, const Filter& filter) {
  uint64_t value = arguments[masked(filter.what, kFilterRoom - 1)];
  const uint64_t load_bytes = masked(filter.what >> 8, 0xF);
  if (load_bytes != 0) {
    uint64_t loaded = 0;
    helper<113>(&loaded, load_bytes, pointer(value + (filter.what >> 32)));
    value = loaded;
  }
  const bool is_equal = (value & filter.mask) == filter.value;
  return ((filter.what >> 16) & 1) != 0 ? !is_equal : is_equal;
}

// `read` fills in the attach point's arguments.
template <typename Read>
[[gnu::always_inline]] inline bool passes_filters(Read read) {
  if (number(d_n_first_thread_only) != 0) {
    const uint64_t ids = process_and_thread();
    if (ids >> 32 != (ids & 0xFFFF'FFFF)) return false;
  }
  const uint64_t count = number(d_n_filters);
  if (count == 0) return true;
  uint64_t arguments[kFilterRoom];
  [[clang::always_inline]] read(arguments);  // What it reads may be known in the program only.
#pragma unroll
  for (uint32_t i = kArguments; i < kFilterRoom; ++i)
    arguments[i] = 0;
  if (!passes(arguments,
              {number(d_n_filter_0_what), number(d_n_filter_0_mask), number(d_n_filter_0_value)})) {
    return false;
  }
  if (count > 1 && !passes(arguments, {number(d_n_filter_1_what), number(d_n_filter_1_mask),
                                       number(d_n_filter_1_value)})) {
    return false;
  }
  if (count > 2 && !passes(arguments, {number(d_n_filter_2_what), number(d_n_filter_2_mask),
                                       number(d_n_filter_2_value)})) {
    return false;
  }
  return count <= 3 || passes(arguments, {number(d_n_filter_3_what), number(d_n_filter_3_mask),
                                          number(d_n_filter_3_value)});
}

[[gnu::always_inline]] inline void map_arguments(MachineWindow* w, const uint64_t* from) {
#pragma unroll
  for (uint32_t i = 0; i < kArguments; ++i) {
    const uint64_t map = i < 8 ? number(d_n_argument_map_low) >> (8 * i)
                               : number(d_n_argument_map_high) >> (8 * (i - 8));
    const uint64_t entry = masked(map, 0xFF);
    uint64_t value = 0;
    if (entry < kArguments) value = from[entry];
    if (entry == kMapLoaded) value = read_pointer(from[0] + number(d_n_load_offset));
    if (entry == kMapTask) value = current_task_address();
    if (entry == kMapErrno) value = w->header.errno_value;
    if (entry >= kMapNumber) value = entry - kMapNumber;
    w->header.arguments[i] = value;
  }
}

template <typename Read>
[[gnu::always_inline]] inline void put_arguments(MachineWindow* w, Read read) {
  if (number(d_n_wants_arguments) == 0) return;
  if (number(d_n_has_argument_map) == 0) {
    [[clang::always_inline]] read(w->header.arguments);
    return;
  }
  auto* from = reinterpret_cast<uint64_t*>(w->scratch);
  [[clang::always_inline]] read(from);
  map_arguments(w, from);
}

}  // namespace clew::runtime::kernel

// SPDX-License-Identifier: Apache-2.0
// Texts in the window, byte by byte. A text is an offset; it ends at its NUL, or after string_bytes
// at the latest.
#pragma once

#include "runtime/kernel/bpf.h"

namespace clew::runtime::kernel {

[[gnu::always_inline]] inline uint64_t string_bytes() {
  return number(d_n_string_bytes);
}

[[gnu::always_inline]] inline uint8_t byte(MachineWindow* w, uint64_t offset) {
  return *at(w, offset);
}
[[gnu::always_inline]] inline void set_byte(MachineWindow* w, uint64_t offset, uint64_t value) {
  *at(w, offset) = static_cast<uint8_t>(value);
}

// Zeroes what is left of the last word of a text of `length` bytes, its NUL included.
[[gnu::always_inline]] inline void pad(MachineWindow* w, uint64_t offset, uint64_t length) {
  const uint64_t left = (8 - (length & 7)) & 7;
  zero_bytes(at(w, offset + length), forgotten(w, left));
}

[[gnu::always_inline]] inline uint64_t length_of(MachineWindow* w, uint64_t string) {
  const uint64_t limit = string_bytes();
  uint64_t length = zero(w);
  for (; length < limit && go_on(); ++length) {
    if (byte(w, string + length) == 0) break;
  }
  return forgotten(w, length);
}

// Ends the text that was written to `dst`; `length` bytes without the NUL. Gives dst.
[[gnu::always_inline]] inline uint64_t finish(MachineWindow* w, uint64_t dst, uint64_t length) {
  const uint64_t limit = string_bytes() - 1;
  const uint64_t end = length < limit ? length : limit;
  set_byte(w, dst + end, 0);
  pad(w, dst, end + 1);
  return dst;
}

// Copies bytes [from, to) of `string` to `dst` and ends it. They may be one place.
[[gnu::always_inline]] inline uint64_t slice(MachineWindow* w, uint64_t dst, uint64_t from,
                                             uint64_t to) {
  const uint64_t limit = string_bytes() - 1;
  const uint64_t all = to > from ? to - from : 0;
  const uint64_t size = forgotten(w, all < limit ? all : limit);
  copy_own(at(w, dst), size, at(w, from));
  return finish(w, dst, size);
}

[[gnu::always_inline]] inline bool is_null(MachineWindow* w, uint64_t string) {
  if (string != 0) return false;
  fail(w, MachineFault::BadAddress, 0);
  return true;
}

}  // namespace clew::runtime::kernel

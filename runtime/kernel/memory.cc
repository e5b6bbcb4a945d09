// SPDX-License-Identifier: Apache-2.0
// Loads, stores and copies.
#include "runtime/kernel/bpf.h"
#include "runtime/kernel/text.h"

namespace clew::runtime::kernel {
namespace {

// Whether [address, address + size) is window memory that D may touch: not the header, not beyond
// the end.
[[gnu::always_inline]] inline bool is_in_window(uint64_t address, uint64_t size) {
  const uint64_t offset = address & ~abi::kDWindowTagMask;
  return offset >= abi::kDRecordOffset && offset + size <= abi::kDWindowBytes;
}

[[gnu::always_inline]] inline void store_sized(uint8_t* to, uint64_t size, uint64_t value) {
  if (size == 1) {
    *to = static_cast<uint8_t>(value);
  } else if (size == 2) {
    *reinterpret_cast<uint16_t*>(to) = static_cast<uint16_t>(value);
  } else if (size == 4) {
    *reinterpret_cast<uint32_t*>(to) = static_cast<uint32_t>(value);
  } else {
    *reinterpret_cast<uint64_t*>(to) = value;
  }
}

[[gnu::always_inline]] inline bool copy_any(void* to, uint64_t size, uint64_t address,
                                            uint64_t user) {
  const int64_t result =
      user != 0 ? copy_user(to, size, pointer(address)) : copy_kernel(to, size, pointer(address));
  return result == 0;
}

// Zeroes any part of the window.
[[gnu::always_inline]] inline void clear_long(DWindow* w, uint64_t offset, uint64_t size) {
  const uint64_t all = forgotten(w, size);
  for (uint64_t i = zero(w); i < abi::kDWindowBytes / kCopyBytesMax && go_on(); ++i) {
    const uint64_t done = forgotten(w, i * kCopyBytesMax);
    if (done >= all) break;
    const uint64_t left = all - done;
    clear(w, offset + done, forgotten(w, left < kCopyBytesMax ? left : kCopyBytesMax));
  }
}

}  // namespace

extern "C" {

uint64_t d_load(DWindow* w, uint64_t address, uint64_t size, uint64_t user) {
  uint64_t value = 0;
  if (size > 8) return fail(w, DFault::BadSize, size);
  if (is_tagged(address)) {
    if (!is_in_window(address, size)) return fail(w, DFault::BadAddress, address);
    copy_own(&value, masked(size, 0xF), at(w, address));
    return value;
  }
  const uint64_t bytes = masked(size, 0xF);
  if (bytes > 8) return 0;
  if (is_global_pointer(address)) {
    const uint8_t* from = global_at(address, size);
    if (from == nullptr) return fail(w, DFault::BadAddress, address);
    copy_own(&value, bytes, from);
    return value;
  }
  if (!copy_any(&value, bytes, address, user)) return fail(w, DFault::BadAddress, address);
  return value;
}

uint64_t d_store(DWindow* w, uint64_t address, uint64_t size, uint64_t value) {
  if (is_global_pointer(address)) {
    uint8_t* const to = global_at(address, size);
    if (to == nullptr) return fail(w, DFault::BadAddress, address);
    store_sized(to, size, value);
    return 0;
  }
  if (!is_tagged(address) || !is_in_window(address, size)) {
    return fail(w, DFault::BadAddress, address);
  }
  store_sized(at(w, address), size, value);
  return 0;
}

uint64_t d_copy(DWindow* w, uint64_t dst, uint64_t address, uint64_t size, uint64_t user) {
  const uint64_t place = dst & ~abi::kDWindowTagMask;
  if (size > kCopyBytesMax) return fail(w, DFault::BadSize, size);
  if (place < abi::kDKeyOffset || place + size > abi::kDWindowBytes) {
    return fail(w, DFault::BadAddress, dst);
  }
  if (is_tagged(address)) {
    if (!is_in_window(address, size)) return fail(w, DFault::BadAddress, address);
    copy_own(at(w, place), size, at(w, address));
    return 0;
  }
  if (is_global_pointer(address)) {
    const uint8_t* const from = global_at(address, size);
    if (from == nullptr) return fail(w, DFault::BadAddress, address);
    copy_own(at(w, place), size, from);
    return 0;
  }
  if (!copy_any(at(w, place), size, address, user)) return fail(w, DFault::BadAddress, address);
  return 0;
}

uint64_t d_read_string(DWindow* w, uint64_t dst, uint64_t address, uint64_t size_max,
                       uint64_t user) {
  if (address == 0) return fail(w, DFault::BadAddress, 0);
  const uint64_t limit = number(d_n_string_bytes);
  const uint64_t size = size_max < limit ? size_max : limit;
  int64_t length = 0;
  if (is_tagged(address)) {
    if (!is_in_window(address, 1)) return fail(w, DFault::BadAddress, address);
    length = copy_own_text(at(w, dst), size, at(w, address));
  } else if (is_global_pointer(address)) {
    const uint8_t* const from = global_at(address, 1);
    if (from == nullptr) return fail(w, DFault::BadAddress, address);
    length = copy_own_text(at(w, dst), size, from);
  } else if (user != 0) {
    length = copy_user_text(at(w, dst), size, pointer(address));
  } else {
    length = copy_kernel_text(at(w, dst), size, pointer(address));
  }
  if (length < 0) return fail(w, DFault::BadAddress, address);
  if (size == 0) set_byte(w, dst, 0);  // Nothing was written, not even its end.
  pad(w, dst, size == 0 ? 1 : static_cast<uint64_t>(length));
  return dst;
}

// Only where the kernel lets programs write to processes (not with lockdown).
uint64_t d_copy_out(DWindow* w, uint64_t address, uint64_t src, uint64_t size) {
  if (size > kCopyBytesMax) return fail(w, DFault::BadSize, size);
  if (number(d_n_may_write_user) == 0) return fail(w, DFault::UserPrivilege, address);
  if (size == 0) return 0;
  if (write_user(address, at(w, src), size) != 0) return fail(w, DFault::BadAddress, address);
  return 0;
}

uint64_t d_alloca(DWindow* w, uint64_t size) {
  const uint64_t begin = (w->header.alloca_top + 7) & ~uint64_t{7};
  const uint64_t room = abi::kDWindowBytes - begin;
  if (begin > abi::kDWindowBytes || size > room) return fail(w, DFault::NoScratch, size);
  clear_long(w, begin, size);
  w->header.alloca_top = begin + size;
  return abi::kDWindowTag | begin;
}

uint64_t d_move_string(DWindow* w, uint64_t dst, uint64_t string) {
  if (string == 0) return 0;
  const int64_t length = copy_own_text(at(w, dst), number(d_n_string_bytes), at(w, string));
  pad(w, dst, static_cast<uint64_t>(length));
  return dst;
}

uint64_t d_pad_string(DWindow* w, uint64_t dst, uint64_t string, uint64_t size) {
  if (size > kCopyBytesMax) return 0;
  uint64_t length = 0;
  if (string != 0) {
    const int64_t copied = copy_own_text(at(w, dst), size, at(w, string));
    length = copied < 0 ? 0 : static_cast<uint64_t>(copied);
  }
  if (length < size) clear(w, dst + length, size - length);
  return 0;
}

// Zeroes this-> variables before a firing's first clause.
uint64_t d_clear_local(DWindow* w) {
  clear_long(w, number(d_n_local_begin), number(d_n_local_bytes));
  return 0;
}

}  // extern "C"

}  // namespace clew::runtime::kernel

// SPDX-License-Identifier: Apache-2.0
// Loads, stores and copies.
#include "runtime/kernel/bpf.h"
#include "runtime/kernel/text.h"

namespace clew::runtime::kernel {
namespace {

// What alloca() gave in this clause. Between two pieces, and before the first, is room that nobody
// may touch, so that a pointer that leaves a piece does not come to another thing at once.
inline constexpr uint64_t kGapBytes = 16;
inline constexpr uint64_t kGapBeforeBytes = 1024;

// The same for pieces that there is no entry for: they belong to the last one that has one.
[[gnu::always_inline]] inline void note_piece(MachineWindow* w, uint64_t begin, uint64_t size) {
  const uint64_t top = w->header.alloca_top;
  uint64_t count = top >> kPieceCountShift & kPieceCountMask;
  uint64_t first = begin;
  if (count >= kPiecesMax) {
    count = kPiecesMax - 1;
    first = pieces(w)[masked(count, 0x1F)] >> kPieceShift;
  }
  const uint64_t all = begin + size - first;
  pieces(w)[masked(count, 0x1F)] = static_cast<uint32_t>(first << kPieceShift | all);
  w->header.alloca_top = (top & kHasToken) | (count + 1) << kPieceCountShift | (begin + size);
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
[[gnu::always_inline]] inline void clear_long(MachineWindow* w, uint64_t offset, uint64_t size) {
  const uint64_t all = forgotten(w, size);
  for (uint64_t i = zero(w); i < abi::kMachineWindowBytes / kCopyBytesMax && go_on(); ++i) {
    const uint64_t done = forgotten(w, i * kCopyBytesMax);
    if (done >= all) break;
    const uint64_t left = all - done;
    clear(w, offset + done, forgotten(w, left < kCopyBytesMax ? left : kCopyBytesMax));
  }
}

}  // namespace

extern "C" {

// How many bytes of the window D may touch from a tagged address on: to the end of what a pointer
// to a variable or a literal may reach, or to that of the piece of scratch that it is in.
[[gnu::noinline]] uint64_t d_window_room(MachineWindow* w, uint64_t address) {
  const uint64_t offset = address & ~abi::kMachineWindowTagMask;
  const uint64_t scratch = w->header.scratch_begin;
  if (offset < abi::kMachineRecordOffset || offset >= abi::kMachineWindowBytes) return 0;
  if (offset < scratch) return scratch - offset;
  const uint64_t count = w->header.alloca_top >> kPieceCountShift & kPieceCountMask;
  for (uint64_t i = zero(w); i < kPiecesMax && go_on(); ++i) {
    if (i >= count) break;
    const uint64_t piece = pieces(w)[masked(i, 0x1F)];
    const uint64_t from = offset - (piece >> kPieceShift);
    const uint64_t size = piece & kPieceBytesMask;
    if (from < size) return size - from;
  }
  return 0;
}

uint64_t d_load(MachineWindow* w, uint64_t address, uint64_t size, uint64_t user) {
  uint64_t value = 0;
  if (size > 8) return fail(w, MachineFault::BadSize, size);
  if (is_tagged(address)) {
    if (d_window_room(w, address) < size) return fail(w, MachineFault::BadAddress, address);
    copy_own(&value, masked(size, 0xF), at(w, address));
    return value;
  }
  const uint64_t bytes = masked(size, 0xF);
  if (bytes > 8) return 0;
  if (is_global_pointer(address)) {
    const uint8_t* from = global_at(address, size);
    if (from == nullptr) return fail(w, MachineFault::BadAddress, address);
    copy_own(&value, bytes, from);
    return value;
  }
  if (!copy_any(&value, bytes, address, user)) return fail(w, MachineFault::BadAddress, address);
  return value;
}

uint64_t d_store(MachineWindow* w, uint64_t address, uint64_t size, uint64_t value) {
  if (is_global_pointer(address)) {
    uint8_t* const to = global_at(address, size);
    if (to == nullptr) return fail(w, MachineFault::BadAddress, address);
    store_sized(to, size, value);
    return 0;
  }
  if (!is_tagged(address) || d_window_room(w, address) < size) {
    return fail(w, MachineFault::BadAddress, address);
  }
  store_sized(at(w, address), size, value);
  return 0;
}

uint64_t d_copy(MachineWindow* w, uint64_t dst, uint64_t address, uint64_t size, uint64_t user) {
  const uint64_t place = dst & ~abi::kMachineWindowTagMask;
  if (size > kCopyBytesMax) return fail(w, MachineFault::BadSize, size);
  if (place < abi::kMachineKeyOffset || place + size > abi::kMachineWindowBytes) {
    return fail(w, MachineFault::BadAddress, dst);
  }
  // A program's own destination; the others are the compiler's.
  if (is_tagged(dst) && d_window_room(w, dst) < size) return fail(w, MachineFault::BadAddress, dst);
  if (is_tagged(address)) {
    if (d_window_room(w, address) < size) return fail(w, MachineFault::BadAddress, address);
    copy_own(at(w, place), size, at(w, address));
    return 0;
  }
  if (is_global_pointer(address)) {
    const uint8_t* const from = global_at(address, size);
    if (from == nullptr) return fail(w, MachineFault::BadAddress, address);
    copy_own(at(w, place), size, from);
    return 0;
  }
  if (!copy_any(at(w, place), size, address, user))
    return fail(w, MachineFault::BadAddress, address);
  return 0;
}

uint64_t d_read_string(MachineWindow* w, uint64_t dst, uint64_t address, uint64_t size_max,
                       uint64_t user) {
  if (address == 0) return fail(w, MachineFault::BadAddress, 0);
  const uint64_t limit = number(d_n_string_bytes);
  const uint64_t size = size_max < limit ? size_max : limit;
  int64_t length = 0;
  if (is_tagged(address)) {
    const uint64_t room = d_window_room(w, address);
    if (room == 0) return fail(w, MachineFault::BadAddress, address);
    const uint64_t most = forgotten(w, size <= room ? size : room + 1);
    length = copy_own_text(at(w, dst), most, at(w, address));
    // It has no end where it may be read.
    if (length > static_cast<int64_t>(room)) length = -1;
  } else if (is_global_pointer(address)) {
    const uint8_t* const from = global_at(address, 1);
    if (from == nullptr) return fail(w, MachineFault::BadAddress, address);
    length = copy_own_text(at(w, dst), size, from);
  } else if (user != 0) {
    length = copy_user_text(at(w, dst), size, pointer(address));
  } else {
    length = copy_kernel_text(at(w, dst), size, pointer(address));
  }
  if (length < 0) return fail(w, MachineFault::BadAddress, address);
  if (size == 0) set_byte(w, dst, 0);  // Nothing was written, not even its end.
  pad(w, dst, size == 0 ? 1 : static_cast<uint64_t>(length));
  return dst;
}

// Only where the kernel lets programs write to processes (not with lockdown).
uint64_t d_copy_out(MachineWindow* w, uint64_t address, uint64_t src, uint64_t size) {
  if (size > kCopyBytesMax) return fail(w, MachineFault::BadSize, size);
  if (number(d_n_may_write_user) == 0) return fail(w, MachineFault::UserPrivilege, address);
  if (size == 0) return 0;
  if (write_user(address, at(w, src), size) != 0) return fail(w, MachineFault::BadAddress, address);
  return 0;
}

uint64_t d_alloca(MachineWindow* w, uint64_t size) {
  const uint64_t top = w->header.alloca_top;
  const uint64_t gap =
      (top >> kPieceCountShift & kPieceCountMask) == 0 ? kGapBeforeBytes : kGapBytes;
  const uint64_t begin = ((top & 0xFFFF'FFFF) + gap + 7) & ~uint64_t{7};
  const uint64_t room = abi::kMachineWindowBytes - begin;
  if (begin > abi::kMachineWindowBytes || size > room)
    return fail(w, MachineFault::NoScratch, size);
  clear_long(w, begin, size);
  note_piece(w, begin, size);
  return abi::kMachineWindowTag | begin;
}

uint64_t d_move_string(MachineWindow* w, uint64_t dst, uint64_t string) {
  if (string == 0) return 0;
  const int64_t length = copy_own_text(at(w, dst), number(d_n_string_bytes), at(w, string));
  pad(w, dst, static_cast<uint64_t>(length));
  return dst;
}

uint64_t d_pad_string(MachineWindow* w, uint64_t dst, uint64_t string, uint64_t size) {
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
uint64_t d_clear_local(MachineWindow* w) {
  clear_long(w, number(d_n_local_begin), number(d_n_local_bytes));
  return 0;
}

}  // extern "C"

}  // namespace clew::runtime::kernel

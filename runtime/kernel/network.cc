// SPDX-License-Identifier: Apache-2.0
// Texts of network and link addresses.
#include "runtime/kernel/text.h"

namespace clew::runtime::kernel {
extern "C" uint64_t d_window_room(MachineWindow* w, uint64_t address);  // memory.cc

namespace {

inline constexpr uint64_t kInet = 2;         // AF_INET
inline constexpr uint64_t kInet6 = 10;       // AF_INET6
inline constexpr uint64_t kInfiniband = 32;  // ARPHRD_INFINIBAND: 20 bytes

// The address's bytes come to the scratch room.
[[gnu::always_inline]] inline bool fetch(MachineWindow* w, uint64_t address, uint64_t size) {
  int64_t failed = 0;
  if (is_tagged(address)) {
    failed = d_window_room(w, address) < size ? -1 : 0;
    if (failed == 0) failed = copy_own(w->scratch, size, at(w, address));
  } else if (is_global_pointer(address)) {
    const uint8_t* const from = global_at(address, size);
    if (from == nullptr) {
      fail(w, MachineFault::BadAddress, address);
      return false;
    }
    failed = copy_own(w->scratch, size, from);
  } else {
    failed = copy_kernel(w->scratch, size, pointer(address));
  }
  if (failed != 0) fail(w, MachineFault::BadAddress, address);
  return failed == 0;
}

[[gnu::always_inline]] inline uint64_t put_decimal(MachineWindow* w, uint64_t place,
                                                   uint64_t value) {
  if (value >= 100) set_byte(w, place++, '0' + value / 100);
  if (value >= 10) set_byte(w, place++, '0' + value / 10 % 10);
  set_byte(w, place++, '0' + value % 10);
  return place;
}

[[gnu::always_inline]] inline uint64_t hex_digit(uint64_t value) {
  return value < 10 ? value + '0' : value - 10 + 'a';
}

[[gnu::always_inline]] inline uint64_t put_hex(MachineWindow* w, uint64_t place, uint64_t value) {
  if (value >= 0x1000) set_byte(w, place++, hex_digit(value >> 12));
  if (value >= 0x100) set_byte(w, place++, hex_digit(value >> 8 & 0xF));
  if (value >= 0x10) set_byte(w, place++, hex_digit(value >> 4 & 0xF));
  set_byte(w, place++, hex_digit(value & 0xF));
  return place;
}

[[gnu::always_inline]] inline uint64_t group(MachineWindow* w, uint64_t index) {
  const uint64_t place = masked(index, 7) * 2;
  return static_cast<uint64_t>(w->scratch[place]) << 8 | w->scratch[place + 1];
}

[[gnu::always_inline]] inline uint64_t put_dotted(MachineWindow* w, uint64_t dst, uint64_t from) {
  uint64_t place = dst;
  for (uint64_t i = zero(w); i < 4 && go_on(); ++i) {
    if (i != 0) set_byte(w, place++, '.');
    place = put_decimal(w, place, w->scratch[masked(from + i, 0xF)]);
  }
  return place;
}

struct Run {
  uint64_t first;
  uint64_t length;
};

// The longest run of zero groups, which is written "::"; a single one is not worth it.
[[gnu::always_inline]] inline Run longest_run(MachineWindow* w) {
  Run best{8, 1};
  uint64_t length = zero(w);
  for (uint64_t i = zero(w); i < 8 && go_on(); ++i) {
    length = group(w, i) == 0 ? length + 1 : 0;
    if (length > best.length) {
      best.first = i + 1 - length;
      best.length = length;
    }
  }
  return best;
}

[[gnu::always_inline]] inline bool is_mapped(MachineWindow* w) {
  const auto* words = reinterpret_cast<const uint64_t*>(w->scratch);
  return words[0] == 0 && (words[1] & 0xFFFF'FFFF) == 0xFFFF'0000;
}

// How an address that is all zeroes but for its last 32 bits is written: 0:0:0:0:0:0:a.b.c.d of
// RFC 4291, 2.5.5.1, which :: and ::1 are not.
enum class Compatible : uint64_t { Mixed, Dotted, Groups };

[[gnu::always_inline]] inline bool is_compatible(MachineWindow* w) {
  const auto* words = reinterpret_cast<const uint64_t*>(w->scratch);
  return words[0] == 0 && (words[1] & 0xFFFF'FFFF) == 0 && group(w, 6) != 0;
}

[[gnu::always_inline]] inline uint64_t put_inet6(MachineWindow* w, uint64_t dst, Compatible form) {
  uint64_t place = dst;
  if (form != Compatible::Groups && is_compatible(w)) {
    if (form == Compatible::Mixed) set_byte(w, place++, ':');
    if (form == Compatible::Mixed) set_byte(w, place++, ':');
    return put_dotted(w, place, 12);
  }
  const Run run = longest_run(w);
  for (uint64_t i = zero(w); i < 8 && go_on(); ++i) {
    if (i >= run.first && i < run.first + run.length) {
      if (i == run.first) set_byte(w, place++, ':');
      continue;
    }
    if (i != 0) set_byte(w, place++, ':');
    if (i == 6 && is_mapped(w)) return put_dotted(w, place, 12);
    place = put_hex(w, place, group(w, i));
  }
  if (run.first + run.length == 8) set_byte(w, place++, ':');
  return place;
}

}  // namespace

extern "C" {

uint64_t d_inet_ntoa(MachineWindow* w, uint64_t dst, uint64_t address) {
  if (!fetch(w, address, 4)) return 0;
  return finish(w, dst, put_dotted(w, dst, 0) - dst);
}

uint64_t d_inet_ntoa6(MachineWindow* w, uint64_t dst, uint64_t address, uint64_t strict) {
  if (!fetch(w, address, 16)) return 0;
  const Compatible form = strict != 0 ? Compatible::Groups : Compatible::Dotted;
  return finish(w, dst, put_inet6(w, dst, form) - dst);
}

uint64_t d_inet_ntop(MachineWindow* w, uint64_t dst, uint64_t family, uint64_t address) {
  if (family != kInet && family != kInet6) return fail(w, MachineFault::IllegalOperation, family);
  if (!fetch(w, address, family == kInet ? 4 : 16)) return 0;
  const uint64_t end =
      family == kInet ? put_dotted(w, dst, 0) : put_inet6(w, dst, Compatible::Mixed);
  return finish(w, dst, end - dst);
}

uint64_t d_link_ntop(MachineWindow* w, uint64_t dst, uint64_t type, uint64_t address) {
  const uint64_t size = type == kInfiniband ? 20 : 6;
  if (!fetch(w, address, size)) return 0;
  uint64_t place = dst;
  for (uint64_t i = zero(w); i < size && go_on(); ++i) {
    const uint64_t value = w->scratch[masked(i, 0x1F)];
    if (i != 0) set_byte(w, place++, ':');
    set_byte(w, place++, hex_digit(value >> 4));
    set_byte(w, place++, hex_digit(value & 0xF));
  }
  return finish(w, dst, place - dst);
}

}  // extern "C"

}  // namespace clew::runtime::kernel

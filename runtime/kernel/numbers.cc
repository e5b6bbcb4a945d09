// SPDX-License-Identifier: Apache-2.0
// Numbers: their texts, division, random ones.
#include "runtime/kernel/text.h"

namespace clew::runtime::kernel {
namespace {

inline constexpr uint64_t kDigitsMax = 64;
inline constexpr uint64_t kNoDigit = 255;

[[gnu::always_inline]] inline uint64_t digit_of(uint64_t character) {
  if (character - '0' < 10) return character - '0';
  const uint64_t lower = character | 0x20;
  return lower - 'a' < 26 ? lower - 'a' + 10 : kNoDigit;
}

[[gnu::always_inline]] inline bool is_space(uint64_t character) {
  return character == ' ' || character - '\t' < 5;
}

}  // namespace

extern "C" {

uint64_t d_number_to_string(MachineWindow* w, uint64_t dst, uint64_t value, uint64_t base_or_0) {
  const uint64_t base = base_or_0 == 0 ? 10 : base_or_0;
  if (base < 2 || base > 36) return fail(w, MachineFault::IllegalOperation, base);
  const bool is_negative = base == 10 && static_cast<int64_t>(value) < 0;
  uint64_t left = is_negative ? ~value + 1 : value;
  uint64_t begin = zero(w) + kDigitsMax;
  for (; begin > 0 && go_on();) {
    const uint64_t digit = left % base;
    --begin;
    w->scratch[masked(begin, 0x7F)] =
        static_cast<uint8_t>(digit < 10 ? digit + '0' : digit - 10 + 'a');
    left /= base;
    if (left == 0) break;
  }
  uint64_t out = zero(w);
  if (is_negative) set_byte(w, dst + out++, '-');
  if (value != 0 && (base == 16 || base == 8)) set_byte(w, dst + out++, '0');
  if (value != 0 && base == 16) set_byte(w, dst + out++, 'x');
  const uint64_t digits = forgotten(w, kDigitsMax - begin);
  copy_own(at(w, dst + out), digits, &w->scratch[masked(begin, 0x7F)]);
  return finish(w, dst, out + digits);
}

uint64_t d_string_to_number(MachineWindow* w, uint64_t string, uint64_t base_or_0) {
  if (is_null(w, string)) return 0;
  if (base_or_0 == 1 || base_or_0 > 36) return fail(w, MachineFault::IllegalOperation, base_or_0);
  const uint64_t limit = string_bytes();
  uint64_t i = zero(w);
  for (; i < limit && go_on(); ++i) {
    if (!is_space(byte(w, string + i))) break;
  }
  const uint64_t sign = byte(w, string + i);
  if (sign == '-' || sign == '+') ++i;
  uint64_t base = base_or_0 == 0 ? 10 : base_or_0;
  if (byte(w, string + i) == '0') {
    const bool is_hex = (byte(w, string + i + 1) | 0x20) == 'x';
    if (is_hex && (base_or_0 == 0 || base_or_0 == 16)) {
      base = 16;
      i += 2;
    } else if (base_or_0 == 0) {
      base = 8;
    }
  }
  uint64_t value = zero(w);
  for (; i < limit && go_on(); ++i) {
    const uint64_t digit = digit_of(byte(w, string + i));
    if (digit >= base) break;
    value = value * base + digit;
  }
  return sign == '-' ? ~value + 1 : value;
}

uint64_t d_random(MachineWindow* w) {
  const uint64_t high = random_word(w);
  return high << 32 | random_word(w);
}

// Division as RFC 9669 defines it: by 0 gives 0, and the remainder is the dividend.
uint64_t d_divide_unsigned(MachineWindow*, uint64_t a, uint64_t b) {
  return b == 0 ? 0 : a / b;
}
uint64_t d_modulo_unsigned(MachineWindow*, uint64_t a, uint64_t b) {
  return b == 0 ? a : a % b;
}

uint64_t d_divide_signed(MachineWindow*, uint64_t a, uint64_t b) {
  const bool is_negative = (static_cast<int64_t>(a) < 0) != (static_cast<int64_t>(b) < 0);
  const uint64_t divisor = static_cast<int64_t>(b) < 0 ? ~b + 1 : b;
  const uint64_t dividend = static_cast<int64_t>(a) < 0 ? ~a + 1 : a;
  const uint64_t result = divisor == 0 ? 0 : dividend / divisor;
  return is_negative ? ~result + 1 : result;
}
uint64_t d_modulo_signed(MachineWindow*, uint64_t a, uint64_t b) {
  const uint64_t divisor = static_cast<int64_t>(b) < 0 ? ~b + 1 : b;
  const uint64_t dividend = static_cast<int64_t>(a) < 0 ? ~a + 1 : a;
  const uint64_t result = divisor == 0 ? dividend : dividend % divisor;
  return static_cast<int64_t>(a) < 0 ? ~result + 1 : result;
}

}  // extern "C"

}  // namespace clew::runtime::kernel

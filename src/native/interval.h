// SPDX-License-Identifier: Apache-2.0
// What the translator knows of a register's value between two labels: an unsigned range and how
// many low bits are zero. The verifier derives the same facts from the bytes (rule R7), with code
// of its own; a fact that only the translator believes makes the body refused, never unsafe.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>

namespace clew::native {

struct Interval {
  uint64_t low = 0;
  uint64_t high = std::numeric_limits<uint64_t>::max();
  uint32_t zero_bits = 0;  // Only `and` and constants set it; every other operation forgets it.

  static constexpr Interval unknown() { return {}; }
  static constexpr Interval below(uint64_t high) { return {0, high, 0}; }
  static constexpr Interval unknown_32() { return below(std::numeric_limits<uint32_t>::max()); }
  static constexpr Interval constant(uint64_t value) {
    return {value, value, static_cast<uint32_t>(std::countr_zero(value))};
  }

  // The interval after a write of the low 32 bits, which clears the high ones.
  [[nodiscard]] constexpr Interval truncated() const {
    return high <= std::numeric_limits<uint32_t>::max() ? *this : unknown_32();
  }
  [[nodiscard]] constexpr Interval sized(bool wide) const { return wide ? *this : truncated(); }
};

constexpr Interval add(const Interval& a, const Interval& b) {
  uint64_t low = 0;
  uint64_t high = 0;
  if (__builtin_add_overflow(a.high, b.high, &high)) return {};
  low = a.low + b.low;
  return {low, high, 0};
}

constexpr Interval subtract(const Interval& a, const Interval& b) {
  if (a.low < b.high) return {};
  return {a.low - b.high, a.high - b.low, 0};
}

// A constant operand is signed: adding -8 is subtracting 8.
constexpr Interval add_constant(const Interval& a, int64_t value) {
  if (value >= 0) return add(a, Interval::constant(static_cast<uint64_t>(value)));
  return subtract(a, Interval::constant(0 - static_cast<uint64_t>(value)));
}

constexpr Interval multiply(const Interval& a, uint64_t factor) {
  uint64_t high = 0;
  if (__builtin_mul_overflow(a.high, factor, &high)) return {};
  return {a.low * factor, high, 0};
}

constexpr Interval bit_and(const Interval& a, const Interval& b) {
  return {0, std::min(a.high, b.high), std::max(a.zero_bits, b.zero_bits)};
}

constexpr Interval bit_or(const Interval& a, const Interval& b) {
  const uint64_t bits = a.high | b.high;
  const auto width = static_cast<uint32_t>(std::bit_width(bits));
  return Interval::below(width == 64 ? bits | ~uint64_t{0} : (uint64_t{1} << width) - 1);
}

constexpr Interval shift_right(const Interval& a, uint32_t count) {
  return {a.low >> count, a.high >> count, 0};
}

constexpr Interval merge(const Interval& a, const Interval& b) {
  return {std::min(a.low, b.low), std::max(a.high, b.high), std::min(a.zero_bits, b.zero_bits)};
}

}  // namespace clew::native

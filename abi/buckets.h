// SPDX-License-Identifier: Apache-2.0
// The buckets of quantize(), lquantize(), llquantize(), quantile() and the registers of distinct():
// which one a value falls in, and which values a bucket holds. Probes and the kernel's programs
// count by these numbers, and the tracer finishes and prints by them. Queries and D share all of it
// but two rules: D has no unsigned values, and its llquantize() counts negative values as well.
#pragma once

#include <cstdint>

#include "abi/aggregate.h"
#include "abi/machine/loop.h"

namespace clew::abi {

// floor(log2(value)); value > 0.
[[gnu::always_inline]] constexpr uint32_t log2_of(uint64_t value) {
#if !defined(__bpf__)
  return 63U - static_cast<uint32_t>(__builtin_clzll(value));
#else
  uint32_t log = 0;
  for (uint32_t step = 32; step != 0; step /= 2) {
    if ((value >> step) != 0) {
      value >>= step;
      log += step;
    }
  }
  return log;
#endif
}

// The length of a value in bits, as accessor BitLength has it: BL(v), BL(0) = 0.
constexpr uint32_t bit_length(uint64_t value) {
  return value == 0 ? 0 : log2_of(value) + 1;
}

// --- quantize: powers of two ---------------------------------------------------------------------
//   bucket 63            0
//   bucket 63 + BL(v)    v > 0: the values from 2^(BL-1) to 2^BL - 1; 127 only when unsigned
//   bucket 63 - BL(-v)   v < 0: the values from -2^(BL-1) down to -2^BL + 1; INT64_MIN in bucket 0

inline constexpr uint32_t kQuantizeZero = 63;
inline constexpr uint32_t kQuantizeBuckets = 128;
inline constexpr uint32_t kMachineQuantizeBuckets = 127;

[[gnu::always_inline]] constexpr uint32_t quantize_bucket(int64_t value) {
  if (value == 0) return kQuantizeZero;
  if (value > 0) return kQuantizeZero + 1 + log2_of(static_cast<uint64_t>(value));
  const uint32_t log = log2_of(~static_cast<uint64_t>(value) + 1);
  return log >= kQuantizeZero ? 0 : kQuantizeZero - 1 - log;
}

constexpr uint32_t quantize_bucket(uint64_t value, bool is_signed) {
  return is_signed ? quantize_bucket(static_cast<int64_t>(value))
                   : kQuantizeZero + bit_length(value);
}

// The value that labels a bucket: the one nearest to 0. That of bucket 127 is unsigned.
constexpr int64_t quantize_value(uint32_t bucket) {
  if (bucket == kQuantizeZero) return 0;
  if (bucket > kQuantizeZero) {
    return static_cast<int64_t>(uint64_t{1} << (bucket - kQuantizeZero - 1));
  }
  return -(int64_t{1} << (kQuantizeZero - 1 - bucket));
}

// --- lquantize: equal steps ----------------------------------------------------------------------
//   bucket 0 = v < low; bucket 1 + (v - low) / step; bucket n + 1 = v >= low + n * step

struct LinearBuckets {
  int64_t low = 0;
  int64_t high = 0;
  int64_t step = 1;
};

constexpr uint64_t linear_steps(const LinearBuckets& l) {
  return (static_cast<uint64_t>(l.high) - static_cast<uint64_t>(l.low)) /
         static_cast<uint64_t>(l.step);
}

constexpr uint64_t linear_buckets(const LinearBuckets& l) {
  return linear_steps(l) + 2;
}

[[gnu::always_inline]] constexpr uint64_t linear_bucket(const LinearBuckets& l, int64_t value) {
  if (value < l.low) return 0;
  const uint64_t level =
      (static_cast<uint64_t>(value) - static_cast<uint64_t>(l.low)) / static_cast<uint64_t>(l.step);
  const uint64_t steps = linear_steps(l);
  return level < steps ? level + 1 : steps + 1;
}

// The first value of bucket 1…n + 1.
constexpr int64_t linear_value(const LinearBuckets& l, uint64_t bucket) {
  const uint64_t above = (bucket - 1) * static_cast<uint64_t>(l.step);
  return static_cast<int64_t>(static_cast<uint64_t>(l.low) + above);
}

// --- llquantize: equal steps within each order of magnitude --------------------------------------
// An order goes from factor^m to factor^(m+1) - 1, for m = low…high, and is cut in steps of
// factor^(m+1) / min(factor^(m+1), steps). With p = log_linear_steps(), all steps of all orders:
//   queries (one-sided)   bucket 0 = below factor^low; 1…p; p + 1 = from factor^(high+1) on
//   D (mirrored)          buckets 0…p mirror those of positive values, p + 1 has the values below
//                         factor^low in amount; p + 2…2p + 1; 2p + 2 = from factor^(high+1) on

inline constexpr uint64_t kOrdersMax = 64;  // Powers of 2 in a word.

struct LogLinearBuckets {
  uint64_t factor = 10;
  uint64_t low = 0;
  uint64_t high = 0;
  uint64_t steps = 10;
};

// The steps of one order begin at multiples of their width, but the first at the order itself: with
// factor 10 and 5 steps at 1000, 2000, 4000, 6000, 8000; with 1 step at 1000 only.
[[gnu::always_inline]] constexpr uint64_t order_steps(uint64_t first, uint64_t next,
                                                      uint64_t width) {
  return width == 0 ? 0 : (next + width - 1) / width - first / width;
}

// Calls visit(first value, end, width, buckets before) for each order until it returns false.
// `zero` is 0, for loops that the verifier should not count.
template <typename Visit>
[[gnu::always_inline]] constexpr void each_order(const LogLinearBuckets& l, uint64_t zero,
                                                 Visit visit) {
  uint64_t first = zero + 1;
  uint64_t before = zero;
  uint64_t round = zero;
  for (uint64_t order = zero; order <= l.high && go_on(round, kOrdersMax); ++order) {
    const uint64_t next = first * l.factor;
    if (order >= l.low) {
      const uint64_t steps = next < l.steps ? next : l.steps;
      const uint64_t width = steps == 0 ? 1 : next / steps;
      if (!visit(first, next, width, before)) return;
      before += order_steps(first, next, width);
    }
    first = next;
  }
}

// Whether the powers up to factor^(high + 1) fit a signed word.
constexpr bool powers_fit(const LogLinearBuckets& l) {
  uint64_t power = 1;
  for (uint64_t order = 0; order <= l.high; ++order) {
    if (power > static_cast<uint64_t>(INT64_MAX) / l.factor) return false;
    power *= l.factor;
  }
  return true;
}

// Whether the steps cut each order into whole parts, one of which begins at the order itself. Only
// where powers_fit().
constexpr bool cuts_evenly(const LogLinearBuckets& l) {
  uint64_t next = 1;
  for (uint64_t order = 0; order <= l.high; ++order) {
    next *= l.factor;
    const uint64_t parts = next < l.steps ? next : l.steps;
    if (order >= l.low && (next % parts != 0 || parts % l.factor != 0)) return false;
  }
  return true;
}

constexpr uint64_t log_linear_steps(const LogLinearBuckets& l) {
  uint64_t steps = 0;
  each_order(l, 0, [&](uint64_t first, uint64_t next, uint64_t width, uint64_t before) {
    steps = before + order_steps(first, next, width);
    return true;
  });
  return steps;
}

constexpr uint64_t log_linear_buckets(const LogLinearBuckets& l) {
  return 2 * log_linear_steps(l) + 3;
}

constexpr uint64_t one_sided_buckets(const LogLinearBuckets& l) {
  return log_linear_steps(l) + 2;
}

// Where an amount falls: 0 = below all orders, 1…p, p + 1 = above. `p` = log_linear_steps().
[[gnu::always_inline]] constexpr uint64_t log_linear_step(const LogLinearBuckets& l, uint64_t zero,
                                                          uint64_t p, uint64_t amount) {
  uint64_t found = p + 1;
  each_order(l, zero, [&](uint64_t first, uint64_t next, uint64_t width, uint64_t before) {
    if (amount < first) {
      found = 0;
      return false;
    }
    if (amount >= next) return true;
    found = before + (width == 0 ? 0 : amount / width - first / width) + 1;
    return false;
  });
  return found;
}

[[gnu::always_inline]] constexpr uint64_t log_linear_bucket(const LogLinearBuckets& l,
                                                            uint64_t zero, uint64_t p,
                                                            int64_t value) {
  const uint64_t bits = static_cast<uint64_t>(value);
  if (value < 0) return p + 1 - log_linear_step(l, zero, p, ~bits + 1);
  return p + 1 + log_linear_step(l, zero, p, bits);
}

constexpr uint64_t one_sided_bucket(const LogLinearBuckets& l, int64_t value) {
  if (value < 0) return 0;
  return log_linear_step(l, 0, log_linear_steps(l), static_cast<uint64_t>(value));
}

// The value that labels a mirrored bucket: the one nearest to 0. Of bucket p + 1 it is 0.
constexpr int64_t log_linear_value(const LogLinearBuckets& l, uint64_t bucket) {
  const uint64_t p = log_linear_steps(l);
  const bool is_negative = bucket < p + 1;
  const uint64_t step = is_negative ? p + 1 - bucket : bucket - p - 1;
  if (step == 0) return 0;
  uint64_t amount = 0;
  each_order(l, 0, [&](uint64_t first, uint64_t next, uint64_t width, uint64_t before) {
    const uint64_t here = order_steps(first, next, width);
    const uint64_t index = step - 1 - before;
    amount = index == 0 ? first : index < here ? (first / width + index) * width : next;
    return index >= here;
  });
  return is_negative ? -static_cast<int64_t>(amount) : static_cast<int64_t>(amount);
}

// --- quantile: log-linear, 16 steps per power of two -------------------------------------------
//   v < 16   bucket v
//   else     e = BL(v) - 5; bucket (e << 4) + (v >> e)      (v >> e is 16..31)
// Negative values of a signed spec count as 0. The bucket's values are (16..31) << e and the next
// 2^e - 1, and its middle is reported: the error is at most 2^(e-1) / (16 << e) = 1/32 = 3.125 %.
inline constexpr uint32_t kQuantileWords = 976;

constexpr uint32_t quantile_bucket(uint64_t value, bool is_signed) {
  if (is_signed && (value >> 63) != 0) return 0;
  if (value < 16) return static_cast<uint32_t>(value);
  const uint32_t shift = bit_length(value) - 5;
  return (shift << 4) + static_cast<uint32_t>(value >> shift);
}
static_assert(quantile_bucket(UINT64_MAX, false) == kQuantileWords - 1);

// --- distinct: HyperLogLog with 2^10 registers -------------------------------------------------
// Register i is byte i of the cell (8 registers a word, little endian), so a program uses one byte
// load and one byte store: i = hash & 1023; rank = 55 - BL(hash >> 10); if register[i] < rank then
// register[i] = rank. Standard error 1.04 / sqrt(1024) = 3.25 %.
inline constexpr uint32_t kDistinctRegisters = 1024;
inline constexpr uint32_t kDistinctWords = kDistinctRegisters / 8;

struct DistinctUpdate {
  uint32_t register_index;
  uint8_t rank;
};
constexpr DistinctUpdate distinct_update(uint64_t hash) {
  const uint32_t length = bit_length(hash >> 10);
  return {.register_index = static_cast<uint32_t>(hash & (kDistinctRegisters - 1)),
          .rank = static_cast<uint8_t>(55 - length)};
}

// Words of a key's cells in the D machine's tables, besides the one that counts updates.
// Parameters: those of MachineAggregation; only those of histograms with bounds are looked at.
constexpr uint64_t machine_cell_words(AggregateFunction function, const int64_t* parameters) {
  if (function == AggregateFunction::Lquantize) {
    return linear_buckets({.low = parameters[0], .high = parameters[1], .step = parameters[2]});
  }
  if (function == AggregateFunction::Llquantize) {
    return log_linear_buckets({.factor = static_cast<uint64_t>(parameters[0]),
                               .low = static_cast<uint64_t>(parameters[1]),
                               .high = static_cast<uint64_t>(parameters[2]),
                               .steps = static_cast<uint64_t>(parameters[3])});
  }
  return row_of(function).d_words;
}
static_assert(row_of(AggregateFunction::Quantize).d_words == kMachineQuantizeBuckets);

}  // namespace clew::abi

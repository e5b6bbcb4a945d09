// SPDX-License-Identifier: Apache-2.0
// The buckets of quantize(), lquantize() and llquantize(): which one a value falls in, and which
// values a bucket holds. The kernel's programs count by these numbers, and the output prints them.
#pragma once

#include <cstdint>

#include "abi/aggregate.h"
#include "abi/d_loop.h"

namespace clew::abi {

// --- quantize: powers of two
// ----------------------------------------------------------------------

inline constexpr uint32_t kDQuantizeBuckets = 127;
inline constexpr uint32_t kDQuantizeZero = 63;  // The bucket of 0.

// floor(log2(value)); value > 0.
[[gnu::always_inline]] constexpr uint32_t log2_of(uint64_t value) {
  uint32_t log = 0;
  for (uint32_t step = 32; step != 0; step /= 2) {
    if ((value >> step) != 0) {
      value >>= step;
      log += step;
    }
  }
  return log;
}

// A positive value is in the bucket of the largest power of two that is not above it; negative ones
// mirror that.
[[gnu::always_inline]] constexpr uint32_t quantize_bucket(int64_t value) {
  if (value == 0) return kDQuantizeZero;
  if (value > 0) return kDQuantizeZero + 1 + log2_of(static_cast<uint64_t>(value));
  const uint32_t log = log2_of(~static_cast<uint64_t>(value) + 1);
  return log >= kDQuantizeZero ? 0 : kDQuantizeZero - 1 - log;
}

// The value that labels a bucket: the one nearest to 0.
constexpr int64_t quantize_value(uint32_t bucket) {
  if (bucket == kDQuantizeZero) return 0;
  if (bucket > kDQuantizeZero) return int64_t{1} << (bucket - kDQuantizeZero - 1);
  return -(int64_t{1} << (kDQuantizeZero - 1 - bucket));
}

// --- lquantize: equal steps
// ----------------------------------------------------------------------- Bucket 0: below base.
// 1…n: from base + (i - 1) * step on. n + 1: the rest.

struct DLinear {
  int64_t base = 0;
  int64_t limit = 0;
  int64_t step = 1;
};

constexpr uint64_t linear_steps(const DLinear& l) {
  return (static_cast<uint64_t>(l.limit) - static_cast<uint64_t>(l.base)) /
         static_cast<uint64_t>(l.step);
}

constexpr uint64_t linear_buckets(const DLinear& l) {
  return linear_steps(l) + 2;
}

[[gnu::always_inline]] constexpr uint64_t linear_bucket(const DLinear& l, int64_t value) {
  if (value < l.base) return 0;
  const uint64_t level = (static_cast<uint64_t>(value) - static_cast<uint64_t>(l.base)) /
                         static_cast<uint64_t>(l.step);
  const uint64_t steps = linear_steps(l);
  return level < steps ? level + 1 : steps + 1;
}

// The first value of bucket 1…n + 1.
constexpr int64_t linear_value(const DLinear& l, uint64_t bucket) {
  return l.base + static_cast<int64_t>(bucket - 1) * l.step;
}

// --- llquantize: equal steps within each order of magnitude
// --------------------------------------- With p = log_linear_steps(): buckets 0…p are the mirror
// of those of positive values, bucket p + 1 has the values below factor^low in amount, p + 2…2p + 1
// the steps, 2p + 2 all from factor^(high+1) on. The order that ends at `next` is cut in steps of
// next / min(next, steps).

inline constexpr uint64_t kDOrdersMax = 64;  // Powers of 2 in a word.

struct DLogLinear {
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
[[gnu::always_inline]] constexpr void each_order(const DLogLinear& l, uint64_t zero, Visit visit) {
  uint64_t first = zero + 1;
  uint64_t before = zero;
  uint64_t round = zero;
  for (uint64_t order = zero; order <= l.high && go_on(round, kDOrdersMax); ++order) {
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
constexpr bool powers_fit(const DLogLinear& l) {
  uint64_t power = 1;
  for (uint64_t order = 0; order <= l.high; ++order) {
    if (power > static_cast<uint64_t>(INT64_MAX) / l.factor) return false;
    power *= l.factor;
  }
  return true;
}

// Whether the steps cut each order into whole parts, one of which begins at the order itself. Only
// where powers_fit().
constexpr bool cuts_evenly(const DLogLinear& l) {
  uint64_t next = 1;
  for (uint64_t order = 0; order <= l.high; ++order) {
    next *= l.factor;
    const uint64_t parts = next < l.steps ? next : l.steps;
    if (order >= l.low && (next % parts != 0 || parts % l.factor != 0)) return false;
  }
  return true;
}

constexpr uint64_t log_linear_steps(const DLogLinear& l) {
  uint64_t steps = 0;
  each_order(l, 0, [&](uint64_t first, uint64_t next, uint64_t width, uint64_t before) {
    steps = before + order_steps(first, next, width);
    return true;
  });
  return steps;
}

constexpr uint64_t log_linear_buckets(const DLogLinear& l) {
  return 2 * log_linear_steps(l) + 3;
}

// Where an amount falls: 0 = below all orders, 1…p, p + 1 = above. `p` = log_linear_steps().
[[gnu::always_inline]] constexpr uint64_t log_linear_step(const DLogLinear& l, uint64_t zero,
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

[[gnu::always_inline]] constexpr uint64_t log_linear_bucket(const DLogLinear& l, uint64_t zero,
                                                            uint64_t p, int64_t value) {
  const uint64_t bits = static_cast<uint64_t>(value);
  if (value < 0) return p + 1 - log_linear_step(l, zero, p, ~bits + 1);
  return p + 1 + log_linear_step(l, zero, p, bits);
}

// The value that labels a bucket: the one nearest to 0. Of bucket p + 1 it is 0.
constexpr int64_t log_linear_value(const DLogLinear& l, uint64_t bucket) {
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

// Words of a key's cells, besides the one that counts updates. Parameters: those of
// DAggregation; only those of histograms with bounds are looked at.
constexpr uint64_t d_cell_words(AggregateFunction function, const int64_t* parameters) {
  switch (function) {
    case AggregateFunction::Average:
      return 2;
    case AggregateFunction::StandardDeviation:
    case AggregateFunction::Variance:
      return 4;
    case AggregateFunction::Quantize:
      return kDQuantizeBuckets;
    case AggregateFunction::Lquantize:
      return linear_buckets({.base = parameters[0], .limit = parameters[1], .step = parameters[2]});
    case AggregateFunction::Llquantize:
      return log_linear_buckets({.factor = static_cast<uint64_t>(parameters[0]),
                                 .low = static_cast<uint64_t>(parameters[1]),
                                 .high = static_cast<uint64_t>(parameters[2]),
                                 .steps = static_cast<uint64_t>(parameters[3])});
    case AggregateFunction::Count:
    case AggregateFunction::Sum:
    case AggregateFunction::Min:
    case AggregateFunction::Max:
    case AggregateFunction::Distinct:
    case AggregateFunction::TopK:
    case AggregateFunction::Quantile:
      break;
  }
  return 1;
}

}  // namespace clew::abi

// SPDX-License-Identifier: Apache-2.0
// What several aggregating functions share.
#include "aggregate/operations.h"

#include <cmath>
#include <limits>

namespace clew::aggregate {

void merge_sums(const AggregateSpec&, Cell into, ConstCell from) {
  for (size_t i = 0; i < into.size(); ++i)
    into[i] += from[i];
}

void subtract_sums(Cell from, ConstCell earlier) {
  for (size_t i = 0; i < from.size(); ++i)
    from[i] -= earlier[i];
}

namespace {

// The 80-bit format holds every 64-bit integer, so a scale of 1.0 would change nothing.
template <typename Integer>
Integer clamp_to(long double value) {
  const auto rounded = std::nearbyintl(value);
  if (!(rounded > static_cast<long double>(std::numeric_limits<Integer>::min()))) {
    return std::numeric_limits<Integer>::min();
  }
  if (rounded >= static_cast<long double>(std::numeric_limits<Integer>::max())) {
    return std::numeric_limits<Integer>::max();
  }
  return static_cast<Integer>(rounded);
}

}  // namespace

Value scaled_integer(const AggregateSpec& spec, uint64_t bits) {
  if (spec.scale == 1.0) {
    return spec.is_signed ? Value(static_cast<int64_t>(bits)) : Value(bits);
  }
  const auto scale = static_cast<long double>(spec.scale);
  if (spec.is_signed) {
    return clamp_to<int64_t>(static_cast<long double>(static_cast<int64_t>(bits)) * scale);
  }
  return clamp_to<uint64_t>(static_cast<long double>(bits) * scale);
}

double as_double(const AggregateSpec& spec, uint64_t bits) {
  return spec.is_signed ? static_cast<double>(static_cast<int64_t>(bits))
                        : static_cast<double>(bits);
}

}  // namespace clew::aggregate

// SPDX-License-Identifier: Apache-2.0
// Sums of times that may be anybody's: what does not fit into 64 bits is the first or the last
// moment.
#pragma once

#include <cstdint>
#include <limits>

namespace clew::stream {

inline int64_t plus(int64_t time_ns, int64_t span_ns) {
  int64_t sum = 0;
  if (!__builtin_add_overflow(time_ns, span_ns, &sum)) return sum;
  return span_ns < 0 ? std::numeric_limits<int64_t>::min() : std::numeric_limits<int64_t>::max();
}

}  // namespace clew::stream

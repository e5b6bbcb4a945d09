// SPDX-License-Identifier: Apache-2.0
// Histograms as monitoring systems have them: a bucket has an upper bound, which belongs to it. All
// that are counted are whole numbers, so the bounds are exact: quantize's [4, 8) is up to 7.
#pragma once

#include <cstdint>
#include <vector>

#include "aggregate/value.h"

namespace clew::output {

struct MetricBuckets {
  std::vector<int64_t> bounds{};   // They ascend.
  std::vector<uint64_t> counts{};  // One more: the last has no bound.

  [[nodiscard]] uint64_t count() const;
};

// The same bounds for each histogram of a column, as receivers add them up; but for those below 0
// of quantize, which most columns never need.
[[nodiscard]] bool has_negative(const aggregate::Histogram& histogram);
[[nodiscard]] MetricBuckets buckets_of(const aggregate::Histogram& histogram, bool with_negative);

}  // namespace clew::output

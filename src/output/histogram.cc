// SPDX-License-Identifier: Apache-2.0
// Histograms as DTrace draws them ("Dynamic Instrumentation of Production Systems", 2004, figures;
// Solaris Dynamic Tracing Guide, chapter 9): the value in 16 columns, a bar of 40 for the share of
// all, the count, left-aligned in 9.
#include <algorithm>
#include <cmath>
#include <cstdint>

#include <fmt/format.h>

#include "output/format.h"

namespace clew::output {
namespace {

using aggregate::Bucket;
using aggregate::Histogram;
using aggregate::HistogramKind;

constexpr uint32_t kBarWidth = 40;

struct Rows {
  size_t first;
  size_t last;
};

// Nothing was counted: the buckets around zero, or the first three.
Rows empty_rows(const Histogram& histogram) {
  const size_t last = histogram.buckets.size() - 1;
  if (histogram.kind != HistogramKind::Quantize) return {0, std::min<size_t>(2, last)};
  const auto zero = std::find_if(histogram.buckets.begin(), histogram.buckets.end(),
                                 [](const Bucket& bucket) { return bucket.low == 0; });
  const auto at = static_cast<size_t>(zero - histogram.buckets.begin());
  return {at == 0 ? 0 : at - 1, std::min(at + 1, last)};
}

// From one before the first bucket that is not empty to one after the last.
Rows rows_of(const Histogram& histogram) {
  const auto& buckets = histogram.buckets;
  const auto filled = [](const Bucket& bucket) { return bucket.count != 0; };
  const auto first = std::find_if(buckets.begin(), buckets.end(), filled);
  if (first == buckets.end()) return empty_rows(histogram);
  const auto after = std::find_if(buckets.rbegin(), buckets.rend(), filled).base();
  const auto first_index = static_cast<size_t>(first - buckets.begin());
  const auto after_index = static_cast<size_t>(after - buckets.begin());
  return {first_index == 0 ? 0 : first_index - 1, std::min(after_index, buckets.size() - 1)};
}

}  // namespace

std::string format_histogram(const Histogram& histogram) {
  std::string text = fmt::format("\n{:>16} {:>41} {:<9}\n", "value",
                                 "------------- Distribution -------------", "count");
  if (histogram.buckets.empty()) return text;
  double total = 0;
  for (const Bucket& bucket : histogram.buckets)
    total += static_cast<double>(bucket.count);
  const Rows rows = rows_of(histogram);
  for (size_t i = rows.first; i <= rows.last; ++i) {
    const Bucket& bucket = histogram.buckets[i];
    const double share = total > 0 ? static_cast<double>(bucket.count) / total : 0;
    const std::string bar(static_cast<size_t>(std::floor(share * kBarWidth + 0.5)), '@');
    text += fmt::format("{:>16} |{:<40} {:<9}\n", bucket_label(bucket), bar, bucket.count);
  }
  return text;
}

}  // namespace clew::output

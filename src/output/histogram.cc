// SPDX-License-Identifier: Apache-2.0
// Histograms as DTrace draws them ("Dynamic Instrumentation of Production Systems", 2004, figures;
// Solaris Dynamic Tracing Guide, chapter 9): the value in 16 columns, a bar of 40 for the share of
// all, the count, left-aligned in 9.
#include <algorithm>
#include <cmath>
#include <cstdint>

#include <fmt/format.h>

#include "aggregate/d_value.h"
#include "output/format.h"

namespace clew::output {
namespace {

using aggregate::Bucket;
using aggregate::BucketEdge;
using aggregate::Histogram;
using aggregate::HistogramKind;

constexpr size_t kBarWidth = 40;
constexpr long double kZoomedShareMax = 0.95L;

// Inclusive.
struct Rows {
  size_t first;
  size_t last;
};

// Nothing was counted: the buckets around zero, or the first three.
Rows empty_rows(const Histogram& histogram) {
  const auto is_zero = [](const Bucket& bucket) {
    return bucket.edge == BucketEdge::Around ||
           (bucket.edge == BucketEdge::From && bucket.low == 0);
  };
  const auto& buckets = histogram.buckets;
  const auto zero = std::find_if(buckets.begin(), buckets.end(), is_zero);
  const bool has_middle = histogram.kind != HistogramKind::Lquantize && zero != buckets.end();
  const auto middle = has_middle ? static_cast<size_t>(zero - buckets.begin()) : 1;
  return {middle == 0 ? 0 : middle - 1, std::min(middle + 1, buckets.size() - 1)};
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

// What one histogram is drawn with.
class Painter {
 public:
  Painter(const Histogram& histogram, const HistogramStyle& style) : style_(style) {
    for (const Bucket& bucket : histogram.buckets) {
      const long double weight = weight_of(bucket);
      const long double size = std::fabs(weight);
      has_positive_ |= weight > 0;
      has_negative_ |= weight < 0;
      full_ = style_.zooms ? std::max(full_, size / kZoomedShareMax) : full_ + size;
    }
  }

  [[nodiscard]] std::string row(const Bucket& bucket) const {
    return fmt::format("{:>16} {} {:<9}\n", bucket_label(bucket), bar(weight_of(bucket)),
                       count(bucket));
  }

 private:
  [[nodiscard]] long double weight_of(const Bucket& bucket) const {
    return style_.has_weights ? static_cast<long double>(static_cast<int64_t>(bucket.count))
                              : static_cast<long double>(bucket.count);
  }

  [[nodiscard]] std::string count(const Bucket& bucket) const {
    if (!style_.has_weights) return fmt::to_string(bucket.count);
    return fmt::to_string(aggregate::divide(static_cast<int64_t>(bucket.count), style_.divisor));
  }

  // DTrace computes in float, and so must we for bars that end near one half. Halves go up.
  [[nodiscard]] std::string stroke(long double weight, size_t width) const {
    if (full_ == 0) return {};
    const auto share =
        static_cast<float>(std::fabs(weight) * static_cast<long double>(width) / full_);
    return std::string(std::min(static_cast<size_t>(std::lround(share)), width), '@');
  }

  // Those of negative weights grow to the left.
  [[nodiscard]] std::string bar(long double weight) const {
    if (!has_negative_) return fmt::format("|{:<{}}", stroke(weight, kBarWidth), kBarWidth);
    if (!has_positive_) return fmt::format("{:>{}}|", stroke(weight, kBarWidth), kBarWidth);
    constexpr size_t kHalf = kBarWidth / 2;
    const std::string half = stroke(weight, kHalf);
    return fmt::format("{:>{}}|{:<{}}", weight > 0 ? "" : half, kHalf, weight > 0 ? half : "",
                       kHalf);
  }

  HistogramStyle style_;
  long double full_ = 0;  // What a full bar stands for.
  bool has_positive_ = false;
  bool has_negative_ = false;
};

}  // namespace

std::string format_histogram(const Histogram& histogram, const HistogramStyle& style) {
  std::string text = fmt::format("\n{:>16} {:>41} {:<9}\n", "value",
                                 "------------- Distribution -------------", "count");
  if (histogram.buckets.empty()) return text;
  const Painter painter(histogram, style);
  const Rows rows = rows_of(histogram);
  for (size_t i = rows.first; i <= rows.last; ++i)
    text += painter.row(histogram.buckets[i]);
  return text;
}

}  // namespace clew::output

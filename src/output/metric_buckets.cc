// SPDX-License-Identifier: Apache-2.0
#include "output/metric_buckets.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace clew::output {
namespace {

using aggregate::Bucket;
using aggregate::BucketEdge;
using aggregate::Histogram;
using aggregate::HistogramKind;

int64_t before(int64_t low) {
  return static_cast<int64_t>(static_cast<uint64_t>(low) - 1);
}

// The largest value in a bucket that another one follows.
int64_t upper_of(const Histogram& histogram, size_t index) {
  const Bucket& bucket = histogram.buckets[index];
  switch (bucket.edge) {
    case BucketEdge::Below:
    case BucketEdge::Around:
      return before(bucket.low);
    case BucketEdge::UpTo:
      return bucket.low;
    case BucketEdge::From:
    case BucketEdge::FromUnsigned:
    case BucketEdge::AtLeast:
      break;
  }
  // Below zero quantize counts in [-7, -4], and calls that -4.
  const bool is_mirrored = histogram.kind == HistogramKind::Quantize && bucket.low <= 0;
  return is_mirrored ? bucket.low : before(histogram.buckets[index + 1].low);
}

bool is_negative(const Bucket& bucket) {
  return bucket.edge == BucketEdge::From && bucket.low < 0;
}

}  // namespace

uint64_t MetricBuckets::count() const {
  return std::accumulate(counts.begin(), counts.end(), uint64_t{0});
}

bool has_negative(const Histogram& histogram) {
  return histogram.kind == HistogramKind::Quantize &&
         std::any_of(histogram.buckets.begin(), histogram.buckets.end(),
                     [](const Bucket& bucket) { return is_negative(bucket) && bucket.count != 0; });
}

MetricBuckets buckets_of(const Histogram& histogram, bool with_negative) {
  MetricBuckets made;
  for (size_t i = 0; i < histogram.buckets.size(); ++i) {
    const Bucket& bucket = histogram.buckets[i];
    const bool is_left_out =
        histogram.kind == HistogramKind::Quantize && !with_negative && is_negative(bucket);
    if (is_left_out) continue;
    made.counts.push_back(bucket.count);
    if (i + 1 < histogram.buckets.size()) made.bounds.push_back(upper_of(histogram, i));
  }
  return made;
}

}  // namespace clew::output

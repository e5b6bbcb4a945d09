// SPDX-License-Identifier: Apache-2.0
#include "stream/lloyd.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/assert.h"

namespace clew::stream {
namespace {

constexpr unsigned kTries = 8;
constexpr size_t kFewEntries = 200'000;  // More are tried once.
constexpr uint64_t kSeed = 20'090'112;   // Any; always this one.
constexpr double kNothing = 1e-18;       // What is nearer than its root is the same point.

// SplitMix64.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  // From 0 up to 1.
  double next() {
    uint64_t mixed = state_ += 0x9e3779b97f4a7c15;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
    mixed ^= mixed >> 31;
    return static_cast<double>(mixed >> 11) * 0x1p-53;
  }

 private:
  uint64_t state_;
};

double square_of(const SparsePoints& points, size_t point) {
  double sum = 0;
  for (size_t at = points.begins[point]; at < points.begins[point + 1]; ++at)
    sum += points.shares[at] * points.shares[at];
  return sum;
}

class Lloyd {
 public:
  Lloyd(const SparsePoints& points, size_t clusters, Random random)
      : points_(points), wanted_(clusters), random_(random) {}

  Partition run(unsigned rounds) {
    begin();
    for (unsigned round = 0; round < rounds; ++round) {
      if (!assign()) break;
      move_centres();
    }
    (void)assign();
    return std::move(made_);
  }

 private:
  // k-means++: the next centre is a point, the likelier the farther it is from all so far. Of a few
  // that are drawn the one is taken that leaves the least.
  void begin() {
    std::vector<double> nearest(points_.size(), std::numeric_limits<double>::max());
    std::vector<size_t> chosen;
    chosen.push_back(static_cast<size_t>(random_.next() * static_cast<double>(points_.size())));
    spread_from(chosen.back(), nearest);
    const auto draws = 2 + static_cast<unsigned>(std::log(static_cast<double>(wanted_)));
    while (chosen.size() < wanted_) {
      double all = 0;
      for (const double distance : nearest)
        all += distance;
      if (all < kNothing) break;
      chosen.push_back(best_of(draws, all, nearest));
    }
    put_centres(chosen);
  }

  size_t best_of(unsigned draws, double all, std::vector<double>& nearest) {
    std::vector<double> best_nearest;
    double least = std::numeric_limits<double>::max();
    size_t best = 0;
    for (unsigned draw = 0; draw < draws; ++draw) {
      const size_t point = drawn(random_.next() * all, nearest);
      std::vector<double> with = nearest;
      const double left = spread_from(point, with);
      if (left >= least) continue;
      least = left;
      best = point;
      best_nearest = std::move(with);
    }
    nearest = std::move(best_nearest);
    return best;
  }

  static size_t drawn(double at, const std::vector<double>& weights) {
    size_t last = 0;
    for (size_t i = 0; i < weights.size(); ++i) {
      if (weights[i] <= 0) continue;
      last = i;
      at -= weights[i];
      if (at < 0) break;
    }
    return last;
  }

  // With this point as one more centre: the sum.
  double spread_from(size_t centre, std::vector<double>& nearest) {
    dense_.assign(points_.dimensions, 0);
    for (size_t at = points_.begins[centre]; at < points_.begins[centre + 1]; ++at)
      dense_[points_.terms[at]] = points_.shares[at];
    const double square = square_of(points_, centre);
    double sum = 0;
    for (size_t i = 0; i < points_.size(); ++i) {
      double distance = square;
      for (size_t at = points_.begins[i]; at < points_.begins[i + 1]; ++at)
        distance += points_.shares[at] * (points_.shares[at] - 2 * dense_[points_.terms[at]]);
      nearest[i] = std::min(nearest[i], distance < kNothing ? 0 : distance);
      sum += nearest[i];
    }
    return sum;
  }

  void put_centres(const std::vector<size_t>& chosen) {
    made_.clusters = chosen.size();
    made_.centres.assign(points_.dimensions * made_.clusters, 0);
    made_.of.assign(points_.size(), std::numeric_limits<uint32_t>::max());
    for (size_t c = 0; c < chosen.size(); ++c)
      add_to_centre(chosen[c], c, 1);
  }

  void add_to_centre(size_t point, size_t cluster, double weight) {
    for (size_t at = points_.begins[point]; at < points_.begins[point + 1]; ++at)
      made_.centres[points_.terms[at] * made_.clusters + cluster] += weight * points_.shares[at];
  }

  // Each point to the nearest centre; whether one has changed.
  bool assign() {
    bool has_changed = false;
    made_.spread = 0;
    find_squares();
    for (size_t i = 0; i < points_.size(); ++i) {
      distances(i);
      const auto nearest = std::min_element(distances_.begin(), distances_.end());
      const auto cluster = static_cast<uint32_t>(nearest - distances_.begin());
      made_.spread += std::max(*nearest, 0.0);
      has_changed = has_changed || made_.of[i] != cluster;
      made_.of[i] = cluster;
    }
    return has_changed;
  }

  void find_squares() {
    squares_.assign(made_.clusters, 0);
    for (size_t at = 0; at < made_.centres.size(); ++at)
      squares_[at % made_.clusters] += made_.centres[at] * made_.centres[at];
  }

  void distances(size_t point) {
    distances_ = squares_;
    for (size_t at = points_.begins[point]; at < points_.begins[point + 1]; ++at) {
      const double share = points_.shares[at];
      const double* const of_term = &made_.centres[points_.terms[at] * made_.clusters];
      for (size_t c = 0; c < made_.clusters; ++c)
        distances_[c] += share * (share - 2 * of_term[c]);
    }
  }

  // Each to the middle of its points. One that has none any more stays where it is.
  void move_centres() {
    std::vector<double> sizes(made_.clusters, 0);
    for (const uint32_t cluster : made_.of)
      ++sizes[cluster];
    for (size_t at = 0; at < made_.centres.size(); ++at) {
      if (sizes[at % made_.clusters] != 0) made_.centres[at] = 0;
    }
    for (size_t i = 0; i < points_.size(); ++i)
      add_to_centre(i, made_.of[i], 1);
    for (size_t at = 0; at < made_.centres.size(); ++at) {
      if (sizes[at % made_.clusters] != 0) made_.centres[at] /= sizes[at % made_.clusters];
    }
  }

  const SparsePoints& points_;
  size_t wanted_;
  Random random_;
  Partition made_;
  std::vector<double> dense_;      // A centre, in the making.
  std::vector<double> squares_;    // Of the centres.
  std::vector<double> distances_;  // Of a point.
};

}  // namespace

Partition partition(const SparsePoints& points, size_t clusters, unsigned rounds) {
  CLEW_ASSERT(points.size() > 0);
  CLEW_ASSERT(clusters > 0);
  const unsigned tries = points.terms.size() > kFewEntries ? 1 : kTries;
  Partition best;
  for (unsigned i = 0; i < tries; ++i) {
    Partition made = Lloyd(points, clusters, Random(kSeed + i)).run(rounds);
    if (i == 0 || made.spread < best.spread) best = std::move(made);
  }
  return best;
}

}  // namespace clew::stream

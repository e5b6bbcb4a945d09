// SPDX-License-Identifier: Apache-2.0
#include "stream/kmeans.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "stream/lloyd.h"

namespace clew::stream {
namespace {

constexpr uint32_t kNoTerm = UINT32_MAX;
constexpr double kSame = 1e-9;  // Nearer is where it is, but for rounding.

// Numbers of clusters from the one with the most points on.
std::vector<size_t> by_size(const Partition& parts) {
  std::vector<size_t> sizes(parts.clusters, 0);
  std::vector<size_t> first(parts.clusters, parts.of.size());
  for (size_t i = 0; i < parts.of.size(); ++i) {
    ++sizes[parts.of[i]];
    first[parts.of[i]] = std::min(first[parts.of[i]], i);
  }
  std::vector<size_t> order(parts.clusters);
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return sizes[a] != sizes[b] ? sizes[a] > sizes[b] : first[a] < first[b];
  });
  while (!order.empty() && sizes[order.back()] == 0)
    order.pop_back();
  return order;
}

// The largest first, without regard to signs; of what differs by rounding alone as names go.
void keep_largest(std::vector<KMeansTerm>& terms, size_t most) {
  const auto size = [](const KMeansTerm& term) {
    return std::llround(std::abs(term.share) / kSame);
  };
  std::stable_sort(terms.begin(), terms.end(),
                   [&](const KMeansTerm& a, const KMeansTerm& b) { return size(a) > size(b); });
  if (terms.size() > most) terms.resize(most);
}

// A partition as its caller knows it.
class Telling {
 public:
  Telling(const SparsePoints& points, const Partition& parts, std::vector<aggregate::Value> names)
      : points_(points), parts_(parts), names_(std::move(names)), order_(by_size(parts)) {}

  Clustered tell(std::vector<aggregate::Key> keys) {
    Clustered told;
    for (const size_t cluster : order_)
      told.centres.push_back({.terms = centre(cluster)});
    std::vector<size_t> rank(parts_.clusters, 0);
    for (size_t i = 0; i < order_.size(); ++i)
      rank[order_[i]] = i;
    told.vectors.reserve(keys.size());
    for (size_t i = 0; i < keys.size(); ++i) {
      told.vectors.push_back({.key = std::move(keys[i]), .cluster = rank[parts_.of[i]]});
      ++told.centres[rank[parts_.of[i]]].vectors;
      compare(i, told.vectors.back());
    }
    return told;
  }

 private:
  [[nodiscard]] double share(size_t term, size_t cluster) const {
    return parts_.centres[term * parts_.clusters + cluster];
  }

  [[nodiscard]] std::vector<KMeansTerm> centre(size_t cluster) const {
    std::vector<KMeansTerm> terms;
    for (size_t term = 0; term < names_.size(); ++term) {
      if (share(term, cluster) > 0)
        terms.push_back({.name = names_[term], .share = share(term, cluster)});
    }
    keep_largest(terms, terms.size());
    return terms;
  }

  // Term by term, so that what is alike is at no distance.
  void compare(size_t point, Clustered::Vector& into) {
    away_.assign(names_.size(), 0);
    for (size_t at = points_.begins[point]; at < points_.begins[point + 1]; ++at)
      away_[points_.terms[at]] = points_.shares[at];
    double sum = 0;
    for (size_t term = 0; term < names_.size(); ++term) {
      away_[term] -= share(term, parts_.of[point]);
      sum += away_[term] * away_[term];
      if (std::abs(away_[term]) < kSame) continue;
      into.differences.push_back({.name = {}, .share = away_[term]});
      into.differences.back().name = static_cast<uint64_t>(term);
    }
    into.distance = std::sqrt(sum) < kSame ? 0 : std::sqrt(sum);
    keep_largest(into.differences, KMeans::kDifferencesMax);
    for (KMeansTerm& each : into.differences)
      each.name = names_[std::get<uint64_t>(each.name)];
  }

  const SparsePoints& points_;
  const Partition& parts_;
  std::vector<aggregate::Value> names_;
  std::vector<size_t> order_;
  std::vector<double> away_;
};

}  // namespace

KMeans::KMeans(size_t clusters, KMeansLimits limits) : clusters_(clusters), limits_(limits) {}

void KMeans::add(const aggregate::Key& key, const aggregate::Value& term, double amount) {
  if (!std::isfinite(amount) || amount < 0) {
    ++unusable_;
    return;
  }
  auto vector = vectors_.find(key);
  if (vector == vectors_.end()) {
    if (vectors_.size() >= limits_.vectors) {
      ++dropped_vectors_;
      return;
    }
    vector = vectors_.emplace(key, Entries()).first;
  }
  if (amount == 0) return;
  auto known = terms_.find(term);
  if (known == terms_.end() && terms_.size() < limits_.terms)
    known = terms_.emplace(term, static_cast<uint32_t>(terms_.size())).first;
  if (known == terms_.end()) {
    ++dropped_terms_;
    return;
  }
  Entries& entries = vector->second;
  const auto at = std::lower_bound(
      entries.begin(), entries.end(), known->second,
      [](const std::pair<uint32_t, double>& one, uint32_t id) { return one.first < id; });
  if (at != entries.end() && at->first == known->second) {
    at->second += amount;
  } else if (entries_ < limits_.entries) {
    ++entries_;
    entries.insert(at, {known->second, amount});
  } else {
    ++dropped_terms_;
  }
}

// The new number of each term, by its old one, in ascending order of their names.
std::vector<uint32_t> KMeans::choose_terms() {
  std::vector<double> sums(terms_.size(), 0);
  for (const auto& [key, entries] : vectors_) {
    for (const auto& [term, amount] : entries)
      sums[term] += amount;
  }
  std::vector<uint32_t> ranked;  // Old numbers, in ascending order of names.
  ranked.reserve(terms_.size());
  for (const auto& [name, number] : terms_)
    ranked.push_back(number);
  std::vector<uint32_t> names = ranked;
  std::stable_sort(ranked.begin(), ranked.end(),
                   [&](uint32_t a, uint32_t b) { return sums[a] > sums[b]; });
  std::vector<uint32_t> numbers(terms_.size(), kNoTerm);
  for (size_t i = 0; i < std::min(ranked.size(), limits_.dimensions); ++i)
    numbers[ranked[i]] = 0;
  uint32_t next = 0;
  for (const uint32_t old : names) {
    if (numbers[old] != kNoTerm) numbers[old] = next++;
  }
  return numbers;
}

Clustered KMeans::finish() {
  const std::vector<uint32_t> numbers = choose_terms();
  std::vector<aggregate::Value> names;
  for (const auto& [name, number] : terms_) {
    if (numbers[number] != kNoTerm) names.push_back(name);
  }
  SparsePoints points;
  points.dimensions = names.size();
  std::vector<aggregate::Key> keys;
  for (const auto& [key, entries] : vectors_) {
    Entries kept;
    double sum = 0;
    for (const auto& [term, amount] : entries) {
      if (numbers[term] == kNoTerm) {
        ++dropped_terms_;
      } else {
        kept.emplace_back(numbers[term], amount);
        sum += amount;
      }
    }
    if (sum <= 0 || !std::isfinite(sum)) {
      ++unusable_;
      continue;
    }
    std::sort(kept.begin(), kept.end());
    for (const auto& [term, amount] : kept) {
      points.terms.push_back(term);
      points.shares.push_back(amount / sum);
    }
    points.begins.push_back(points.terms.size());
    keys.push_back(key);
  }
  if (keys.empty()) return {};
  const Partition parts = partition(points, clusters_, limits_.rounds);
  return Telling(points, parts, std::move(names)).tell(std::move(keys));
}

}  // namespace clew::stream

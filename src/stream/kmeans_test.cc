// SPDX-License-Identifier: Apache-2.0
#include "stream/kmeans.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/sanitized.h"

namespace clew::stream {
namespace {

using aggregate::Key;
using aggregate::Value;

struct Amount {
  int64_t key = 0;
  std::string term;
  double amount = 0;
};

void add(KMeans& kmeans, const Amount& one) {
  kmeans.add({Value(one.key)}, Value(one.term), one.amount);
}

Clustered clustered(size_t clusters, const std::vector<Amount>& amounts) {
  KMeans kmeans(clusters);
  for (const Amount& each : amounts)
    add(kmeans, each);
  Clustered result = kmeans.finish();
  EXPECT_EQ(kmeans.dropped_vectors() + kmeans.dropped_terms() + kmeans.unusable(), 0U);
  return result;
}

std::vector<size_t> clusters_of(const Clustered& result) {
  std::vector<size_t> all;
  for (const Clustered::Vector& each : result.vectors)
    all.push_back(each.cluster);
  return all;
}

double spread_of(const Clustered& result) {
  double sum = 0;
  for (const Clustered::Vector& each : result.vectors)
    sum += each.distance * each.distance;
  return sum;
}

// --- a plain evaluator: all ways to part a few vectors -------------------------------------------

using Dense = std::vector<std::vector<double>>;

double spread_of(const Dense& vectors, const std::vector<size_t>& parts, size_t clusters) {
  double sum = 0;
  for (size_t c = 0; c < clusters; ++c) {
    std::vector<double> middle(vectors[0].size(), 0);
    double size = 0;
    for (size_t i = 0; i < vectors.size(); ++i) {
      if (parts[i] != c) continue;
      ++size;
      for (size_t d = 0; d < middle.size(); ++d)
        middle[d] += vectors[i][d];
    }
    for (size_t i = 0; i < vectors.size(); ++i) {
      if (parts[i] != c) continue;
      for (size_t d = 0; d < middle.size(); ++d)
        sum += std::pow(vectors[i][d] - middle[d] / size, 2);
    }
  }
  return sum;
}

double least_spread(const Dense& vectors, size_t clusters) {
  std::vector<size_t> parts(vectors.size(), 0);
  double least = std::numeric_limits<double>::max();
  while (true) {
    least = std::min(least, spread_of(vectors, parts, clusters));
    size_t at = 0;
    while (at < parts.size() && ++parts[at] == clusters)
      parts[at++] = 0;
    if (at == parts.size()) return least;
  }
}

// Random vectors, near to `kinds` of them where `width` is small: shares, and amounts of them.
struct Example {
  Dense vectors;
  std::vector<Amount> amounts;
};

Example example(std::mt19937& random, size_t kinds, double width) {
  constexpr size_t kVectors = 8;
  constexpr size_t kTerms = 4;
  std::uniform_real_distribution<double> some(0, 1);
  Dense middles(kinds, std::vector<double>(kTerms));
  for (size_t kind = 0; kind < kinds; ++kind)
    middles[kind][kind % kTerms] = 5;
  Example made;
  for (size_t i = 0; i < kVectors; ++i) {
    std::vector<double> vector = middles[i % kinds];
    double sum = 0;
    for (double& each : vector)
      sum += each += width * some(random);
    const double times = 1 + std::floor(1'000 * some(random));
    for (size_t d = 0; d < kTerms; ++d) {
      vector[d] /= sum;
      made.amounts.push_back({static_cast<int64_t>(i), "t" + std::to_string(d), vector[d] * times});
    }
    made.vectors.push_back(std::move(vector));
  }
  return made;
}

// --- results -------------------------------------------------------------------------------------

// Shares (1, 0), (0.8, 0.2) and (0.2, 0.8), (0, 1): the middles are (0.9, 0.1) and (0.1, 0.9), and
// each vector is 0.1 away from one in both.
TEST(KMeans, PartsByHand) {
  const Clustered result = clustered(2, {{1, "read", 10},
                                         {2, "read", 800},
                                         {2, "write", 200},
                                         {3, "read", 1},
                                         {3, "write", 4},
                                         {4, "write", 7}});
  EXPECT_EQ(clusters_of(result), (std::vector<size_t>{0, 0, 1, 1}));
  for (const Clustered::Vector& each : result.vectors)
    EXPECT_NEAR(each.distance, std::sqrt(0.02), 1e-12);
  ASSERT_EQ(result.centres.size(), 2U);
  EXPECT_EQ(result.centres[0].vectors, 2U);
  ASSERT_EQ(result.centres[0].terms.size(), 2U);
  EXPECT_EQ(result.centres[0].terms[0].name, Value("read"));
  EXPECT_NEAR(result.centres[0].terms[0].share, 0.9, 1e-12);
  EXPECT_EQ(result.centres[1].terms[0].name, Value("write"));
  EXPECT_NEAR(result.centres[1].terms[0].share, 0.9, 1e-12);
}

TEST(KMeans, SaysWhatMakesAnOutlierOne) {
  std::vector<Amount> amounts;
  for (int64_t i = 0; i < 20; ++i) {
    amounts.push_back({i, "read", 60});
    amounts.push_back({i, "write", 40});
  }
  amounts.push_back({20, "read", 30});
  amounts.push_back({20, "yield", 70});
  const Clustered result = clustered(1, amounts);
  const auto farthest =
      std::max_element(result.vectors.begin(), result.vectors.end(),
                       [](const auto& a, const auto& b) { return a.distance < b.distance; });
  EXPECT_EQ(farthest->key, Key{Value(int64_t{20})});
  ASSERT_EQ(farthest->differences.size(), 3U);
  EXPECT_EQ(farthest->differences[0].name, Value("yield"));
  EXPECT_NEAR(farthest->differences[0].share, 0.7 - 0.7 / 21, 1e-12);
  EXPECT_EQ(farthest->differences[1].name, Value("write"));
  EXPECT_NEAR(farthest->differences[1].share, -0.4 * 20 / 21, 1e-12);
}

TEST(KMeans, FindsTheBestPartWhereKindsAreApart) {
  std::mt19937 random(7);
  const auto rounds = static_cast<int>(wanted_steps(30));
  for (int round = 0; round < rounds; ++round) {
    const size_t kinds = 2 + static_cast<size_t>(round) % 3;
    const Example made = example(random, kinds, 0.5);
    const Clustered result = clustered(kinds, made.amounts);
    EXPECT_NEAR(spread_of(result), least_spread(made.vectors, kinds), 1e-9);
  }
}

// Where there are no kinds a local optimum is all that is promised; the best of a few tries is
// near.
TEST(KMeans, IsNearTheBestPartOfAnyVectors) {
  std::mt19937 random(11);
  for (int round = 0; round < 30; ++round) {
    const size_t clusters = 2 + static_cast<size_t>(round) % 2;
    const Example made = example(random, 4, 20);
    const Clustered result = clustered(clusters, made.amounts);
    const double least = least_spread(made.vectors, clusters);
    EXPECT_GE(spread_of(result), least - 1e-9);
    EXPECT_LE(spread_of(result), 1.1 * least);
  }
}

TEST(KMeans, IsTheSameInAnyOrderAndInPieces) {
  std::mt19937 random(3);
  for (int round = 0; round < 20; ++round) {
    Example made = example(random, 3, 10);
    for (Amount& each : made.amounts)
      each.amount = std::round(1'000 * each.amount);
    const Clustered first = clustered(3, made.amounts);
    std::vector<Amount> pieces;
    for (const Amount& each : made.amounts) {
      const double part = std::floor(each.amount / 3);
      pieces.push_back({each.key, each.term, part});
      pieces.push_back({each.key, each.term, each.amount - part});
    }
    std::shuffle(pieces.begin(), pieces.end(), random);
    EXPECT_EQ(clustered(3, pieces), first);
  }
}

TEST(KMeans, DoesNotAskHowMuchThereIsOfAll) {
  const std::vector<Amount> amounts = {{1, "a", 3}, {1, "b", 1}, {2, "a", 1}, {2, "b", 9}};
  std::vector<Amount> more = amounts;
  for (Amount& each : more)
    each.amount *= each.key == 1 ? 4'096 : 0.25;
  EXPECT_EQ(clustered(1, more), clustered(1, amounts));
}

// --- odd input -----------------------------------------------------------------------------------

TEST(KMeans, OfNothingIsNothing) {
  EXPECT_EQ(clustered(5, {}), Clustered());
}

TEST(KMeans, OfEqualVectorsIsOneCluster) {
  const Clustered result = clustered(
      5, {{1, "a", 1}, {1, "b", 2}, {2, "a", 10}, {2, "b", 20}, {3, "a", 5}, {3, "b", 10}});
  ASSERT_EQ(result.centres.size(), 1U);
  EXPECT_EQ(result.centres[0].vectors, 3U);
  for (const Clustered::Vector& each : result.vectors) {
    EXPECT_EQ(each.distance, 0);
    EXPECT_TRUE(each.differences.empty());
  }
}

TEST(KMeans, HasAtMostAClusterForEachVector) {
  const Clustered result = clustered(10, {{1, "a", 1}, {2, "b", 1}, {3, "c", 1}});
  EXPECT_EQ(clusters_of(result), (std::vector<size_t>{0, 1, 2}));
  EXPECT_EQ(spread_of(result), 0);
}

TEST(KMeans, CountsWhatIsNoAmount) {
  KMeans kmeans(2);
  add(kmeans, {1, "a", std::numeric_limits<double>::quiet_NaN()});
  add(kmeans, {1, "a", std::numeric_limits<double>::infinity()});
  add(kmeans, {1, "a", -1});
  add(kmeans, {2, "a", 0});                                   // Nothing else is in it,
  add(kmeans, {3, "a", std::numeric_limits<double>::max()});  // and this has no sum.
  add(kmeans, {3, "b", std::numeric_limits<double>::max()});
  add(kmeans, {4, "a", 1});
  const Clustered result = kmeans.finish();
  ASSERT_EQ(result.vectors.size(), 1U);
  EXPECT_EQ(result.vectors[0].key, Key{Value(int64_t{4})});
  EXPECT_EQ(kmeans.unusable(), 5U);
}

TEST(KMeans, KeepsSoManyVectorsAndCountsTheOthers) {
  KMeans kmeans(2, {.vectors = 3});
  for (int64_t i = 0; i < 5; ++i) {
    add(kmeans, {i, "a", 1});
    add(kmeans, {i, "b", 1});
  }
  EXPECT_EQ(kmeans.finish().vectors.size(), 3U);
  EXPECT_EQ(kmeans.dropped_vectors(), 4U);
}

// The largest ones, whatever comes first.
TEST(KMeans, KeepsTheLargestTermsAndCountsTheOthers) {
  KMeans kmeans(1, {.dimensions = 2});
  add(kmeans, {1, "rare", 1});
  add(kmeans, {1, "often", 50});
  add(kmeans, {2, "usual", 20});
  add(kmeans, {3, "rare", 2});
  const Clustered result = kmeans.finish();
  EXPECT_EQ(result.vectors.size(), 2U);
  ASSERT_EQ(result.centres[0].terms.size(), 2U);
  EXPECT_EQ(result.centres[0].terms[0].name, Value("often"));
  EXPECT_EQ(result.centres[0].terms[1].name, Value("usual"));
  EXPECT_EQ(kmeans.dropped_terms(), 2U);
  EXPECT_EQ(kmeans.unusable(), 1U) << "a vector of which nothing is left";
}

TEST(KMeans, StopsAfterSoManyRounds) {
  KMeans kmeans(3, {.rounds = 1});
  std::mt19937 random(5);
  for (const Amount& each : example(random, 4, 20).amounts)
    add(kmeans, each);
  EXPECT_EQ(kmeans.finish().vectors.size(), 8U);
}

// A large one in a time that a test has.
TEST(KMeans, PartsManyVectors) {
  std::mt19937 random(9);
  KMeans kmeans(5);
  const auto many = static_cast<int64_t>(wanted_steps(20'000));
  for (int64_t i = 0; i < many; ++i) {
    const int64_t kind = i % 5;
    for (int64_t d = 0; d < 8; ++d)
      kmeans.add({Value(i)}, Value(kind * 10 + d), 1 + static_cast<double>(random() % 100));
  }
  const Clustered result = kmeans.finish();
  ASSERT_EQ(result.centres.size(), 5U);
  for (const Clustered::Centre& each : result.centres)
    EXPECT_EQ(each.vectors, static_cast<size_t>(many / 5));
  for (size_t i = 5; i < result.vectors.size(); ++i)
    EXPECT_EQ(result.vectors[i].cluster, result.vectors[i - 5].cluster);
}

}  // namespace
}  // namespace clew::stream

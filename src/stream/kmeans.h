// SPDX-License-Identifier: Apache-2.0
// k-means: which of a few kinds each vector is of, and what makes it differ from its kind (Fay,
// section 5.2.2). A vector is how often each of many things happened, to something, in some time:
// what counts is their shares, so that a busy second is near to a quiet one of the same kind.
//
// Amounts come in any order and any pieces. The result is the same for each order: vectors are
// sorted by their key, and what is random (k-means++) has a fixed seed. It is the best of a few
// tries, which is good and need not be the best there is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "aggregate/table.h"
#include "aggregate/value.h"

namespace clew::stream {

struct KMeansLimits {
  size_t vectors = 1'000'000;
  size_t dimensions = 1'024;    // The terms with the largest sums are kept.
  size_t terms = 65'536;        // Of which these are chosen.
  size_t entries = 16'000'000;  // Terms of vectors, added up.
  unsigned rounds = 50;
};

struct KMeansTerm {
  aggregate::Value name{};
  double share = 0;
  bool operator==(const KMeansTerm&) const = default;
};

struct Clustered {
  struct Vector {
    aggregate::Key key{};
    size_t cluster = 0;
    double distance = 0;  // Euclidean, of shares: from 0 to the square root of 2.
    // What it has more of than its centre, or less (negative), the largest first.
    std::vector<KMeansTerm> differences{};
    bool operator==(const Vector&) const = default;
  };
  struct Centre {
    size_t vectors = 0;
    std::vector<KMeansTerm> terms{};  // The largest first.
    bool operator==(const Centre&) const = default;
  };
  std::vector<Vector> vectors{};  // In ascending order of key.
  std::vector<Centre> centres{};  // The one of the most vectors first.
  bool operator==(const Clustered&) const = default;
};

class KMeans {
 public:
  static constexpr size_t kDifferencesMax = 3;

  explicit KMeans(size_t clusters, KMeansLimits limits = {});

  // Keys and terms are scalars and text.
  void add(const aggregate::Key& key, const aggregate::Value& term, double amount);
  // There are fewer clusters where there are not as many different vectors.
  [[nodiscard]] Clustered finish();

  // Amounts that were not kept, since there were too many vectors; or too many terms.
  [[nodiscard]] uint64_t dropped_vectors() const { return dropped_vectors_; }
  [[nodiscard]] uint64_t dropped_terms() const { return dropped_terms_; }
  // Amounts that are negative or no numbers, and vectors without any amount.
  [[nodiscard]] uint64_t unusable() const { return unusable_; }

 private:
  struct ValueLess {
    bool operator()(const aggregate::Value& a, const aggregate::Value& b) const {
      return aggregate::compare(a, b) < 0;
    }
  };
  using Entries = std::vector<std::pair<uint32_t, double>>;  // By term.

  [[nodiscard]] std::vector<uint32_t> choose_terms();

  size_t clusters_;
  KMeansLimits limits_;
  std::map<aggregate::Key, Entries, aggregate::KeyLess> vectors_;
  std::map<aggregate::Value, uint32_t, ValueLess> terms_;
  size_t entries_ = 0;
  uint64_t dropped_vectors_ = 0;
  uint64_t dropped_terms_ = 0;
  uint64_t unusable_ = 0;
};

}  // namespace clew::stream

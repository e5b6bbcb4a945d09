// SPDX-License-Identifier: Apache-2.0
// The arithmetic of k-means: sparse points, Lloyd's rounds, and where they begin (k-means++).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace clew::stream {

// Point i has `terms[at]` with `shares[at]` for each at in [begins[i], begins[i + 1]).
struct SparsePoints {
  std::vector<size_t> begins{0};
  std::vector<uint32_t> terms{};  // Below `dimensions`.
  std::vector<double> shares{};
  size_t dimensions = 0;

  [[nodiscard]] size_t size() const { return begins.size() - 1; }
};

struct Partition {
  size_t clusters = 0;
  std::vector<double> centres{};  // Of a term side by side: [term * clusters + cluster]
  std::vector<uint32_t> of{};     // By point.
  double spread = 0;              // The sum of the squares of all distances.
};

// At most so many clusters, fewer where there are fewer different points. Always the same one.
Partition partition(const SparsePoints& points, size_t clusters, unsigned rounds);

}  // namespace clew::stream

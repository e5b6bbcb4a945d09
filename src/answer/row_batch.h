// SPDX-License-Identifier: Apache-2.0
// Rows of one width on their way through operators. Its memory is used again: a row that is added
// has the values of one that was there before, so that a text that is put in takes no new memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "aggregate/value.h"
#include "base/assert.h"

namespace clew::answer {

class RowBatch {
 public:
  // After so many, the next operator should have them: they are still in the processor's caches.
  static constexpr size_t kRowsUsual = 256;

  explicit RowBatch(size_t width) : width_(width) {}

  [[nodiscard]] size_t width() const { return width_; }
  [[nodiscard]] size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }

  // Valid until the next row is added. The values are any until they are set.
  std::span<aggregate::Value> add() {
    const size_t end = (size_ + 1) * width_;
    if (values_.size() < end) values_.resize(end);
    return at(size_++);
  }
  [[nodiscard]] std::span<aggregate::Value> at(size_t index) {
    CLEW_ASSERT(index < size_);
    return std::span(values_).subspan(index * width_, width_);
  }
  // Leaves the first `size` rows.
  void shorten(size_t size) {
    CLEW_ASSERT(size <= size_);
    size_ = size;
  }
  void clear() { size_ = 0; }
  // Takes all rows of a batch of the same width away from it.
  void append(RowBatch& rows) {
    CLEW_ASSERT(rows.width_ == width_);
    for (size_t i = 0; i < rows.size(); ++i) {
      const std::span<aggregate::Value> from = rows.at(i);
      std::swap_ranges(from.begin(), from.end(), add().begin());
    }
    rows.clear();
  }
  // Takes the first `count` away.
  void drop_front(size_t count) {
    CLEW_ASSERT(count <= size_);
    for (size_t i = count; i < size_; ++i)
      swap_rows(i - count, i);
    size_ -= count;
  }
  void swap_rows(size_t a, size_t b) {
    CLEW_ASSERT(a < size_ && b < size_);
    if (a == b) return;
    for (size_t i = 0; i < width_; ++i)
      std::swap(values_[a * width_ + i], values_[b * width_ + i]);
  }

 private:
  std::vector<aggregate::Value> values_;  // Row by row.
  size_t width_;
  size_t size_ = 0;
};

}  // namespace clew::answer

// SPDX-License-Identifier: Apache-2.0
// Rows with stacks as one sum for each stack, over the whole session. Private to the folder.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "output/row_sink.h"

namespace clew::output {

// Which columns of an answer become stacks. What is summed up is the first whole number that was
// counted, is exact and adds up; among single events the last whole number.
struct FoldedColumns {
  std::vector<size_t> keys;    // Other than stacks: they stand in front, outermost of all.
  std::vector<size_t> stacks;  // One behind the other, those of the kernel last; at least one.
  size_t number = 0;
};
// Nothing when there is no stack, or no such number.
[[nodiscard]] std::optional<FoldedColumns> folded_columns(Columns columns);

class Folding {
 public:
  // The outermost call first, by names alone. In this order those that begin with the same calls
  // stand together.
  using Stacks = std::map<std::vector<std::string>, uint64_t>;
  // What does not fit is summed up as one stack, kOthers.
  static constexpr size_t kStacksMax = 1'000'000;
  static constexpr size_t kBytesMax = size_t{256} << 20;
  static constexpr const char* kOthers = "[other stacks]";
  // In the place of stacks that have no call at all.
  static constexpr const char* kNoStack = "[no stack]";

  explicit Folding(size_t stacks_max = kStacksMax, size_t bytes_max = kBytesMax)
      : stacks_max_(stacks_max), bytes_max_(bytes_max) {}

  // The columns must have folded_columns().
  void begin(Columns columns);
  void add(std::span<const aggregate::Value> values);

  [[nodiscard]] const Stacks& stacks() const { return stacks_; }
  [[nodiscard]] uint64_t total() const { return total_; }  // Of all stacks; saturates, as they do.
  [[nodiscard]] const aggregate::Column& number() const { return columns_[which_.number]; }
  // A sentence about rows whose number is none, or negative; empty without any.
  [[nodiscard]] std::string left_out() const;

 private:
  size_t stacks_max_;
  size_t bytes_max_;  // Of the names of all.
  std::vector<aggregate::Column> columns_;
  FoldedColumns which_;
  Stacks stacks_;
  size_t bytes_ = 0;  // Of their names.
  uint64_t total_ = 0;
  uint64_t left_out_ = 0;
};

}  // namespace clew::output

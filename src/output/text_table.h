// SPDX-License-Identifier: Apache-2.0
// Lays rows out in columns. Private to the folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "aggregate/value.h"

namespace clew::output {

using Cells = std::vector<std::string>;

[[nodiscard]] bool is_right_aligned(const aggregate::Column& column);
[[nodiscard]] bool has_histogram(std::span<const aggregate::Column> columns);
[[nodiscard]] Cells format_cells(std::span<const aggregate::Column> columns,
                                 std::span<const aggregate::Value> values);

class TextTable {
 public:
  explicit TextTable(std::span<const aggregate::Column> columns);
  // Makes room for a row.
  void fit(const Cells& cells);
  [[nodiscard]] size_t width() const;
  [[nodiscard]] std::string header() const;
  // One line with its line feed, more where cells have more; no blanks at their ends.
  [[nodiscard]] std::string line(const Cells& cells) const;

 private:
  std::vector<aggregate::Column> columns_;
  std::vector<size_t> widths_;
};

// A whole table: header and rows; or, with a histogram among the columns, one block per row: its
// other values as "name = value", then the drawings. Where a row is wider than `width_max` columns
// of a terminal, each row is a block of lines "name  value" under its number: a table whose lines
// are folded cannot be read.
[[nodiscard]] std::string format_table(std::span<const aggregate::Column> columns,
                                       std::span<const std::vector<aggregate::Value>> rows,
                                       size_t width_max = SIZE_MAX);

// The same for a table that is drawn again and again: where it is too wide, its widest texts are
// cut (…), each line of a cell by itself, to no less than a dozen columns.
[[nodiscard]] std::string format_cut_table(std::span<const aggregate::Column> columns,
                                           std::span<const std::vector<aggregate::Value>> rows,
                                           size_t width_max);

}  // namespace clew::output

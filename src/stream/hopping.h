// SPDX-License-Identifier: Apache-2.0
// Windows of one size that begin a step apart, tumbling ones among them (window.h). Kept are the
// tables of the panes that a window needs which is open for late data.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "stream/window.h"

namespace clew::stream {

class Hopping final : public Windows {
 public:
  Hopping(const WindowShape& shape, aggregate::TableSchema schema);

  void add(const aggregate::Table& partial) override;
  std::vector<Given> finish() override;

 private:
  // Windows are numbered by their begin, which is pane number * panes_of_step_.
  struct Range {
    int64_t first;
    int64_t last;
  };

  std::vector<Given> give() override;
  [[nodiscard]] Range windows_of(int64_t pane) const;
  [[nodiscard]] int64_t begin_of(int64_t window) const;
  [[nodiscard]] int64_t end_of(int64_t window) const;
  bool note_change(int64_t pane);
  void count(aggregate::Table& pane, const aggregate::CellsByKey::value_type& row);
  [[nodiscard]] Given given(int64_t window);
  void forget();

  int64_t panes_of_size_;
  int64_t panes_of_step_;
  std::map<int64_t, aggregate::Table> panes_;  // By number.
  std::set<int64_t> changed_;                  // Windows, since they were given or at all.
  std::map<int64_t, uint64_t> versions_;       // Of those that were given.
};

}  // namespace clew::stream

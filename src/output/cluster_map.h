// SPDX-License-Identifier: Apache-2.0
// A chart of clusters (k-means) as in Fay's figure 12: time goes to the right, what was clustered
// stands below each other, and each period has the colour of its cluster. Private to the folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "aggregate/value.h"

namespace clew::output {

class ClusterMap {
 public:
  // There are a cluster and a time, and so there is something to draw.
  static bool can_draw(std::span<const aggregate::Column> columns);

  explicit ClusterMap(std::span<const aggregate::Column> columns);
  void add(std::span<const aggregate::Value> row);

  // At most so many columns wide.
  [[nodiscard]] std::string text(size_t columns, bool has_colors) const;
  // The inner of a picture in SVG, and how high it is. `top`: where it begins.
  struct Picture {
    std::string content;
    double height = 0;
  };
  [[nodiscard]] Picture svg(double width, double top) const;

 private:
  using Cells = std::map<int64_t, int64_t>;  // By time: the cluster.
  struct Legend {
    std::string centre;
    size_t periods = 0;
  };
  struct Line {
    std::string label;
    std::vector<int64_t> clusters;  // By slot of time; 0: nothing is known.
  };

  // The cells side by side, in at most so many slots: of a slot of several the most frequent.
  [[nodiscard]] std::vector<Line> lines(size_t slots_max) const;
  [[nodiscard]] int64_t step_ns() const;
  [[nodiscard]] int64_t begin_ns() const;
  [[nodiscard]] int64_t end_ns() const;
  [[nodiscard]] std::string time_text(int64_t time_ns) const;

  std::vector<aggregate::Column> columns_;
  size_t cluster_;
  size_t time_;
  std::map<std::string, Cells> rows_;  // By what was clustered.
  std::map<int64_t, Legend> legend_;   // By cluster.
};

}  // namespace clew::output

// SPDX-License-Identifier: Apache-2.0
// Windows of time over groups. Partial tables come in, whose first key is the number of a pane
// (pane.h), from any number of sources, in any pieces and any order; tables of windows go out,
// whose first key is the time at which the window begins.
//
//   hopping    so long, one begins each step; tumbling ones have size = step. A window is the merge
//              of its panes, so that every aggregate works; nothing is ever subtracted.
//   session    of each key, from an event to the last one that another followed within the gap. The
//              first two aggregates are the first and the last time of a cell. A pane is not longer
//              than the gap, so what one cell counts is of one session: these are exact.
//
// The caller says up to which time all is there (the watermark), and is given the windows that have
// ended by then. What comes later still belongs to its window while that is open for late data: the
// window is given again, whole, with a higher version, which replaces what was given of the key
// within its bounds (late data can join two sessions). Later than that it is counted and left out.
//
// Times are nanoseconds of one clock, that of the panes' epoch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "aggregate/table.h"
#include "stream/pane.h"

namespace clew::stream {

// What is kept of all panes or sessions that are not closed; what more comes is counted and left
// out.
inline constexpr size_t kRowsMax = 1'000'000;

struct WindowShape {
  enum class Kind : uint8_t { Hopping, Session };
  Kind kind = Kind::Hopping;
  int64_t size_ns = 0;  // Of a session the gap that ends it.
  int64_t step_ns = 0;  // Hopping. Both are multiples of a pane.
  int64_t late_ns = 0;
  Panes panes{};
  size_t rows_max = kRowsMax;
};

// A window with what is counted in it; or sessions of many keys, each with its own bounds.
struct Given {
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  uint64_t version = 1;
  bool is_over = true;  // Else the stream has ended before the window did.
  aggregate::Table table;
};

class Windows {
 public:
  // The schema is that of the partial tables.
  static std::unique_ptr<Windows> make(const WindowShape& shape, aggregate::TableSchema schema);

  Windows(const WindowShape& shape, aggregate::TableSchema schema)
      : shape_(shape), schema_(std::move(schema)) {}
  Windows(const Windows&) = delete;
  Windows& operator=(const Windows&) = delete;
  virtual ~Windows() = default;

  // Of a table with this schema.
  virtual void add(const aggregate::Table& partial) = 0;
  // All before this time has been added, but for what is late. What ended or has changed, by its
  // begin; nothing for a time that is not above all others so far.
  std::vector<Given> advance(int64_t time_ns);
  // The stream has ended: what was not given yet.
  virtual std::vector<Given> finish() = 0;
  // How many rows of partial tables came too late for a window of theirs, or were too many.
  [[nodiscard]] uint64_t late() const { return late_; }
  [[nodiscard]] uint64_t dropped() const { return dropped_; }

 protected:
  virtual std::vector<Given> give() = 0;
  // Whether what ended then is closed for late data.
  [[nodiscard]] bool is_closed(int64_t end_ns) const;

  const WindowShape shape_;
  const aggregate::TableSchema schema_;
  int64_t watermark_ns_ = std::numeric_limits<int64_t>::min();
  uint64_t late_ = 0;
  uint64_t dropped_ = 0;
  size_t rows_ = 0;  // That are kept.
};

}  // namespace clew::stream

// SPDX-License-Identifier: Apache-2.0
// Where rows go. The engine pushes finished rows; a sink turns them into text, JSON, CSV or a
// chart.
//
//   begin, { row… , end_interval }…, finish, close   with --every
//   begin, row…, finish, close                       one answer, or a stream of events
//   begin_tables, { choose, row… , end_interval }…, finish, close     several tables (D)
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "aggregate/value.h"
#include "base/assert.h"
#include "base/error.h"
#include "collect/losses.h"

namespace clew::output {

// Receives bytes. Errors stick: after the first, writes do nothing.
class ByteSink {
 public:
  ByteSink() = default;
  ByteSink(const ByteSink&) = delete;
  ByteSink& operator=(const ByteSink&) = delete;
  virtual ~ByteSink() = default;
  virtual void write(std::string_view bytes) = 0;
  // What was written need not be out before; a sink's owner calls it.
  virtual void flush() {}
  [[nodiscard]] virtual bool failed() const = 0;
  // False while a write of a few rows could have to wait.
  [[nodiscard]] virtual bool ready() const { return true; }
};

// Of an answer; borrowed.
using Columns = std::span<const aggregate::Column>;

enum class RowMode : uint8_t {
  Table,   // Rows of one interval belong together: widths fit, the whole table is drawn at once.
  Stream,  // Each row is an event and is written when it comes.
};

// One of the tables of an answer that has several. Its name is a word of letters, digits and _.
struct TableShape {
  std::string name;
  std::vector<aggregate::Column> columns;
  RowMode mode = RowMode::Table;
};

struct Interval {
  uint64_t number = 0;   // 1, 2, …
  bool partial = false;  // The session ended before the interval did.
  // ns of the time of day; what probes saw between these two. Both 0 where nobody knows.
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
};

class RowSink {
 public:
  RowSink() = default;
  RowSink(const RowSink&) = delete;
  RowSink& operator=(const RowSink&) = delete;
  virtual ~RowSink() = default;
  virtual void begin(std::span<const aggregate::Column> columns, RowMode mode) = 0;
  // Instead of begin(), where FormatRow::has_several_tables. What follows is of the chosen one, at
  // first of the first.
  virtual void begin_tables(std::span<const TableShape>) { CLEW_ASSERT(false); }
  virtual void choose(size_t) { CLEW_ASSERT(false); }
  // As many values as columns.
  virtual void row(std::span<const aggregate::Value> values) = 0;
  // A probe was taken out; the session goes on.
  virtual void disarmed(const collect::DisarmedProbe&) {}
  // What the answer lacks so far: several times a second and before each end_interval(), to those
  // that want it.
  [[nodiscard]] virtual bool wants_losses() const { return false; }
  virtual void losses_so_far(const collect::Losses&) {}
  virtual void end_interval(const Interval& interval) = 0;
  virtual void finish(const collect::Losses& losses) = 0;
  // Lets what came so far be seen.
  virtual void flush() {}
  // What it wrote without a ByteSink is lost, and what comes will be: close() says why.
  [[nodiscard]] virtual bool failed() const { return false; }
  // Whether its bytes are taken, see ByteSink.
  [[nodiscard]] virtual bool ready() const { return true; }
  // The last call, by its owner. `error`: what ended the session, perhaps before begin(), or went
  // wrong beside its answer; or null. Errors: of what the sink wrote without a ByteSink.
  virtual Expected<void> close(const Error*) { return {}; }
};

}  // namespace clew::output

// SPDX-License-Identifier: Apache-2.0
// From merged tables to rows: what a node says to answer (NodeQuery::answered) has the columns,
// conditions on groups, and their order. Where no debug information is. Single events become rows
// one by one, or, of joins between machines, are joined here.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "aggregate/table.h"
#include "base/error.h"
#include "collect/losses.h"
#include "output/row_sink.h"

namespace clew::cluster {

class AnsweredRows {
 public:
  // The sink is borrowed. Refused: the text cannot be read here.
  // `has_intervals`: the query says 'every', and each pane is one.
  static Expected<std::unique_ptr<AnsweredRows>> of(const std::string& answered,
                                                    output::RowSink& sink,
                                                    bool has_intervals = false);
  AnsweredRows() = default;
  AnsweredRows(const AnsweredRows&) = delete;
  AnsweredRows& operator=(const AnsweredRows&) = delete;
  virtual ~AnsweredRows() = default;

  [[nodiscard]] virtual std::span<const aggregate::Column> columns() const = 0;
  [[nodiscard]] virtual output::RowMode mode() const { return output::RowMode::Table; }
  // Refused: it is another query's table.
  virtual Expected<void> take_all(const aggregate::Table& table) = 0;
  // Those of a pane; they ascend, or come once more. Of a query by windows the windows that are
  // over by its end are given, and their interval.
  virtual Expected<void> take(const aggregate::Table& table, const output::Interval& pane) = 0;
  // No more are wanted: `take`.
  [[nodiscard]] virtual bool is_full() const { return false; }
  // No more panes come. What was lost here is added.
  virtual void finish(collect::Losses& losses) = 0;
};

// Whether nodes that say this send events (plan/spread.h); also false where it cannot be read.
bool answers_events(const std::string& answered);

}  // namespace clew::cluster

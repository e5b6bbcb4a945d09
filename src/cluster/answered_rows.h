// SPDX-License-Identifier: Apache-2.0
// From merged tables to rows: what a node says to answer (NodeQuery::answered) has the columns,
// conditions on groups, and their order. Where no debug information is.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "aggregate/table.h"
#include "base/error.h"
#include "output/row_sink.h"

namespace clew::cluster {

class AnsweredRows {
 public:
  // The sink is borrowed. Refused: the text cannot be read here.
  static Expected<std::unique_ptr<AnsweredRows>> of(const std::string& answered,
                                                    output::RowSink& sink);
  AnsweredRows() = default;
  AnsweredRows(const AnsweredRows&) = delete;
  AnsweredRows& operator=(const AnsweredRows&) = delete;
  virtual ~AnsweredRows() = default;

  [[nodiscard]] virtual std::span<const aggregate::Column> columns() const = 0;
  // All rows of an interval, or of the whole answer. Refused: it is another query's table.
  virtual Expected<void> take(const aggregate::Table& table) = 0;
};

}  // namespace clew::cluster

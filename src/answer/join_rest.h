// SPDX-License-Identifier: Apache-2.0
// What is done with the joined rows of one query (plan::JoinStage::rest): conditions, the
// selection, groups.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "aggregate/table.h"
#include "aggregate/value.h"
#include "answer/decode.h"
#include "answer/group.h"
#include "answer/no_names.h"
#include "answer/operator.h"
#include "answer/row_batch.h"
#include "query/query.h"

namespace clew::answer {

class JoinRest {
 public:
  // The answer's groups are counted as they come; those of a joined query whenever they are joined.
  // Borrows `rest`.
  JoinRest(const query::Query& rest, bool is_answer);
  JoinRest(const JoinRest&) = delete;
  JoinRest& operator=(const JoinRest&) = delete;

  // What is selected of the joined rows gets into `rows`, unless it is counted.
  void take(RowBatch& joined, RowBatch& rows);
  [[nodiscard]] Group& group() { return group_; }
  [[nodiscard]] bool is_grouped() const { return is_grouped_; }
  [[nodiscard]] size_t width() const { return width_; }
  [[nodiscard]] size_t cell_words() const { return group_.counted().schema().cell_words(); }
  // The groups of what is in the table, if it is there, and of these rows, which get into it: their
  // columns.
  std::vector<aggregate::Row> groups_with(
      std::span<const std::vector<aggregate::Value>* const> found,
      std::optional<aggregate::Table>& table);

 private:
  [[nodiscard]] std::vector<aggregate::Row> finished() const;
  Operator& last();

  const query::Query& rest_;
  NoNames names_;
  Decoder decoder_;
  Group group_;
  Rows collected_;
  bool is_grouped_;
  bool counts_;
  size_t width_;
  Select select_;
  Filter filter_;
};

}  // namespace clew::answer

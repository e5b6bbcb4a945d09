// SPDX-License-Identifier: Apache-2.0
// What joins the rows of plan::Joined::events, by cause or by time, and is the first operator of
// the answer behind the merge.
#pragma once

#include <cstddef>
#include <cstdint>

#include "aggregate/table.h"
#include "answer/row_batch.h"

namespace clew::answer {

class RowJoiner {
 public:
  RowJoiner() = default;
  RowJoiner(const RowJoiner&) = delete;
  RowJoiner& operator=(const RowJoiner&) = delete;
  virtual ~RowJoiner() = default;

  // Rows of events, in order, from `begin` to `end`; those behind are looked at. Shape::Events:
  // adds rows of the query's values. Shape::Groups: counts them, and leaves `rows` alone. Returns
  // where to go on, once `rows` are taken away; at the end that is `end`.
  struct Part {
    size_t begin = 0;
    size_t end = 0;
  };
  virtual size_t take(RowBatch& events, Part part, RowBatch& rows) = 0;
  // What happened may be seen a little late, up to so much behind what follows from it: then rows
  // are wanted together with those that come within this time.
  [[nodiscard]] virtual int64_t looks_ahead_ns() const { return 0; }

  // What they have brought so far.
  [[nodiscard]] virtual const aggregate::Table& counted() const = 0;
  virtual void forget_counted() = 0;
  [[nodiscard]] virtual uint64_t passed() const = 0;
};

}  // namespace clew::answer

// SPDX-License-Identifier: Apache-2.0
// What becomes of the cells and events of one member of a session: the operators of the plan from
// the merge to the partial answer, which is a table to be merged, or rows of the query's values.
// What stands behind is in answer.h, once for all members.
#pragma once

#include <cstdint>
#include <memory>

#include "aggregate/accumulator.h"
#include "aggregate/table.h"
#include "answer/decode.h"
#include "answer/group.h"
#include "answer/names.h"
#include "answer/open_call.h"
#include "answer/operator.h"
#include "answer/row_batch.h"
#include "answer/scan.h"
#include "base/error.h"
#include "collect/event_batch.h"
#include "plan/capture.h"
#include "plan/lower.h"
#include "plan/plan.h"
#include "plan/sites.h"

namespace clew::answer {

class Intake {
 public:
  // Borrows all of them. Errors: InvalidQuery for what the tracer cannot compute either.
  static Expected<std::unique_ptr<Intake>> make(const plan::Plan& plan,
                                                const plan::Lowered& lowered,
                                                const plan::Grouping& grouping, Names& names);
  // Over events that hold what `captured` says (plan/held.h).
  Intake(const plan::Plan& plan, const plan::Lowered& lowered, const plan::Grouping& grouping,
         Names& names, plan::Captured captured);

  [[nodiscard]] const query::Query& query() const { return query_; }

  // --- events. Shape::Events: adds the rows of those that no filter removes. Shape::Groups: counts
  // them, and leaves `rows` alone.
  void take(const collect::EventBatch& events, collect::EventRange range, RowBatch& rows);
  // The same of rows that have the captures' values already. Leaves any in `captured`.
  void take_captured(RowBatch& captured, RowBatch& rows);
  // The same for a source that fires in the tracer.
  void fire(uint16_t source, int64_t monotonic_ns, RowBatch& rows);
  // The same for a call that is open at the end, of which `query` says what is computed, as it is
  // written. False: memory that it needs cannot be read.
  bool take_open(const query::Query& query, const OpenCall& call, ProcessMemory& memory,
                 RowBatch& rows);
  // What they have brought so far.
  [[nodiscard]] const aggregate::Table& counted() const { return group_.counted(); }
  void forget_counted() { group_.forget_counted(); }
  // How many have been counted so far, those forgotten included.
  [[nodiscard]] uint64_t passed() const { return group_.passed(); }

  // --- cells: the table of what probes have counted.
  aggregate::Table table_of(const aggregate::Accumulator& cells);

 private:
  class HostBindings;
  class OpenBindings;
  class CellBindings;

  void build();
  [[nodiscard]] Operator& behind_selection();
  void select(const query::Query& query, plan::Bindings& bindings, bool are_keys);
  // `owners`: words behind the key, of owner_keys_.
  bool keeps(uint32_t process, std::span<const uint64_t> owners);
  void add_dense(const aggregate::Accumulator& cells, uint32_t process, aggregate::Table& table);
  void add_table(const aggregate::Accumulator& cells, uint32_t process, aggregate::Table& table);

  const query::Query& query_;
  const plan::Lowered& lowered_;
  const plan::Grouping& grouping_;
  Decoder decoder_;
  plan::Captured captured_;
  Scan scan_;
  RowBatch scanned_;
  std::vector<const query::Expression*> cell_filters_;  // Of the plan.
  std::vector<query::Expression> owner_keys_;
  RowBatch selected_;  // One row of the tracer's own: values, then arguments.
  Group group_;
  Rows rows_;  // Of Shape::Events.
  std::unique_ptr<Select> select_;
  std::unique_ptr<Filter> filter_;  // Null when all filters are in the probes.
};

}  // namespace clew::answer

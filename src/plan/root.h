// SPDX-License-Identifier: Apache-2.0
// The root of a plan: what stands behind the merge. Takes cells and events as words, gives rows of
// values: columns, having, order, take.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "aggregate/accumulator.h"
#include "aggregate/table.h"
#include "base/error.h"
#include "collect/event_batch.h"
#include "plan/capture.h"
#include "plan/lower.h"
#include "plan/open_call.h"
#include "plan/plan.h"
#include "plan/sites.h"

namespace clew::plan {

// What words mean that only the tracer can tell. `process` is abi::SlotControl::process.
class Names {
 public:
  Names() = default;
  Names(const Names&) = delete;
  Names& operator=(const Names&) = delete;
  virtual ~Names() = default;

  virtual std::string function(uint64_t index) = 0;
  virtual std::string module(uint64_t index) = 0;
  virtual std::string probe(uint64_t index) = 0;
  virtual int64_t pid(uint64_t process) = 0;
  virtual std::string process_name(uint64_t process) = 0;
  virtual std::string thread_name(uint64_t process, uint64_t tid) = 0;
  virtual std::string host() = 0;
  virtual std::string symbol(uint64_t address) = 0;
};

class Root {
 public:
  // Borrows all of them. Errors: InvalidQuery for what the tracer cannot compute either.
  static Expected<Root> make(const Plan& plan, const Lowered& lowered, const Grouping& grouping,
                             Names& names);
  // Over events that hold what `captured` says (plan/held.h).
  static Root over(const Plan& plan, const Lowered& lowered, const Grouping& grouping, Names& names,
                   Captured captured);

  [[nodiscard]] const query::Query& query() const { return query_; }
  [[nodiscard]] const std::vector<aggregate::Column>& columns() const { return columns_; }

  // Shape::Groups. The table of what probes have counted, …
  aggregate::Table table_of(const aggregate::Accumulator& cells);
  // … or, for plans that group behind the merge, of what events have brought so far.
  [[nodiscard]] const aggregate::Table& counted() const { return counted_; }
  void forget_counted();
  // How many events have been counted so far, those forgotten included.
  [[nodiscard]] uint64_t passed() const { return passed_; }
  // The answer: columns, having, order, take.
  std::vector<aggregate::Row> rows(const aggregate::Table& table);

  // Takes one event. Shape::Events: its row, or none when a filter removes it.
  std::vector<aggregate::Row> take(const collect::Event& event);
  // The same for a source that fires in the tracer.
  std::vector<aggregate::Row> fire(uint16_t source, int64_t monotonic_ns);
  // The same for a call that is open at the end, of which `query` says what is computed, as it is
  // written. Nothing: memory that it needs cannot be read.
  std::optional<std::vector<aggregate::Row>> take_open(const query::Query& query,
                                                       const OpenCall& call, ProcessMemory& memory);

 private:
  Root(const Plan& plan, const Lowered& lowered, const Grouping& grouping, Names& names);

  class EventBindings;
  class RowBindings;
  class HostBindings;
  class OpenBindings;

  void make_columns();
  [[nodiscard]] aggregate::Column column_of(const query::NamedExpression& column) const;
  // Enumerations and symbols stay numbers: expressions compute with them.
  aggregate::Value decode(const query::Expression& meaning, std::span<const uint64_t> words,
                          uint64_t process);
  // As a part of a key: code addresses differ from process to process, names do not.
  aggregate::Value key_of(aggregate::Value value, const query::Type& type);
  // The enumerator's name for a value of an enumeration; last, since conditions compare numbers.
  [[nodiscard]] aggregate::Value named(aggregate::Value value, const query::Type& type) const;
  aggregate::Value decode_field(query::Field field, uint64_t word, uint64_t process);
  aggregate::Row project(const aggregate::Row& row);
  [[nodiscard]] aggregate::Value wall_clock(const aggregate::Value& monotonic) const;
  void add_dense(const aggregate::Accumulator& cells, uint32_t process, aggregate::Table& table);
  void add_table(const aggregate::Accumulator& cells, uint32_t process, aggregate::Table& table);
  // Adds an event to `counted_`, or gives its row.
  std::vector<aggregate::Row> count_or_emit(aggregate::Row values,
                                            std::span<const aggregate::Value> arguments);
  [[nodiscard]] size_t top_index() const;
  [[nodiscard]] std::vector<aggregate::Row> row_of_nothing() const;

  const query::Query& query_;
  const Lowered& lowered_;
  const Grouping& grouping_;
  Names& names_;
  Captured captured_;
  std::vector<aggregate::Column> columns_;
  aggregate::TableSchema schema_;
  aggregate::Table counted_;
  uint64_t passed_ = 0;
};

}  // namespace clew::plan

// SPDX-License-Identifier: Apache-2.0
// Query -> Plan: the operators that an event passes, in order, and the tier on which each runs.
//
// The plain plan merges the events of all probes and threads at the node and does all work there.
// Fay's four rewrites (Fay, figure 10) move work in front of the merge, one file each:
//     rewrite_filter.cc     Filter . Merge            = Merge . Filter
//     rewrite_select.cc     Select . Merge            = Merge . Select
//     rewrite_group.cc      Group . Merge             = FinalGroup . Merge . PartialGroup
//     rewrite_aggregate.cc  Aggregate . Merge         = FinalAggregate . Merge . PartialAggregate
//                           (a count becomes a sum of counts)
// Each is tested to give the same rows as the plain plan on random events. What a probe cannot
// compute (patterns, floating point) stays behind the merge.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "plan/in_place.h"
#include "query/query.h"

namespace clew::plan {

enum class Tier : uint8_t {
  Probe,    // At the hit, in the thread.
  Process,  // Over the threads of a process, from shared memory.
  Node,     // Over all processes of the machine: the root, without a cluster.
};

enum class OperatorKind : uint8_t {
  Filter,            // query.where[index]
  Select,            // query.values[index]
  Merge,             // The union of the streams of all probes and threads.
  Aggregate,         // One group of everything.
  PartialAggregate,  // … of one thread,
  FinalAggregate,    // … and the merge of those.
  Group,             // Cells by key.
  PartialGroup,
  FinalGroup,
  Having,   // query.having
  Order,    // query.order
  Take,     // query.take
  Columns,  // query.columns
};

struct Operator {
  OperatorKind kind = OperatorKind::Merge;
  Tier tier = Tier::Node;
  uint16_t index = 0;

  bool operator==(const Operator&) const = default;
};

struct Plan {
  query::Query query;
  std::vector<Operator> operators;
  Contexts contexts{};  // Of a query with joins in place.

  [[nodiscard]] bool has(OperatorKind kind) const;
  // Position of the merge: what stands before it runs in probes.
  [[nodiscard]] size_t merge_position() const;
  // Whether the operator stands before the merge.
  [[nodiscard]] bool pushed(OperatorKind kind, uint16_t index) const;
  // The conditions that programs compute: of those in front of the merge all that hold at some hits
  // of a site and not at others. Sites that fail the others are not armed.
  [[nodiscard]] std::vector<const query::Expression*> program_filters() const;
};

// The plan without any rewrite.
Plan plain(query::Query query);
// The plan that runs: all rewrites, until none applies.
Plan make(query::Query query);

// What the rewrites do. The first operator of `kind` behind the merge that can moves in front of
// it.
bool push_first(Plan& plan, OperatorKind kind, const std::function<bool(const Operator&)>& can);
// `whole` becomes `partial` in the probes and `rest` behind the merge, on the process tier.
struct Split {
  OperatorKind whole;
  OperatorKind partial;
  OperatorKind rest;
};
bool split_first(Plan& plan, const Split& split);

// The rewrites. Each applies once and says whether it did.
bool rewrite_filter(Plan& plan);
bool rewrite_select(Plan& plan);
// Only where what remains is counted in front of the merge.
bool rewrite_owners(Plan& plan);
bool rewrite_group(Plan& plan);
bool rewrite_aggregate(Plan& plan);

// Whether a probe of each source can compute (or store) the expression, its lets included.
bool all_probes_can(const query::Query& query, const query::Expression& expression);
bool all_probes_can_store(const query::Query& query, const query::Expression& expression);
// True when it has one value per site: the names of function, module and probe, and constants.
bool is_site_constant(const query::Query& query, const query::Expression& expression);
// The conditions in front of the merge that no program computes: cells that fail them are left out.
bool is_cell_filter(const query::Query& query, const query::Expression& condition);
std::vector<const query::Expression*> cell_filters(const Plan& plan);
// In the kernel, which does not count by process: fields of owners that those are about, one for
// each word (kernel_form.h). They stand behind the key of a cell.
std::vector<query::Expression> owner_keys(const Plan& plan);
// pid, procName, host: one value per process.
bool is_process_constant(const query::Expression& expression);
// Whether the node by itself, without its operands, takes nothing from an event but fields: no
// memory, no draw, no result of another operator.
bool takes_only_fields(const query::Expression& node);
// True when every key is known before any hit: constant per site or per process.
bool keys_known_before(const query::Query& query);
// Whether all inputs of the grouping stage are computed before the merge and can be counted there.
bool can_group_in_probes(const Plan& plan);

// One line per operator, from the probe to the answer. `part`: what has state of its own.
std::string print(const Plan& plan, std::string_view part = "thread");

}  // namespace clew::plan

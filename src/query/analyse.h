// SPDX-License-Identifier: Apache-2.0
// Syntax tree -> Build: the steps of a query are followed in order, with the row that flows through
// them as a symbolic Value. What comes out holds expressions over events, keys and aggregates
// mixed; query/normalise.h takes them apart.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "query/build.h"
#include "query/evaluator.h"
#include "query/syntax.h"
#include "query/value.h"

namespace clew::query {

// What the steps of a query amount to. Expressions may hold events, Let and Aggregate nodes.
struct Analysed {
  bool is_grouped = false;
  std::vector<NamedExpression> keys;
  std::vector<NamedExpression> columns;
  std::vector<Expression> having;
  std::vector<OrderBy> order;
  std::vector<Query> clustered;  // Whose rows these are, with `clustering` begun: at most one.
};

class Analyser {
 public:
  // The first `visible` definitions can be named. All must outlive the analyser.
  Analyser(Build& build, std::span<const SyntaxDefinition> visible)
      : build_(build), visible_(visible), evaluator_(build, scope_) {}

  Expected<Analysed> run(const SyntaxQuery& query);

 private:
  // --- analyse.cc
  Expected<void> constants();
  Expected<void> begin(const SyntaxQuery& query);
  Expected<bool> begin_with_query(const SyntaxQuery& query);
  Expected<void> steps(const SyntaxQuery& query);
  Expected<void> step(const Step& step);
  Expected<void> in_lambda(const Step& step);
  Expected<void> where(const Step& step);
  Expected<void> where_conjunct(const SyntaxExpression& syntax);
  Expected<bool> take_deadline(const SyntaxExpression& syntax);
  Expected<void> let(const Step& step);
  Expected<void> select(const Step& step);
  Expected<Value> projected(const Step& step);
  Expected<void> group_by_row(const Value& row, Span span);
  Expected<void> order(const Step& step);
  Expected<void> window(const Step& step);
  Expected<void> distinct(const Step& step);
  Expected<void> finish();
  Expected<void> add_columns(const std::string& name, const Value& value);
  [[nodiscard]] Expected<void> check_before_order(const Step& step, std::string_view what) const;
  void set_row(Value row);
  Value shared(Value value, const std::string& name);
  [[nodiscard]] std::string free_name(std::string_view wanted) const;

  // --- analyse_group.cc
  Expected<void> group(const Step& step);
  Expected<void> group_by(const Step& step);
  Expected<void> aggregate_chain(const Step& step);
  Expected<void> fold(const Step& step);
  Expected<void> add_key(const std::string& name, const Value& value, Span span);

  // --- analyse_clusters.cc
  Expected<void> begin_with_clusters(const SyntaxSource& source);
  [[nodiscard]] Expected<void> check_clustered(const Query& query,
                                               const SyntaxSource& source) const;
  [[nodiscard]] Expected<uint16_t> column_of(const Query& query, const SyntaxItem& wanted) const;
  [[nodiscard]] Expected<uint16_t> scalar_column(const Query& query,
                                                 const SyntaxItem& wanted) const;
  [[nodiscard]] Expected<Value> clustered_row(const Query& query,
                                              const SyntaxClusters& clusters) const;

  // --- analyse_window.cc
  Expected<void> time_window(const Step& step);
  [[nodiscard]] Expected<void> check_window(const Step& step) const;
  [[nodiscard]] Expected<void> check_window_used() const;
  [[nodiscard]] Names window_names() const;
  Expected<void> show_window();

  // --- analyse_join.cc
  Expected<void> join(const Step& step);
  [[nodiscard]] Expected<void> check_join(const Step& step) const;
  [[nodiscard]] Expected<void> check_kind(const Step& step, bool is_by_cause) const;
  Expected<uint16_t> later_stream(const Step& step);
  Expected<uint16_t> later_in_row(const Step& step);
  Expected<void> join_sources(const Step& step, Join& join);

  // --- analyse_join_time.cc
  Expected<void> join_by_time(const Step& step);
  Expected<Within> within(const Step& step, uint16_t joined, uint16_t& other);
  Expected<std::vector<Expression>> join_key(const Step& step, const SyntaxItem& key,
                                             bool is_joined);
  Expected<void> add_equal(const Step& step, std::vector<Expression> pair, uint16_t joined,
                           Within& within, std::optional<uint16_t>& other);
  // Of one type each: the earlier event's, and the joined one's. `what`: what messages call them.
  Expected<void> add_pair(std::vector<Expression> pair, std::string_view what, Within& within);
  Expected<std::optional<uint16_t>> stream_of_key(const Expression& key);
  Expected<void> expand_lets(Expression& key);

  // --- analyse_outstanding.cc
  [[nodiscard]] Expected<std::optional<SyntaxOutstanding>> outstanding_of(
      const SyntaxQuery& query) const;
  Expected<void> add_end(const SyntaxQuery& query, const SyntaxOutstanding& what);
  Expected<void> add_outstanding_key(const SyntaxEquals& key, bool is_named, Within& within);
  [[nodiscard]] Expected<void> check_outstanding(const Step& step, std::string_view instead) const;

  // --- analyse_join.cc
  Expected<void> with_cause(const Step& step);
  [[nodiscard]] Expected<void> check_cause() const;
  Expected<void> join_query(const Step& step, Join& join, const SyntaxQuery& query, size_t visible);
  Expected<void> add_stream(const std::string& name, const std::vector<SyntaxSource>& sources);
  [[nodiscard]] const SyntaxDefinition* find_definition(std::string_view name) const;
  [[nodiscard]] std::vector<std::string_view> definition_names() const;

  Build& build_;
  std::span<const SyntaxDefinition> visible_;
  Names scope_;
  Evaluator evaluator_;
  Value row_;             // What flows to the next step.
  bool has_row_ = false;  // A select has made it; until then it is the event or the group.
  Span row_span_;         // Of what made the row.
  std::string row_name_;  // Of the column, when the row is one value.
  Span cause_span_;       // Of `with cause`.
  Span window_span_;      // Of `window`.
  Analysed result_;
};

// The query whose rows were clustered, with what was said of the clusters.
Expected<Query> with_clusters(Query clustered, Query said, const Reporter& report);

}  // namespace clew::query

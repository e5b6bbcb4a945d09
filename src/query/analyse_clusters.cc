// SPDX-License-Identifier: Apache-2.0
// k-means over the rows of a query: which columns are meant, and what its own rows have.
#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "query/analyse.h"
#include "query/arithmetic.h"
#include "query/evaluator.h"
#include "query/fields.h"
#include "query/normalise.h"
#include "query/token.h"

namespace clew::query {
namespace {

constexpr std::array<std::string_view, kClusterColumns> kOwnNames = {"cluster", "distance",
                                                                     "centre", "difference"};

Type type_of(ClusterColumn column) {
  switch (column) {
    case ClusterColumn::Cluster:
      return {.kind = TypeKind::Integer, .size_bytes = 8, .is_signed = true};
    case ClusterColumn::Distance:
      return {.kind = TypeKind::Float, .size_bytes = 8, .is_signed = false};
    case ClusterColumn::Centre:
    case ClusterColumn::Difference:
      break;
  }
  return {.kind = TypeKind::String,
          .size_bytes = 0,
          .is_signed = false,
          .capacity_bytes = kKeyStringMaxBytes};
}

// Of "window.start" the first word.
std::string first_word(const std::string& name) {
  return name.substr(0, name.find('.'));
}

Expression column_value(size_t index, const Type& type, Span span) {
  Expression value;
  value.kind = ExpressionKind::Value;
  value.index = static_cast<uint16_t>(index);
  value.type = type;
  value.span = span;
  return value;
}

}  // namespace

// from c in kmeans(…): its rows are what flows from here on.
Expected<void> Analyser::begin_with_clusters(const SyntaxSource& source) {
  const SyntaxClusters& clusters = source.clusters[0];
  Query query = CLEW_TRY(
      analyse_query(source.query[0], visible_, build_.report, build_.environment, build_.limits));
  CLEW_TRY(check_clustered(query, source));
  Clustering made;
  made.clusters = static_cast<uint32_t>(clusters.clusters);
  for (const SyntaxItem& by : clusters.by) {
    made.by.push_back(CLEW_TRY(scalar_column(query, by)));
    made.names.push_back(first_word(query.columns[made.by.back()].name));
  }
  made.names.insert(made.names.end(), kOwnNames.begin(), kOwnNames.end());
  made.of = CLEW_TRY(scalar_column(query, clusters.of));
  made.value = CLEW_TRY(scalar_column(query, clusters.value));
  const Type& amount = query.columns[made.value].expression.type;
  if (amount.kind != TypeKind::Integer && amount.kind != TypeKind::Float) {
    return build_.report.fail(
        clusters.value.name_span,
        fmt::format("an amount is a number, and '{}' is {}", clusters.value.name, name_of(amount)));
  }
  query.clustering = std::move(made);
  row_span_ = source.span;
  set_row(CLEW_TRY(clustered_row(query, clusters)));
  result_.clustered.push_back(std::move(query));
  result_.is_grouped = true;  // What follows is about rows.
  return {};
}

Expected<void> Analyser::check_clustered(const Query& query, const SyntaxSource& source) const {
  if (query.clustering) return build_.report.fail(source.span, "these are clusters already");
  if (query.shape != Shape::Groups) {
    return build_.report.fail(source.span,
                              "k-means takes rows of a query with groups, such as how often each "
                              "function was called in each second");
  }
  if (!query.every_ns) return {};
  return build_.report.fail(source.span,
                            "clusters are of all intervals at once: in the query that is "
                            "clustered, write 'window tumbling' instead of 'every', and use "
                            "window.start");
}

// By its name, or "window.start" by "window".
Expected<uint16_t> Analyser::column_of(const Query& query, const SyntaxItem& wanted) const {
  std::vector<std::string_view> names;
  for (size_t i = 0; i < query.columns.size(); ++i) {
    if (query.columns[i].name == wanted.name) return static_cast<uint16_t>(i);
    names.push_back(query.columns[i].name);
  }
  for (size_t i = 0; i < query.columns.size(); ++i) {
    if (query.columns[i].name.starts_with(wanted.name + ".")) return static_cast<uint16_t>(i);
  }
  return build_.report.fail(
      wanted.name_span,
      fmt::format("the query that is clustered has no column '{}' (it has {}){}", wanted.name,
                  fmt::join(names, ", "), did_you_mean(wanted.name, names)));
}

Expected<uint16_t> Analyser::scalar_column(const Query& query, const SyntaxItem& wanted) const {
  const uint16_t column = CLEW_TRY(column_of(query, wanted));
  const Expression& expression = query.columns[column].expression;
  const bool is_histogram = expression.kind == ExpressionKind::Aggregate &&
                            is_histogram_kind(query.aggregates[expression.index].function);
  if (!is_histogram && expression.type.kind != TypeKind::Stack) return column;
  return build_.report.fail(wanted.name_span,
                            fmt::format("'{}' is not one value, but {}", wanted.name,
                                        is_histogram ? "a list of them" : "a stack"));
}

Expected<Value> Analyser::clustered_row(const Query& query, const SyntaxClusters& clusters) const {
  const Clustering& clustering = *query.clustering;
  Value row = value_of_kind(Value::Kind::Record);
  for (size_t i = 0; i < clustering.names.size(); ++i) {
    const std::string& name = clustering.names[i];
    const bool is_by = i < clustering.by.size();
    const Span span = is_by ? clusters.by[i].name_span : row_span_;
    const bool is_taken =
        std::any_of(row.members.begin(), row.members.end(),
                    [&](const NamedValue& member) { return member.name == name; });
    if (is_taken)
      return build_.report.fail(row_span_, fmt::format("two columns are named '{}'", name));
    const Type type = is_by ? query.columns[clustering.by[i]].expression.type
                            : type_of(static_cast<ClusterColumn>(i - clustering.by.size()));
    row.members.push_back({.name = name, .value = scalar_value(column_value(i, type, span))});
  }
  return row;
}

Expected<Query> with_clusters(Query clustered, Query said, const Reporter& report) {
  const Span span = said.columns[0].expression.span;
  if (!said.aggregates.empty()) {
    return report.fail(said.aggregates[0].span,
                       "clusters are not counted: what follows k-means is 'where', 'select', "
                       "'orderby' and 'take'");
  }
  if (said.every_ns || said.for_events) {
    return report.fail(span,
                       "clusters are there when all is: 'every' and 'for N events' have no "
                       "meaning behind k-means");
  }
  Clustering& clustering = *clustered.clustering;
  clustering.columns = std::move(said.columns);
  clustering.having = std::move(said.having);
  clustering.order = std::move(said.order);
  clustering.take = said.take;
  if (said.for_ns)
    clustered.for_ns = std::min(clustered.for_ns.value_or(*said.for_ns), *said.for_ns);
  clustered.including_open = clustered.including_open || said.including_open;
  return clustered;
}

}  // namespace clew::query

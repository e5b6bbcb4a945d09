// SPDX-License-Identifier: Apache-2.0
// k-means: a source that is made from a query.
//
//     clusters := "kmeans" "(" INT "," (dotted | "(" query ")") ","
//                 "by" (columns | "new" "{" columns "}") "," "of" column "," "value" column ")"
//     columns  := column { "," column }          column := NAME { "." NAME } | STRING
//     chain    := … ".KMeans" "(" INT "," r => new { r.a, r.b } "," r => r.c "," r => r.d ")"
#include <fmt/format.h>

#include "query/parser.h"

namespace clew::query {
namespace {

constexpr std::string_view kHow =
    "as in kmeans(5, calls, by new { host, window }, of probe, value n)";

// r.a.b, of a parameter r: "a.b"; empty: it is something else.
std::string path_of(const SyntaxExpression& expression, const std::string& parameter) {
  if (expression.kind != SyntaxKind::Member || expression.kids.empty()) return {};
  const SyntaxExpression& from = expression.kids[0];
  if (from.kind == SyntaxKind::Name && from.text == parameter) return expression.text;
  const std::string outer = path_of(from, parameter);
  return outer.empty() ? "" : fmt::format("{}.{}", outer, expression.text);
}

}  // namespace

bool Parser::at_clusters() const {
  return at_word("kmeans") && at_symbol("(", 1);
}

Expected<void> Parser::clusters_count(SyntaxClusters& clusters) {
  take();  // kmeans
  take();  // (
  clusters.clusters_span = peek().span;
  clusters.clusters = CLEW_TRY(positive_integer(fmt::format("of clusters first, {}", kHow)));
  if (clusters.clusters <= kClustersMax) return {};
  return report_.fail(clusters.clusters_span, fmt::format("at most {} clusters", kClustersMax));
}

Expected<SyntaxSource> Parser::clusters() {
  SyntaxClusters made;
  CLEW_TRY(clusters_count(made));
  CLEW_TRY(expect_symbol(",", fmt::format("and a query, {}", kHow)));
  SyntaxSource clustered = CLEW_TRY(source());
  SyntaxSource result;
  if (clustered.query.empty() || !clustered.clusters.empty()) {
    SyntaxQuery query;
    query.span = clustered.span;
    query.sources.push_back(std::move(clustered));
    result.query.push_back(std::move(query));
  } else {
    result.query = std::move(clustered.query);
  }
  CLEW_TRY(expect_symbol(",", fmt::format("and 'by', {}", kHow)));
  CLEW_TRY(expect_word("by", fmt::format("and what one vector is of, {}", kHow)));
  CLEW_TRY(cluster_columns(made.by));
  CLEW_TRY(expect_symbol(",", fmt::format("and 'of', {}", kHow)));
  CLEW_TRY(expect_word("of", fmt::format("and the column of its terms, {}", kHow)));
  made.of = CLEW_TRY(cluster_column("a column after 'of'"));
  CLEW_TRY(expect_symbol(",", fmt::format("and 'value', {}", kHow)));
  CLEW_TRY(expect_word("value", fmt::format("and the column of amounts, {}", kHow)));
  made.value = CLEW_TRY(cluster_column("a column after 'value'"));
  CLEW_TRY(expect_symbol(")", "at the end of kmeans(…)"));
  result.clusters.push_back(std::move(made));
  return result;
}

Expected<void> Parser::cluster_columns(std::vector<SyntaxItem>& columns) {
  const bool is_record = at_word("new") && at_symbol("{", 1);
  if (is_record) {
    take();
    take();
  }
  do {
    columns.push_back(CLEW_TRY(cluster_column("a column after 'by'")));
    if (!is_record && at_symbol(",") && at_word("of", 1)) break;
  } while (take_symbol(","));
  return is_record ? expect_symbol("}", "after the columns") : Expected<void>{};
}

Expected<SyntaxItem> Parser::cluster_column(std::string_view what) {
  if (peek().kind != TokenKind::Name && peek().kind != TokenKind::String)
    return fail_expected(what);
  SyntaxItem column;
  const Token first = take();
  column.name = first.kind == TokenKind::String ? first.value : std::string(first.text);
  column.name_span = first.span;
  while (first.kind == TokenKind::Name && at_symbol(".") && peek(1).kind == TokenKind::Name) {
    take();
    column.name += fmt::format(".{}", take().text);
  }
  column.name_span.end = end_of_previous();
  return column;
}

// KMeans(5, r => new { r.host, r.window }, r => r.probe, r => r.n): of the query so far.
Expected<void> Parser::clusters_method(SyntaxQuery& query) {
  SyntaxClusters made;
  const uint32_t begin = peek().span.begin;
  CLEW_TRY(clusters_count(made));
  constexpr std::string_view kBy = "what one vector is of, such as r => new { r.host, r.window }";
  constexpr std::string_view kOf = "the column of its terms, such as r => r.probe";
  constexpr std::string_view kValue = "the column of amounts, such as r => r.n";
  made.by = CLEW_TRY(lambda_columns(kBy));
  for (const auto& [item, what] : {std::pair(&made.of, kOf), std::pair(&made.value, kValue)}) {
    std::vector<SyntaxItem> columns = CLEW_TRY(lambda_columns(what));
    if (columns.size() != 1)
      return report_.fail(columns[0].name_span, fmt::format("expected {}", what));
    *item = std::move(columns[0]);
  }
  CLEW_TRY(expect_symbol(")", "at the end of KMeans(…)"));
  SyntaxSource source;
  source.span = span_from(begin);
  query.span = {query.sources[0].span.begin, begin};
  source.query.push_back(std::move(query));
  source.clusters.push_back(std::move(made));
  query = {};
  query.sources.push_back(std::move(source));
  return {};
}

Expected<std::vector<SyntaxItem>> Parser::lambda_columns(std::string_view what) {
  CLEW_TRY(expect_symbol(",", fmt::format("and {}", what)));
  const SyntaxExpression lambda = CLEW_TRY(expression());
  if (lambda.kind != SyntaxKind::Lambda || lambda.names.size() != 1)
    return report_.fail(lambda.span, fmt::format("expected {}", what));
  const SyntaxExpression& body = lambda.kids[0];
  std::vector<SyntaxItem> columns;
  const auto add = [&](const SyntaxExpression& part) {
    columns.push_back({.name = path_of(part, lambda.names[0]), .name_span = part.span});
  };
  if (body.kind == SyntaxKind::New) {
    for (const SyntaxExpression& part : body.kids)
      add(part);
  } else {
    add(body);
  }
  for (const SyntaxItem& column : columns) {
    if (column.name.empty())
      return report_.fail(column.name_span, fmt::format("expected {}", what));
  }
  return columns;
}

}  // namespace clew::query

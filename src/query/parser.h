// SPDX-License-Identifier: Apache-2.0
// Tokens -> syntax tree, by recursive descent. One class, one file per part of the grammar:
// parse_text.cc (definitions), parse_clauses.cc, parse_chain.cc, parse_source.cc,
// parse_expression.cc. It stops at the first error.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "query/diagnostic.h"
#include "query/syntax.h"
#include "query/token.h"

namespace clew::query {

class Parser {
 public:
  // `tokens` ends with End. The reporter must outlive the parser.
  Parser(const Reporter& report, std::vector<Token> tokens)
      : report_(report), tokens_(std::move(tokens)) {}

  Expected<SyntaxText> text();
  // One expression and nothing behind it.
  Expected<SyntaxExpression> whole_expression();

 private:
  // Restores the depth of nesting at the end of a block.
  class Nesting {
   public:
    explicit Nesting(unsigned& depth) : depth_(depth) { ++depth_; }
    ~Nesting() { --depth_; }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;

   private:
    unsigned& depth_;
  };

  // --- tokens
  [[nodiscard]] const Token& peek(size_t ahead = 0) const;
  [[nodiscard]] bool at_symbol(std::string_view symbol, size_t ahead = 0) const;
  [[nodiscard]] bool at_word(std::string_view word, size_t ahead = 0) const;
  [[nodiscard]] bool at_end() const { return peek().kind == TokenKind::End; }
  Token take() { return tokens_[at_ + 1 < tokens_.size() ? at_++ : at_]; }
  bool take_symbol(std::string_view symbol);
  bool take_word(std::string_view word);
  [[nodiscard]] uint32_t end_of_previous() const;
  [[nodiscard]] Span span_from(uint32_t begin) const { return {begin, end_of_previous()}; }
  [[nodiscard]] tl::unexpected<Error> fail_here(std::string_view message) const;
  [[nodiscard]] tl::unexpected<Error> fail_expected(std::string_view what) const;
  Expected<void> expect_symbol(std::string_view symbol, std::string_view context);
  Expected<void> expect_word(std::string_view word, std::string_view context);
  Expected<Token> expect_name(std::string_view what);
  // A name that expressions will use: no keyword.
  Expected<Token> expect_new_name(std::string_view what);
  [[nodiscard]] Expected<void> check_nesting() const;

  // --- parse_text.cc
  [[nodiscard]] bool at_definition() const;
  Expected<SyntaxDefinition> definition();
  Expected<SyntaxQuery> query();
  [[nodiscard]] Expected<void> check_order() const;
  [[nodiscard]] tl::unexpected<Error> fail_trailing() const;

  // --- parse_clauses.cc
  Expected<SyntaxQuery> clauses();
  Expected<bool> clause(SyntaxQuery& query);
  Expected<void> one_clause(SyntaxQuery& query);
  Expected<Step> where_step();
  Expected<Step> let_step();
  Expected<Step> group_step();
  Expected<Step> group_into(Step step);
  Expected<Step> select_step();
  Expected<Step> order_step();
  Expected<Step> take_step();
  Expected<Step> every_step();
  Expected<Step> window_step();
  Expected<uint64_t> late_duration();
  Expected<Step> for_step();
  Expected<Step> including_step();
  Expected<Step> join_step();
  Expected<Step> join_by_time(Step step);
  Expected<SyntaxItem> join_key();
  Expected<void> join_times(Step& step);
  Expected<Step> with_step();
  Expected<causal::EdgeClass> cause_class(std::string_view context);
  Expected<Step> from_step();
  Expected<void> join_sources(Step& step);
  Expected<bool> filtered_sources(Step& step);
  Expected<SyntaxItem> select_item();
  Expected<SyntaxItem> plain_item();
  Expected<uint64_t> positive_duration(std::string_view context);
  Expected<uint64_t> positive_integer(std::string_view context);
  Expected<void> add_step(SyntaxQuery& query, Expected<Step> step);

  // --- parse_chain.cc
  Expected<SyntaxQuery> chain();
  Expected<void> chain_methods(SyntaxQuery& query);
  Expected<Step> method();
  Expected<Step> method_arguments(Step step);
  Expected<Step> window_method(Step step);
  Expected<Step> time_window_method(Step step);
  Expected<Step> group_method(Step step);
  Expected<Step> join_method(Step step);
  Expected<Step> join_by_time_method(Step step);
  Expected<SyntaxItem> key_lambda(std::string_view what);
  Expected<void> join_method_sources(Step& step);
  Expected<Step> lambda_step(Step step, SyntaxExpression lambda);

  // --- parse_clusters.cc
  [[nodiscard]] bool at_clusters() const;
  Expected<SyntaxSource> clusters();
  Expected<void> clusters_method(SyntaxQuery& query);
  Expected<void> clusters_count(SyntaxClusters& clusters);
  Expected<void> cluster_columns(std::vector<SyntaxItem>& columns);
  Expected<SyntaxItem> cluster_column(std::string_view what);
  Expected<std::vector<SyntaxItem>> lambda_columns(std::string_view what);

  // --- parse_outstanding.cc
  [[nodiscard]] bool at_outstanding() const;
  Expected<SyntaxSource> outstanding();
  Expected<SyntaxEquals> outstanding_key();
  Expected<void> one_in(SyntaxSource& source);

  // --- parse_source.cc
  Expected<std::vector<SyntaxSource>> sources();
  Expected<void> add_source(std::vector<SyntaxSource>& sources);
  Expected<SyntaxSource> source();
  Expected<SyntaxSource> source_head();
  Expected<SyntaxSource> scoped_source(Scope scope);
  Expected<SyntaxSource> named_source();
  static bool is_recording(std::string_view name);
  void recorded_event(SyntaxSource& source);
  Expected<void> source_tail(SyntaxSource& source);
  Expected<void> export_list(SyntaxSource& source);
  Expected<std::vector<SyntaxExpression>> arguments();

  // --- parse_expression.cc
  Expected<SyntaxExpression> expression();
  Expected<SyntaxExpression> binary_expression(Precedence least);
  Expected<SyntaxExpression> binary_tail(SyntaxExpression left, Precedence least);
  Expected<SyntaxExpression> membership(SyntaxExpression left);
  Expected<SyntaxExpression> unary();
  Expected<SyntaxExpression> postfix();
  Expected<SyntaxExpression> postfix_tail(SyntaxExpression left);
  Expected<SyntaxExpression> primary();
  Expected<SyntaxExpression> literal();
  Expected<SyntaxExpression> lambda();
  Expected<SyntaxExpression> new_record();
  Expected<SyntaxExpression> cast();
  Expected<SyntaxType> type_name();
  [[nodiscard]] bool at_cast() const;
  [[nodiscard]] bool starts_operand(size_t ahead) const;
  [[nodiscard]] bool at_lambda() const;
  Expected<SyntaxExpression> node(SyntaxKind kind, uint32_t begin,
                                  std::vector<SyntaxExpression> kids);

  const Reporter& report_;
  std::vector<Token> tokens_;
  size_t at_ = 0;
  unsigned nesting_ = 0;
};

// Whether a word begins a clause, so that an expression ends before it.
bool is_clause_word(std::string_view word);
// Whether a word is part of a C type's name: int, unsigned, uint32_t, struct, …
bool is_type_word(std::string_view word);

}  // namespace clew::query

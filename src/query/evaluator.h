// SPDX-License-Identifier: Apache-2.0
// Syntax -> Value: the meaning and the type of one expression. One class, one file per part:
// evaluate.cc (operators, names), evaluate_event.cc (what events export), evaluate_memory.cc
// (members, pointers, casts), evaluate_call.cc (functions, methods), evaluate_nothing.cc (what left
// joins did not find), evaluate_aggregate.cc.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "query/build.h"
#include "query/extension_source.h"
#include "query/syntax.h"
#include "query/value.h"

namespace clew::query {

struct ValueDefinition;

class Evaluator {
 public:
  Evaluator(Build& build, Names& scope) : build_(build), scope_(scope) {}

  // Whether count(), sum(…), … may appear.
  void allow_aggregates(bool allowed) { aggregates_allowed_ = allowed; }

  Expected<Value> evaluate(const SyntaxExpression& syntax);
  // The value as one expression; errors say what to do with an event, a record, a group.
  Expected<Expression> scalar(const SyntaxExpression& syntax);
  // The same, and an integer, as a condition needs it.
  Expected<Expression> condition(const SyntaxExpression& syntax);
  Expected<Expression> to_scalar(Value value, Span span);

  // sum, min, … of `value`, as a method that ends a chain uses them. `name` is as written.
  Expected<Expression> aggregate(std::string_view name, std::vector<Expression> arguments,
                                 Span span);
  // All that `select e` shows of an event.
  Expected<Value> default_columns(uint16_t stream, Span span);

 private:
  [[nodiscard]] Span at(Span span) const { return fixed_span_.value_or(span); }
  [[nodiscard]] tl::unexpected<Error> fail(Span span, std::string_view message) const;
  Expected<void> charge(const Expression& expression, Span span);
  Expected<Value> finish(Value value, Span span);

  // --- evaluate.cc
  Expected<Value> evaluate_node(const SyntaxExpression& syntax);
  Expected<Value> name(const SyntaxExpression& syntax);
  [[nodiscard]] const Value* find(std::string_view name) const;
  [[nodiscard]] tl::unexpected<Error> fail_unknown_name(const SyntaxExpression& syntax);
  Expected<Value> binary(const SyntaxExpression& syntax);
  Expected<Value> deadline_sum(const SyntaxExpression& syntax, const Value& deadline);
  Expected<Value> unary(const SyntaxExpression& syntax, UnaryOperator op);
  Expected<Value> conditional(const SyntaxExpression& syntax);
  Expected<Value> membership(const SyntaxExpression& syntax);
  Expected<Value> like(const SyntaxExpression& syntax);
  Expected<Value> record(const SyntaxExpression& syntax);
  Expected<Expression> number(const SyntaxExpression& syntax);
  Expected<Expression> operand_beside(const SyntaxExpression& syntax, const Expression& other);
  std::optional<Expression> enumerator(std::string_view name, const Expression& other, Span span);

  // --- evaluate_nothing.cc
  Expected<std::optional<Expression>> asks_for_nothing(const SyntaxExpression& syntax);

  // --- evaluate_event.cc
  Expected<Value> event_member(const Value& event, std::string_view name, Span span);
  // The names that can be written behind the event, and whether `name` is one.
  std::vector<std::string> names_of(const Value& event);
  [[nodiscard]] std::string shown_source(const ResolvedSource& source) const;
  bool exports(const Value& event, std::string_view name);
  bool has_own_export(const Value& event, std::string_view name);
  Expected<Value> age(Span span);
  Expected<Value> source_member(const Value& event, std::string_view name, Span span);
  Expected<Value> recording_member(const Value& event, std::string_view name, Span span);
  Expected<Value> exported(const Value& event, const Export& what, Span span);
  Expected<Value> field_of(const Value& event, Field field, uint16_t index, Span span);
  Expected<Value> argument(const Value& event, uint64_t index, Span span);
  Expected<Value> vector(const Value& event, std::string_view name, Span span);
  Expected<Value> entry_member(const Value& event, std::string_view name, Span span);
  Expected<Value> return_value(const Value& event, Span span);
  Expected<Value> parameter(const Value& event, std::string_view name, Span span);
  Expected<Value> typed_argument(const Value& event, const Parameter& parameter, Span span);
  Expected<Value> from_register(Expression raw, const CTypeRef& type, Span span);
  const Expected<std::vector<Parameter>>& parameters_of(const Value& event);
  // Of that name exactly; null: none, or they are not known.
  const Parameter* parameter_named(const Value& event, std::string_view name);
  [[nodiscard]] tl::unexpected<Error> fail_no_field(const Value& event, std::string_view name,
                                                    Span span);
  Expected<Value> per_source(const SyntaxExpression& syntax, std::string_view root,
                             const Value& event);
  Expected<Value> merge(const SyntaxExpression& syntax, uint16_t stream, std::vector<Value> values);
  [[nodiscard]] const SyntaxExpression* union_root(const SyntaxExpression& syntax) const;
  ResolvedSource& source_of(const Value& event);

  // --- evaluate_kernel.cc
  Expected<Value> kernel_member(const Value& event, std::string_view name, Span span);
  [[nodiscard]] Expression sampled_address(const Value& event, uint16_t index, Span span) const;
  Expected<Value> error_number(const Value& event, Span span);
  Expected<Value> recorded(const Value& event, const Parameter& field, Span span);
  [[nodiscard]] tl::unexpected<Error> fail_argument_count(const Value& event, Span span);

  // --- evaluate_memory.cc
  Expected<Value> member(const SyntaxExpression& syntax);
  Expected<Value> member_of(const Value& value, const SyntaxExpression& syntax);
  Expected<Value> register_member(const Value& value, const CMember& member, Span span);
  Expected<Value> c_member(const Value& value, std::string_view name, Span span);
  Expected<Value> read_place(Expression address, const CTypeRef& type, Span span);
  Expected<Value> read_bit_field(Expression address, const CMember& member, Span span);
  Expected<Value> index(const SyntaxExpression& syntax);
  Expected<Value> dereference(const SyntaxExpression& syntax);
  Expected<Value> address_of(const SyntaxExpression& syntax);
  Expected<Value> cast(const SyntaxExpression& syntax);
  Expected<Value> cast_to(Expression operand, const CTypeRef& type, Span span);
  Expected<Value> symbol_at(Expression address, Span span);
  Expected<Expression> address_of_value(Value value, Span span);
  Expected<Value> pointer_sum(const SyntaxExpression& syntax, Value pointer, Expression amount);
  Expected<Expression> offset_address(Expression address, Expression index, uint64_t scale,
                                      Span span);

  // --- evaluate_call.cc
  Expected<Value> function_call(const SyntaxExpression& syntax);
  Expected<Value> named_call(const SyntaxExpression& syntax, std::string_view name);
  Expected<Value> method_call(const SyntaxExpression& syntax);
  Expected<Value> event_method(const Value& event, const SyntaxExpression& syntax);
  Expected<Value> stack_call(const Value& event, Field field, const SyntaxExpression& syntax);
  Expected<Value> text_method(const SyntaxExpression& syntax);
  Expected<Value> deadline_method(const Value& deadline, const SyntaxExpression& syntax);
  Expected<Value> fay_call(const SyntaxExpression& syntax);
  Expected<Value> scalar_call(const SyntaxExpression& syntax, Function function);
  Expected<Expression> call_of(Function function, std::vector<Expression> operands, Span span);
  Expected<Expression> extreme_call(Function function, std::vector<Expression> operands, Span span);
  Expected<Expression> text_call(Function function, std::vector<Expression> operands, Span span);
  Expected<Expression> substring_call(std::vector<Expression> operands, Span span);
  Expected<Value> sample_call(const SyntaxExpression& syntax);
  Expected<Value> sketch_call(const SyntaxExpression& syntax);
  Expected<Value> fay_extension(const SyntaxExpression& syntax, std::string_view name);
  Expected<Value> extension_call(const SyntaxExpression& syntax, const ExtensionFunction& function);
  Expected<Expression> extension_argument(const SyntaxExpression& syntax,
                                          const ExtensionFunction& function, size_t index);
  const ExtensionFunction* find_extension(std::string_view name);
  Expected<Value> read_number(const SyntaxExpression& syntax, Type type);
  Expected<std::vector<Expression>> operands_of(const SyntaxExpression& syntax);
  Expected<int64_t> constant_of(const SyntaxExpression& syntax, std::string_view what);
  Expected<void> check_count(const SyntaxExpression& syntax, size_t least, size_t most);

  // --- evaluate_text.cc
  // None: no function of that name.
  Expected<std::optional<Value>> text_function(const SyntaxExpression& syntax,
                                               std::string_view name);
  Expected<Value> read_text(const SyntaxExpression& syntax, std::string_view name);
  // What is read at `address`, as the arguments behind it say: a length, a size, or both.
  Expected<Value> read_units(const SyntaxExpression& syntax, Expression address,
                             uint32_t unit_bytes, bool is_text);
  Expected<Expression> socket_address(const SyntaxExpression& syntax);
  Expected<Expression> printed(const SyntaxExpression& syntax);
  Expected<Expression> internet_address(const SyntaxExpression& syntax);
  // Of a vocabulary.
  Expected<Value> defined_value(const ValueDefinition& definition,
                                std::vector<NamedValue> arguments, Span span);
  // The text of a record, or of what a pointer to one points to, where a vocabulary knows it.
  Expected<std::optional<Value>> text_of_record(const Value& value, Span span);
  Expected<void> refuse_record(const Value& value, Span span);
  bool has_member(CTypeRef record, std::string_view path);
  CTypeRef record_of(const Value& value);

  // --- evaluate_aggregate.cc
  Expected<Value> aggregate_call(const SyntaxExpression& syntax, std::string_view name);
  Expected<Value> group_method(const Value& group, const SyntaxExpression& syntax);
  Expected<Value> count_where(const Value& group, const SyntaxExpression& lambda, Span span);
  Expected<Expression> lambda_scalar(const SyntaxExpression& lambda, const Value& element);
  Expected<void> set_parameters(Aggregate& aggregate, std::vector<Expression> extra);
  [[nodiscard]] Expected<void> check_orders(const Aggregate& aggregate) const;
  Expected<void> set_argument_type(Aggregate& aggregate);
  Expected<Expression> add_aggregate(Aggregate aggregate);
  [[nodiscard]] bool is_histogram(const Expression& expression) const;

  Build& build_;
  Names& scope_;
  bool aggregates_allowed_ = false;
  bool inside_aggregate_ = false;
  // While an export of a vocabulary is evaluated: where it was used, and whose export it is.
  std::optional<Span> fixed_span_;
  std::string context_;
  unsigned definitions_ = 0;             // How many of a vocabulary's values it is within.
  std::optional<Value> implicit_event_;  // Whose fields bare names are, in exports.
};

// Names that events of a source in the kernel export beside fields, arguments and those of a
// record.
std::span<const std::string_view> kernel_names(SourceKind kind);
// How many of arg0 and up they have.
uint16_t kernel_arguments(SourceKind kind);
// Functions that read text and bytes, and show them.
std::span<const std::string_view> text_functions();
// Whether `name` is an aggregating function.
bool is_aggregate_name(std::string_view name);
// Whether the result is no number: histograms, and the list of topk.
bool is_histogram_kind(AggregateFunction kind);
// A column's name when the query gives none: the last name of a member, `sum(delta)`, or the text.
std::string derived_name(const SyntaxExpression& syntax, std::string_view text);

}  // namespace clew::query

// SPDX-License-Identifier: Apache-2.0
// The parts of the checker that deal with expressions; each is a file of that name.
#pragma once

#include "query/d/check_context.h"

namespace clew::query::d::checking {

// Any expression as a value (check_expression.cc). What it yields may be of any type.
Compiled<void> check_expression(Context& context, Node& node);
// As above, and a translated object that nothing was selected of is expanded to all its members.
Compiled<void> check_value(Context& context, Node& node);
// The second half of check_value, of an expression that is checked.
Compiled<void> finish_value(Context& context, Node& node);
// Where an action would be part of an expression (check_expression.cc).
Compiled<void> refuse_action(const Node& node, std::string_view message);
// What stack() and its kin give, and aggregations.
Compiled<void> refuse_dynamic(const Context& context, const Node& node,
                              std::string_view shown_operator);
[[nodiscard]] bool is_element_of_aggregation(const Node& node);  // @a[1][2]
Failure many_dimensions(const Node& node);

// check_identifiers.cc
Compiled<void> check_identifier(Context& context, Node& node);
// Elements of associative arrays, built-in arrays and inlines with parameters; false: it is an
// element of a C array or pointer.
Compiled<bool> check_named_element(Context& context, Node& node);

// check_memory.cc
Compiled<void> check_member(Context& context, Node& node);
Compiled<void> check_element(Context& context, Node& node);
Compiled<void> check_dereference(Context& context, Node& node);
Compiled<void> check_address_of(Context& context, Node& node);
Compiled<void> check_size_of(Context& context, Node& node);
Compiled<void> check_offset_of(Context& context, Node& node);
[[nodiscard]] bool is_lvalue(const Node& node);
[[nodiscard]] bool is_writable(const Node& node);

// check_operators.cc
Compiled<void> check_unary(Context& context, Node& node);
Compiled<void> check_binary(Context& context, Node& node);
// Of two operands that are checked already.
Compiled<void> check_binary_operands(Context& context, Node& node);
Compiled<void> check_conditional(Context& context, Node& node);
Compiled<void> check_cast(Context& context, Node& node);
Compiled<void> check_string_of(Context& context, Node& node);

// check_assignment.cc
Compiled<void> check_assignment(Context& context, Node& node);
Compiled<void> check_increment(Context& context, Node& node);

// check_calls.cc: subroutines, and functions like stack() where they stand in expressions.
Compiled<void> check_call(Context& context, Node& node);

// check_translators.cc
Compiled<void> check_translate(Context& context, Node& node);
Compiled<void> check_inline_use(Context& context, Node& node, const KnownInline& definition,
                                std::vector<Node> arguments);
// node = (translated object) . name: becomes what the translator says.
Compiled<void> expand_translated_member(Context& context, Node& node);
// node = a translated object as a whole: its operands become the members' values.
Compiled<void> expand_translated_object(Context& context, Node& node);
KnownTranslator* find_translator(Context& context, TypeId input, TypeId output);
Compiled<void> define_inline(Context& context, InlineDefinition definition);
Compiled<void> define_translator(Context& context, Translator translator);

}  // namespace clew::query::d::checking

// SPDX-License-Identifier: Apache-2.0
#include "query/d/check_expression.h"

#include <fmt/format.h>

#include "query/d/check_conversion.h"

namespace clew::query::d::checking {
namespace {

Compiled<void> check_index(Context& context, Node& node) {
  if (is_element_of_aggregation(node)) return many_dimensions(node);
  return check_element(context, node);
}

Compiled<void> check_comma(Context& context, Node& node) {
  for (Node& operand : node.operands) {
    CLEW_TRY(check_value(context, operand));
    CLEW_TRY(refuse_dynamic(context, operand, ","));
    CLEW_TRY(refuse_action(operand, "operator , operands cannot be actions"));
  }
  node.type = node.operands.back().type;
  node.is_userland = node.operands.back().is_userland;
  return {};
}

}  // namespace

Compiled<void> refuse_action(const Node& node, std::string_view message) {
  const bool is_action =
      node.kind == NodeKind::Call && node.subroutine == Subroutine::None && find_action(node.name);
  if (!is_action) return {};
  return error_at(node, "D_OP_ACT", std::string(message));
}

Compiled<void> refuse_dynamic(const Context& context, const Node& node,
                              std::string_view shown_operator) {
  const bool is_dynamic_value =
      node.kind == NodeKind::Aggregation || is_dynamic(context.script.types, node.type);
  if (!is_dynamic_value) return {};
  return error_at(node, "D_OP_DYN",
                  fmt::format("operator {} operands cannot be of dynamic type", shown_operator));
}

bool is_element_of_aggregation(const Node& node) {
  return node.kind == NodeKind::Index && node.operands[0].kind == NodeKind::Aggregation;
}

Failure many_dimensions(const Node& node) {
  const Node* aggregation = &node;
  while (aggregation->kind != NodeKind::Aggregation)
    aggregation = &aggregation->operands[0];
  return error_at(node, "D_AGG_MDIM",
                  fmt::format("improper attempt to reference @{} as a multi-dimensional array",
                              aggregation->name));
}

Compiled<void> check_expression(Context& context, Node& node) {
  TypeTable& types = context.types();
  switch (node.kind) {
    case NodeKind::Integer:
      if (node.type == kNoType) node.type = types.integer(4, true);
      return {};
    case NodeKind::String:
      node.type = types.string_type();
      return {};
    case NodeKind::Identifier:
      return check_identifier(context, node);
    case NodeKind::Aggregation:
      node.type = types.dynamic_type();
      return {};
    case NodeKind::Index:
      return check_index(context, node);
    case NodeKind::Call:
      return check_call(context, node);
    case NodeKind::Member:
    case NodeKind::Arrow:
      return check_member(context, node);
    case NodeKind::Unary:
      return check_unary(context, node);
    case NodeKind::Binary:
      return check_binary(context, node);
    case NodeKind::Assign:
      return check_assignment(context, node);
    case NodeKind::Conditional:
      return check_conditional(context, node);
    case NodeKind::Comma:
      return check_comma(context, node);
    case NodeKind::Cast:
      return check_cast(context, node);
    case NodeKind::SizeOf:
      return check_size_of(context, node);
    case NodeKind::OffsetOf:
      return check_offset_of(context, node);
    case NodeKind::StringOf:
      return check_string_of(context, node);
    case NodeKind::Translate:
      return check_translate(context, node);
  }
  return {};
}

Compiled<void> check_value(Context& context, Node& node) {
  CLEW_TRY(check_expression(context, node));
  return finish_value(context, node);
}

Compiled<void> finish_value(Context& context, Node& node) {
  if (node.kind == NodeKind::Translate) return expand_translated_object(context, node);
  const bool is_symbol = node.kind == NodeKind::Identifier && node.storage == Storage::Memory;
  if (!is_symbol || !is_void(context.types(), node.type)) return {};
  const std::string module = node.module == " " ? "vmlinux" : node.module;
  return error_at(node, "D_SYM_NOTYPES",
                  fmt::format("no symbolic type information is available for {}`{}: No type "
                              "information available for symbol",
                              module, node.name));
}

}  // namespace clew::query::d::checking

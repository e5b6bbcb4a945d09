// SPDX-License-Identifier: Apache-2.0
// Operators that store: =, op=, ++ and --.
#include <fmt/format.h>

#include "query/d/check_alloca.h"
#include "query/d/check_conversion.h"
#include "query/d/check_expression.h"
#include "query/d/check_variables.h"
#include "query/d/print.h"

namespace clew::query::d::checking {
namespace {

std::string operator_of(const Node& node) {
  if (node.kind == NodeKind::Unary) return std::string(symbol_of(node.unary));
  return node.is_compound ? std::string(symbol_of(node.binary)) + "=" : "=";
}

Failure incompatible_left(Context& context, const Node& node, const std::string& left) {
  return error_at(node, "D_OP_INCOMPAT",
                  fmt::format("operands have incompatible types: \"{}\" {} \"{}\"", left,
                              operator_of(node), shown_type(context.types(), node.operands[1])));
}

// The type of a variable that is made by storing `value`.
Compiled<TypeId> stored_type(Context& context, const Node& node, const Node& value) {
  TypeTable& types = context.types();
  if (node.kind == NodeKind::Unary || node.is_compound) return named_type(types, "int64_t");
  const bool is_value = value.kind != NodeKind::Aggregation && !is_void(types, value.type) &&
                        !is_dynamic(types, value.type);
  const bool is_nothing = value.kind != NodeKind::Aggregation && is_void(types, value.type);
  if (!is_value) return incompatible_left(context, node, is_nothing ? "void" : "scalar");
  const bool is_text = types.is_string_like(value.type) &&
                       (types.is_string(value.type) || is_array(types, value.type));
  if (is_text) return types.string_type();
  const bool is_function = types.stripped(value.type).kind == TypeKind::Function;
  if (is_array(types, value.type) || is_function) {
    return error_at(node, "D_OP_ARRFUN",
                    fmt::format("operator = may not be applied to operand of type \"{}\"",
                                shown_type(types, value)));
  }
  const bool is_userland = value.is_userland && types.is_pointer(value.type);
  return is_userland ? types.userland_of(value.type) : value.type;
}

// Types the target, operands[0]; a variable that is stored to for the first time is made.
Compiled<void> prepare_target(Context& context, Node& node) {
  TypeTable& types = context.types();
  Node& target = node.operands[0];
  TypeId type = kNoType;
  if (is_new_variable(context, target)) {
    type = CLEW_TRY(stored_type(context, node, node.operands.back()));
  }
  const bool is_made = CLEW_TRY(check_target(context, target, type));
  if (!is_made) CLEW_TRY(check_expression(context, target));
  const std::string shown = operator_of(node);
  if (!is_lvalue(target)) {
    return error_at(node, "D_OP_LVAL",
                    fmt::format("operator {} requires modifiable lvalue as an operand", shown));
  }
  if (!is_writable(target)) {
    return error_at(node, "D_OP_WRITE",
                    fmt::format("operator {} can only be applied to a writable variable", shown));
  }
  if (is_array(types, target.type) || types.stripped(target.type).kind == TypeKind::Function) {
    return error_at(node, "D_OP_ARRFUN",
                    fmt::format("operator {} may not be applied to operand of type \"{}\"", shown,
                                shown_type(types, target)));
  }
  return {};
}

bool is_storable(const TypeTable& types, TypeId target, const Node& value) {
  if (value.kind == NodeKind::Aggregation) return false;
  // 0 deletes whatever the variable holds.
  if (is_null_constant(value) && types.is_integer(value.type)) return true;
  return is_argument_compatible(types, target, value) ||
         (types.is_string(target) && is_null_constant(value));
}

// Which operators take what, in the words of the one that stores.
Compiled<void> check_compound_types(Context& context, const Node& node) {
  const TypeTable& types = context.types();
  const TypeId left = node.operands[0].type;
  const Node& value = node.operands[1];
  const bool is_value = value.kind != NodeKind::Aggregation && value.type != kNoType;
  const bool are_integers = is_value && types.is_integer(left) && types.is_integer(value.type);
  if (are_integers) return {};
  const bool is_product =
      node.binary == BinaryOperator::Multiply || node.binary == BinaryOperator::Divide;
  const bool is_sum = node.binary == BinaryOperator::Add || node.binary == BinaryOperator::Subtract;
  if (!is_sum) {
    return error_at(node, is_product ? "D_OP_ARITH" : "D_OP_INT",
                    fmt::format("operator {} requires operands of {} type", operator_of(node),
                                is_product ? "arithmetic" : "integral"));
  }
  if (types.is_string(left) || (is_value && types.is_string(value.type)))
    return incompatible_left(context, node, shown_type(types, node.operands[0]));
  const TypeId target = pointee(types, left);
  const bool is_sized = target != kNoType && !is_void(types, target) &&
                        types.stripped(target).kind != TypeKind::Function;
  if (is_sized) return {};
  return error_at(node, "D_OP_VFPTR",
                  fmt::format("operator {} requires left-hand scalar operand of known size",
                              operator_of(node)));
}

// `a op= b` is checked as `a op b`, and b keeps what the conversions made of it.
Compiled<void> check_compound(Context& context, Node& node) {
  TypeTable& types = context.types();
  CLEW_TRY(check_compound_types(context, node));
  Node sum;
  sum.kind = NodeKind::Binary;
  sum.binary = node.binary;
  sum.span = node.span;
  sum.line = node.line;
  sum.operands.push_back(node.operands[0]);
  sum.operands.push_back(std::move(node.operands[1]));
  CLEW_TRY(check_binary_operands(context, sum));
  const bool fits = types.is_integer(node.type) == types.is_integer(sum.type);
  node.operands[1] = std::move(sum.operands[1]);
  if (!fits) return incompatible_left(context, node, shown_type(types, node.operands[0]));
  return {};
}

}  // namespace

Compiled<void> check_assignment(Context& context, Node& node) {
  TypeTable& types = context.types();
  if (is_element_of_aggregation(node.operands[0])) return many_dimensions(node);
  const bool is_aggregate = node.operands[0].kind == NodeKind::Assign &&
                            node.operands[0].operands[0].kind == NodeKind::Aggregation;
  if (node.operands[0].kind == NodeKind::Aggregation || is_aggregate) {
    return error_at(node, "D_OP_LVAL", "operator = requires modifiable lvalue as an operand");
  }
  CLEW_TRY(check_value(context, node.operands[1]));
  CLEW_TRY(prepare_target(context, node));
  Node& value = node.operands[1];
  node.type = node.operands[0].type;
  node.is_userland = value.is_userland;
  if (node.is_compound) return check_compound(context, node);
  if (!is_storable(types, node.type, value)) {
    return incompatible_left(context, node, shown_type(types, node.operands[0]));
  }
  convert_for(types, value, node.type);
  return note_pointer_source(context, node);
}

Compiled<void> check_increment(Context& context, Node& node) {
  TypeTable& types = context.types();
  CLEW_TRY(prepare_target(context, node));
  node.type = node.operands[0].type;
  node.integer = 1;
  if (types.is_integer(node.type)) return {};
  const TypeId target = pointee(types, node.type);
  if (target == kNoType) {
    return error_at(node, "D_OP_SCALAR",
                    fmt::format("operator {} requires operand of scalar type", operator_of(node)));
  }
  const bool is_function = types.stripped(target).kind == TypeKind::Function;
  if (is_void(types, target) || is_function) {
    return error_at(
        node, "D_OP_VFPTR",
        fmt::format("operator {} requires an operand of known size", operator_of(node)));
  }
  const uint32_t size = types.size_of(types.complete(types.strip(target)));
  if (size != 0) node.integer = size;
  return {};
}

}  // namespace clew::query::d::checking

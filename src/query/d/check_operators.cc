// SPDX-License-Identifier: Apache-2.0
// Operators that only compute: C's usual conversions, as D has them.
#include <fmt/format.h>

#include "query/d/check_alloca.h"
#include "query/d/check_conversion.h"
#include "query/d/check_expression.h"
#include "query/d/print.h"

namespace clew::query::d::checking {
namespace {

Failure incompatible(Context& context, const Node& node, std::string_view shown_operator) {
  const auto& types = context.types();
  if (node.kind == NodeKind::Conditional)
    return error_at(node, "D_OP_INCOMPAT", "operator ?: operands must have compatible types");
  return error_at(node, "D_OP_INCOMPAT",
                  fmt::format("operands have incompatible types: \"{}\" {} \"{}\"",
                              shown_type(types, node.operands[0]), shown_operator,
                              shown_type(types, node.operands[1])));
}

Failure needs(const Node& node, std::string_view shown_operator, std::string_view kind) {
  const bool is_one = node.kind == NodeKind::Unary;
  const std::string_view tag = kind == "integral"     ? "D_OP_INT"
                               : kind == "arithmetic" ? "D_OP_ARITH"
                                                      : "D_OP_SCALAR";
  return error_at(node, std::string(tag),
                  fmt::format("operator {} requires {} of {} type", shown_operator,
                              is_one ? "an operand" : "operands", kind));
}

// What an operator that only takes integers says that it wants: DTrace has two words for it.
std::string_view kind_wanted(const Node& node) {
  const bool is_arithmetic =
      node.kind == NodeKind::Unary
          ? node.unary == UnaryOperator::Plus || node.unary == UnaryOperator::Negate
          : node.binary == BinaryOperator::Multiply || node.binary == BinaryOperator::Divide;
  return is_arithmetic ? "arithmetic" : "integral";
}

Compiled<void> check_no_zero_divisor(const Node& node) {
  if (!divides(node.binary) || !is_null_constant(node.operands[1])) return {};
  return error_at(node, "D_DIV_ZERO", "expression contains division by zero");
}

TypeId arithmetic_type(TypeTable& types, const Node& node) {
  return is_narrow_bit_field(node) ? types.integer(4, true) : promoted(types, node.type);
}

// Between operators values have 64 bits: they are cut to their type where they are stored, cast or
// passed. Unsigned ones are computed as C does, modulo their size.
bool is_wide_between(const TypeTable& types, const Node& node) {
  const bool is_unary = node.kind == NodeKind::Unary &&
                        (node.unary == UnaryOperator::Plus || node.unary == UnaryOperator::Negate ||
                         node.unary == UnaryOperator::Complement);
  return (is_unary || node.kind == NodeKind::Binary) && types.is_integer(node.type) &&
         types.is_signed(node.type);
}

void convert_operand(TypeTable& types, Node& node, TypeId type) {
  const bool takes_all_bits = types.is_signed(type) || types.size_of(type) == 8;
  if (takes_all_bits && is_wide_between(types, node)) node.type = types.integer(8, true);
  if (types.size_of(node.type) != 8 || types.size_of(type) == 8) convert(types, node, type);
}

TypeId to_common_type(TypeTable& types, Node& node, size_t first) {
  Node& a = node.operands[first];
  Node& b = node.operands[first + 1];
  const TypeId common = common_type(types, arithmetic_type(types, a), arithmetic_type(types, b));
  const auto to_common = node.kind == NodeKind::Conditional ? convert : convert_operand;
  to_common(types, a, common);
  to_common(types, b, common);
  return common;
}

bool are_integers(const TypeTable& types, const Node& node) {
  return types.is_integer(node.operands[0].type) && types.is_integer(node.operands[1].type);
}

Compiled<void> check_arithmetic(Context& context, Node& node) {
  TypeTable& types = context.types();
  if (!are_integers(types, node)) return needs(node, symbol_of(node.binary), kind_wanted(node));
  CLEW_TRY(check_no_zero_divisor(node));
  node.type = to_common_type(types, node, 0);
  fold(types, node);
  return {};
}

Compiled<void> check_shift(Context& context, Node& node) {
  TypeTable& types = context.types();
  if (!are_integers(types, node)) return needs(node, symbol_of(node.binary), "integral");
  node.type = arithmetic_type(types, node.operands[0]);
  convert_operand(types, node.operands[0], node.type);
  convert_operand(types, node.operands[1], arithmetic_type(types, node.operands[1]));
  fold(types, node);
  return {};
}

// The bytes by which a pointer moves per unit.
Compiled<uint32_t> stride_of(Context& context, const Node& node, TypeId pointer) {
  TypeTable& types = context.types();
  const TypeId target = types.complete(types.strip(pointee(types, pointer)));
  if (is_void(types, target)) return 1U;
  const uint32_t size = types.size_of(target);
  if (size == 0 && !types.is_record(target)) {
    return error_at(node, "D_OP_INCOMPAT",
                    fmt::format("operator {} cannot be applied to pointer to type \"{}\" of "
                                "unknown size",
                                symbol_of(node.binary), types.name_of(target)));
  }
  return size;
}

void scale(TypeTable& types, Node& node, BinaryOperator binary, uint32_t stride) {
  convert(types, node, types.integer(8, true));
  if (stride == 1) return;
  Node product;
  product.kind = NodeKind::Binary;
  product.binary = binary;
  product.span = node.span;
  product.line = node.line;
  product.type = types.integer(8, true);
  product.operands.push_back(std::move(node));
  product.operands.push_back(integer_node(product, stride, product.type));
  node = std::move(product);
  if (stride != 0) fold(types, node);
}

Compiled<void> check_pointer_difference(Context& context, Node& node) {
  TypeTable& types = context.types();
  if (!is_pointer_compatible(types, node.operands[0], node.operands[1])) {
    return incompatible(context, node, "-");
  }
  const uint32_t stride = CLEW_TRY(stride_of(context, node, node.operands[0].type));
  decay(types, node.operands[0]);
  decay(types, node.operands[1]);
  node.type = types.integer(8, true);
  scale(types, node, BinaryOperator::Divide, stride == 0 ? 1 : stride);
  return {};
}

Compiled<void> check_additive(Context& context, Node& node) {
  TypeTable& types = context.types();
  if (are_integers(types, node)) return check_arithmetic(context, node);
  const bool left = types.is_pointer(node.operands[0].type);
  const bool right = types.is_pointer(node.operands[1].type);
  const bool is_difference = node.binary == BinaryOperator::Subtract;
  if (left && right && is_difference) return check_pointer_difference(context, node);
  const bool is_moved = (left && types.is_integer(node.operands[1].type)) ||
                        (right && types.is_integer(node.operands[0].type) && !is_difference);
  if (!is_moved) return incompatible(context, node, symbol_of(node.binary));
  Node& pointer = node.operands[left ? 0 : 1];
  const uint32_t stride = CLEW_TRY(stride_of(context, node, pointer.type));
  decay(types, pointer);
  node.is_userland = pointer.is_userland;
  node.type = pointer.type;
  scale(types, node.operands[left ? 1 : 0], BinaryOperator::Multiply, stride);
  return {};
}

bool are_strings(const TypeTable& types, const Node& a, const Node& b) {
  const auto is_like = [&](const Node& node) {
    return node.kind != NodeKind::Aggregation && types.is_string_like(node.type);
  };
  if (types.is_string(a.type)) return is_like(b) || is_null_constant(b);
  return types.is_string(b.type) && (is_like(a) || is_null_constant(a));
}

Compiled<void> check_comparison(Context& context, Node& node) {
  TypeTable& types = context.types();
  Node& a = node.operands[0];
  Node& b = node.operands[1];
  node.type = types.integer(4, true);
  if (are_integers(types, node)) {
    to_common_type(types, node, 0);
    fold(types, node);
    return {};
  }
  if (are_strings(types, a, b)) {
    convert_to_string(types, a);
    convert_to_string(types, b);
    return {};
  }
  if (!is_pointer_compatible(types, a, b))
    return incompatible(context, node, symbol_of(node.binary));
  decay(types, a);
  decay(types, b);
  return {};
}

Compiled<void> check_logical(Context& context, Node& node) {
  TypeTable& types = context.types();
  for (Node& operand : node.operands) {
    if (!is_scalar(types, operand.type) && !is_array(types, operand.type)) {
      return needs(node, symbol_of(node.binary), "scalar");
    }
    decay(types, operand);
  }
  node.type = types.integer(4, true);
  fold(types, node);
  return {};
}

Compiled<void> check_choice(Context& context, Node& node) {
  TypeTable& types = context.types();
  Node& a = node.operands[1];
  Node& b = node.operands[2];
  if (types.is_integer(a.type) && types.is_integer(b.type)) {
    node.type = to_common_type(types, node, 1);
    return {};
  }
  const bool both_like = types.is_string_like(a.type) && types.is_string_like(b.type);
  if (are_strings(types, a, b) || (both_like && !is_pointer_compatible(types, a, b))) {
    convert_to_string(types, a);
    convert_to_string(types, b);
    node.type = types.string_type();
    return {};
  }
  if (is_pointer_compatible(types, a, b)) {
    decay(types, a);
    decay(types, b);
    node.type = pointee(types, a.type) == kNoType ? b.type : a.type;
    convert(types, a, node.type);
    convert(types, b, node.type);
    node.is_userland = a.is_userland || b.is_userland;
    return {};
  }
  const bool both_void = is_void(types, a.type) && is_void(types, b.type);
  const bool is_plain = types.is_record(a.type) || both_void;
  if (!is_plain || !is_same(types, a.type, b.type)) return incompatible(context, node, ":");
  node.type = a.type;
  return {};
}

bool is_castable(const TypeTable& types, TypeId from, TypeId to) {
  const bool to_scalar = is_scalar(types, to);
  if (is_void(types, to)) return true;
  if (to_scalar && (is_scalar(types, from) || is_array(types, from))) return true;
  if (to_scalar && types.is_string(from)) return types.is_pointer(to);
  if (to_scalar && types.stripped(from).kind == TypeKind::Function) return true;
  return types.is_string(to) &&
         (types.is_string_like(from) || types.is_pointer(from) || types.is_integer(from));
}

Compiled<void> check_step_operand(Context& context, Node& node) {
  TypeTable& types = context.types();
  Node& operand = node.operands[0];
  CLEW_TRY(check_value(context, operand));
  const bool is_logical = node.unary == UnaryOperator::Not;
  if (is_logical && !is_scalar(types, operand.type) && !is_array(types, operand.type)) {
    return needs(node, "!", "scalar");
  }
  if (!is_logical && !types.is_integer(operand.type)) {
    return needs(node, symbol_of(node.unary), kind_wanted(node));
  }
  decay(types, operand);
  node.type = is_logical ? types.integer(4, true) : arithmetic_type(types, operand);
  if (!is_logical) convert_operand(types, operand, node.type);
  fold(types, node);
  return {};
}

// s + n: what is n characters further on. False when it is another sum.
bool move_in_string(TypeTable& types, Node& node) {
  if (node.binary != BinaryOperator::Add) return false;
  const size_t string = types.is_string(node.operands[0].type) ? 0 : 1;
  Node& moved = node.operands[string];
  Node& distance = node.operands[1 - string];
  if (!types.is_string(moved.type) || !types.is_integer(distance.type)) return false;
  const TypeId pointer = types.pointer_to(types.integer(1, true));
  moved.is_userland = false;
  convert(types, moved, pointer);
  convert(types, distance, types.integer(8, true));
  node.type = pointer;
  convert_to_string(types, node);
  return true;
}

}  // namespace

Compiled<void> check_unary(Context& context, Node& node) {
  switch (node.unary) {
    case UnaryOperator::Plus:
    case UnaryOperator::Negate:
    case UnaryOperator::Complement:
    case UnaryOperator::Not:
      return check_step_operand(context, node);
    case UnaryOperator::Dereference:
      return check_dereference(context, node);
    case UnaryOperator::AddressOf:
      return check_address_of(context, node);
    case UnaryOperator::PreIncrement:
    case UnaryOperator::PreDecrement:
    case UnaryOperator::PostIncrement:
    case UnaryOperator::PostDecrement:
      return check_increment(context, node);
  }
  return {};
}

Compiled<void> check_binary_operands(Context& context, Node& node) {
  if (is_logical(node.binary)) return check_logical(context, node);
  if (is_comparison(node.binary)) return check_comparison(context, node);
  if (is_shift(node.binary)) return check_shift(context, node);
  if (is_sum(node.binary)) return check_additive(context, node);
  return check_arithmetic(context, node);
}

Compiled<void> check_binary(Context& context, Node& node) {
  CLEW_TRY(check_value(context, node.operands[0]));
  CLEW_TRY(check_value(context, node.operands[1]));
  if (move_in_string(context.types(), node)) return {};
  return check_binary_operands(context, node);
}

Compiled<void> check_conditional(Context& context, Node& node) {
  TypeTable& types = context.types();
  for (Node& operand : node.operands) {
    CLEW_TRY(check_value(context, operand));
    if (&operand != &node.operands[0]) CLEW_TRY(refuse_dynamic(context, operand, "?:"));
    CLEW_TRY(refuse_action(operand, "action cannot be used in a conditional context"));
  }
  if (!is_scalar(types, node.operands[0].type)) {
    return error_at(node, "D_OP_SCALAR", "operator ?: expression must be of scalar type");
  }
  CLEW_TRY(check_alloca_choice(context, node));
  CLEW_TRY(check_choice(context, node));
  fold(types, node);
  return {};
}

Compiled<void> check_cast(Context& context, Node& node) {
  TypeTable& types = context.types();
  const TypeId type = node.type;
  Node& operand = node.operands[0];
  CLEW_TRY(is_void(types, type) ? check_expression(context, operand)
                                : check_value(context, operand));
  const bool is_value = operand.kind != NodeKind::Aggregation && !is_void(types, operand.type);
  const bool is_symbol = operand.storage == Storage::Memory && is_void(types, operand.type);
  if (!(is_value || (is_symbol && is_void(types, type))) ||
      !is_castable(types, operand.type, type)) {
    return error_at(node, "D_CAST_INVAL",
                    fmt::format("invalid cast expression: \"{}\" to \"{}\"",
                                shown_type(types, operand), types.name_of(type)));
  }
  node.is_userland = operand.is_userland || points_to_userland(types, operand.type);
  if (types.is_string(type)) {
    convert_to_string(types, operand);
    Node inner = std::move(operand);
    node = std::move(inner);
    return {};
  }
  if (operand.kind == NodeKind::Integer && is_scalar(types, type)) {
    node = integer_node(node, cut(types, operand.integer, type), type);
  }
  return {};
}

Compiled<void> check_string_of(Context& context, Node& node) {
  TypeTable& types = context.types();
  Node& operand = node.operands[0];
  CLEW_TRY(check_value(context, operand));
  const bool is_text = operand.kind != NodeKind::Aggregation &&
                       (types.is_string(operand.type) || types.is_pointer(operand.type) ||
                        types.is_integer(operand.type));
  if (!is_text) {
    return error_at(
        node, "D_STRINGOF_TYPE",
        fmt::format("cannot apply stringof to a value of type {}", shown_type(types, operand)));
  }
  if (types.is_string(operand.type) || is_null_constant(operand)) {
    convert_to_string(types, operand);
    Node inner = std::move(operand);
    node = std::move(inner);
    return {};
  }
  node.type = types.string_type();
  node.is_userland = operand.is_userland || points_to_userland(types, operand.type);
  return {};
}

}  // namespace clew::query::d::checking

// SPDX-License-Identifier: Apache-2.0
// What reads through addresses: members, elements, `*` and `&`; and sizeof and offsetof.
#include <fmt/format.h>

#include "query/d/check_conversion.h"
#include "query/d/check_expression.h"
#include "query/d/check_nearest.h"

namespace clew::query::d::checking {
namespace {

const char* member_operator_of(const Node& node) {
  return node.kind == NodeKind::Arrow ? "->" : ".";
}

// The struct or union of which a member is wanted.
Compiled<TypeId> record_of(Context& context, const Node& node) {
  TypeTable& types = context.types();
  const Node& object = node.operands[0];
  TypeId record = object.type;
  const bool is_arrow = node.kind == NodeKind::Arrow;
  if (is_arrow) {
    record = pointee(types, object.type);
    if (record == kNoType) {
      return error_at(node, "D_OP_PTR", "operator -> must be applied to a pointer");
    }
  }
  record = types.complete(types.strip(record));
  if (types.at(record).kind == TypeKind::Forward) {
    return error_at(node, "D_OP_INCOMPLETE",
                    fmt::format("operator {} cannot be applied to a forward declaration: no {} "
                                "definition is available",
                                member_operator_of(node), types.name_of(record)));
  }
  if (types.is_record(record)) return record;
  const std::string shown = shown_type(types, object);
  return error_at(node, "D_OP_SOU",
                  is_arrow ? fmt::format("operator -> cannot be applied to pointer to type \"{}\"; "
                                         "must be applied to a struct or union pointer",
                                         types.name_of(record))
                           : fmt::format("operator . cannot be applied to type \"{}\"; must be "
                                         "applied to a struct or union",
                                         shown));
}

// An element of what is no array is a sum that is read through.
Failure not_a_sum(Context& context, const Node& node) {
  const TypeTable& types = context.types();
  return error_at(
      node, "D_OP_INCOMPAT",
      fmt::format("operands have incompatible types: \"{}\" + \"{}\"",
                  shown_type(types, node.operands[0]), shown_type(types, node.operands[1])));
}

Compiled<void> check_base_of_element(Context& context, Node& node) {
  TypeTable& types = context.types();
  Node& base = node.operands[0];
  CLEW_TRY(check_value(context, base));
  CLEW_TRY(check_value(context, node.operands[1]));
  if (types.is_string(base.type)) {
    convert(types, base, types.pointer_to(types.integer(1, true)));
  }
  const TypeId element = pointee(types, base.type);
  const bool is_integer = types.is_integer(node.operands[1].type);
  if (element == kNoType && is_integer && types.is_integer(base.type)) {
    return error_at(node, "D_DEREF_NONPTR", "cannot dereference non-pointer type");
  }
  if (element == kNoType || !is_integer || is_void(types, element)) return not_a_sum(context, node);
  return {};
}

Compiled<void> check_bounds(Context& context, const Node& node) {
  const Type& array = context.types().stripped(node.operands[0].type);
  const Node& index = node.operands[1];
  const bool is_known = array.kind == TypeKind::Array && array.count != 0;
  if (!is_known || index.kind != NodeKind::Integer || index.integer < array.count) return {};
  return error_at(index, "D_ARR_BOUNDS",
                  fmt::format("index outside array bounds: {}, max is {}",
                              static_cast<int64_t>(index.integer), array.count));
}

// The kernel's types are read in when they are needed; the size of this one is.
TypeId completed(TypeTable& types, TypeId type) {
  const TypeId stripped = types.strip(type);
  const TypeId known = types.complete(stripped);
  return known == stripped ? type : known;
}

Failure not_a_member(const TypeTable& types, const Node& node, TypeId record) {
  return with_nearest(
      error_at(node, "D_TYPE_MEMBER",
               fmt::format("{} is not a member of {}", node.name, types.name_of(record))),
      nearest_member(types, record, node.name));
}

const Node& root_of(const Node& node) {
  const Node* root = &node;
  while (!root->operands.empty() && root->kind != NodeKind::Call &&
         !(root->kind == NodeKind::Index && root->storage == Storage::Variable)) {
    const bool is_sum = root->kind == NodeKind::Binary;
    const bool is_second = is_sum && root->operands[0].kind == NodeKind::Integer;
    root = &root->operands[is_second ? 1 : 0];
  }
  return *root;
}

}  // namespace

bool is_lvalue(const Node& node) {
  if (node.kind == NodeKind::Unary) return node.unary == UnaryOperator::Dereference;
  const bool is_place = node.kind == NodeKind::Identifier || node.kind == NodeKind::Index ||
                        node.kind == NodeKind::Member || node.kind == NodeKind::Arrow;
  return is_place && node.storage != Storage::None;
}

bool is_writable(const Node& node) {
  if (node.storage == Storage::Variable) return true;
  if (node.kind == NodeKind::Identifier) return false;
  const Node& root = root_of(node);
  if (root.kind == NodeKind::Identifier) return root.storage == Storage::Variable;
  return true;
}

Compiled<void> check_member(Context& context, Node& node) {
  TypeTable& types = context.types();
  Node& object = node.operands[0];
  CLEW_TRY(check_expression(context, object));
  if (object.kind == NodeKind::Translate) return expand_translated_member(context, node);
  const TypeId record = CLEW_TRY(record_of(context, node));
  const auto place = types.member(record, node.name);
  if (!place) {
    return not_a_member(types, node, record);
  }
  node.member = *place;
  node.type = place->type;
  const bool is_arrow = node.kind == NodeKind::Arrow;
  node.is_userland = object.is_userland || (is_arrow && points_to_userland(types, object.type));
  node.storage =
      !is_arrow && object.storage == Storage::Variable ? Storage::Variable : Storage::Memory;
  if (node.storage == Storage::Variable) node.index = object.index;
  return {};
}

Compiled<void> check_element(Context& context, Node& node) {
  TypeTable& types = context.types();
  const bool is_named = CLEW_TRY(check_named_element(context, node));
  if (is_named) return {};
  if (node.operands.size() != 2) {
    return error_at(
        node, "D_ARR_BADREF",
        fmt::format("cannot access scalar {} as an associative array", node.operands[0].name));
  }
  CLEW_TRY(check_base_of_element(context, node));
  Node& index = node.operands[1];
  const Node& base = node.operands[0];
  CLEW_TRY(check_bounds(context, node));
  node.type = completed(types, pointee(types, base.type));
  node.is_userland = base.is_userland || points_to_userland(types, base.type);
  const bool is_in_variable = is_array(types, base.type) && base.storage == Storage::Variable;
  node.storage = is_in_variable ? Storage::Variable : Storage::Memory;
  // An element of an array that lies in a variable is told from one of an associative array by
  // that variable's is_associative.
  if (is_in_variable) node.index = base.index;
  convert(types, index, types.integer(8, true));
  return {};
}

Compiled<void> check_dereference(Context& context, Node& node) {
  TypeTable& types = context.types();
  Node& pointer = node.operands[0];
  CLEW_TRY(check_expression(context, pointer));
  const TypeId target = pointee(types, pointer.type);
  if (target == kNoType) {
    return error_at(node, "D_DEREF_NONPTR", "cannot dereference non-pointer type");
  }
  if (pointer.kind == NodeKind::Translate) {
    Node object = std::move(pointer);
    object.type = target;
    node = std::move(object);
    return {};
  }
  if (is_void(types, target)) {
    return error_at(node, "D_DEREF_VOID", "cannot dereference pointer to void");
  }
  if (types.stripped(target).kind == TypeKind::Function) {
    return error_at(node, "D_DEREF_FUNC", "cannot dereference pointer to function");
  }
  node.is_userland = pointer.is_userland || points_to_userland(types, pointer.type);
  decay(types, pointer);
  node.type = completed(types, target);
  node.storage = Storage::Memory;
  return {};
}

Compiled<void> check_address_of(Context& context, Node& node) {
  TypeTable& types = context.types();
  Node& operand = node.operands[0];
  CLEW_TRY(
      check_expression(context, operand));  // The address of a symbol is known, whatever it is.
  if (operand.kind == NodeKind::Translate) CLEW_TRY(finish_value(context, operand));
  const bool is_builtin =
      operand.storage == Storage::Builtin || operand.storage == Storage::Argument;
  const bool is_whole =
      operand.kind == NodeKind::Identifier ||
      (operand.kind == NodeKind::Index && operand.operands[0].kind == NodeKind::Identifier &&
       context.script.variables[operand.index].is_associative);
  if ((operand.storage == Storage::Variable && is_whole) || is_builtin) {
    return error_at(node, "D_ADDROF_VAR", "cannot take address of dynamic variable");
  }
  if (!is_lvalue(operand)) {
    return error_at(node, "D_ADDROF_LVAL", "unacceptable operand for unary & operator");
  }
  if (operand.member.bit_size != 0) {
    return error_at(node, "D_ADDROF_BITFIELD", "cannot take address of bit-field");
  }
  node.type = types.pointer_to(operand.type);
  node.is_userland = operand.is_userland;
  if (node.is_userland) node.type = types.userland_of(node.type);
  return {};
}

Compiled<void> check_size_of(Context& context, Node& node) {
  TypeTable& types = context.types();
  TypeId measured = node.type;
  if (!node.operands.empty()) {
    Node& operand = node.operands[0];
    CLEW_TRY(check_expression(context, operand));
    if (operand.member.bit_size != 0) {
      return error_at(node, "D_SIZEOF_BITFIELD", "cannot apply sizeof to a bit-field");
    }
    measured = operand.kind == NodeKind::Aggregation ? types.void_type() : operand.type;
  }
  if (!node.operands.empty() && node.operands[0].kind == NodeKind::String) {
    node = integer_node(node, node.operands[0].text.size() + 1, types.integer(8, false));
    return {};
  }
  if (measured != kNoType) measured = types.complete(types.strip(measured));
  const uint32_t size = measured == kNoType ? 0 : types.size_of(measured);
  const bool is_record = measured != kNoType && types.is_record(measured);
  if ((size == 0 && !is_record) || is_dynamic(types, measured)) {
    return error_at(node, "D_SIZEOF_TYPE", "cannot apply sizeof to an operand of unknown size");
  }
  node = integer_node(node, size, types.integer(8, false));
  return {};
}

Compiled<void> check_offset_of(Context& context, Node& node) {
  TypeTable& types = context.types();
  const TypeId record = node.type == kNoType ? kNoType : types.complete(types.strip(node.type));
  if (record == kNoType || !types.is_record(record)) {
    return error_at(node, "D_OFFSETOF_TYPE", "offsetof operand must be a struct or union type");
  }
  const auto place = types.member(record, node.name);
  if (!place) {
    return not_a_member(types, node, record);
  }
  if (place->bit_size != 0) {
    return error_at(node, "D_OFFSETOF_BITFIELD",
                    fmt::format("cannot take offset of a bit-field: {}", node.name));
  }
  node = integer_node(node, place->offset_bits / 8, types.integer(8, false));
  return {};
}

}  // namespace clew::query::d::checking

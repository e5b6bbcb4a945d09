// SPDX-License-Identifier: Apache-2.0
#include "query/d/check_conversion.h"

#include <algorithm>
#include <array>

#include "query/c_arithmetic.h"
#include "query/d/trimmed.h"

namespace clew::query::d::checking {
namespace {

struct Alias {
  std::string_view name;
  std::string_view base;
};

// Typedefs of D that a kernel's types may lack.
constexpr std::array<Alias, 9> kAliases = {{{"processorid_t", "int"},
                                            {"uint_t", "unsigned int"},
                                            {"id_t", "int"},
                                            {"pid_t", "int"},
                                            {"uid_t", "unsigned int"},
                                            {"gid_t", "unsigned int"},
                                            {"dev_t", "unsigned int"},
                                            {"ipaddr_t", "unsigned int"},
                                            {"uintptr_t", "unsigned long"}}};

TypeId named_base(TypeTable& types, std::string_view name) {
  if (name == "string") return types.string_type();
  if (name == "void") return types.void_type();
  if (name == "dynamic") return types.dynamic_type();
  if (name.starts_with("struct ")) return types.find("", Tag::Struct, name.substr(7));
  if (const TypeId base = types.find_base(name); base != kNoType) return base;
  if (const TypeId found = types.find("", Tag::None, name); found != kNoType) return found;
  for (const Alias& alias : kAliases) {
    if (alias.name == name) return types.find_base(alias.base);
  }
  return kNoType;
}

void wrap(Node& node, NodeKind kind, TypeId type) {
  Node outer;
  outer.kind = kind;
  outer.span = node.span;
  outer.line = node.line;
  outer.type = type;
  outer.is_userland = node.is_userland;
  outer.operands.push_back(std::move(node));
  node = std::move(outer);
}

// A signed value that its type cannot hold is cut when it is used, and not before.
void become_integer(TypeTable& types, Node& node, uint64_t value) {
  const bool is_signed = types.is_integer(node.type) && types.is_signed(node.type);
  if (is_signed && node.kind == NodeKind::Binary && cut(types, value, node.type) != value) return;
  node = integer_node(node, cut(types, value, node.type), node.type);
}

}  // namespace

TypeId named_type(TypeTable& types, std::string_view text) {
  text = trimmed(text);
  if (text.starts_with("const ")) text = trimmed(text.substr(6));
  const size_t star = text.find('*');
  const std::string_view name = trimmed(text.substr(0, star));
  TypeId type = named_base(types, name);
  if (star == std::string_view::npos) return type;
  if (type == kNoType) type = types.void_type();
  const auto stars = std::count(text.begin(), text.end(), '*');
  for (auto i = stars; i > 0; --i)
    type = types.pointer_to(type);
  return type;
}

bool is_void(const TypeTable& types, TypeId type) {
  return type == kNoType || types.stripped(type).kind == TypeKind::Void;
}

bool is_dynamic(const TypeTable& types, TypeId type) {
  return type != kNoType && types.stripped(type).kind == TypeKind::Dynamic;
}

bool is_array(const TypeTable& types, TypeId type) {
  return type != kNoType && types.stripped(type).kind == TypeKind::Array;
}

bool is_scalar(const TypeTable& types, TypeId type) {
  if (type == kNoType) return false;
  return types.is_integer(type) || types.stripped(type).kind == TypeKind::Pointer;
}

bool is_same(const TypeTable& types, TypeId a, TypeId b) {
  a = types.strip(a);
  b = types.strip(b);
  if (a == b) return true;
  const Type& left = types.at(a);
  const Type& right = types.at(b);
  if (left.kind != right.kind) return false;
  switch (left.kind) {
    case TypeKind::Void:
    case TypeKind::String:
    case TypeKind::Dynamic:
      return true;
    case TypeKind::Integer:
      return left.size_bytes == right.size_bytes && left.is_signed == right.is_signed;
    case TypeKind::Float:
      return left.size_bytes == right.size_bytes;
    case TypeKind::Pointer:
      return is_same(types, left.target, right.target);
    case TypeKind::Array:
      return left.count == right.count && is_same(types, left.target, right.target);
    case TypeKind::Struct:
    case TypeKind::Union:
    case TypeKind::Forward:
    case TypeKind::Enum:
      return !left.name.empty() && left.name == right.name;
    case TypeKind::Typedef:
      return false;
    case TypeKind::Function:
      return left.parameters.size() == right.parameters.size();
  }
  return false;
}

bool is_null_constant(const Node& node) {
  return node.kind == NodeKind::Integer && node.integer == 0;
}

TypeId pointee(const TypeTable& types, TypeId type) {
  if (type == kNoType || !types.is_pointer(type)) return kNoType;
  return types.stripped(type).target;
}

bool points_to_userland(const TypeTable& types, TypeId type) {
  if (type == kNoType) return false;
  if (types.at(type).is_userland || types.stripped(type).is_userland) return true;
  const TypeId target = pointee(types, type);
  return target != kNoType && (types.at(target).is_userland || types.stripped(target).is_userland);
}

bool is_pointer_compatible(const TypeTable& types, const Node& a, const Node& b) {
  const TypeId left = pointee(types, a.type);
  const TypeId right = pointee(types, b.type);
  if (left == kNoType && right == kNoType) return false;
  if (left == kNoType) return is_null_constant(a);
  if (right == kNoType) return is_null_constant(b);
  if (is_void(types, left) || is_void(types, right) || is_same(types, left, right)) return true;
  return types.is_integer(left) && types.is_integer(right) &&
         types.size_of(left) == types.size_of(right);
}

bool is_argument_compatible(const TypeTable& types, TypeId parameter, const Node& argument) {
  if (parameter == kNoType || argument.type == kNoType) return false;
  if (argument.kind == NodeKind::Aggregation) return false;
  if (types.is_integer(parameter)) return types.is_integer(argument.type);
  if (types.is_string_like(parameter) && types.is_string_like(argument.type)) return true;
  if (types.is_string(parameter)) return is_null_constant(argument);
  if (types.is_pointer(parameter)) {
    Node wanted;
    wanted.kind = NodeKind::Identifier;
    wanted.type = parameter;
    return is_pointer_compatible(types, wanted, argument);
  }
  return is_same(types, parameter, argument.type);
}

TypeId promoted(const TypeTable& types, TypeId type) {
  const uint32_t size = types.size_of(type);
  if (size < 4) return types.integer(4, true);
  return types.stripped(type).kind == TypeKind::Enum ? types.integer(size, types.is_signed(type))
                                                     : type;
}

TypeId common_type(const TypeTable& types, TypeId a, TypeId b) {
  a = promoted(types, a);
  b = promoted(types, b);
  const uint32_t size_a = types.size_of(a);
  const uint32_t size_b = types.size_of(b);
  if (size_a != size_b) return size_a > size_b ? a : b;
  return types.is_signed(a) ? b : a;
}

std::string shown_type(const TypeTable& types, const Node& node) {
  if (node.kind == NodeKind::Aggregation) return "aggregation";
  return node.type == kNoType ? "<unknown>" : types.name_of(node.type);
}

Node integer_node(const Node& place, uint64_t value, TypeId type) {
  Node node;
  node.kind = NodeKind::Integer;
  node.span = place.span;
  node.line = place.line;
  node.type = type;
  node.integer = value;
  return node;
}

uint64_t cut(const TypeTable& types, uint64_t value, TypeId type) {
  const uint32_t size = types.size_of(type);
  if (types.stripped(type).name == "_Bool") return value != 0 ? 1 : 0;
  if (size == 0 || size >= 8) return value;
  return wrapped(
      value, {.size_bytes = size, .is_signed = types.is_integer(type) && types.is_signed(type)});
}

void convert(TypeTable& types, Node& node, TypeId type) {
  if (node.type == type) return;
  const bool both_integers = types.is_integer(node.type) && types.is_integer(type);
  if (node.kind == NodeKind::Integer && is_scalar(types, type)) {
    node.integer = cut(types, node.integer, type);
    node.type = type;
    return;
  }
  if (both_integers && types.size_of(node.type) == types.size_of(type) &&
      types.is_signed(node.type) == types.is_signed(type)) {
    return;
  }
  if (is_scalar(types, node.type) && is_scalar(types, type) && !both_integers &&
      !types.is_integer(node.type) && !types.is_integer(type)) {
    return;
  }
  wrap(node, NodeKind::Cast, type);
}

void convert_to_string(TypeTable& types, Node& node) {
  if (types.is_string(node.type)) return;
  if (is_null_constant(node)) {
    node.type = types.string_type();
    return;
  }
  node.is_userland = node.is_userland || points_to_userland(types, node.type);
  wrap(node, NodeKind::StringOf, types.string_type());
}

void decay(TypeTable& types, Node& node) {
  if (!is_array(types, node.type)) return;
  const TypeId element = types.stripped(node.type).target;
  wrap(node, NodeKind::Cast, types.pointer_to(element));
}

void convert_for(TypeTable& types, Node& node, TypeId type) {
  if (types.is_string(type)) return convert_to_string(types, node);
  if (is_array(types, node.type) && is_scalar(types, type)) decay(types, node);
  if (is_scalar(types, type)) convert(types, node, type);
}

void fold(TypeTable& types, Node& node) {
  const auto is_constant = [](const Node& operand) { return operand.kind == NodeKind::Integer; };
  if (!std::all_of(node.operands.begin(), node.operands.end(), is_constant)) return;
  if (node.kind == NodeKind::Unary && is_computed(node.unary)) {
    return become_integer(types, node, computed(node.unary, node.operands[0].integer, {}));
  }
  if (node.kind == NodeKind::Conditional) {
    const uint64_t value = node.operands[node.operands[0].integer != 0 ? 1 : 2].integer;
    return become_integer(types, node, value);
  }
  if (node.kind != NodeKind::Binary) return;
  const Node& left = node.operands[0];
  const bool is_signed = types.is_integer(left.type) && types.is_signed(left.type);
  become_integer(
      types, node,
      computed(node.binary, left.integer, node.operands[1].integer, {.is_signed = is_signed}));
}

}  // namespace clew::query::d::checking

// SPDX-License-Identifier: Apache-2.0
// Types of values: which go together, and the nodes that turn one into another.
#pragma once

#include <optional>

#include "query/d/check_context.h"

namespace clew::query::d::checking {

// A type by the name that the tables of prototypes use ("const char *", "struct task_struct *").
// Without the kernel's types a pointer to an unknown struct is a `void *`.
TypeId named_type(TypeTable& types, std::string_view text);

[[nodiscard]] bool is_void(const TypeTable& types, TypeId type);
[[nodiscard]] bool is_dynamic(const TypeTable& types, TypeId type);
// Integers and pointers; not arrays of them.
[[nodiscard]] bool is_scalar(const TypeTable& types, TypeId type);
[[nodiscard]] bool is_array(const TypeTable& types, TypeId type);
// Equal, typedefs looked through at every level.
[[nodiscard]] bool is_same(const TypeTable& types, TypeId a, TypeId b);
[[nodiscard]] bool is_null_constant(const Node& node);
// What a pointer points to, or the element of an array; kNoType when it is neither.
[[nodiscard]] TypeId pointee(const TypeTable& types, TypeId type);
[[nodiscard]] bool points_to_userland(const TypeTable& types, TypeId type);

// May both be compared and assigned as pointers? One of them must be one.
[[nodiscard]] bool is_pointer_compatible(const TypeTable& types, const Node& a, const Node& b);
// May `argument` be passed where `parameter` is declared?
[[nodiscard]] bool is_argument_compatible(const TypeTable& types, TypeId parameter,
                                          const Node& argument);

[[nodiscard]] TypeId promoted(const TypeTable& types, TypeId type);
// C's usual arithmetic conversions.
[[nodiscard]] TypeId common_type(const TypeTable& types, TypeId a, TypeId b);

// What `node` is called in messages: its type, or "aggregation".
[[nodiscard]] std::string shown_type(const TypeTable& types, const Node& node);

Node integer_node(const Node& place, uint64_t value, TypeId type);
// `node` becomes (type) node, folded when it is a constant; nothing when the bits stay the same.
void convert(TypeTable& types, Node& node, TypeId type);
void convert_to_string(TypeTable& types, Node& node);  // string, char *, char [n], 0
void decay(TypeTable& types, Node& node);  // An array becomes a pointer to its first element.
// As the value of a variable, argument or member of type `type`; it is compatible.
void convert_for(TypeTable& types, Node& node, TypeId type);

// The value of a Binary, Unary or Conditional node whose operands are Integers: it becomes one.
void fold(TypeTable& types, Node& node);
// `value` cut to the size of `type`, and extended again by its sign.
[[nodiscard]] uint64_t cut(const TypeTable& types, uint64_t value, TypeId type);

}  // namespace clew::query::d::checking

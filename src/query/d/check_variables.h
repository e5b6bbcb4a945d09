// SPDX-License-Identifier: Apache-2.0
// D variables: declared, or made by their first use (facts 12, 20 of the language).
#pragma once

#include <map>
#include <optional>
#include <span>

#include "query/d/check_context.h"

namespace clew::query::d::checking {

using VariableIterator = std::map<VariableKey, uint32_t>::iterator;

// Scope and name when `node` is written as a variable: x, self->x, this->x.
[[nodiscard]] std::optional<VariableKey> variable_key(const Node& node);
[[nodiscard]] bool is_scoped_variable(const Node& node);  // self->x, this->x
// A thread or clause variable that is read before anything was stored: int 0, or what the program
// stores further down.
VariableIterator load_unknown(Context& context, const VariableKey& key);
void become_variable(Context& context, Node& node, uint32_t index);

// Elements of associative arrays: node.operands[1…] are the keys.
Compiled<void> check_keys(Context& context, Node& node);
Compiled<void> become_element(Context& context, Node& node, uint32_t index);
// The array is made by this use; kNoType: the use is a load.
Compiled<void> make_element(Context& context, Node& node, TypeId type);
// The types of checked keys as a new array or aggregation has them. `kind` is for messages.
Compiled<std::vector<TypeId>> key_types(Context& context, std::span<Node> keys,
                                        std::string_view kind);

// Types the target of an assignment; a variable that no store was seen of gets `type`. False: it is
// no variable, and untouched.
Compiled<bool> check_target(Context& context, Node& node, TypeId type);
// No store to it was seen, and nothing else has the name.
[[nodiscard]] bool is_new_variable(const Context& context, const Node& node);

Compiled<void> declare_variable(Context& context, const VariableDeclaration& declaration);

}  // namespace clew::query::d::checking

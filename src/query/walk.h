// SPDX-License-Identifier: Apache-2.0
// Walks over expressions, for what is the same at every node: a node comes first, then its operands
// in the order in which they are evaluated. They are for the trees of queries and of D alike. What
// asks for another order, or may fail, walks by itself.
#pragma once

namespace clew::query {

// The first node for which `is_one` holds, and none is looked at behind it; null when there is
// none.
template <typename Node, typename Predicate>
const Node* find_node(const Node& node, const Predicate& is_one) {
  if (is_one(node)) return &node;
  for (const Node& operand : node.operands) {
    if (const Node* found = find_node(operand, is_one)) return found;
  }
  return nullptr;
}

template <typename Node, typename Predicate>
bool contains(const Node& node, const Predicate& is_one) {
  return find_node(node, is_one) != nullptr;
}

// `Node` may be const.
template <typename Node, typename Visitor>
void visit(Node& node, const Visitor& visitor) {
  visitor(node);
  for (Node& operand : node.operands)
    visit(operand, visitor);
}

// `replace` may put another node in the place of one, and says so: that one is not entered.
template <typename Node, typename Replace>
void transform(Node& node, const Replace& replace) {
  if (replace(node)) return;
  for (Node& operand : node.operands)
    transform(operand, replace);
}

}  // namespace clew::query

// SPDX-License-Identifier: Apache-2.0
// Equality of queries (without places), what expressions hold, and binding of inputs to one source.
#include "query/query.h"

#include <algorithm>
#include <bit>

#include "base/assert.h"
#include "query/walk.h"

namespace clew::query {

bool Expression::operator==(const Expression& other) const {
  // Floats compare by bits: a constant that was printed and read back must be the same one.
  return kind == other.kind && type == other.type && integer == other.integer &&
         std::bit_cast<uint64_t>(real) == std::bit_cast<uint64_t>(other.real) &&
         text == other.text && field == other.field && unary == other.unary &&
         binary == other.binary && function == other.function && index == other.index &&
         stream == other.stream && operands == other.operands;
}

bool Source::operator==(const Source& other) const {
  return kind == other.kind && scope == other.scope && process == other.process &&
         module == other.module && function == other.function && file == other.file &&
         recorded == other.recorded && line == other.line && offset_bytes == other.offset_bytes &&
         period_ns == other.period_ns && label == other.label && inputs == other.inputs;
}

bool Aggregate::operator==(const Aggregate& other) const {
  return function == other.function && arguments == other.arguments &&
         parameters == other.parameters &&
         std::bit_cast<uint64_t>(fraction) == std::bit_cast<uint64_t>(other.fraction) &&
         type == other.type;
}

bool Join::operator==(const Join& other) const {
  return name == other.name && left == other.left && filter == other.filter &&
         count == other.count && after == other.after && within == other.within &&
         sources == other.sources && inputs == other.inputs && subquery == other.subquery;
}

bool has_aggregate(const Expression& expression) {
  return contains(expression,
                  [](const Expression& node) { return node.kind == ExpressionKind::Aggregate; });
}

Expression bind(const Expression& expression, const Source& source) {
  Expression bound = expression;
  transform(bound, [&](Expression& node) {
    if (node.kind != ExpressionKind::Input) return false;
    CLEW_ASSERT(node.index < source.inputs.size());
    node = source.inputs[node.index];
    return true;
  });
  return bound;
}

}  // namespace clew::query

// SPDX-License-Identifier: Apache-2.0
// Constants that declarations need at once: array sizes, bit-field sizes, enumerators.
#include <optional>

#include "query/c_arithmetic.h"
#include "query/d/parser.h"

namespace clew::query::d {
namespace {

// Inline definitions may refer to others, each twice: the sum of all steps is what must be bounded.
constexpr uint32_t kStepsMax = 2000;

class ConstantFolder {
 public:
  // `enumerators` (may be null) are known besides those of `types`.
  ConstantFolder(const Program& program, TypeTable& types,
                 const std::vector<TypeEnumerator>* enumerators)
      : program_(program), types_(types), enumerators_(enumerators) {}

  std::optional<int64_t> fold(const Node& node) {
    if (++steps_ > kStepsMax) return std::nullopt;
    switch (node.kind) {
      case NodeKind::Integer:
        return static_cast<int64_t>(node.integer);
      case NodeKind::Identifier:
        return identifier(node);
      case NodeKind::Unary:
        return unary(node);
      case NodeKind::Binary:
        return binary(node);
      case NodeKind::Conditional:
        return conditional(node);
      case NodeKind::Cast:
        return cast(node);
      case NodeKind::SizeOf:
        return size_of(node);
      case NodeKind::OffsetOf:
        return offset_of(node);
      case NodeKind::String:
      case NodeKind::Aggregation:
      case NodeKind::Index:
      case NodeKind::Call:
      case NodeKind::Member:
      case NodeKind::Arrow:
      case NodeKind::Assign:
      case NodeKind::Comma:
      case NodeKind::StringOf:
      case NodeKind::Translate:
        return std::nullopt;
    }
    return std::nullopt;
  }

 private:
  std::optional<int64_t> identifier(const Node& node) {
    if (!node.module.empty()) return std::nullopt;
    for (const InlineDefinition& definition : program_.inlines) {
      if (definition.name == node.name && definition.parameters.empty())
        return fold(definition.value);
    }
    if (enumerators_ != nullptr) {
      for (const TypeEnumerator& each : *enumerators_)
        if (each.name == node.name) return each.value;
    }
    TypeId type = kNoType;
    const std::optional<TypeEnumerator> found = types_.find_enumerator(node.name, type);
    return found ? std::optional(found->value) : std::nullopt;
  }

  std::optional<int64_t> unary(const Node& node) {
    const std::optional<int64_t> operand = fold(node.operands[0]);
    if (!operand) return std::nullopt;
    if (!is_computed(node.unary)) return std::nullopt;
    return static_cast<int64_t>(computed(node.unary, static_cast<uint64_t>(*operand), {}));
  }

  std::optional<int64_t> binary(const Node& node) {
    const std::optional<int64_t> left = fold(node.operands[0]);
    const std::optional<int64_t> right = fold(node.operands[1]);
    if (!left || !right) return std::nullopt;
    const bool can_divide = *right != 0 && !(*left == INT64_MIN && *right == -1);
    if (divides(node.binary) && !can_divide) return std::nullopt;
    const auto b = static_cast<uint64_t>(*right);
    if (is_shift(node.binary) && b >= 64) return 0;
    return static_cast<int64_t>(computed(node.binary, static_cast<uint64_t>(*left), b, {}));
  }

  std::optional<int64_t> conditional(const Node& node) {
    const std::optional<int64_t> condition = fold(node.operands[0]);
    if (!condition) return std::nullopt;
    return fold(node.operands[*condition != 0 ? 1 : 2]);
  }

  std::optional<int64_t> cast(const Node& node) {
    const std::optional<int64_t> operand = fold(node.operands[0]);
    if (!operand || !types_.is_integer(node.type)) return std::nullopt;
    const IntegerType type{types_.size_of(node.type), types_.is_signed(node.type)};
    return static_cast<int64_t>(wrapped(static_cast<uint64_t>(*operand), type));
  }

  std::optional<int64_t> size_of(const Node& node) {
    if (node.type == kNoType) return std::nullopt;
    const uint32_t size_bytes = types_.size_of(types_.complete(node.type));
    return size_bytes == 0 ? std::nullopt : std::optional(int64_t{size_bytes});
  }

  std::optional<int64_t> offset_of(const Node& node) {
    const std::optional<MemberPlace> place = types_.member(types_.complete(node.type), node.name);
    if (!place || place->bit_size != 0) return std::nullopt;
    return static_cast<int64_t>(place->offset_bits / 8);
  }

  const Program& program_;
  TypeTable& types_;
  const std::vector<TypeEnumerator>* const enumerators_;
  uint32_t steps_ = 0;
};

}  // namespace

Compiled<int64_t> Parser::constant_expression(std::string_view tag, std::string_view message) {
  const Token begin = here_;
  const uint32_t outer = std::exchange(operators_, 0);
  const Node node = CLEW_TRY(conditional());
  operators_ = outer;
  const std::optional<int64_t> value = ConstantFolder(program_, types_, enumerators_).fold(node);
  if (value) return *value;
  return compile_error(std::string(tag), std::string(message), begin.line, node.span);
}

}  // namespace clew::query::d

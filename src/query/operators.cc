// SPDX-License-Identifier: Apache-2.0
#include "query/operators.h"

#include <array>

namespace clew::query {
namespace {

struct Row {
  BinaryOperator op;
  std::string_view symbol;
  Precedence precedence;
};

// In the order of the enumeration.
constexpr std::array<Row, 19> kBinaries = {{
    {BinaryOperator::Multiply, "*", Precedence::Product},
    {BinaryOperator::Divide, "/", Precedence::Product},
    {BinaryOperator::Modulo, "%", Precedence::Product},
    {BinaryOperator::Add, "+", Precedence::Sum},
    {BinaryOperator::Subtract, "-", Precedence::Sum},
    {BinaryOperator::ShiftLeft, "<<", Precedence::Shift},
    {BinaryOperator::ShiftRight, ">>", Precedence::Shift},
    {BinaryOperator::Less, "<", Precedence::Comparison},
    {BinaryOperator::LessEqual, "<=", Precedence::Comparison},
    {BinaryOperator::Greater, ">", Precedence::Comparison},
    {BinaryOperator::GreaterEqual, ">=", Precedence::Comparison},
    {BinaryOperator::Equal, "==", Precedence::Equality},
    {BinaryOperator::NotEqual, "!=", Precedence::Equality},
    {BinaryOperator::And, "&", Precedence::And},
    {BinaryOperator::Xor, "^", Precedence::Xor},
    {BinaryOperator::Or, "|", Precedence::Or},
    {BinaryOperator::LogicalAnd, "&&", Precedence::LogicalAnd},
    {BinaryOperator::LogicalXor, "^^", Precedence::LogicalXor},
    {BinaryOperator::LogicalOr, "||", Precedence::LogicalOr},
}};

constexpr bool is_in_order() {
  for (size_t i = 0; i < kBinaries.size(); ++i) {
    if (kBinaries[i].op != static_cast<BinaryOperator>(i)) return false;
  }
  return kBinaries.back().op == BinaryOperator::LogicalOr;
}
static_assert(is_in_order());

constexpr std::array<std::string_view, 10> kUnaries = {"+", "-",  "~",  "!",  "*",
                                                       "&", "++", "--", "++", "--"};

}  // namespace

std::string_view symbol_of(UnaryOperator op) {
  return kUnaries[static_cast<size_t>(op)];
}

std::string_view symbol_of(BinaryOperator op) {
  return kBinaries[static_cast<size_t>(op)].symbol;
}

const BinaryOperator* find_binary(std::string_view symbol) {
  for (const Row& row : kBinaries) {
    if (row.symbol == symbol) return &row.op;
  }
  return nullptr;
}

Precedence precedence_of(BinaryOperator op) {
  return kBinaries[static_cast<size_t>(op)].precedence;
}

}  // namespace clew::query

// SPDX-License-Identifier: Apache-2.0
#include "query/c_arithmetic.h"

#include <gtest/gtest.h>

namespace clew::query {
namespace {

constexpr IntegerType kInt{.size_bytes = 4, .is_signed = true};
constexpr IntegerType kUnsigned{.size_bytes = 4, .is_signed = false};
constexpr IntegerType kChar{.size_bytes = 1, .is_signed = true};
constexpr IntegerType kLong{};

uint64_t bits(int64_t value) {
  return static_cast<uint64_t>(value);
}

TEST(CArithmetic, ExtendsTheLowBytesByTheSignOfTheType) {
  EXPECT_EQ(wrapped(0x1FF, kChar), bits(-1));
  EXPECT_EQ(wrapped(bits(-1), kUnsigned), 0xFFFF'FFFFU);
  EXPECT_EQ(wrapped(bits(-1), kLong), bits(-1));
}

TEST(CArithmetic, WrapsWhatIsTooLargeForTheType) {
  EXPECT_EQ(computed(BinaryOperator::Add, INT32_MAX, 1, kInt), bits(INT32_MIN));
  EXPECT_EQ(computed(BinaryOperator::Subtract, 0, 1, kUnsigned), UINT32_MAX);
  EXPECT_EQ(computed(UnaryOperator::Negate, bits(INT32_MIN), kInt), bits(INT32_MIN));
}

TEST(CArithmetic, DividesTowardsZeroAndByZeroToZero) {
  EXPECT_EQ(computed(BinaryOperator::Divide, bits(-7), 2, kInt), bits(-3));
  EXPECT_EQ(computed(BinaryOperator::Modulo, bits(-7), 2, kInt), bits(-1));
  EXPECT_EQ(computed(BinaryOperator::Divide, 7, 0, kInt), 0U);
  EXPECT_EQ(computed(BinaryOperator::Modulo, 7, 0, kInt), 7U);
}

TEST(CArithmetic, TheSmallestNumberByMinusOneWraps) {
  EXPECT_EQ(computed(BinaryOperator::Divide, bits(INT64_MIN), bits(-1), kLong), bits(INT64_MIN));
  EXPECT_EQ(computed(BinaryOperator::Modulo, bits(INT64_MIN), bits(-1), kLong), 0U);
  EXPECT_EQ(computed(BinaryOperator::Divide, bits(INT32_MIN), bits(-1), kInt), bits(INT32_MIN));
}

TEST(CArithmetic, ShiftsCountModuloTheWidth) {
  EXPECT_EQ(computed(BinaryOperator::ShiftLeft, 1, 33, kInt), 2U);
  EXPECT_EQ(computed(BinaryOperator::ShiftRight, bits(-8), 1, kInt), bits(-4));
  EXPECT_EQ(computed(BinaryOperator::ShiftRight, 0x8000'0000, 31, kUnsigned), 1U);
}

TEST(CArithmetic, ComparesByTheSignOfTheType) {
  EXPECT_EQ(computed(BinaryOperator::Less, bits(-1), 1, kLong), 1U);
  EXPECT_EQ(computed(BinaryOperator::Less, bits(-1), 1, {.is_signed = false}), 0U);
  EXPECT_EQ(computed(BinaryOperator::GreaterEqual, 3, 3, kLong), 1U);
  EXPECT_EQ(computed(BinaryOperator::NotEqual, 3, 3, kLong), 0U);
}

TEST(CArithmetic, TruthsAreZeroOrOne) {
  EXPECT_EQ(computed(BinaryOperator::LogicalAnd, 2, 4, kLong), 1U);
  EXPECT_EQ(computed(BinaryOperator::LogicalXor, 2, 4, kLong), 0U);
  EXPECT_EQ(computed(BinaryOperator::LogicalOr, 0, 4, kLong), 1U);
  EXPECT_EQ(computed(UnaryOperator::Not, 2, kLong), 0U);
}

TEST(Operators, AreFoundByWhatTheyAreWrittenAs) {
  for (int i = 0; i <= static_cast<int>(BinaryOperator::LogicalOr); ++i) {
    const auto op = static_cast<BinaryOperator>(i);
    const BinaryOperator* found = find_binary(symbol_of(op));
    ASSERT_NE(found, nullptr);
    EXPECT_EQ(*found, op);
  }
  EXPECT_EQ(find_binary("="), nullptr);
}

}  // namespace
}  // namespace clew::query

// SPDX-License-Identifier: Apache-2.0
// What older kernels get instead of newer instructions gives the same results: both are run by the
// interpreter.
#include "kernel/older.h"

#include <array>
#include <limits>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "isa/interpreter.h"
#include "isa/opcode.h"

namespace clew::kernel {
namespace {

using isa::Instruction;
using Code = std::vector<Instruction>;

constexpr Instruction kExit = {0x95, 0, 0, 0};

// lddw r<to>, value
void put_constant(uint8_t to, uint64_t value, Code& code) {
  code.push_back({isa::kLoad64Opcode, to, 0, static_cast<int32_t>(value)});
  code.push_back({0, 0, 0, static_cast<int32_t>(value >> 32)});
}

Function function_of(Code code) {
  Function function;
  function.name = "d_test";
  function.code = std::move(code);
  function.is_main = true;  // Without a window.
  return function;
}

uint64_t result_of(const Code& code) {
  isa::Program program;
  program.code = code;
  std::vector<uint8_t> window(abi::kFrameEnd);
  const auto outcome = isa::interpret(program, {.window = window});
  EXPECT_TRUE(outcome) << outcome.error().message;
  return outcome ? outcome->result : 0;
}

void expect_same(const Code& code) {
  const Expected<Function> older = for_older_kernel(function_of(code));
  ASSERT_TRUE(older) << older.error().message;
  EXPECT_EQ(result_of(older->code), result_of(code));
}

constexpr std::array<int64_t, 9> kNumbers = {0,
                                             1,
                                             -1,
                                             7,
                                             -7,
                                             1000,
                                             -1001,
                                             std::numeric_limits<int64_t>::min(),
                                             std::numeric_limits<int64_t>::max()};

TEST(Older, SignedDivisionByARegisterGivesTheSame) {
  for (const int64_t dividend : kNumbers) {
    for (const int64_t divisor : kNumbers) {
      for (const uint8_t opcode : {uint8_t{0x3F}, uint8_t{0x9F}}) {
        SCOPED_TRACE(testing::Message() << dividend << " by " << divisor << ", " << +opcode);
        Code code;
        put_constant(0, static_cast<uint64_t>(dividend), code);
        put_constant(2, static_cast<uint64_t>(divisor), code);
        code.push_back({opcode, 0 | 2 << 4, 1, 0});
        code.push_back({0x0F, 0 | 2 << 4, 0, 0});  // r0 += r2: the divisor is as it was.
        code.push_back(kExit);
        expect_same(code);
      }
    }
  }
}

TEST(Older, SignedDivisionByAConstantGivesTheSame) {
  for (const int64_t dividend : kNumbers) {
    for (const int32_t divisor : {1, -1, 7, -7, std::numeric_limits<int32_t>::max()}) {
      for (const uint8_t opcode : {uint8_t{0x37}, uint8_t{0x97}}) {
        SCOPED_TRACE(testing::Message() << dividend << " by " << divisor << ", " << +opcode);
        Code code;
        put_constant(0, static_cast<uint64_t>(dividend), code);
        code.push_back({opcode, 0, 1, divisor});
        code.push_back(kExit);
        expect_same(code);
      }
    }
  }
}

TEST(Older, ARegisterDividedByItselfGivesTheSame) {
  for (const int64_t number : kNumbers) {
    Code code;
    put_constant(0, static_cast<uint64_t>(number), code);
    code.push_back({0x3F, 0, 1, 0});
    code.push_back(kExit);
    expect_same(code);
  }
}

TEST(Older, SignExtensionsGiveTheSame) {
  for (const int64_t number : {int64_t{0x7F}, int64_t{0x80}, int64_t{0x12348765}, int64_t{-2}}) {
    for (const int16_t bits : {int16_t{8}, int16_t{16}, int16_t{32}}) {
      Code code;
      put_constant(2, static_cast<uint64_t>(number), code);
      code.push_back({0xBF, 0 | 2 << 4, bits, 0});  // r0 = (signed) r2
      code.push_back(kExit);
      expect_same(code);
    }
  }
}

TEST(Older, SwappedBytesAreTheSame) {
  for (const int32_t bits : {16, 32, 64}) {
    Code code;
    put_constant(0, 0x1234'5678'9ABC'DEF0, code);
    code.push_back({0xD7, 0, 0, bits});
    code.push_back(kExit);
    expect_same(code);
  }
}

// r10 - 8 has -2; its bytes, halves and words are read with their sign.
TEST(Older, LoadsWithASignGiveTheSame) {
  for (const uint8_t opcode : {uint8_t{0x91}, uint8_t{0x89}, uint8_t{0x81}}) {
    Code code;
    code.push_back({0x7A, 10, -8, -2});
    code.push_back({opcode, 0 | 10 << 4, -8, 0});
    code.push_back(kExit);
    expect_same(code);
  }
}

// Jumps forwards and backwards over what becomes longer still lead to the same places.
TEST(Older, JumpsFindTheirPlaces) {
  Code code;
  code.push_back({0xB7, 0, 0, 0});            // 0: r0 = 0
  code.push_back({0xB7, 1, 0, 5});            // 1: r1 = 5
  code.push_back({0x06, 0, 0, 2});            // 2: goto 5, far
  code.push_back({0xBF, 0 | 1 << 4, 32, 0});  // 3: r0 = (signed) r1
  code.push_back(kExit);                      // 4
  code.push_back({0x37, 1, 1, -1});           // 5: r1 s/= -1
  code.push_back({0xC5, 1, -4, 0});           // 6: if r1 s< 0 goto 3
  code.push_back(kExit);                      // 7
  EXPECT_EQ(static_cast<int64_t>(result_of(code)), -5);
  expect_same(code);
}

TEST(Older, AFunctionOfTheWindowReturnsWhenThereIsNone) {
  Function function = function_of({{0xB7, 0, 0, 1}, kExit});
  function.is_main = false;
  const Expected<Function> older = for_older_kernel(function);
  ASSERT_TRUE(older);
  Code code;
  put_constant(1, 0, code);
  code.insert(code.end(), older->code.begin(), older->code.end());
  EXPECT_EQ(result_of(code), 0U);
  code[0].immediate = 8;
  EXPECT_EQ(result_of(code), 1U);
}

TEST(Older, AJumpThatIsTooFarIsRefused) {
  Code code;
  code.push_back({0x06, 0, 0, 40'000});
  for (int i = 0; i < 40'000; ++i)
    code.push_back({0xB7, 0, 0, 0});
  code.push_back(kExit);
  const Expected<Function> older = for_older_kernel(function_of(std::move(code)));
  ASSERT_FALSE(older);
  EXPECT_EQ(older.error().code, ErrorCode::Limit);
  EXPECT_EQ(older.error().message,
            "'d_test' is too long for this kernel: a jump over 40000 instructions");
}

}  // namespace
}  // namespace clew::kernel

// SPDX-License-Identifier: Apache-2.0
// Programs of D in processes: what they may do besides, and that others may not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "abi/calling.h"
#include "abi/context.h"
#include "abi/machine/process.h"
#include "isa/builder.h"
#include "native/code.h"
#include "native/print.h"

namespace clew::native {
namespace {

using isa::Builder;
using isa::Size;
using testing::HasSubstr;

constexpr uint32_t kGlobals = 0x4000'0000;

Environment environment() {
  return {.point = PointKind::Entry,
          .window_address = 0x1000'1000,
          .window_size_log2 = abi::kMachineWindowSizeLog2,
          .slot_address = 0x1000'0000,
          .generation_address = 0x1000'0F00,
          .is_machine = true,
          .globals_address = kGlobals,
          .globals_bytes = 64};
}

isa::Program finished(Builder& b) {
  return *b.move(isa::Register::R0, 0).exit().finish("test");
}

std::string error_of(Builder b, const Environment& with = environment()) {
  const auto code = translate(finished(b), with, {});
  return code ? "" : code.error().message;
}

Builder loading_global(uint32_t offset) {
  Builder b;
  b.load_global(isa::Register::R1, offset)
      .load(Size::Double, isa::Register::R2, isa::Register::R1, 0)
      .load_window(isa::Register::R3, 0x6000)
      .store(Size::Double, isa::Register::R3, 0, isa::Register::R2);
  return b;
}

Builder calling(uint32_t accessor) {
  Builder b;
  b.move(isa::Register::R2, 1)
      .move(isa::Register::R3, 2)
      .move(isa::Register::R4, 3)
      .move(isa::Register::R5, 4);
  b.call(static_cast<abi::Accessor>(accessor));
  return b;
}

TEST(TranslateD, GlobalsAreAtAbsoluteAddresses) {
  Builder b = loading_global(16);
  const auto code = translate(finished(b), environment(), {});
  ASSERT_TRUE(code) << code.error().message;
  EXPECT_THAT(print(*code), HasSubstr("[0x0000000040000010]"));
  EXPECT_EQ(error_of(loading_global(63)), "");
  EXPECT_THAT(error_of(loading_global(64)), HasSubstr("behind the globals"));
  Environment without = environment();
  without.globals_bytes = 0;
  EXPECT_THAT(error_of(loading_global(0), without), HasSubstr("behind the globals"));
}

TEST(TranslateD, AccessorsOfDAreCalledByD) {
  constexpr auto kLast = abi::kMachineProcessAccessorsEnd - 1;
  EXPECT_EQ(error_of(calling(static_cast<uint32_t>(abi::MachineAccessor::Load))), "");
  EXPECT_EQ(error_of(calling(kLast)), "");
  EXPECT_THAT(error_of(calling(kLast + 1)), HasSubstr("unknown accessor"));
  EXPECT_THAT(error_of(calling(abi::kAccessorCount)), HasSubstr("unknown accessor"));
  EXPECT_THAT(error_of(calling(abi::kMachineAccessorBase - 1)), HasSubstr("unknown accessor"));
  Environment query = environment();
  query.is_machine = false;
  EXPECT_THAT(error_of(calling(abi::kMachineAccessorBase), query), HasSubstr("unknown accessor"));
}

// Aggregate reads r2 to r4, Random none.
TEST(TranslateD, OnlyTheArgumentsThatAreReadAreLoaded) {
  Builder random = calling(static_cast<uint32_t>(abi::MachineAccessor::Random));
  const auto code = translate(finished(random), environment(), {});
  ASSERT_TRUE(code);
  EXPECT_EQ(code->bytes.size(), 5U);
  Builder aggregate = calling(static_cast<uint32_t>(abi::MachineAccessor::Aggregate));
  const auto more = translate(finished(aggregate), environment(), {});
  ASSERT_TRUE(more);
  EXPECT_TRUE(more->clobbers.has(abi::Register::R14));   // r4
  EXPECT_FALSE(more->clobbers.has(abi::Register::R15));  // r5
  EXPECT_FALSE(more->clobbers.has(abi::Register::R11));  // r1, which is the window in any case.
  EXPECT_TRUE(more->guarded);
}

TEST(TranslateD, WhatTheStubSavesMayBeMoreThanWhatIsWritten) {
  Environment with = environment();
  with.saved = abi::kAllSaved;
  Builder b = calling(static_cast<uint32_t>(abi::MachineAccessor::Random));
  const auto code = translate(finished(b), with, {});
  ASSERT_TRUE(code);
  EXPECT_EQ(code->clobbers.bits() & ~(1U << 10), with.saved.bits());
}

TEST(TranslateD, ArgumentsAreThoseOfTheProgramAfterACall) {
  Builder b;
  b.move(isa::Register::R6, isa::Register::R1);
  b.call(static_cast<abi::Accessor>(abi::MachineAccessor::Random));
  b.load(Size::Double, isa::Register::R2, isa::Register::R6, offsetof(abi::Context, arguments))
      .load_window(isa::Register::R3, 0x6000)
      .store(Size::Double, isa::Register::R3, 0, isa::Register::R2);
  const auto code = translate(finished(b), environment(), {});
  ASSERT_TRUE(code);
  EXPECT_THAT(print(*code), HasSubstr("rdi"));
}

TEST(TranslateD, LoopsHaveFuel) {
  Builder b;
  const isa::Label head = b.label();
  b.load_window(isa::Register::R3, 0x6000)
      .bind(head)
      .load(Size::Double, isa::Register::R2, isa::Register::R3, 0)
      .jump_if(isa::Jump::NotEqual, isa::Register::R2, 0, head);
  Environment with = environment();
  with.missed_fuel_offset = 0x7000;
  const auto code = translate(finished(b), with, {});
  ASSERT_TRUE(code) << code.error().message;
  EXPECT_THAT(print(*code), HasSubstr("0x0000000010008000]"));
  EXPECT_TRUE(code->clobbers.has(abi::kFuelRegister));
  with.branch_guards = true;
  EXPECT_THAT(error_of(b, with), HasSubstr("branch guards"));
}

TEST(TranslateD, GlobalsThatLookLikeWindowPointersAreRefused) {
  Environment low = environment();
  low.globals_address = 0x10000;
  EXPECT_THAT(error_of(loading_global(0), low), HasSubstr("globals"));
  Environment high = environment();
  high.globals_address = 0x7FFF'FFF0;
  EXPECT_THAT(error_of(loading_global(0), high), HasSubstr("globals"));
}

}  // namespace
}  // namespace clew::native

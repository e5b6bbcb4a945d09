// SPDX-License-Identifier: Apache-2.0
#include "engine/callees.h"

#include <array>
#include <cstring>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "abi/calling.h"
#include "abi/machine/process.h"
#include "isa/assembler.h"
#include "native/code.h"
#include "verify/verified_code.h"

namespace clew::engine {
namespace {

constexpr uint64_t kBody = 0x4000'0000;
constexpr uint32_t kWindow = 0x1000'1000;

using Entries = std::array<uint64_t, abi::kMachineProcessAccessorsEnd>;

Entries entries() {
  Entries all;
  for (size_t i = 0; i < all.size(); ++i)
    all[i] = kBody + 0x10000 + 16 * i;
  return all;
}

isa::Program program_of(const char* text) {
  auto program = isa::assemble(text);
  EXPECT_TRUE(program.has_value()) << program.error().message;
  return std::move(*program);
}

std::vector<uint64_t> addresses(const std::vector<verify::Callee>& callees) {
  std::vector<uint64_t> found;
  for (const verify::Callee& one : callees)
    found.push_back(one.address);
  return found;
}

const char* const kReads =
    "lddw window %r1, 0x400\nmov %r2, 8\nmov %r3, 0x1000\ncall try_read\nmov %r0, 0\nexit";

TEST(Callees, AreThoseOfTheProgramAndOfDivision) {
  const Entries all = entries();
  EXPECT_THAT(addresses(callees_of(program_of(kReads), all)),
              testing::ElementsAre(all[3], all[4], all[5], all[6],
                                   all[static_cast<size_t>(abi::Accessor::TryRead)],
                                   all[abi::kSparingDoorsBegin]));
}

// A body that calls any other accessor instead, such as d_raise, is refused; the sparing door of
// its own, too, as its stub has not saved what that changes.
TEST(Callees, NoBodyCallsAnythingElse) {
  const Entries all = entries();
  const isa::Program program = program_of(kReads);
  const native::Environment environment = {.point = native::PointKind::Entry,
                                           .window_address = kWindow,
                                           .window_size_log2 = 12,
                                           .slot_address = kWindow - 0x1000,
                                           .generation_address = kWindow - 0x100};
  const auto code = native::translate(program, environment, {});
  ASSERT_TRUE(code.has_value()) << code.error().message;
  ASSERT_EQ(code->calls.size(), 1U);
  const std::vector<verify::Callee> allowed = callees_of(program, all);
  const verify::Policy policy{.address = kBody,
                              .window_address = kWindow,
                              .window_size_log2 = 12,
                              .slot_address = kWindow - 0x1000,
                              .generation_address = kWindow - 0x100,
                              .stack_readable_bytes = 8,
                              .stack_mapped_bytes = 8,
                              .clobbers = code->clobbers,
                              .callees = allowed};
  std::vector<uint8_t> bytes = code->bytes;
  ASSERT_TRUE(native::relocate(*code, kBody, all, bytes));
  ASSERT_TRUE(verify::check(bytes, policy).has_value());
  const uint64_t next = kBody + code->calls[0].offset_bytes + 4;
  const uint64_t sparing = all[abi::kSparingDoorsBegin];
  uint32_t refused = 0;
  for (const uint64_t entry : all) {
    const auto distance = static_cast<uint32_t>(entry - next);
    std::memcpy(&bytes[code->calls[0].offset_bytes], &distance, sizeof distance);
    const auto checked = verify::check(bytes, policy);
    if (checked) continue;
    EXPECT_THAT(checked.error().message, testing::HasSubstr(entry == sparing ? "R15" : "R12"));
    ++refused;
  }
  EXPECT_EQ(refused, all.size() - allowed.size() + 1);
  EXPECT_THAT(
      addresses(allowed),
      testing::Not(testing::Contains(all[static_cast<size_t>(abi::MachineAccessor::Raise)])));
}

}  // namespace
}  // namespace clew::engine

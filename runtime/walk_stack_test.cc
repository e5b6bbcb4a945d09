// SPDX-License-Identifier: Apache-2.0
// The accessors WalkStack, WalkWithin and WalkLeft over tables and stacks that are made here.
#include <vector>

#include <gmock/gmock.h>
#include <unistd.h>

#include "abi/machine/unwind.h"
#include "abi/query_window.h"
#include "runtime/blob_testing.h"

namespace clew::runtime {
namespace {

using ::testing::ElementsAre;

constexpr uint64_t kRows = 16;
constexpr uint64_t kTablesBytes = abi::kUnwindRowsOffset + kRows * sizeof(abi::MachineUnwindRow);
constexpr uint32_t kWords = 512;  // In the region.
constexpr uint64_t kCode = 0x40'0000;
constexpr uint64_t kPage = 4096;

class WalkStack : public RuntimeBlob {
 protected:
  void SetUp() override {
    RuntimeBlob::SetUp();
    tables_ = map_at(0, kTablesBytes, MAP_SHARED);
    stack_ = reinterpret_cast<uint64_t*>(map_at(0, 3 * kPage, MAP_PRIVATE));
    ASSERT_TRUE(tables_ != nullptr && stack_ != nullptr);
    ASSERT_EQ(munmap(reinterpret_cast<uint8_t*>(stack_) + 2 * kPage, kPage), 0);
    header().pid = 4711;  // As the tracer knows it.
    session().layout.walk_offset = 2048;
    session().unwind_tables = reinterpret_cast<uint64_t>(tables_);
    session().unwind_rows = kRows;
    // Functions of 16 bytes: one with a frame of 24 bytes, one that keeps rbp at its top, and the
    // first of all.
    rule(2).kind = rule(3).kind = abi::MachineUnwindKind::Base;
    rule(2).pc_saved = rule(3).pc_saved = rule(3).fp_saved = abi::MachineSaved::AtCfa;
    rule(2).pc_offset = rule(3).pc_offset = -8;
    rule(2).base = abi::kDwarfSp;
    rule(2).offset = 24;
    rule(3).base = abi::kDwarfFp;
    rule(3).offset = 16;
    rule(3).fp_offset = -16;
    rule(4).kind = abi::MachineUnwindKind::End;
    put_rows({{0, 2}, {16, 3}, {32, 4}, {48, 0}});
    process().pid = 4711;
    process().version = 2;
    process().first_segment = 1;
    process().segment_count = 1;
    segment(1) = {kCode, kCode + 64, kCode, 3, 4};
    ASSERT_TRUE(stub(StubCall::Claim));
  }
  void TearDown() override {
    munmap(tables_, kTablesBytes);
    munmap(stack_, 2 * kPage);
    RuntimeBlob::TearDown();
  }

  abi::MachineUnwindRule& rule(uint32_t i) {
    return at<abi::MachineUnwindRule>(abi::kUnwindRulesOffset)[i];
  }
  abi::MachineUnwindSegment& segment(uint32_t i) {
    return at<abi::MachineUnwindSegment>(abi::kUnwindSegmentsOffset)[i];
  }
  abi::MachineUnwindProcess& process() {
    return at<abi::MachineUnwindProcess>(
        abi::kUnwindProcessesOffset)[abi::unwind_slot(4711, 0, abi::kMachineUnwindProcesses)];
  }
  void put_rows(const std::vector<abi::MachineUnwindRow>& rows) {
    for (size_t i = 0; i < rows.size(); ++i)
      at<abi::MachineUnwindRow>(abi::kUnwindRowsOffset)[3 + i] = rows[i];
  }
  // Of the stack, in words from the address where its pages meet.
  uint64_t& word(int i) { return stack_[kPage / 8 + static_cast<size_t>(i + 512) - 512]; }
  uint64_t address(int i) { return reinterpret_cast<uint64_t>(&word(i)); }

  // The words up to the first 0, and whether zeros follow.
  std::vector<uint64_t> words(uint32_t frames) {
    const auto* const all = reinterpret_cast<const uint64_t*>(own_region() + kWords);
    std::vector<uint64_t> found;
    uint32_t i = 0;
    for (; i < abi::stack_words(frames) && all[i] != 0; ++i)
      found.push_back(all[i]);
    for (; i < abi::stack_words(frames); ++i)
      EXPECT_EQ(all[i], 0U);
    EXPECT_EQ(all[i], 0xAAAA'AAAA'AAAA'AAAA);
    return found;
  }
  uint64_t walk(int from, uint32_t frames = 8, uint64_t base_pointer = 0) {
    std::memset(own_region() + kWords, 0xAA, 512);
    const uint64_t hash =
        access(Accessor::WalkStack, kWords, frames, address(from), base_pointer, 0);
    EXPECT_TRUE(kept_);
    return hash;
  }

  // From before the instruction at `pc`, with rsp at word(sp). What the stub has saved lies below
  // it, behind the red zone.
  uint64_t walk_within(uint64_t pc, int sp, const abi::AllSaved& registers, uint32_t frames = 8,
                       uint64_t base_pointer = 0) {
    std::memset(own_region() + kWords, 0xAA, 512);
    const uint64_t saved = address(sp) - abi::kRedZoneBytes - sizeof registers;
    std::memcpy(reinterpret_cast<void*>(saved), &registers, sizeof registers);
    const uint64_t entry = reinterpret_cast<uint64_t>(code_) +
                           thunk_offset(kSession, static_cast<uint32_t>(Accessor::WalkWithin));
    const uint64_t to = kWords;
    const uint64_t most = frames;
    uint64_t hash = 0;
    asm volatile(
        "mov %[to], %%r11\n mov %[most], %%rbx\n mov %[pc], %%r12\n mov %[fp], %%r14\n"
        "mov %[entry], %%r10\n mov %[saved], %%r15\n"
        "mov %%rsp, %%r13\n mov %%r15, %%rsp\n call *%%r10\n mov %%r13, %%rsp\n"
        : "=a"(hash)
        : [to] "m"(to), [most] "m"(most), [pc] "m"(pc), [fp] "m"(base_pointer), [entry] "m"(entry),
          [saved] "m"(saved)
        : "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15",
          "memory", "cc");
    return hash;
  }

  uint8_t* tables_ = nullptr;
  uint64_t* stack_ = nullptr;

 private:
  template <typename Row>
  Row* at(uint64_t offset) {
    return reinterpret_cast<Row*>(tables_ + offset);
  }
};

TEST_F(WalkStack, FollowsRulesAcrossPagesToTheEnd) {
  word(-3) = kCode + 4;   // The return address of the probed function: into the first one,
  word(0) = kCode + 20;   // whose frame has 24 bytes: into the second,
  word(4) = address(10);  // whose rbp is here, with its caller's,
  word(5) = kCode + 40;   // and leads to the outermost one.
  const auto self = static_cast<uint64_t>(getpid());
  const uint64_t hash = walk(-3, 8, address(4));
  EXPECT_NE(hash, 0U);
  EXPECT_THAT(words(8), ElementsAre(self, kCode + 4, kCode + 20, kCode + 40));
  EXPECT_EQ(walk(-3, 8, address(4)), hash);
  EXPECT_NE(walk(-3, 2, address(4)), hash);
  EXPECT_THAT(words(2), ElementsAre(self, kCode + 4, kCode + 20));
  EXPECT_NE(walk(-3, 0), 0U);
  EXPECT_THAT(words(0), ElementsAre(self));
  EXPECT_EQ(target_page().unknown_code[kSession], 0U);
}

TEST_F(WalkStack, WithinAFunctionBeginsThere) {
  word(-8) = kCode + 20;  // Of a function with a frame of 24 bytes, whose caller keeps rbp.
  word(4) = address(10);
  word(5) = kCode + 40;
  const auto self = static_cast<uint64_t>(getpid());
  const uint64_t hash = walk_within(kCode + 4, -10, {}, 8, address(4));
  EXPECT_NE(hash, 0U);
  EXPECT_THAT(words(8), ElementsAre(self, kCode + 4, kCode + 20, kCode + 40));
  EXPECT_EQ(walk_within(kCode + 4, -10, {}, 8, address(4)), hash);
  EXPECT_NE(walk_within(kCode + 5, -10, {}, 8, address(4)), hash);
  EXPECT_NE(walk_within(kCode + 4, -10, {}, 1, address(4)), 0U);
  EXPECT_THAT(words(1), ElementsAre(self, kCode + 4));
  // The first instruction of the code behind that of a call that does not return: not a return.
  word(-8) = kCode + 40;
  EXPECT_NE(walk_within(kCode, -10, {}), 0U);
  EXPECT_THAT(words(8), ElementsAre(self, kCode, kCode + 40));
  EXPECT_EQ(target_page().unknown_code[kSession], 0U);
}

// By DWARF's numbers (psABI x86-64, figure 3.36), without rbp and rsp.
constexpr uint64_t abi::AllSaved::*kRegisters[] = {&abi::AllSaved::rax,
                                                   &abi::AllSaved::rdx,
                                                   &abi::AllSaved::rcx,
                                                   &abi::AllSaved::rbx,
                                                   &abi::AllSaved::rsi,
                                                   &abi::AllSaved::rdi,
                                                   nullptr,
                                                   nullptr,
                                                   &abi::AllSaved::r8,
                                                   &abi::AllSaved::r9,
                                                   &abi::AllSaved::r10,
                                                   &abi::AllSaved::r11,
                                                   &abi::AllSaved::r12,
                                                   &abi::AllSaved::r13,
                                                   &abi::AllSaved::r14,
                                                   &abi::AllSaved::r15};

TEST_F(WalkStack, WithinAFunctionFollowsARuleOfAnyRegister) {
  const auto self = static_cast<uint64_t>(getpid());
  put_rows({{0, 2}, {16, 3}, {32, 4}, {48, 5}});
  rule(5).kind = abi::MachineUnwindKind::Base;
  rule(5).pc_saved = abi::MachineSaved::AtCfa;
  rule(5).pc_offset = -8;
  rule(5).offset = 16;
  word(9) = kCode + 40;
  for (uint8_t number = 0; number < std::size(kRegisters); ++number) {
    if (kRegisters[number] == nullptr) continue;
    process().version += 2;  // Nothing is known of the rules from now on.
    rule(5).base = number;
    abi::AllSaved registers = {};
    registers.*kRegisters[number] = address(8);
    EXPECT_NE(walk_within(kCode + 50, -10, registers), 0U);
    EXPECT_THAT(words(8), ElementsAre(self, kCode + 50, kCode + 40)) << unsigned{number};
  }
  // What a caller had in it is not known.
  rule(5).base = 12;
  word(-8) = kCode + 50;
  process().version += 2;
  abi::AllSaved registers = {};
  registers.r12 = address(8);
  EXPECT_NE(walk_within(kCode + 4, -10, registers), 0U);
  EXPECT_THAT(words(8), ElementsAre(self, kCode + 4, kCode + 50));
}

// The unwinder has put an address in place of a return address: the first instruction of a row, or
// of another function's.
TEST_F(WalkStack, OfACallThatIsLeftGoesOnWhereTheUnwinderDoes) {
  counters().unwind_from = address(-3);
  word(-3) = kCode + 4;  // Into a function with a frame of 24 bytes,
  word(0) = kCode + 16;  // left for the second, whose rbp is here,
  word(4) = address(10);
  word(5) = kCode + 40;
  const auto walk_left = [&](int goes_on) {
    std::memset(own_region() + kWords, 0xAA, 512);
    return access(Accessor::WalkLeft, kWords, 8, address(goes_on), address(4), 0);
  };
  const auto self = static_cast<uint64_t>(getpid());
  EXPECT_NE(walk_left(0), 0U);
  EXPECT_TRUE(kept_);
  EXPECT_THAT(words(8), ElementsAre(self, kCode + 4, kCode + 16, kCode + 40));
  counters().unwind_from = address(0);
  EXPECT_NE(walk_left(0), 0U);
  EXPECT_THAT(words(8), ElementsAre(self, kCode + 16, kCode + 40));
  EXPECT_EQ(counters().unwind_from, address(0));
}

TEST_F(WalkStack, WithinUnknownCodeIsThatPlaceAlone) {
  EXPECT_NE(walk_within(kCode + 4711, -10, {}), 0U);
  EXPECT_THAT(words(8), ElementsAre(getpid(), kCode + 4711));
  EXPECT_EQ(target_page().unknown_code[kSession], 1U);
}

TEST_F(WalkStack, EndsWhereTheStackCannotBeRead) {
  word(-3) = kCode + 4;
  word(0) = kCode + 20;
  EXPECT_NE(walk(-3, 8, address(512)), 0U);  // The page behind is not there.
  EXPECT_THAT(words(8), ElementsAre(getpid(), kCode + 4, kCode + 20));
  EXPECT_NE(walk(-3, 8, address(4) + 1), 0U);
  EXPECT_THAT(words(8), ElementsAre(getpid(), kCode + 4, kCode + 20));
  EXPECT_EQ(access(Accessor::WalkStack, kWords, 8, address(512), 0, 0), 0U);
  header().system_calls_allowed = 0;
  EXPECT_EQ(walk(-3), 0U);
}

TEST_F(WalkStack, EndsAtCodeOfWhichNothingIsKnownAndTells) {
  word(-3) = kCode + 0x1000;
  word(-2) = 0;
  word(-1) = kCode + 4;
  EXPECT_NE(walk(-3, 8, address(-2)), 0U);
  EXPECT_THAT(words(8), ElementsAre(getpid(), kCode + 0x1000));
  EXPECT_EQ(target_page().unknown_code[kSession], 1U);
}

TEST_F(WalkStack, WithoutTablesIsNone) {
  word(-3) = kCode + 40;
  EXPECT_NE(walk(-3), 0U);
  process().version = 3;  // The tracer is at it.
  EXPECT_EQ(walk(-3), 0U);
  EXPECT_THAT(words(8), ElementsAre());
  process().version = 4;
  EXPECT_NE(walk(-3), 0U);
  process().pid = abi::kMachineUnwindRemoved;
  EXPECT_EQ(walk(-3), 0U);
  process().pid = 4711;
  session().unwind_tables = 0;
  EXPECT_EQ(walk(-3), 0U);
  EXPECT_THAT(words(8), ElementsAre());
}

// Indices of the tables lead nowhere else, whatever they are.
TEST_F(WalkStack, SurvivesTablesThatMakeNoSense) {
  word(-3) = kCode + 4;
  uint64_t state = 1;
  const auto random = [&state] { return state = state * 6364136223846793005U + 1; };
  for (int round = 0; round < 20'000; ++round) {
    auto* const bytes = reinterpret_cast<uint8_t*>(&segment(1));
    bytes[(random() >> 33) % sizeof(abi::MachineUnwindSegment)] =
        static_cast<uint8_t>(random() >> 40);
    put_rows({{static_cast<uint32_t>(random()), static_cast<uint32_t>(random() >> 20)}});
    reinterpret_cast<uint8_t*>(&rule(2))[random() >> 33 & 31] =
        static_cast<uint8_t>(random() >> 40);
    process().first_segment = static_cast<uint32_t>(random() >> 30);
    process().segment_count = static_cast<uint32_t>(random() >> 30);
    (void)walk(-3, 8, random() >> 17);
    (void)words(8);
  }
}

}  // namespace
}  // namespace clew::runtime

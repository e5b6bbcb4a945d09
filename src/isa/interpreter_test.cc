// SPDX-License-Identifier: Apache-2.0
// What the conformance vectors do not reach: the context, site constants, accessors, fuel, and each
// way in which a run is refused.
#include "isa/interpreter.h"

#include <cstring>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "isa/assembler.h"

namespace clew::isa {
namespace {

using testing::HasSubstr;

constexpr uint32_t kTableOffset = 1024;
constexpr uint32_t kRecordsOffset = 4096;
constexpr uint32_t kWindowSize = 8192;

abi::RegionLayout layout() {
  abi::RegionLayout layout{};
  layout.generations = 2;
  layout.table_count = 1;
  layout.tables[0] = {.offset = kTableOffset, .entries_log2 = 3, .key_words = 2, .cell_words = 1};
  layout.records = {.offset = kRecordsOffset, .records_log2 = 3, .payload_words = 1, .reserved = 0};
  return layout;
}

class Interpreter : public testing::Test {
 protected:
  Interpreter() {
    environment_.window = window_;
    environment_.context = &context_;
    environment_.site_constants = constants_;
    environment_.host = &host_;
  }

  Expected<Outcome> run(std::string_view text) {
    const Expected<Program> program = assemble(text, "p");
    EXPECT_TRUE(program) << program.error().message;
    return interpret(*program, environment_);
  }

  uint64_t result_of(std::string_view text) {
    const Expected<Outcome> outcome = run(text);
    EXPECT_TRUE(outcome) << outcome.error().message;
    return outcome ? outcome->result : ~uint64_t{0};
  }

  std::string error_of(std::string_view text) {
    const Expected<Outcome> outcome = run(text);
    return outcome ? "no error" : outcome.error().message;
  }

  uint64_t word_at(uint64_t offset) {
    uint64_t word = 0;
    std::memcpy(&word, window_.data() + offset, sizeof word);
    return word;
  }

  std::vector<uint8_t> window_ = std::vector<uint8_t>(kWindowSize);
  abi::Context context_{};
  std::vector<uint64_t> constants_{11, 0x1234'5678'9ABC'DEF0};
  RegionHost host_{layout()};
  Environment environment_;
};

TEST_F(Interpreter, LoadsFromTheContext) {
  context_.arguments[2] = 0xFFFF'FFFF'8000'0001;
  context_.stack_arguments[9] = 77;
  EXPECT_EQ(result_of("ldxdw %r0, [%r1+16]\nexit"), context_.arguments[2]);
  EXPECT_EQ(result_of("ldxsw %r0, [%r1+16]\nexit"), 0xFFFF'FFFF'8000'0001U);
  EXPECT_EQ(result_of("ldxb %r0, [%r1+23]\nexit"), 0xFFU);
  EXPECT_EQ(result_of("ldxdw %r0, [%r1+176]\nexit"), 77U);
  EXPECT_THAT(error_of("ldxdw %r0, [%r1+264]\nexit"), HasSubstr("outside the window"));
  EXPECT_THAT(error_of("stdw [%r1], 0\nexit"), HasSubstr("instruction 0: store of 8 bytes"));
}

TEST_F(Interpreter, LoadsSiteConstantsAndWindowPointers) {
  EXPECT_EQ(result_of("lddw site %r0, 1\nexit"), constants_[1]);
  EXPECT_THAT(error_of("lddw site %r0, 2\nexit"), HasSubstr("site constant 2 was not given"));
  EXPECT_THAT(error_of("lddw global %r0, 8\nexit"), HasSubstr("there are no globals here"));
  EXPECT_EQ(result_of("lddw window %r2, 0x400\nstdw [%r2+8], -2\nmov %r0, %r2\nexit"), 0x400U);
  EXPECT_EQ(word_at(0x408), ~uint64_t{1});
}

TEST_F(Interpreter, RefusesAccessesOutsideTheWindow) {
  EXPECT_EQ(result_of("ldxdw %r0, [%r10+7416]\nexit"), 0U);  // 768 + 7416 + 8 = 8192
  EXPECT_THAT(error_of("ldxdw %r0, [%r10+7417]\nexit"), HasSubstr("at 0x1ff9, outside"));
  EXPECT_THAT(error_of("mov %r2, 15\nldxb %r0, [%r2]\nexit"), HasSubstr("at 0xf, outside"));
  EXPECT_THAT(error_of("mov %r2, -1\nstb [%r2], 0\nexit"), HasSubstr("outside the window"));
  EXPECT_THAT(error_of("mov %r2, 0\nlock add [%r2], %r1\nexit"),
              HasSubstr("atomic access of 8 bytes at 0x0"));
}

TEST_F(Interpreter, RefusesMisalignedAtomics) {
  EXPECT_THAT(error_of("lock add32 [%r10-6], %r1\nexit"), HasSubstr("misaligned"));
}

TEST_F(Interpreter, TheFarJumpTakesItsDistanceFromTheImmediate) {
  EXPECT_EQ(result_of("mov %r0, 1\nja32 +2\nmov %r0, 2\nexit\nmov %r0, 3\nja32 -3"), 3U);
}

TEST_F(Interpreter, StopsWhenTheFuelIsUsedUp) {
  environment_.fuel = 10;
  const Expected<Outcome> endless = run("again: ja again");
  ASSERT_FALSE(endless);
  EXPECT_EQ(endless.error().code, ErrorCode::Limit);
  environment_.fuel = 3;
  const Expected<Outcome> exact = run("lddw %r0, 1\nadd %r0, 1\nexit");
  ASSERT_TRUE(exact);
  EXPECT_EQ(exact->instructions, 3U);
}

TEST_F(Interpreter, GivesEachCalledFunctionItsFrameAndKeepsR6ToR9) {
  EXPECT_EQ(result_of("mov %r6, 6\n"
                      "stdw [%r10-8], 100\n"
                      "call local f\n"
                      "ldxdw %r1, [%r10-8]\n"
                      "add %r0, %r1\n"
                      "add %r0, %r6\n"
                      "exit\n"
                      "f: mov %r6, 0\n"
                      "stdw [%r10-8], 1000\n"
                      "ldxdw %r0, [%r10-8]\n"
                      "exit"),
            1106U);
  EXPECT_THAT(error_of("f: call local f\nexit"), HasSubstr("more than 8 calls deep"));
}

TEST_F(Interpreter, ComputesTheArithmeticAccessors) {
  EXPECT_EQ(result_of("mov %r1, 0\ncall bit_length\nexit"), 0U);
  EXPECT_EQ(result_of("mov %r1, -1\ncall bit_length\nexit"), 64U);
  EXPECT_EQ(result_of("mov %r1, 7\nmov %r2, 0\ncall divide_unsigned\nexit"), 0U);
  EXPECT_EQ(result_of("mov %r1, 7\nmov %r2, 0\ncall modulo_signed\nexit"), 7U);
  EXPECT_EQ(result_of("mov %r1, -7\nmov %r2, 2\ncall divide_signed\nexit"), uint64_t(-3));
  EXPECT_EQ(result_of("lddw %r1, 0x8000000000000000\nmov %r2, -1\ncall divide_signed\nexit"),
            uint64_t{1} << 63);
  EXPECT_EQ(result_of("mov %r1, -7\nmov %r2, 4\ncall modulo_signed\nexit"), uint64_t(-3));
}

TEST_F(Interpreter, ReadsMemoryThroughTheHost) {
  const std::string text = "hello";
  host_.read_memory = [&](std::span<uint8_t> to, uint64_t address) {
    if (address < 0x1000 || address + to.size() > 0x1000 + text.size() + 1) return false;
    std::memcpy(to.data(), text.c_str() + (address - 0x1000), to.size());
    return true;
  };
  const char* read = "lddw window %r1, 1024\nmov %r2, 6\nmov %r3, 0x1000\ncall try_read\nexit";
  EXPECT_EQ(result_of(read), 1U);
  EXPECT_EQ(std::memcmp(window_.data() + 1024, "hello", 6), 0);
  // One byte too many: nothing is read, and what was there is wiped.
  EXPECT_EQ(result_of("lddw window %r1, 1024\nmov %r2, 7\nmov %r3, 0x1000\ncall try_read\nexit"),
            0U);
  EXPECT_EQ(window_[1024], 0);
}

TEST_F(Interpreter, ReadsStringsUpToTheirNulOrTheGivenSize) {
  host_.read_memory = [](std::span<uint8_t> to, uint64_t address) {
    const std::string text = "hello";
    for (size_t k = 0; k < to.size(); ++k) {
      if (address + k > text.size()) return false;
      to[k] = static_cast<uint8_t>(text.c_str()[address + k]);
    }
    return true;
  };
  const auto read = [&](int size, int address) {
    return result_of(
        fmt::format("lddw window %r1, 1024\nmov %r2, {}\nmov %r3, {}\n"
                    "call try_read_string\nexit",
                    size, address));
  };
  EXPECT_EQ(read(64, 0), 5U);
  EXPECT_EQ(read(4, 1), 3U);
  EXPECT_EQ(std::memcmp(window_.data() + 1024, "ell", 4), 0);
  EXPECT_EQ(read(64, 6), ~uint64_t{0});
  EXPECT_EQ(window_[1024], 0);
  EXPECT_EQ(read(1, 0), 0U);
}

TEST_F(Interpreter, RefusesReadsOutsideTheAccessorsContract) {
  EXPECT_THAT(error_of("mov %r1, 1024\nmov %r2, 4097\nmov %r3, 0\ncall try_read\nexit"),
              HasSubstr("a read of 4097 bytes"));
  EXPECT_THAT(error_of("mov %r1, 8190\nmov %r2, 8\nmov %r3, 0\ncall try_read\nexit"),
              HasSubstr("outside the window"));
}

// The key {1, key} with a hash that starts at position 6, so that the probes wrap.
std::string find_text(uint64_t key) {
  return fmt::format(
      "stdw [%r10-16], 1\nstdw [%r10-8], {}\nmov %r1, 0\nmov %r2, %r10\nadd %r2, -16\n"
      "lddw %r3, 0xc000000000000010\ncall table_find\nexit",
      key);
}

TEST_F(Interpreter, FindsOrInsertsTableEntriesAndCountsWhatIsDropped) {
  constexpr uint64_t kEntrySize = 32;
  EXPECT_EQ(result_of(find_text(100)), kTableOffset + 6 * kEntrySize + 24);
  EXPECT_EQ(word_at(kTableOffset + 6 * kEntrySize), 0xc000'0000'0000'0011U);
  EXPECT_EQ(word_at(kTableOffset + 6 * kEntrySize + 16), 100U);
  EXPECT_EQ(result_of(find_text(101)), kTableOffset + 7 * kEntrySize + 24);
  EXPECT_EQ(result_of(find_text(102)), kTableOffset + 0 * kEntrySize + 24);
  EXPECT_EQ(result_of(find_text(101)), kTableOffset + 7 * kEntrySize + 24);
  for (uint64_t key = 103; key < 108; ++key)
    EXPECT_NE(result_of(find_text(key)), 0U);
  EXPECT_EQ(result_of(find_text(108)), kTableOffset + (8 + 6) * kEntrySize + 24);  // Turned.
  for (uint64_t key = 109; key < 116; ++key)
    EXPECT_NE(result_of(find_text(key)), 0U);
  EXPECT_EQ(result_of(find_text(116)), 0U);
  EXPECT_EQ(word_at(offsetof(abi::RegionHeader, dropped_table)), 1U);
  host_.generation = 1;
  EXPECT_EQ(result_of(find_text(100)), kTableOffset + (24 + 6) * kEntrySize + 24);
}

std::string record_text(std::string_view accessor, uint64_t frame, uint64_t function) {
  return fmt::format("lddw %r1, {}\ncall {}\nexit", frame | function << abi::kFunctionIdShift,
                     accessor);
}

TEST_F(Interpreter, PairsRecordsByFrameAndFunction) {
  const uint64_t frame = 0x7FFF'0000'0000;
  const uint64_t payload = result_of(record_text("record_put", frame, 5));
  EXPECT_EQ(payload, kRecordsOffset + 8);
  EXPECT_EQ(result_of(record_text("record_put", frame, 5)), payload);
  EXPECT_EQ(result_of(record_text("record_put", frame, 6)), payload + 16);
  EXPECT_EQ(result_of(record_text("record_take", frame, 5)), payload);
  EXPECT_EQ(result_of(record_text("record_take", frame, 5)), 0U);
  EXPECT_EQ(word_at(offsetof(abi::RegionHeader, missed_unpaired)), 1U);
  EXPECT_EQ(result_of(record_text("record_take", frame, 6)), payload + 16);
}

TEST_F(Interpreter, TakesTheRecordsOfCallsThatAnUnwinderLeaves) {
  constexpr uint64_t kFrame = 0x7FFF'0000'0000;
  std::vector<uint64_t> payloads;
  for (uint64_t k = 0; k < 4; ++k)
    payloads.push_back(result_of(record_text("record_put", kFrame + 32 * k, 5)));
  const std::string left = record_text("record_take_left", kFrame + 32 * 3, 0);
  EXPECT_EQ(result_of(left), 0U);  // Nobody unwinds.
  result_of(fmt::format("lddw window %r1, {}\nlddw %r2, {}\nstxdw [%r1], %r2\nmov %r0, 0\nexit",
                        offsetof(abi::RegionHeader, unwind_from), kFrame + 32));
  EXPECT_EQ(result_of(left), payloads[1]);
  EXPECT_EQ(result_of(left), payloads[2]);
  EXPECT_EQ(result_of(left), 0U);
  EXPECT_EQ(result_of(record_text("record_drop", kFrame, 5)), 1U);
  EXPECT_EQ(result_of(record_text("record_drop", kFrame + 32, 5)), 0U);
  EXPECT_EQ(result_of(record_text("record_drop", kFrame + 32 * 3, 5)), 1U);
  EXPECT_EQ(word_at(offsetof(abi::RegionHeader, missed_unpaired)), 0U);
}

TEST_F(Interpreter, TakesOverRecordsOfDeadFramesAndCountsWhatDoesNotFit) {
  const uint64_t frame = 0x7FFF'0000'0000;
  for (uint64_t k = 0; k < 8; ++k) {
    EXPECT_NE(result_of(record_text("record_put", frame + 16 * k, 1)), 0U);
  }
  EXPECT_EQ(result_of(record_text("record_put", frame - 16, 1)), 0U);  // All others are callers.
  EXPECT_EQ(word_at(offsetof(abi::RegionHeader, missed_records)), 1U);
  EXPECT_NE(result_of(record_text("record_put", frame + 16 * 8, 1)), 0U);
}

TEST_F(Interpreter, TimeGrowsAndACallWithoutAHostIsRefused) {
  EXPECT_EQ(result_of("call time\nmov %r6, %r0\ncall time\nsub %r0, %r6\nexit"), 1U);
  environment_.host = nullptr;
  EXPECT_THAT(error_of("call cpu\nexit"), HasSubstr("no host"));
}

}  // namespace
}  // namespace clew::isa

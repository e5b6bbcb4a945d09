// SPDX-License-Identifier: Apache-2.0
// Where blocks begin and end, and what leads where.
#include "code/blocks.h"

#include <array>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "code/blocks_checks.h"
#include "code/image_text.h"
#include "code/text_cases.h"

namespace clew::code {
namespace {

std::string name_of(EdgeKind kind) {
  static constexpr auto kNames = std::to_array<const char*>(
      {"next", "taken", "case", "back", "tail", "elsewhere", "ret", "switch", "label", "unknown"});
  return kNames.at(static_cast<size_t>(kind));
}

// "0: next 4, taken 9; 4: ret": where each block begins, and its edges.
std::string blocks_of(const TextCase& text, const uint8_t* function) {
  const ModuleCode code = analyse(text.text);
  const NoReturn noreturn(code, {});
  const uint32_t range = *code.function_starting_at(at(function));
  EXPECT_EQ(BlocksCheck(code, stops_of(code), range, noreturn).broken(), "");
  const Blocks blocks = find_blocks(code, range, noreturn);
  std::string shown;
  for (const Block& block : blocks.blocks()) {
    if (!shown.empty()) shown += "; ";
    shown += std::to_string(block.begin - at(function)) + ':';
    for (const Edge& edge : blocks.edges_of(block)) {
      if (shown.back() != ':') shown += ',';
      shown += ' ' + name_of(edge.kind);
      if (edge.target != 0) shown += ' ' + std::to_string(edge.target - at(function));
    }
  }
  return shown;
}

bool is_whole(const TextCase& text, const uint8_t* function) {
  const ModuleCode code = analyse(text.text);
  const NoReturn noreturn(code, {});
  return find_blocks(code, *code.function_starting_at(at(function)), noreturn).is_whole();
}

CLEW_TEXT_CASE(loop_blocks, R"(
  test %edi, %edi
  je 2f
  1: nop
  dec %edi
  jne 1b
  2: ret
  nop
)");

TEST(Blocks, AreCutAtBranchesAndTheirTargets) {
  const TextCase text =
      TextCase(loop_blocks, loop_blocks_end).function(loop_blocks, loop_blocks_end);
  EXPECT_EQ(blocks_of(text, loop_blocks), "0: taken 9, next 4; 4: taken 4, next 9; 9: ret");
}

CLEW_TEXT_CASE(run_blocks, R"(
  nop
  syscall
  nop
  jmp 1f
  dec %eax
  1: int3
  inc %edi
  2: inc %edi
  jmp 2b
)");

TEST(Blocks, AreOfReachedCodeOnly) {
  const TextCase text = TextCase(run_blocks, run_blocks_end).function(run_blocks, run_blocks_end);
  EXPECT_EQ(blocks_of(text, run_blocks), "0: taken 8; 8: next 9; 9: next 11; 11: taken 11");
}

CLEW_TEXT_CASE(calls_blocks, R"(
  call calls_returns
  call *%rax
  call calls_stops
  inc %eax
  1: call calls_jumps
  calls_returns: jmp *%rax
  calls_jumps: test %eax, %eax
  je calls_stops
  calls_stops: ud2
  ret
)");
CLEW_LABEL(calls_returns);
CLEW_LABEL(calls_jumps);
CLEW_LABEL(calls_stops);

TEST(Blocks, EndAtCallsAndGoOnBehindThoseThatComeBack) {
  const TextCase text = TextCase(calls_blocks, calls_blocks_end)
                            .function(calls_blocks, calls_returns)
                            .function(calls_returns, calls_jumps)
                            .function(calls_jumps, calls_stops)
                            .function(calls_stops, calls_blocks_end);
  EXPECT_EQ(blocks_of(text, calls_blocks), "0: back 5; 5: back 7; 7:");
  EXPECT_EQ(blocks_of(text, calls_returns), "0: tail");
  EXPECT_EQ(blocks_of(text, calls_jumps), "0: tail 4, tail 4");
  EXPECT_EQ(blocks_of(text, calls_stops), "0:");
}

TEST(Blocks, OfAFunctionThatEndsBehindACallEndThere) {
  const TextCase text =
      TextCase(calls_blocks, calls_blocks_end).function(calls_blocks, calls_returns);
  EXPECT_EQ(blocks_of(text, calls_blocks), "0: back 5; 5: back 7; 7: back 12; 12:");
}

CLEW_TEXT_CASE(parts_blocks, R"(
  test %edi, %edi
  jne parts_cold
  parts_back: ret
  parts_other: inc %eax
  jmp parts_middle
  parts_third: nop
  parts_middle: ret
  parts_cold: inc %edi
  jmp parts_back
)");
CLEW_LABEL(parts_back);
CLEW_LABEL(parts_other);
CLEW_LABEL(parts_third);
CLEW_LABEL(parts_cold);

TEST(Blocks, OfColdPartsAreTheFunctionsAndTheMiddleOfAnotherIsNot) {
  const TextCase text = TextCase(parts_blocks, parts_blocks_end)
                            .function(parts_blocks, parts_other)
                            .function(parts_other, parts_third)
                            .function(parts_third, parts_cold)
                            .part(parts_cold, parts_blocks_end, 0);
  EXPECT_EQ(blocks_of(text, parts_blocks), "0: taken 11, next 4; 4: ret; 11: taken 4");
  EXPECT_EQ(blocks_of(text, parts_other), "0: elsewhere 5");
  EXPECT_EQ(blocks_of(text, parts_third), "0: next 1; 1: ret");
}

CLEW_TEXT_CASE(on_blocks, R"(
  test %edi, %edi
  je on_next
  on_end: nop
  int3
  on_next: ret
)");
CLEW_LABEL(on_end);
CLEW_LABEL(on_next);

TEST(Blocks, RunOnIntoTheNextFunctionOverPadding) {
  const TextCase text = TextCase(on_blocks, on_blocks_end)
                            .function(on_blocks, on_end)
                            .function(on_next, on_blocks_end);
  EXPECT_EQ(blocks_of(text, on_blocks), "0: tail 6, tail 6");
}

CLEW_TEXT_CASE(pads_blocks, R"(
  inc %eax
  jmp 1f
  pads_landing: inc %edi
  1: ret
)");
CLEW_LABEL(pads_landing);

TEST(Blocks, BeginAtLandingPadsToWhichNoEdgeLeads) {
  TextCase text = TextCase(pads_blocks, pads_blocks_end).function(pads_blocks, pads_blocks_end);
  EXPECT_EQ(blocks_of(text, pads_blocks), "0: taken 6; 6: ret");
  text.text.landing_pads = {at(pads_landing)};
  EXPECT_EQ(blocks_of(text, pads_blocks), "0: taken 6; 4: next 6; 6: ret");
}

CLEW_TEXT_CASE(switch_blocks, R"(
  cmp $1, %edi
  ja 3f
  lea switch_blocks_table(%rip), %rdx
  movslq (%rdx,%rdi,4), %rax
  add %rdx, %rax
  jmp *%rax
  1: ret
  2: inc %eax
  3: ret
  .pushsection .rodata
  .balign 4
  switch_blocks_table: .long 1b - switch_blocks_table, 2b - switch_blocks_table
  switch_blocks_table_end:
  .popsection
)");
CLEW_LABEL(switch_blocks_table);
CLEW_LABEL(switch_blocks_table_end);

TEST(Blocks, FollowSwitchTables) {
  TextCase text = TextCase(switch_blocks, switch_blocks_end)
                      .function(switch_blocks, switch_blocks_end)
                      .data(switch_blocks_table, switch_blocks_table_end);
  EXPECT_EQ(blocks_of(text, switch_blocks),
            "0: taken 24, next 5; 5: case 21, case 22; 21: ret; 22: next 24; 24: ret");
  EXPECT_TRUE(is_whole(text, switch_blocks));
  text.text.sections.pop_back();
  EXPECT_EQ(blocks_of(text, switch_blocks), "0: taken 24, next 5; 5: unknown; 24: ret");
  EXPECT_FALSE(is_whole(text, switch_blocks));
}

CLEW_TEXT_CASE(labels_blocks, R"(
  push %rbx
  jmp *%rax
  labels_blocks_1: pop %rbx
  ret
)");
CLEW_LABEL(labels_blocks_1);

TEST(Blocks, FollowLabelsThatAreStored) {
  TextCase text =
      TextCase(labels_blocks, labels_blocks_end).function(labels_blocks, labels_blocks_end);
  EXPECT_FALSE(is_whole(text, labels_blocks));
  text.text.code_pointers = {at(labels_blocks_1)};
  EXPECT_EQ(blocks_of(text, labels_blocks), "0: label; 3: ret");
  EXPECT_TRUE(is_whole(text, labels_blocks));
}

CLEW_TEXT_CASE(lock_blocks, R"(
  je 1f
  lock
  1: incl (%rdi)
  ret
  lock_far: lret
  lock_unwinds: mov %rcx, %rsp
  pop %rcx
  jmp *%rcx
  lock_bad: inc %eax
  .byte 0x06
  ret
)");
CLEW_LABEL(lock_far);
CLEW_LABEL(lock_unwinds);
CLEW_LABEL(lock_bad);

TEST(Blocks, SayWhereTheyDoNotKnowTheWay) {
  const TextCase text = TextCase(lock_blocks, lock_blocks_end)
                            .function(lock_blocks, lock_far)
                            .function(lock_far, lock_unwinds)
                            .function(lock_unwinds, lock_bad)
                            .function(lock_bad, lock_blocks_end);
  EXPECT_EQ(blocks_of(text, lock_blocks), "0: unknown 3, next 2; 2: ret");
  EXPECT_EQ(blocks_of(text, lock_far), "0: unknown");
  EXPECT_EQ(blocks_of(text, lock_unwinds), "0: switch");
  EXPECT_EQ(blocks_of(text, lock_bad), "0: unknown 2");
  EXPECT_FALSE(is_whole(text, lock_blocks));
  EXPECT_FALSE(is_whole(text, lock_bad));
}

// Random ranges over random bytes that are mostly branches.
TEST(Blocks, OfRandomBytesKeepEveryInvariant) {
  static constexpr auto kOpcodes =
      std::to_array<uint8_t>({0x74, 0xeb, 0xe8, 0xc3, 0xff, 0x90, 0x48, 0x0f, 0xcc, 0xe0, 0x5b});
  std::mt19937_64 random(1);
  std::vector<uint8_t> bytes(512);
  size_t blocks = 0;
  for (unsigned round = 0; round < 2'000; ++round) {
    for (uint8_t& byte : bytes) {
      const uint64_t value = random();
      byte = (value & 0x300) == 0 ? kOpcodes.at((value >> 16) % kOpcodes.size())
                                  : static_cast<uint8_t>(value & ((value & 0x400) == 0 ? 255 : 15));
    }
    ModuleText text;
    text.sections = {{round % 2 == 0 ? 0U : 0x1000U, bytes, true}};
    for (unsigned i = 0; i < 8; ++i) {
      const uint32_t owner = random() % 4 == 0 ? static_cast<uint32_t>(random() % 8) : kNoOwner;
      text.functions.push_back({.address = text.sections[0].address + random() % 500,
                                .size_bytes = random() % 200,
                                .owner = owner});
    }
    text.code_pointers = {0x1000 + random() % 500};
    const ModuleCode code = analyse(text);
    const NoReturn noreturn(code, {0x1000 + random() % 500});
    const std::vector<uint64_t> stops = stops_of(code);
    for (uint32_t i = 0; i < code.functions().size(); ++i) {
      BlocksCheck check(code, stops, i, noreturn);
      ASSERT_EQ(check.broken(), "") << "round " << round;
      blocks += check.blocks().blocks().size();
    }
  }
  EXPECT_GT(blocks, 20'000U);
}

struct BlocksGoal {
  const char* path;
  size_t functions_min;
  size_t not_whole_max;     // Functions of which not all ways are known.
  size_t odd_branches_max;  // Over a lock prefix.
};

class InstalledFileBlocks : public testing::TestWithParam<BlocksGoal> {};

TEST_P(InstalledFileBlocks, AgreeWithALinearDisassembly) {
  const auto image = target::ModuleImage::read(GetParam().path);
  ASSERT_TRUE(image) << image.error().message;
  const auto text = text_of(*image);
  ASSERT_TRUE(text);
  const ModuleCode code = analyse(*text);
  const auto slots = noreturn_slots(*image);
  ASSERT_TRUE(slots);
  const NoReturn noreturn(code, *slots);
  const std::vector<uint64_t> stops = stops_of(code);
  size_t functions = 0;
  size_t not_whole = 0;
  size_t odd_branches = 0;
  for (uint32_t i = 0; i < code.functions().size(); ++i) {
    if (code.functions()[i].owner != kNoOwner) continue;
    BlocksCheck check(code, stops, i, noreturn);
    ASSERT_EQ(check.broken(), "");
    ++functions;
    not_whole += check.blocks().is_whole() ? 0 : 1;
    odd_branches += check.odd_branches();
  }
  EXPECT_GE(functions, GetParam().functions_min);
  EXPECT_LE(not_whole, GetParam().not_whole_max);
  EXPECT_LE(odd_branches, GetParam().odd_branches_max);
}

constexpr BlocksGoal kFiles[] = {
    {"/lib/x86_64-linux-gnu/libc.so.6", 3000, 8, 8},
    {"/lib64/ld-linux-x86-64.so.2", 200, 10, 8},
    {"/lib/x86_64-linux-gnu/libm.so.6", 800, 0, 0},
    {"/lib/x86_64-linux-gnu/libgcc_s.so.1", 150, 0, 0},
    {"/lib/x86_64-linux-gnu/libelf.so.1", 150, 0, 0},
    {"/lib/x86_64-linux-gnu/libdw.so.1", 500, 0, 0},
    {"/lib/x86_64-linux-gnu/liblzma.so.5", 200, 0, 0},
    {"/lib/x86_64-linux-gnu/libzstd.so.1", 500, 0, 0},
    {"/lib/x86_64-linux-gnu/libz.so.1", 80, 0, 0},
    {"/usr/lib/x86_64-linux-gnu/libstdc++.so.6", 3000, 0, 0},
    {"/usr/lib/x86_64-linux-gnu/libsqlite3.so.0", 2000, 0, 0},
    {"/usr/lib/x86_64-linux-gnu/libcrypto.so.3", 8000, 2, 8},
    {"/usr/lib/x86_64-linux-gnu/libbpf.so.1", 400, 0, 0},
    {"/usr/bin/redis-server", 3000, 0, 0},
    {"/usr/bin/lua5.4", 500, 1, 0},
    {"/usr/bin/strace", 1000, 0, 0},
    {"/usr/bin/bpftrace", 2000, 0, 0},
    {"/usr/bin/ninja", 300, 0, 0},
    {"/usr/sbin/nginx", 1000, 0, 0},
    {"/bin/bash", 1500, 0, 0},
};

INSTANTIATE_TEST_SUITE_P(Blocks, InstalledFileBlocks, testing::ValuesIn(kFiles));

}  // namespace
}  // namespace clew::code

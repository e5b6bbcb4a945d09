// SPDX-License-Identifier: Apache-2.0
// What is dead in small functions.
#include "code/liveness.h"

#include <array>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "code/register_effect.h"
#include "code/text_cases.h"

namespace clew::code {
namespace {

constexpr std::array<const char*, 16> kNames = {"rax", "rcx", "rdx", "rbx", "rsp", "rbp",
                                                "rsi", "rdi", "r8",  "r9",  "r10", "r11",
                                                "r12", "r13", "r14", "r15"};

std::string names_of(abi::RegisterSet set) {
  std::string text;
  for (unsigned i = 0; i < kNames.size(); ++i) {
    if (set.has(static_cast<abi::Register>(i)))
      text += (text.empty() ? "" : " ") + std::string(kNames[i]);
  }
  return text;
}

// "rax r11 flags"; single flags by their letters: "rcx cf".
std::string dead(const Live& live) {
  std::string text = names_of(abi::RegisterSet(static_cast<uint16_t>(~live.registers.bits())));
  const FlagSet flags = kStatusFlags & ~live.flags;
  constexpr std::array<std::pair<FlagSet, const char*>, 6> kFlags = {
      {{0x1, "cf"}, {0x4, "pf"}, {0x10, "af"}, {0x40, "zf"}, {0x80, "sf"}, {0x800, "of"}}};
  if (flags == kStatusFlags) return text + (text.empty() ? "flags" : " flags");
  for (const auto& [bit, name] : kFlags) {
    if ((flags & bit) != 0) text += (text.empty() ? "" : " ") + std::string(name);
  }
  return text;
}

enum class Assuming { Abi, Nothing };

std::string dead_at(const TextCase& text, const uint8_t* address,
                    Assuming assuming = Assuming::Abi) {
  const ModuleCode code = analyse(text.text);
  const uint32_t function = code.owner_of(*code.range_at(at(address)));
  const Blocks blocks = find_blocks(code, function, NoReturn(code));
  FlagValues flags(code);
  const Liveness liveness = assuming == Assuming::Abi
                                ? Liveness::by_abi(code, function, blocks, flags)
                                : Liveness::assuming_nothing(code, blocks);
  const auto block = blocks.block_at(at(address));
  if (block && blocks.blocks()[*block].begin == at(address)) {
    EXPECT_EQ(liveness.at_start(*block), liveness.before(at(address)));
  }
  return dead(liveness.before(at(address)));
}

std::string dead_at_entry(const uint8_t* begin, const uint8_t* end,
                          Assuming assuming = Assuming::Abi) {
  return dead_at(TextCase(begin, end).function(begin, end), begin, assuming);
}

CLEW_TEXT_CASE(live_straight, R"(
  lea (%rdi,%rsi), %rax
  mov %edx, %ecx
  live_behind: sub %rcx, %rax
  ret
)");
CLEW_LABEL(live_behind);

// Nobody but this function's callers knows whether it leaves r8 alone.
TEST(Liveness, ARegisterThatTheFunctionNeverChangesIsItsCallers) {
  EXPECT_EQ(dead_at_entry(live_straight, live_straight_end), "rax rcx flags");
  const TextCase text =
      TextCase(live_straight, live_straight_end).function(live_straight, live_straight_end);
  EXPECT_EQ(dead_at(text, live_behind), "flags");
}

TEST(Liveness, AssumingNothingAllIsLiveAtAReturn) {
  EXPECT_EQ(dead_at_entry(live_straight, live_straight_end, Assuming::Nothing), "rax rcx flags");
  const TextCase text =
      TextCase(live_straight, live_straight_end).function(live_straight, live_straight_end);
  EXPECT_EQ(dead_at(text, live_behind, Assuming::Nothing), "flags");
}

CLEW_TEXT_CASE(live_merge, R"(
  test %edi, %edi
  live_branch: je 1f
  mov %rsi, %rax
  mov $1, %ecx
  jmp 2f
  1: mov $2, %ecx
  mov %r8, %rax
  xor %esi, %esi
  2: add %rcx, %rax
  xor %r8d, %r8d
  ret
)");
CLEW_LABEL(live_branch);

TEST(Liveness, IsWhatSomeWayReads) {
  const TextCase text = TextCase(live_merge, live_merge_end).function(live_merge, live_merge_end);
  EXPECT_EQ(dead_at(text, live_merge), "rax rcx flags");
  EXPECT_EQ(dead_at(text, live_branch), "rax rcx cf pf af sf of");
}

CLEW_TEXT_CASE(live_loop, R"(
  xor %eax, %eax
  live_head: add %rcx, %rax
  mov (%rdi), %rcx
  add $8, %rdi
  dec %rsi
  jne live_head
  live_out: xor %edi, %edi
  xor %esi, %esi
  xor %ecx, %ecx
  ret
)");
CLEW_LABEL(live_head);
CLEW_LABEL(live_out);

TEST(Liveness, GoesAroundLoops) {
  const TextCase text = TextCase(live_loop, live_loop_end).function(live_loop, live_loop_end);
  EXPECT_EQ(dead_at(text, live_loop), "rax flags");
  EXPECT_EQ(dead_at(text, live_head), "flags");
  EXPECT_EQ(dead_at(text, live_out), "rcx rsi rdi flags");
}

// The second block leads to the first one, and that back to it.
CLEW_TEXT_CASE(live_back, R"(
  xor %eax, %eax
  jmp 2f
  1: add %r8, %rax
  2: dec %rdi
  jne 1b
  xor %r8d, %r8d
  xor %edi, %edi
  ret
)");

TEST(Liveness, GoesAroundLoopsThatAreEnteredInTheMiddle) {
  EXPECT_EQ(dead_at_entry(live_back, live_back_end), "rax flags");
}

// The first one is written, in part, perhaps or not at all; the second one is the same for all.
#define CLEW_WRITES(name, writes) \
  CLEW_TEXT_CASE(name, writes "\n mov %rcx, %rax\n xor %r11d, %r11d\n ret\n")
CLEW_WRITES(writes_64, "mov (%rdi), %rcx");
CLEW_WRITES(writes_32, "mov (%rdi), %ecx");
CLEW_WRITES(writes_16, "mov (%rdi), %cx");
CLEW_WRITES(writes_8, "mov (%rdi), %cl");
CLEW_WRITES(writes_high, "mov $3, %ch");
CLEW_WRITES(writes_extended, "movzbl (%rdi), %ecx");
CLEW_WRITES(writes_conditional, "cmovs %rdi, %rcx");
CLEW_WRITES(writes_setcc, "sets %cl");
CLEW_WRITES(writes_bsf, "bsf %rdi, %rcx");
CLEW_WRITES(writes_tzcnt, "tzcnt %rdi, %rcx");
CLEW_WRITES(writes_zero, "xor %ecx, %ecx");
CLEW_WRITES(writes_carry, "sbb %ecx, %ecx");
CLEW_WRITES(writes_index, "mov (%rdi,%rcx,8), %ecx");
CLEW_WRITES(writes_ones, "or $-1, %ecx");
CLEW_WRITES(writes_none, "and $0, %rcx");
CLEW_WRITES(writes_bits, "or $-2, %ecx");
CLEW_WRITES(writes_sum, "add %ecx, %ecx");
CLEW_WRITES(writes_pop, "pop %rcx");
CLEW_WRITES(writes_xchg, "xchg %rcx, %rdi");
CLEW_WRITES(writes_cpuid, "push %rbx\n cpuid\n pop %rbx");
CLEW_WRITES(writes_nop, "nopl (%rcx)");
CLEW_WRITES(writes_movs, "rep movsb");
CLEW_WRITES(writes_lea, "lea 1(%rcx,%rcx), %ecx");
CLEW_WRITES(writes_vector, "pcmpestri $0, %xmm0, %xmm1");

TEST(Liveness, WhatIsWrittenAsAWholeIsDeadBefore) {
  const auto is_rcx_dead = [](const uint8_t* begin, const uint8_t* end) {
    return dead_at_entry(begin, end).find("rcx") != std::string::npos;
  };
#define CLEW_DEAD(name) is_rcx_dead(name, name##_end)
  EXPECT_TRUE(CLEW_DEAD(writes_64));
  EXPECT_TRUE(CLEW_DEAD(writes_32));
  EXPECT_TRUE(CLEW_DEAD(writes_extended));
  EXPECT_TRUE(CLEW_DEAD(writes_zero));
  EXPECT_TRUE(CLEW_DEAD(writes_carry));
  EXPECT_TRUE(CLEW_DEAD(writes_ones));
  EXPECT_TRUE(CLEW_DEAD(writes_none));
  EXPECT_TRUE(CLEW_DEAD(writes_pop));
  EXPECT_TRUE(CLEW_DEAD(writes_vector));
  EXPECT_FALSE(CLEW_DEAD(writes_16));
  EXPECT_FALSE(CLEW_DEAD(writes_8));
  EXPECT_FALSE(CLEW_DEAD(writes_high));
  EXPECT_FALSE(CLEW_DEAD(writes_conditional));
  EXPECT_FALSE(CLEW_DEAD(writes_setcc));
  EXPECT_FALSE(CLEW_DEAD(writes_bsf));
  EXPECT_FALSE(CLEW_DEAD(writes_tzcnt));
  EXPECT_FALSE(CLEW_DEAD(writes_index));
  EXPECT_FALSE(CLEW_DEAD(writes_bits));
  EXPECT_FALSE(CLEW_DEAD(writes_sum));
  EXPECT_FALSE(CLEW_DEAD(writes_xchg));
  EXPECT_FALSE(CLEW_DEAD(writes_cpuid));
  EXPECT_FALSE(CLEW_DEAD(writes_nop));
  EXPECT_FALSE(CLEW_DEAD(writes_movs));
  EXPECT_FALSE(CLEW_DEAD(writes_lea));
#undef CLEW_DEAD
}

// What stands between a comparison and those that read its carry, and whether the old carry
// matters.
#define CLEW_FLAGS(name, between) CLEW_TEXT_CASE(name, between "\n setc %al\n ret\n")
CLEW_FLAGS(flags_inc, "inc %rdi");
CLEW_FLAGS(flags_add, "add $1, %rdi");
CLEW_FLAGS(flags_adc, "adc $1, %rdi");
CLEW_FLAGS(flags_shift, "shl $3, %rdi");
CLEW_FLAGS(flags_shift_none, ".byte 0xc1, 0xe7, 0x20");        // shl $32, %edi
CLEW_FLAGS(flags_shift_half, ".byte 0x48, 0xc1, 0xe7, 0x20");  // shl $32, %rdi
CLEW_FLAGS(flags_shift_by_cl, "shl %cl, %rdi");
CLEW_FLAGS(flags_clc, "clc");
CLEW_FLAGS(flags_compare_none, "repe cmpsb");
CLEW_FLAGS(flags_vector, "ucomisd %xmm0, %xmm1");

TEST(Liveness, AFlagIsDeadInFrontOfWhatOverwritesIt) {
  const auto is_carry_dead = [](const uint8_t* begin, const uint8_t* end) {
    const std::string text = dead_at_entry(begin, end);
    return text.find("cf") != std::string::npos || text.find("flags") != std::string::npos;
  };
#define CLEW_DEAD(name) is_carry_dead(name, name##_end)
  EXPECT_TRUE(CLEW_DEAD(flags_add));
  EXPECT_TRUE(CLEW_DEAD(flags_shift));
  EXPECT_TRUE(CLEW_DEAD(flags_shift_half));
  EXPECT_TRUE(CLEW_DEAD(flags_clc));
  EXPECT_TRUE(CLEW_DEAD(flags_vector));
  EXPECT_FALSE(CLEW_DEAD(flags_inc));
  EXPECT_FALSE(CLEW_DEAD(flags_adc));
  EXPECT_FALSE(CLEW_DEAD(flags_shift_none));
  EXPECT_FALSE(CLEW_DEAD(flags_shift_by_cl));
  EXPECT_FALSE(CLEW_DEAD(flags_compare_none));
#undef CLEW_DEAD
}

CLEW_TEXT_CASE(live_calls, R"(
  push %rbx
  live_pointer: call *%rdi
  live_import: call live_stub
  live_direct: call live_callee
  live_direct_last: pop %rbx
  ret
  live_callee: lea (%rdi,%rsi), %rax
  mov $1, %r11d
  mov $1, %r9d
  ret
  live_takes: setc %al
  mov $1, %r11d
  ret
  live_gives: call live_takes
  mov $1, %r11d
  mov $1, %ecx
  ret
  live_stub: jmp *4096(%rip)
)");
CLEW_LABEL(live_pointer);
CLEW_LABEL(live_import);
CLEW_LABEL(live_direct);
CLEW_LABEL(live_direct_last);
CLEW_LABEL(live_callee);
CLEW_LABEL(live_takes);
CLEW_LABEL(live_gives);
CLEW_LABEL(live_stub);

TextCase calls_text() {
  return TextCase(live_calls, live_calls_end)
      .function(live_calls, live_callee)
      .function(live_callee, live_takes)
      .function(live_takes, live_gives)
      .function(live_gives, live_stub);
}

TEST(Liveness, OnlyR11IsNotTakenByACallThroughAnImportOrAPointer) {
  EXPECT_EQ(dead_at(calls_text(), live_direct), "flags");
  EXPECT_EQ(dead_at(calls_text(), live_import), "flags");  // The next call may take r11.
  EXPECT_EQ(dead_at(calls_text(), live_direct_last), "rcx rbx rsi rdi r8 r9 r10 r11 flags");
  EXPECT_EQ(dead_at(calls_text(), live_pointer, Assuming::Nothing), "");
}

CLEW_TEXT_CASE(live_last_import, R"(
  live_last_call: call live_last_stub
  xor %eax, %eax
  ret
  live_last_stub: jmp *4096(%rip)
)");
CLEW_LABEL(live_last_call);
CLEW_LABEL(live_last_stub);

TEST(Liveness, WhoCallsAnImportLeavesNothingAloneForItsCallers) {
  const TextCase text =
      TextCase(live_last_import, live_last_import_end).function(live_last_import, live_last_stub);
  EXPECT_EQ(dead_at(text, live_last_call), "r11 flags");
}

TEST(Liveness, OfFlagsIsThatOfFunctionsThatTakeThem) {
  EXPECT_EQ(dead_at(calls_text(), live_gives), "");
  EXPECT_EQ(dead_at(calls_text(), live_takes), "r11 pf af zf sf of");
}

// gcc's -fipa-ra: a value that stays in a register over a call.
CLEW_TEXT_CASE(live_over_call, R"(
  mov $1, %r8d
  live_keeping: call live_leaves
  mov %r8, %rax
  ret
  live_leaves: mov $1, %eax
  ret
)");
CLEW_LABEL(live_keeping);
CLEW_LABEL(live_leaves);

TEST(Liveness, ARegisterThatTheAbiLetsACallOverwriteMayBeKeptOverIt) {
  const TextCase text = TextCase(live_over_call, live_over_call_end)
                            .function(live_over_call, live_leaves)
                            .function(live_leaves, live_over_call_end);
  EXPECT_EQ(dead_at(text, live_keeping), "flags");
  EXPECT_EQ(dead_at(text, live_leaves), "rax flags");
}

CLEW_TEXT_CASE(live_doubt, R"(
  mov $1, %eax
  test %edi, %edi
  je 1f
  js 2f
  jp 3f
  push %rbx
  live_computed: jmp *%rdx
  1: ud2
  live_system: mov $2, %ecx
  syscall
  mov $2, %ecx
  ret
  3: int3
  mov $2, %ecx
  ret
  2: jmp live_system
)");
CLEW_LABEL(live_computed);
CLEW_LABEL(live_system);

TEST(Liveness, AllIsLiveAtTrapsSystemCallsAndJumpsThatNobodyExplains) {
  const TextCase text = TextCase(live_doubt, live_doubt_end).function(live_doubt, live_doubt_end);
  EXPECT_EQ(dead_at(text, live_doubt), "rax flags");
  EXPECT_EQ(dead_at(text, live_system), "rcx");
  EXPECT_EQ(dead_at(text, live_computed), "");
  EXPECT_EQ(dead_at(text, live_system + 1), "") << "no instruction begins there";
}

// As setcontext ends, and a jump that is a return.
CLEW_TEXT_CASE(live_context, R"(
  mov (%rdi), %rsp
  mov 16(%rdi), %rsi
  live_loaded: xor %eax, %eax
  ret
  live_pushes: mov $1, %esi
  push %rdx
  live_pushed: ret
  live_descriptor: mov $1, %ecx
  call *(%rax)
  live_unknown: ret
)");
CLEW_LABEL(live_loaded);
CLEW_LABEL(live_pushes);
CLEW_LABEL(live_pushed);
CLEW_LABEL(live_descriptor);
CLEW_LABEL(live_unknown);

TextCase context_text() {
  return TextCase(live_context, live_context_end)
      .function(live_context, live_pushes)
      .function(live_pushes, live_descriptor)
      .function(live_descriptor, live_context_end);
}

TEST(Liveness, AllIsLiveAtAReturnWithAnotherStack) {
  EXPECT_EQ(dead_at(context_text(), live_loaded), "rax flags");
  EXPECT_EQ(dead_at(context_text(), live_pushes), "rsi");
  EXPECT_EQ(dead_at(context_text(), live_pushed), "");
}

TEST(Liveness, TheCallOfATlsDescriptorLeavesRegistersAlone) {
  EXPECT_EQ(dead_at(context_text(), live_unknown), "rcx flags");
}

CLEW_TEXT_CASE(live_switch, R"(
  cmp $1, %edi
  ja 2f
  lea live_table(%rip), %rdx
  movslq (%rdx,%rdi,4), %rax
  add %rdx, %rax
  live_jump: jmp *%rax
  live_one: mov %rcx, %rax
  xor %r8d, %r8d
  xor %ecx, %ecx
  ret
  live_two: mov %r8, %rax
  2: xor %r8d, %r8d
  xor %ecx, %ecx
  xor %edi, %edi
  ret
  .pushsection .rodata
  .balign 4
  live_table: .long live_one - live_table, live_two - live_table
  live_table_end:
  .popsection
)");
CLEW_LABEL(live_jump);
CLEW_LABEL(live_table);
CLEW_LABEL(live_table_end);

TEST(Liveness, OfASwitchIsWhatItsCasesRead) {
  const TextCase text = TextCase(live_switch, live_switch_end)
                            .function(live_switch, live_switch_end)
                            .data(live_table, live_table_end);
  EXPECT_EQ(dead_at(text, live_jump), "rdi flags");
}

// Random ranges over random bytes, of which many are branches.
TEST(Liveness, OfRandomBytesIsTheSameFromBothEndsOfABlock) {
  static constexpr auto kOpcodes =
      std::to_array<uint8_t>({0x74, 0xeb, 0xe8, 0xc3, 0xff, 0x48, 0x0f, 0x89, 0x5b});
  std::mt19937_64 random(1);
  std::vector<uint8_t> bytes(256);
  size_t blocks_count = 0;
  for (unsigned round = 0; round < 1000; ++round) {
    for (uint8_t& byte : bytes) {
      const uint64_t value = random();
      byte = value % 4 == 0 ? kOpcodes[(value >> 8) % kOpcodes.size()]
                            : static_cast<uint8_t>(value >> 16 & 15);
    }
    ModuleText text;
    text.sections = {{0x1000, bytes, true}};
    for (unsigned i = 0; i < 4; ++i)
      text.functions.push_back({.address = 0x1000 + random() % 250, .size_bytes = random() % 100});
    const ModuleCode code = analyse(text);
    FlagValues flags(code);
    for (uint32_t function = 0; function < code.functions().size(); ++function) {
      const Blocks blocks = find_blocks(code, function, NoReturn(code));
      const Liveness by_abi = Liveness::by_abi(code, function, blocks, flags);
      const Liveness nothing = Liveness::assuming_nothing(code, blocks);
      blocks_count += blocks.blocks().size();
      for (uint32_t block = 0; block < blocks.blocks().size(); ++block) {
        const Live live = by_abi.at_start(block);
        ASSERT_EQ(live, by_abi.before(blocks.blocks()[block].begin)) << round;
        ASSERT_TRUE(live.registers.has(abi::Register::Rsp)) << round;
        // Who assumes less finds more alive.
        const Live more = nothing.at_start(block);
        ASSERT_EQ(live.registers.bits() & ~more.registers.bits(), 0) << round;
        ASSERT_EQ(live.flags & ~more.flags, 0U) << round;
      }
    }
  }
  EXPECT_GT(blocks_count, 5'000U);
}

}  // namespace
}  // namespace clew::code

// SPDX-License-Identifier: Apache-2.0
// What is wanted behind calls of small functions: by callers whose blocks are known, and by code of
// which nobody knows what it does.
#include "code/call_effects.h"

#include <vector>

#include <gtest/gtest.h>

#include "code/text_cases.h"

namespace clew::code {
namespace {

using abi::Register;
using abi::RegisterSet;

constexpr RegisterSet kAll(0xffff);

// Of the first function, when it alone is given, or with all others.
enum class Given { First, All };

CallEffects effects_of(const TextCase& text, Given given) {
  const ModuleCode code = analyse(text.text);
  FlagValues flags(code);
  const auto count = static_cast<uint32_t>(given == Given::First ? 1 : text.text.functions.size());
  std::vector<Blocks> blocks;
  for (uint32_t i = 0; i < count; ++i)
    blocks.push_back(find_blocks(code, i, NoReturn(code)));
  std::vector<FunctionBlocks> functions;
  for (uint32_t i = 0; i < count; ++i)
    functions.push_back({i, &blocks[i]});
  return find_call_effects(code, flags, functions).calls;
}

RegisterSet wanted_behind_first(const TextCase& text, Given given) {
  return effects_of(text, given).wanted[0];
}

// A leaf, and a caller that calls others, too.
CLEW_TEXT_CASE(effects_calls, R"(
  mov %edi, %eax
  ret
  effects_caller: push %rbx
  call effects_calls
  add %r9, %rax
  mov %rax, %rbx
  call *%rdx
  add %rbx, %rax
  pop %rbx
  ret
)");
CLEW_LABEL(effects_caller);

TextCase with_caller() {
  return TextCase(effects_calls, effects_calls_end)
      .function(effects_calls, effects_caller)
      .function(effects_caller, effects_calls_end);
}

// What is called by a pointer may take all but r11, and rbx is overwritten in front of that.
TEST(CallEffects, WantedIsWhatACallersCallsTakeBehindTheCall) {
  EXPECT_EQ(wanted_behind_first(with_caller(), Given::All), RegisterSet(0xf7f7));
}

// It may be called from anywhere in the stranger: what that reads somewhere, and what any function
// preserves.
TEST(CallEffects, AStrangerThatCallsOthersKeepsNothingThatCallsMayOverwrite) {
  const RegisterSet wanted = wanted_behind_first(with_caller(), Given::First);
  for (const Register kept : {Register::Rax, Register::R9, Register::Rdx, Register::Rbx,
                              Register::Rbp, Register::R12, Register::R15})
    EXPECT_TRUE(wanted.has(kept)) << static_cast<unsigned>(kept);
  for (const Register free :
       {Register::Rcx, Register::Rsi, Register::R8, Register::R10, Register::R11})
    EXPECT_FALSE(wanted.has(free)) << static_cast<unsigned>(free);
}

CLEW_TEXT_CASE(effects_keeps, R"(
  mov %edi, %eax
  ret
  effects_keeper: call effects_keeps
  add %r9, %rax
  ret
)");
CLEW_LABEL(effects_keeper);

// It knows what the callee leaves alone, and so may its callers.
TEST(CallEffects, AStrangerThatCallsNobodyElseMayKeepAnything) {
  const TextCase text = TextCase(effects_keeps, effects_keeps_end)
                            .function(effects_keeps, effects_keeper)
                            .function(effects_keeper, effects_keeps_end);
  EXPECT_EQ(wanted_behind_first(text, Given::First), kAll);
  const RegisterSet known = wanted_behind_first(text, Given::All);
  EXPECT_TRUE(known.has(Register::R9));
  EXPECT_FALSE(known.has(Register::R10) || known.has(Register::Rsi));
}

CLEW_TEXT_CASE(effects_descriptor, R"(
  mov %edi, %eax
  ret
  effects_asks: call effects_descriptor
  lea 8(%rdi), %rax
  call *(%rax)
  ret
)");
CLEW_LABEL(effects_asks);

TEST(CallEffects, TheCallOfATlsDescriptorOverwritesNothing) {
  const TextCase text = TextCase(effects_descriptor, effects_descriptor_end)
                            .function(effects_descriptor, effects_asks)
                            .function(effects_asks, effects_descriptor_end);
  EXPECT_EQ(wanted_behind_first(text, Given::First), kAll);
}

CLEW_TEXT_CASE(effects_jumped, R"(
  mov %edi, %eax
  ret
  effects_jumper: test %esi, %esi
  je effects_jumped
  ret
)");
CLEW_LABEL(effects_jumper);

// Its callers get what the callee leaves.
TEST(CallEffects, AStrangersJumpIsAsItsCall) {
  const TextCase text = TextCase(effects_jumped, effects_jumped_end)
                            .function(effects_jumped, effects_jumper)
                            .function(effects_jumper, effects_jumped_end);
  EXPECT_EQ(wanted_behind_first(text, Given::First), kAll);
}

CLEW_TEXT_CASE(effects_hidden, R"(
  mov %edi, %eax
  ret
  effects_half: xor %eax, %eax
  ret
  call effects_hidden
  add %r9, %rax
  ret
)");
CLEW_LABEL(effects_half);

// Somebody may get there all the same.
TEST(CallEffects, CodeInNoBlockIsAStranger) {
  const TextCase text = TextCase(effects_hidden, effects_hidden_end)
                            .function(effects_hidden, effects_half)
                            .function(effects_half, effects_hidden_end);
  EXPECT_EQ(wanted_behind_first(text, Given::All), kAll);
}

// The first one calls what nobody knows, so nothing is kept over its call; what follows it writes
// r11 before it reads it, or reads a value of its own only.
CLEW_TEXT_CASE(effects_calls_out, R"(
  call *%rdi
  ret
  effects_writes: call effects_calls_out
  mov %rax, %r11
  add %r11, %rax
  ret
)");
CLEW_LABEL(effects_writes);

TEST(CallEffects, WhatAStrangerWritesBeforeItReadsItIsNotWanted) {
  const TextCase text = TextCase(effects_calls_out, effects_calls_out_end)
                            .function(effects_calls_out, effects_writes)
                            .function(effects_writes, effects_calls_out_end);
  const CallEffects effects = effects_of(text, Given::First);
  EXPECT_FALSE(effects.wanted[0].has(Register::R11));
  EXPECT_TRUE(effects.wanted[0].has(Register::Rax));
  EXPECT_FALSE(effects.reads[1].has(Register::R11));
  EXPECT_TRUE(effects.reads[1].has(Register::R10));
}

CLEW_TEXT_CASE(effects_gives, R"(
  call *%rdi
  mov $7, %r11
  ret
  effects_given: call effects_gives
  add %r11, %rax
  ret
)");
CLEW_LABEL(effects_given);

TEST(CallEffects, AResultInAnyRegisterIsWanted) {
  const TextCase text = TextCase(effects_gives, effects_gives_end)
                            .function(effects_gives, effects_given)
                            .function(effects_given, effects_gives_end);
  EXPECT_TRUE(wanted_behind_first(text, Given::First).has(Register::R11));
  EXPECT_TRUE(wanted_behind_first(text, Given::All).has(Register::R11));
}

CLEW_TEXT_CASE(effects_leaf, R"(
  mov %edi, %eax
  ret
  effects_over: mov %esi, %r11d
  call effects_leaf
  add %r11d, %eax
  mov %eax, %edi
  call *%rdx
  ret
)");
CLEW_LABEL(effects_over);

// It was written in front of the call of a leaf, as compilers do that know the leaf.
TEST(CallEffects, WhatIsKeptOverACallIsWanted) {
  const TextCase text = TextCase(effects_leaf, effects_leaf_end)
                            .function(effects_leaf, effects_over)
                            .function(effects_over, effects_leaf_end);
  EXPECT_TRUE(wanted_behind_first(text, Given::First).has(Register::R11));
  EXPECT_TRUE(wanted_behind_first(text, Given::All).has(Register::R11));
}

// Read on ways that begin in front of what writes it, though no run takes them.
CLEW_TEXT_CASE(effects_sometimes, R"(
  xor %eax, %eax
  test %ebx, %ebx
  je 2f
  mov (%rsi), %r11d
2:test %ebx, %ebx
  je 3f
  add %r11d, %eax
3:ret
  effects_asker: call effects_sometimes
  ret
  effects_passer: mov $8, %r11d
  call effects_sometimes
  ret
)");
CLEW_LABEL(effects_asker);
CLEW_LABEL(effects_passer);

TEST(CallEffects, WhatIsReadBesideAnOwnValueIsAnArgumentOnlyIfSomebodyPassesIt) {
  const TextCase unpassed = TextCase(effects_sometimes, effects_passer)
                                .function(effects_sometimes, effects_asker)
                                .function(effects_asker, effects_passer);
  EXPECT_FALSE(effects_of(unpassed, Given::All).reads[0].has(Register::R11));
  const TextCase passed = TextCase(effects_sometimes, effects_sometimes_end)
                              .function(effects_sometimes, effects_asker)
                              .function(effects_asker, effects_passer)
                              .function(effects_passer, effects_sometimes_end);
  const CallEffects effects = effects_of(passed, Given::All);
  EXPECT_TRUE(effects.reads[0].has(Register::R11));
  EXPECT_TRUE(effects.reads[1].has(Register::R11));
  EXPECT_FALSE(effects.reads[2].has(Register::R11));
}

// The second one is entered behind what writes r11.
CLEW_TEXT_CASE(effects_enters, R"(
  call effects_middle
  ret
  effects_whole: mov (%rdi), %r11
  effects_middle: add %r11, %rax
  ret
)");
CLEW_LABEL(effects_whole);

TEST(CallEffects, WhoCallsIntoTheMiddleOfAFunctionMayPassAnything) {
  const TextCase text = TextCase(effects_enters, effects_enters_end)
                            .function(effects_enters, effects_whole)
                            .function(effects_whole, effects_enters_end);
  const CallEffects effects = effects_of(text, Given::All);
  EXPECT_TRUE(effects.reads[0].has(Register::R11));
  EXPECT_FALSE(effects.reads[1].has(Register::R11));
}

CLEW_TEXT_CASE(effects_pushes, R"(
  push %r11
  pop %rax
  ret
  effects_pushes_for: call effects_pushes
  ret
)");
CLEW_LABEL(effects_pushes_for);

TEST(CallEffects, WhatIsPushedByWhoNeverWritesItIsAnArgument) {
  const TextCase text = TextCase(effects_pushes, effects_pushes_end)
                            .function(effects_pushes, effects_pushes_for)
                            .function(effects_pushes_for, effects_pushes_end);
  EXPECT_TRUE(effects_of(text, Given::All).reads[1].has(Register::R11));
}

CLEW_TEXT_CASE(effects_argument, R"(
  mov %r11, %rax
  ret
  effects_passes_on: call effects_argument
  ret
)");
CLEW_LABEL(effects_passes_on);

TEST(CallEffects, WhatComesInR11IsAnArgumentWhereNothingElseIsRead) {
  const TextCase text = TextCase(effects_argument, effects_argument_end)
                            .function(effects_argument, effects_passes_on)
                            .function(effects_passes_on, effects_argument_end);
  EXPECT_TRUE(effects_of(text, Given::All).reads[1].has(Register::R11));
}

}  // namespace
}  // namespace clew::code

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

RegisterSet wanted_behind_first(const TextCase& text, Given given) {
  const ModuleCode code = analyse(text.text);
  FlagValues flags(code);
  const auto count = static_cast<uint32_t>(given == Given::First ? 1 : text.text.functions.size());
  std::vector<Blocks> blocks;
  for (uint32_t i = 0; i < count; ++i)
    blocks.push_back(find_blocks(code, i, NoReturn(code)));
  std::vector<FunctionBlocks> functions;
  for (uint32_t i = 0; i < count; ++i)
    functions.push_back({i, &blocks[i]});
  return find_call_effects(code, flags, functions).calls.wanted[0];
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

}  // namespace
}  // namespace clew::code

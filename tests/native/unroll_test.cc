// SPDX-License-Identifier: Apache-2.0
// Loops that the translator writes twice (native/unroll.h) turn as often as in the interpreter.
#include "native/unroll.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "abi/context.h"
#include "isa/assembler.h"
#include "isa/interpreter.h"
#include "machine.h"
#include "native/analysis.h"
#include "trial.h"

namespace clew::native {
namespace {

// r0 tells what happened, from the argument in r6.
struct Loop {
  const char* what;
  const char* text;
  bool is_twice;
};
const Loop kUnrolledLoops[] = {
    {"a condition at the end", "again:\nadd %r0, 3\nsub %r6, 1\njsgt %r6, 0, again", true},
    {"a condition at the beginning",
     "again:\njsle %r6, 0, end\nadd %r0, 3\nsub %r6, 1\nja again\nend:\nadd %r0, 1000", true},
    {"a way out of the middle",
     "again:\nadd %r0, 1\njeq %r0, 4, end\nmul %r0, 3\nsub %r6, 1\njne32 %r6, 0, again\nend:\n"
     "add %r0, 1000",
     true},
    {"two ways through it",
     "again:\nmov %r7, %r6\nand %r7, 1\njeq %r7, 0, even\nadd %r0, 5\nja next\neven:\nmul %r0, 3\n"
     "next:\nsub %r6, 1\njsgt %r6, 0, again",
     true},
    {"a loop around it",
     "mov %r7, 3\nouter:\nmov %r8, %r6\ninner:\nadd %r0, 7\nsub %r8, 1\njsgt %r8, 0, inner\n"
     "mul %r0, 2\nsub %r7, 1\njne %r7, 0, outer",
     true},
    {"two, one behind the other",
     "mov %r7, %r6\none:\nadd %r0, 7\nsub %r6, 1\njsgt %r6, 0, one\ntwo:\nmul %r0, 3\n"
     "sub %r7, 1\njsgt %r7, 0, two",
     true},
    {"a condition without an opposite", "again:\nadd %r0, 3\nsub %r6, 1\njset %r6, 0xFF, again",
     false},
    {"two ways back",
     "again:\nsub %r6, 1\nadd %r0, 3\njeq %r6, 4, again\nadd %r0, 1\njsgt %r6, 0, again", true},
    {"a way into its middle",
     "jeq %r6, 3, middle\nagain:\nadd %r0, 11\nmiddle:\nadd %r0, 3\nsub %r6, 1\njsgt %r6, 0, again",
     false},
    {"a call",
     "again:\nmov %r1, %r6\nmov %r2, 3\ncall divide_unsigned\nadd %r7, %r0\nmov %r0, %r7\n"
     "sub %r6, 1\njsgt %r6, 0, again",
     false},
};

isa::Program program_of(const Loop& loop) {
  const std::string text =
      std::string("ldxdw %r6, [%r1]\nand %r6, 0xFF\nmov %r0, 1\nmov %r7, 0\n") + loop.text +
      "\nexit\n";
  auto program = isa::assemble(text);
  EXPECT_TRUE(program.has_value()) << loop.what << ": " << program.error().message;
  return storing_result(std::move(*program));
}

TEST(NativeUnroll, LoopsTurnAsOftenAsInTheInterpreter) {
  const auto on = machine({.window_size_log2 = 14});
  for (const Loop& loop : kUnrolledLoops) {
    const isa::Program program = program_of(loop);
    ASSERT_EQ(prepare(*on, program), "") << loop.what;
    for (uint64_t turns = 1; turns < 12; ++turns) {
      RegisterFile before = marked_registers();
      before[7] = turns;
      abi::Context context{};
      context.arguments[0] = turns;
      std::vector<uint8_t> expected(on->window().size());
      const auto outcome = isa::interpret(program, {.window = expected, .context = &context});
      ASSERT_TRUE(outcome.has_value()) << loop.what << ": " << outcome.error().message;
      EXPECT_EQ(on->run(before), before) << loop.what;
      EXPECT_EQ(word_at(on->window(), kResultOffset), word_at(expected, kResultOffset))
          << loop.what << ", " << turns << " times";
    }
  }
}

TEST(NativeUnroll, OnlyWhatMayBeTwiceIs) {
  const auto on = machine({.window_size_log2 = 14});
  for (const Loop& loop : kUnrolledLoops) {
    const auto operations = decode(program_of(loop), on->environment(), {});
    ASSERT_TRUE(operations.has_value()) << loop.what;
    EXPECT_EQ(unroll(*operations).size() > operations->size(), loop.is_twice) << loop.what;
  }
}

}  // namespace
}  // namespace clew::native

// SPDX-License-Identifier: Apache-2.0
// Where the functions of extensions and their variables come, from made-up extensions.
#include "plan/d/extensions.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "isa/builder.h"
#include "isa/opcode.h"
#include "plan/d/firing.h"
#include "query/d/check_testing.h"
#include "query/fake_types.h"

namespace clew::plan::d {
namespace {

using extension::Extension;
using isa::Builder;
using isa::Register;
using isa::Size;
using testing::HasSubstr;

std::vector<isa::Instruction> finished(Builder& b) {
  return b.exit().finish("function")->code;
}

// counts[0] += r1; gives it.
Extension sketch(uint32_t state_bytes) {
  Builder b;
  b.load_window(Register::R2, 8)
      .load(Size::Double, Register::R0, Register::R2, 0)
      .alu(isa::Alu::Add, Register::R0, Register::R1)
      .store(Size::Double, Register::R2, 0, Register::R0);
  return {.name = "sketch",
          .functions = {{.name = "sketch_sample",
                         .result = {},
                         .parameters = {},
                         .refusal = {},
                         .code = finished(b)}},
          .state_bytes = state_bytes,
          .initial_words = {{.offset_bytes = 8, .value = 77}}};
}

// Reads r2 bytes at r1 into its frame, over and over.
Extension walk() {
  Builder b;
  const isa::Label head = b.label();
  b.move(Register::R6, Register::R1).move(Register::R7, Register::R2).bind(head);
  b.move(Register::R1, Register::R10).alu(isa::Alu::Add, Register::R1, -8);
  b.move(Register::R2, Register::R7).move(Register::R3, Register::R6).call(abi::Accessor::TryRead);
  b.jump_if(isa::Jump::NotEqual, Register::R0, 0, head);
  return {.name = "walk",
          .functions = {{.name = "walk",
                         .result = {},
                         .parameters = {},
                         .refusal = {},
                         .code = finished(b),
                         .has_loops = true}},
          .state_bytes = 0,
          .initial_words = {}};
}

class MachineExtensions : public testing::Test {
 protected:
  query::d::Compiled<Generated> generated(const std::string& body,
                                          const std::vector<Extension>& extensions) {
    query::FakeExtensions known;
    query::d::CompileOptions options = query::d::script_options();
    options.extensions = &known;
    auto script = query::d::compiled("a:b:c:entry " + body, options);
    EXPECT_TRUE(script.has_value()) << script.error().message;
    return generate(*script, extensions);
  }
  static std::vector<FiringClause> clauses_of(const Generated& made) {
    return {{.program = made.clauses.data(), .calls = made.calls[0]}};
  }
};

TEST_F(MachineExtensions, NothingIsPlacedForScriptsThatCallNone) {
  const auto made = generated("{ trace(arg0); }", {sketch(64)});
  ASSERT_TRUE(made.has_value());
  EXPECT_TRUE(made->extensions.empty());
  EXPECT_EQ(made->extensions.end, made->private_area.end());
}

TEST_F(MachineExtensions, VariablesAreBehindTheWordsOfTheirThread) {
  const auto made = generated("{ trace(sketch_sample(1)); }", {walk(), sketch(100)});
  ASSERT_TRUE(made.has_value());
  const ExtensionState& state = made->extensions;
  EXPECT_EQ(state.begin % 64, 0U);
  EXPECT_GE(state.begin, made->private_area.end());
  ASSERT_EQ(state.initial_words.size(), 1U);
  EXPECT_EQ(state.initial_words[0], (extension::InitialWord{state.begin + 64 + 8, 77}));
  EXPECT_EQ(state.end, state.begin + 64 + 104);
  EXPECT_FALSE(state.has_loops());
  EXPECT_EQ(state.find_body("walk"), nullptr);
  const isa::Body* const body = state.find_body("sketch_sample");
  ASSERT_NE(body, nullptr);
  EXPECT_EQ(body->code[0].immediate, static_cast<int32_t>(state.begin + 64 + 8));
  EXPECT_GE(made->scratch_begin[0], state.end);
}

TEST_F(MachineExtensions, AClauseHasPlaceholdersWithTheirLines) {
  const auto made = generated("\n/sketch_sample(arg0)/\n{ trace(moving_average(2)); }",
                              {sketch(16),
                               {.name = "average",
                                .functions = {{.name = "moving_average",
                                               .result = {},
                                               .parameters = {},
                                               .refusal = {},
                                               .code = sketch(0).functions[0].code}},
                                .initial_words = {}}});
  ASSERT_TRUE(made.has_value()) << made.error().message;
  ASSERT_EQ(made->calls[0].size(), 2U);
  EXPECT_EQ(made->calls[0][0].function, "sketch_sample");
  EXPECT_EQ(made->calls[0][0].line, 2U);
  EXPECT_EQ(made->calls[0][1].function, "moving_average");
  EXPECT_EQ(made->calls[0][1].line, 3U);
  for (const ExtensionCall& call : made->calls[0])
    EXPECT_EQ(made->clauses[0].code[call.instruction].opcode, isa::kCallOpcode);
  const isa::Program without = without_calls(made->clauses[0], made->calls[0]);
  EXPECT_EQ(without.code.size(), made->clauses[0].code.size());
  for (const ExtensionCall& call : made->calls[0])
    EXPECT_NE(without.code[call.instruction].opcode, isa::kCallOpcode);
}

TEST_F(MachineExtensions, AFiringHasTheCodeAndNoPlaceholders) {
  const auto made = generated("{ trace(walk(arg0, 8)); }", {walk()});
  ASSERT_TRUE(made.has_value());
  const FiringState state{.extensions = &made->extensions, .left_alone_offset = 0xF000};
  const auto firing = compose(FiringPoint::Entry, clauses_of(*made), {}, {}, state);
  ASSERT_TRUE(firing) << firing.error().message;
  const auto& code = firing->program.code;
  const auto reads = static_cast<int32_t>(abi::Accessor::TryRead);
  const auto call = std::find_if(code.begin(), code.end(), [&](const isa::Instruction& i) {
    return i.opcode == isa::kCallOpcode && i.immediate == reads;
  });
  ASSERT_NE(call, code.end());
  EXPECT_EQ((call - 1)->immediate, 0x1000);  // The window's place in the region.
  EXPECT_TRUE(std::none_of(code.begin(), code.end(), [](const isa::Instruction& i) {
    return i.opcode == isa::kCallOpcode && i.source() != 0;
  }));
}

TEST_F(MachineExtensions, WhatDoesNotFitOrIsNotThereIsAnError) {
  const auto large = generated("{ trace(sketch_sample(1)); }", {sketch(40000)});
  ASSERT_FALSE(large.has_value());
  EXPECT_EQ(large.error().tag, "D_NOMEM");
  EXPECT_THAT(large.error().message, HasSubstr("the variables of extensions need 400"));
  const auto missing = generated("{ trace(sketch_sample(1)); }", {walk()});
  ASSERT_FALSE(missing.has_value());
  EXPECT_EQ(missing.error().tag, "D_FUNC_UNDEF");
}

TEST_F(MachineExtensions, AFrameThatIsTooLargeIsAnError) {
  Extension deep = walk();
  for (isa::Instruction& i : deep.functions[0].code) {
    if (i.immediate == -8) i.immediate = -500;
  }
  const auto made = generated("{ trace(walk(arg0, 8) + arg1 * (arg2 + arg3)); }", {deep});
  ASSERT_TRUE(made.has_value());
  const FiringState state{.extensions = &made->extensions, .left_alone_offset = 0xF000};
  const auto firing = compose(FiringPoint::Entry, clauses_of(*made), {}, {}, state);
  ASSERT_FALSE(firing);
  EXPECT_THAT(firing.error().message, HasSubstr("more than 512 bytes of local variables"));
}

}  // namespace
}  // namespace clew::plan::d

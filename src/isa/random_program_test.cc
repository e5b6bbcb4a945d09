// SPDX-License-Identifier: Apache-2.0
// Random programs hold what their header promises, and use the whole instruction set.
#include "isa/random_program.h"

#include <set>

#include <gtest/gtest.h>

#include "isa/assembler.h"
#include "isa/interpreter.h"
#include "isa/print.h"
#include "isa/validator.h"

namespace clew::isa {
namespace {

constexpr uint64_t kRandomPrograms = 300;

TEST(RandomProgram, IsValidRunsAndReadsBack) {
  const abi::Context context{};
  const std::vector<uint64_t> constants{1, 2, 3};
  for (uint64_t seed = 0; seed < kRandomPrograms; ++seed) {
    const Program program = random_program({.seed = seed, .site_constants = 3});
    const Expected<void> valid = validate_probe(program);
    ASSERT_TRUE(valid) << seed << ": " << valid.error().message << '\n' << print(program);
    std::vector<uint8_t> window(2048);
    const Expected<Outcome> outcome =
        interpret(program, {.window = window, .context = &context, .site_constants = constants});
    ASSERT_TRUE(outcome) << seed << ": " << outcome.error().message << '\n' << print(program);

    const Expected<Program> again = assemble(print(program), "random");
    ASSERT_TRUE(again) << seed << ": " << again.error().message;
    EXPECT_EQ(again->code, program.code) << seed;
  }
}

TEST(RandomProgram, IsTheSameForTheSameSeed) {
  EXPECT_EQ(random_program({.seed = 7}), random_program({.seed = 7}));
  EXPECT_NE(random_program({.seed = 7}), random_program({.seed = 8}));
}

TEST(RandomProgram, UsesEveryInstructionThatItMay) {
  std::set<std::string_view> used;
  for (uint64_t seed = 0; seed < kRandomPrograms; ++seed) {
    const Program program = random_program({.seed = seed, .site_constants = 3});
    for (size_t at = 0; at < program.code.size(); ++at) {
      used.insert(find_row(program.code[at])->mnemonic);
      if (program.code[at].opcode == kLoad64Opcode) ++at;
    }
  }
  for (const OpcodeRow& row : opcode_table()) {
    const bool alias = row.mnemonic.starts_with("swap");
    const bool never = row.form == Form::CallLocal || row.form == Form::JumpFar ||
                       row.mnemonic == "lddw global" ||  // Only D sessions have globals.
                       row.mnemonic == "lddw context";   // Only calls of extensions need it.
    EXPECT_EQ(used.contains(row.mnemonic), !alias && !never) << row.mnemonic;
  }
}

}  // namespace
}  // namespace clew::isa

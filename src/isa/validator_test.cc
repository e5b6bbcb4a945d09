// SPDX-License-Identifier: Apache-2.0
// One test per rule: the smallest change of a valid program that breaks this rule and no other.
#include "isa/validator.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "isa/assembler.h"
#include "isa/builder.h"

namespace clew::isa {
namespace {

using testing::HasSubstr;

constexpr Instruction kExit{0x95, 0, 0, 0};
constexpr Instruction kMove{0xB7, 0, 0, 0};  // mov %r0, 0

std::string verdict(const Expected<void>& result) {
  return result ? "valid" : result.error().message;
}

std::string verdict_of(std::vector<Instruction> code) {
  return verdict(validate(Program{"p", std::move(code), 1}));
}

auto breaks(Rule rule, size_t instruction) {
  return HasSubstr(
      fmt::format("program p: instruction {}: rule {}: ", instruction, rule_name(rule)));
}

TEST(Validator, AcceptsTheSmallestProgram) {
  EXPECT_EQ(verdict_of({kMove, kExit}), "valid");
}

TEST(Validator, LimitsTheLength) {
  EXPECT_THAT(verdict_of({}), breaks(Rule::Length, 0));
  std::vector<Instruction> code(kInstructionsMax, kMove);
  code.back() = kExit;
  EXPECT_EQ(verdict_of(code), "valid");
  code.insert(code.begin(), kMove);
  EXPECT_THAT(verdict_of(code), breaks(Rule::Length, kInstructionsMax));
  const Program constants{"p", {kMove, kExit}, kSiteConstantsMax + 1};
  EXPECT_THAT(verdict(validate(constants)), breaks(Rule::Length, 0));
}

TEST(Validator, RefusesUnknownOpcodes) {
  EXPECT_THAT(verdict_of({kMove, {0x8D, 0, 0, 0}, kExit}), breaks(Rule::Opcode, 1));
  EXPECT_THAT(verdict_of({{0xB7, 0, 5, 0}, kExit}), breaks(Rule::Opcode, 0));   // mov, offset 5
  EXPECT_THAT(verdict_of({{0xBC, 0, 32, 0}, kExit}), breaks(Rule::Opcode, 0));  // movsx3232
  EXPECT_THAT(verdict_of({{0xDC, 0, 0, 8}, kExit}), breaks(Rule::Opcode, 0));   // be8
  EXPECT_THAT(verdict_of({{0xDB, 0, 0, 0x20}, kExit}), breaks(Rule::Opcode, 0));
  EXPECT_THAT(verdict_of({{0x85, 0x20, 0, 0}, kExit}), breaks(Rule::Opcode, 0));  // call by BTF id
}

TEST(Validator, RefusesRegistersAboveR10) {
  EXPECT_THAT(verdict_of({{0xB7, 0x0B, 0, 0}, kExit}), breaks(Rule::RegisterNumber, 0));
  EXPECT_THAT(verdict_of({{0xBF, 0xF0, 0, 0}, kExit}), breaks(Rule::RegisterNumber, 0));
}

// The negative conformance vectors have one case of each field and form; here is what they lack.
TEST(Validator, RefusesReservedFieldsThatAreNot0) {
  EXPECT_THAT(verdict_of({{0x06, 0, 1, 0}, kExit}), breaks(Rule::ReservedField, 0));  // ja32
  EXPECT_THAT(verdict_of({{0x85, 0, 1, 5}, kExit}), breaks(Rule::ReservedField, 0));  // call
  EXPECT_THAT(verdict_of({{0x18, 0, 1, 5}, {0, 0, 0, 0}, kExit}), breaks(Rule::ReservedField, 0));
  EXPECT_THAT(verdict_of({{0x18, 0, 0, 5}, {0, 1, 0, 0}, kExit}), breaks(Rule::ReservedField, 1));
  EXPECT_THAT(verdict_of({{0x18, 0, 0, 5}, {0, 0, 1, 0}, kExit}), breaks(Rule::ReservedField, 1));
  EXPECT_THAT(verdict_of({{0xBF, 0x10, 8, 1}, kExit}), breaks(Rule::ReservedField, 0));  // movsx
}

TEST(Validator, RefusesAWriteToR10) {
  for (const char* text :
       {"mov %r10, 0", "add %r10, -8", "ldxdw %r10, [%r1]", "lddw %r10, 1", "neg %r10", "be16 %r10",
        "movsx864 %r10, %r1", "lock fetch add [%r1], %r10", "lock xchg [%r1], %r10"}) {
    Program program = *assemble(fmt::format("{}\nexit", text), "p");
    EXPECT_THAT(verdict(validate(program)), breaks(Rule::ReadOnlyFrame, 0)) << text;
  }
  EXPECT_EQ(verdict(validate(*assemble("stxdw [%r10-8], %r10\nexit"))), "valid");
  EXPECT_EQ(verdict(validate(*assemble("lock cmpxchg [%r1], %r10\nexit"))), "valid");
}

TEST(Validator, WantsBothHalvesOfLddw) {
  EXPECT_THAT(verdict_of({kExit, {0x18, 0, 0, 5}}), breaks(Rule::Load64, 1));
  EXPECT_THAT(verdict_of({{0x18, 0, 0, 5}, kExit, kExit}), breaks(Rule::Load64, 1));
  EXPECT_THAT(verdict_of({{0x18, 0x10, 0, 5}, {0, 0, 0, 1}, kExit}), breaks(Rule::Load64, 0));
}

TEST(Validator, WantsDeclaredSiteConstants) {
  EXPECT_EQ(verdict_of({{0x18, 0x20, 0, 0}, {0, 0, 0, 0}, kExit}), "valid");
  EXPECT_THAT(verdict_of({{0x18, 0x20, 0, 1}, {0, 0, 0, 0}, kExit}), breaks(Rule::SiteConstant, 0));
}

TEST(Validator, WantsBranchesToInstructionStarts) {
  const Instruction first_half{0x18, 0, 0, 5};
  const Instruction second_half{0, 0, 0, 0};
  EXPECT_EQ(verdict_of({{0x05, 0, 2, 0}, first_half, second_half, kExit}), "valid");
  EXPECT_THAT(verdict_of({{0x05, 0, 1, 0}, first_half, second_half, kExit}),
              breaks(Rule::BranchTarget, 0));
  EXPECT_THAT(verdict_of({{0x15, 0, 1, 0}, kExit}), breaks(Rule::BranchTarget, 0));
  EXPECT_THAT(verdict_of({{0x15, 0, -2, 0}, kExit}), breaks(Rule::BranchTarget, 0));
  EXPECT_THAT(verdict_of({{0x06, 0, 0, INT32_MAX}, kExit}), breaks(Rule::BranchTarget, 0));
  EXPECT_THAT(verdict_of({{0x85, 0x10, 0, INT32_MIN}, kExit}), breaks(Rule::BranchTarget, 0));
}

TEST(Validator, WantsAnEndThatLeaves) {
  EXPECT_THAT(verdict_of({kExit, kMove}), breaks(Rule::FallOff, 1));
  EXPECT_THAT(verdict_of({kExit, {0x15, 0, -2, 0}}), breaks(Rule::FallOff, 1));
  EXPECT_THAT(verdict_of({kExit, {0x18, 0, 0, 5}, {0, 0, 0, 0}}), breaks(Rule::FallOff, 1));
  EXPECT_EQ(verdict_of({kExit, {0x05, 0, -2, 0}}), "valid");
}

TEST(Validator, WantsKnownAccessors) {
  const auto count = static_cast<int32_t>(abi::kAccessorCount);
  EXPECT_EQ(verdict_of({{0x85, 0, 0, count - 1}, kExit}), "valid");
  EXPECT_THAT(verdict_of({{0x85, 0, 0, count}, kExit}), breaks(Rule::Accessor, 0));
  EXPECT_THAT(verdict_of({{0x85, 0, 0, -1}, kExit}), breaks(Rule::Accessor, 0));
}

// --- the rules for probes ---------------------------------------------------------------------

constexpr ProbeRules kAllAllowed{.loops_allowed = true, .local_calls_allowed = true};

std::string probe_verdict(std::string_view text, const ProbeRules& rules = {}) {
  const Expected<Program> program = assemble(text, "p");
  return program ? verdict(validate_probe(*program, rules)) : program.error().message;
}

TEST(ProbeValidator, AcceptsAFilteredCount) {
  EXPECT_EQ(probe_verdict("ldxdw %r2, [%r1+16]\n"
                          "jle %r2, 100, out\n"
                          "lddw window %r3, 768\n"
                          "lddw site %r4, 0\n"
                          "add %r3, %r4\n"
                          "ldxdw %r5, [%r3]\n"
                          "add %r5, 1\n"
                          "stxdw [%r3], %r5\n"
                          "out:\n"
                          "mov %r0, 0\n"
                          "exit"),
            "valid");
}

TEST(ProbeValidator, RefusesWhatIsNoProgramAtAll) {
  EXPECT_THAT(probe_verdict("mov %r0, 0"), breaks(Rule::FallOff, 0));
}

TEST(ProbeValidator, RefusesLoopsUnlessAllowed) {
  const char* loop = "mov %r0, 9\nagain: add %r0, -1\njne %r0, 0, again\nexit";
  EXPECT_THAT(probe_verdict(loop), breaks(Rule::Loop, 2));
  EXPECT_EQ(probe_verdict(loop, {.loops_allowed = true}), "valid");
}

TEST(ProbeValidator, RefusesLocalCallsUnlessAllowed) {
  const char* call = "mov %r1, 1\ncall local f\nexit\nf: mov %r0, %r1\nexit";
  EXPECT_THAT(probe_verdict(call), breaks(Rule::LocalCall, 1));
  EXPECT_EQ(probe_verdict(call, {.local_calls_allowed = true}), "valid");
}

TEST(ProbeValidator, RefusesRecursionAndDeepCalls) {
  EXPECT_THAT(probe_verdict("call local f\nexit\nf: call local f\nexit", kAllAllowed),
              breaks(Rule::Recursion, 2));
  EXPECT_THAT(probe_verdict("call local f\nexit\n"
                            "f: call local g\nexit\n"
                            "g: call local f\nexit",
                            kAllAllowed),
              HasSubstr("rule recursion"));
  const auto chain = [](uint32_t functions) {
    std::string text = "mov %r0, 0\n";
    for (uint32_t k = 1; k < functions; ++k) {
      text += fmt::format("call local f{}\nexit\nf{}: mov %r0, 0\n", k, k);
    }
    return text + "exit";
  };
  EXPECT_EQ(probe_verdict(chain(kCallDepthMax), kAllAllowed), "valid");
  EXPECT_THAT(probe_verdict(chain(kCallDepthMax + 1), kAllAllowed), HasSubstr("rule recursion"));
}

TEST(ProbeValidator, RefusesUnreachableInstructions) {
  EXPECT_THAT(probe_verdict("mov %r0, 0\nja out\nmov %r0, 1\nout: exit"),
              breaks(Rule::Unreachable, 2));
}

TEST(ProbeValidator, RefusesReadsOfUninitialisedRegisters) {
  for (const char* text :
       {"mov %r0, %r2", "add %r2, 1", "neg %r2", "be16 %r2", "movsx832 %r0, %r2", "ldxb %r0, [%r2]",
        "stb [%r2], 0", "stxb [%r10-1], %r2", "stxb [%r2], %r10", "lock add [%r2], %r10",
        "lock add [%r10-8], %r2", "lock cmpxchg [%r10-8], %r10", "jeq %r2, 0, +0",
        "jeq %r10, %r2, +0", "exit"}) {
    EXPECT_THAT(probe_verdict(fmt::format("{}\nmov %r0, 0\nexit", text)),
                breaks(Rule::Uninitialised, 0))
        << text;
  }
}

TEST(ProbeValidator, ARegisterMustBeWrittenOnEveryPath) {
  EXPECT_THAT(probe_verdict("ldxdw %r2, [%r1]\njeq %r2, 0, out\nmov %r0, 0\nout: exit"),
              breaks(Rule::Uninitialised, 3));
  // In a loop, the state that comes back counts as well.
  EXPECT_THAT(probe_verdict("mov %r2, 1\n"
                            "again: mov %r6, %r2\n"
                            "call cpu\n"
                            "jne %r0, 0, again\n"
                            "exit",
                            kAllAllowed),
              breaks(Rule::Uninitialised, 1));
}

TEST(ProbeValidator, CallsLoseTheArgumentRegistersAndKeepTheOthers) {
  for (int k = 1; k <= 9; ++k) {
    const std::string found = probe_verdict(
        fmt::format("mov %r{}, 5\nmov %r1, 5\ncall bit_length\nmov %r0, %r{}\nexit", k, k));
    if (k <= 5) {
      EXPECT_THAT(found, breaks(Rule::Uninitialised, 3)) << k;
    } else {
      EXPECT_EQ(found, "valid") << k;
    }
  }
  EXPECT_THAT(probe_verdict("mov %r1, 5\ncall divide_unsigned\nexit"),
              breaks(Rule::Uninitialised, 1));
  // A called function sees the arguments, but not the caller's r6.
  EXPECT_THAT(probe_verdict("mov %r6, 5\ncall local f\nexit\nf: mov %r0, %r6\nexit", kAllAllowed),
              breaks(Rule::Uninitialised, 3));
}

TEST(ProbeValidator, TheContextIsOnlyLoadedFromOrCopied) {
  EXPECT_EQ(probe_verdict("mov %r6, %r1\nldxw %r0, [%r6+104]\nexit"), "valid");
  for (const char* text :
       {"add %r1, 8", "mov %r0, 0\nadd %r0, %r1", "mov32 %r0, %r1", "movsx3264 %r0, %r1",
        "stxdw [%r10-8], %r1", "stb [%r1], 0", "stxb [%r1+8], %r10", "lock add [%r1], %r10",
        "jeq %r1, 0, +0", "call bit_length", "neg %r1", "be64 %r1"}) {
    EXPECT_THAT(probe_verdict(fmt::format("{}\nmov %r0, 0\nexit", text)), HasSubstr("rule context"))
        << text;
  }
  EXPECT_THAT(probe_verdict("mov %r0, %r1\nexit"), breaks(Rule::Context, 1));
}

TEST(ProbeValidator, LoadsFromTheContextAreAlignedAndInside) {
  for (const char* load : {"ldxdw %r0, [%r1-8]", "ldxdw %r0, [%r1+4]", "ldxh %r0, [%r1+1]",
                           "ldxdw %r0, [%r1+264]", "ldxb %r0, [%r1+264]"}) {
    EXPECT_THAT(probe_verdict(fmt::format("{}\nexit", load)), breaks(Rule::Context, 0)) << load;
  }
  EXPECT_EQ(probe_verdict("ldxdw %r0, [%r1+176]\nexit"), "valid");
}

TEST(ProbeValidator, ARegisterThatIsTheContextOnSomePathsOnlyIsUseless) {
  EXPECT_THAT(probe_verdict("ldxdw %r2, [%r1]\n"
                            "jeq %r2, 0, out\n"
                            "mov %r1, 768\n"
                            "out: ldxdw %r0, [%r1]\n"
                            "exit"),
              breaks(Rule::Context, 3));
}

TEST(ProbeValidator, AccessesByR10StayInTheFrame) {
  EXPECT_EQ(probe_verdict("stdw [%r10-512], 0\nldxdw %r0, [%r10-8]\nexit"), "valid");
  EXPECT_THAT(probe_verdict("stdw [%r10-516], 0\nmov %r0, 0\nexit"), breaks(Rule::Frame, 0));
  EXPECT_THAT(probe_verdict("stdw [%r10-4], 0\nmov %r0, 0\nexit"), breaks(Rule::Frame, 0));
  EXPECT_THAT(probe_verdict("ldxb %r0, [%r10]\nexit"), breaks(Rule::Frame, 0));
  // With local calls the frame is shared by up to 8 functions.
  EXPECT_THAT(
      probe_verdict("call local f\nexit\nf: stb [%r10-65], 0\nmov %r0, 0\nexit", kAllAllowed),
      breaks(Rule::Frame, 2));
}

}  // namespace
}  // namespace clew::isa

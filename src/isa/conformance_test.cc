// SPDX-License-Identifier: Apache-2.0
// The public conformance vectors: assembled to the same bytes, printed and read back, run to the
// same result; and the negative ones refused.
#include <algorithm>
#include <array>
#include <cctype>
#include <map>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "isa/assembler.h"
#include "isa/conformance_vectors.h"
#include "isa/interpreter.h"
#include "isa/print.h"
#include "isa/validator.h"

namespace clew::isa {
namespace {

constexpr std::string_view kFolder = CLEW_SOURCE_DIR "/../shared/conformance";

struct Exception {
  std::string_view name;
  std::string_view reason;
};

// Vectors of `bpf` that Clew refuses by design.
constexpr auto kRefusedByDesign = std::to_array<Exception>({
    {"callx", "no indirect calls: RFC 9669 has none, and native code has only direct branches"},
});

// Vectors of `bpf-negative` that are correct programs by RFC 9669. They test the harness that the
// vectors come from, not an engine.
constexpr auto kNotNegative = std::to_array<Exception>({
    {"div64-negative-imm", "also in `bpf`, with the same correct result"},
    {"div64-negative-reg", "also in `bpf`, with the same correct result"},
    {"incorrect_return_value_high_bits", "a correct program with a wrong result beside it"},
});

template <size_t N>
bool is_listed(const std::array<Exception, N>& list, std::string_view name) {
  return std::any_of(list.begin(), list.end(), [&](const auto& e) { return e.name == name; });
}

// The vectors of a folder, or a skip that is seen.
class Conformance : public testing::Test {
 protected:
  std::vector<ConformanceVector> load(std::string_view folder) {
    Expected<std::vector<ConformanceVector>> vectors =
        load_conformance_vectors(fmt::format("{}/{}", kFolder, folder));
    if (vectors) return *vectors;
    EXPECT_EQ(vectors.error().code, ErrorCode::NotFound) << vectors.error().message;
    return {};
  }
};

#define CLEW_SKIP_WITHOUT(vectors) \
  if ((vectors).empty()) GTEST_SKIP() << "NO CONFORMANCE VECTORS at " << kFolder

Expected<Outcome> run(const ConformanceVector& vector, const Program& program) {
  std::vector<uint8_t> window(size_t{1} << kVectorWindowSizeLog2);
  std::copy(vector.memory.begin(), vector.memory.end(), window.begin() + kVectorMemoryOffset);
  Environment environment;
  environment.window = window;
  environment.r1 = vector.memory.empty() ? 0 : kVectorMemoryOffset;
  environment.r2 = vector.memory.size();
  environment.frame_end = kVectorFrameEnd;
  return interpret(program, environment);
}

// The assembled program, or the raw one.
Expected<Program> program_of(const ConformanceVector& vector) {
  if (!vector.assembly.empty()) return assemble(vector.assembly, vector.name);
  if (vector.code.empty()) return fail(ErrorCode::InvalidQuery, "no program");
  return Program{vector.name, vector.code, 0};
}

std::string run_and_compare(const ConformanceVector& vector) {
  const Expected<Program> program = program_of(vector);
  if (!program) return program.error().message;
  const Expected<Outcome> outcome = run(vector, *program);
  if (!outcome) return outcome.error().message;
  if (outcome->result == vector.result) return "";
  return fmt::format("r0 = {:#x}, expected {:#x}", outcome->result, *vector.result);
}

TEST_F(Conformance, AssemblesEachVectorToTheSameBytes) {
  const std::vector<ConformanceVector> vectors = load("bpf");
  CLEW_SKIP_WITHOUT(vectors);
  for (const ConformanceVector& vector : vectors) {
    if (is_listed(kRefusedByDesign, vector.name)) continue;
    const Expected<Program> program = assemble(vector.assembly, vector.name);
    ASSERT_TRUE(program) << vector.name << ": " << program.error().message;
    EXPECT_EQ(program->code, vector.code) << vector.name;
  }
}

TEST_F(Conformance, PrintsEachVectorSoThatItReadsBack) {
  const std::vector<ConformanceVector> vectors = load("bpf");
  CLEW_SKIP_WITHOUT(vectors);
  for (const ConformanceVector& vector : vectors) {
    if (is_listed(kRefusedByDesign, vector.name)) continue;
    const Program program{vector.name, vector.code, 0};
    const Expected<Program> again = assemble(print(program), vector.name);
    ASSERT_TRUE(again) << vector.name << ": " << again.error().message << '\n' << print(program);
    EXPECT_EQ(*again, program) << print(program);
  }
}

TEST_F(Conformance, RunsEachVectorToItsResult) {
  const std::vector<ConformanceVector> vectors = load("bpf");
  CLEW_SKIP_WITHOUT(vectors);
  struct Tally {
    int passed = 0;
    int all = 0;
  };
  std::map<std::string, Tally> groups;
  for (const ConformanceVector& vector : vectors) {
    const std::string failure = run_and_compare(vector);
    const bool refused = is_listed(kRefusedByDesign, vector.name);
    EXPECT_EQ(failure.empty(), !refused) << vector.name << ": " << failure;
    for (const std::string& group : conformance_groups(vector.code)) {
      ++groups[group].all;
      groups[group].passed += failure.empty() ? 1 : 0;
    }
  }
  for (const auto& [group, tally] : groups) {
    fmt::print("  {:9} {:3} of {:3} vectors that need it\n", group, tally.passed, tally.all);
  }
  for (const auto& [name, reason] : kRefusedByDesign) {
    fmt::print("  refused by design: {}: {}\n", name, reason);
  }
}

TEST_F(Conformance, ARefusalByDesignNamesThePlace) {
  const std::vector<ConformanceVector> vectors = load("bpf");
  CLEW_SKIP_WITHOUT(vectors);
  for (const ConformanceVector& vector : vectors) {
    if (!is_listed(kRefusedByDesign, vector.name)) continue;
    const Expected<Program> assembled = assemble(vector.assembly);
    ASSERT_FALSE(assembled);
    EXPECT_THAT(assembled.error().message, testing::StartsWith("3:6: error: call through"));
    const Expected<void> valid = validate(Program{vector.name, vector.code, 0});
    ASSERT_FALSE(valid);
    EXPECT_THAT(valid.error().message, testing::HasSubstr("instruction 2: rule opcode"));
  }
}

std::string lower(std::string text) {
  for (char& c : text)
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

std::string refusal_of(const ConformanceVector& vector) {
  const Expected<Program> program = program_of(vector);
  if (!program) return program.error().message;
  const Expected<void> valid = validate(*program);
  return valid ? "" : valid.error().message;
}

TEST_F(Conformance, RefusesEachNegativeVector) {
  const std::vector<ConformanceVector> vectors = load("bpf-negative");
  CLEW_SKIP_WITHOUT(vectors);
  int refused = 0;
  for (const ConformanceVector& vector : vectors) {
    if (is_listed(kNotNegative, vector.name)) continue;
    const std::string refusal = refusal_of(vector);
    EXPECT_NE(refusal, "") << vector.name << " was accepted";
    EXPECT_THAT(lower(refusal), testing::HasSubstr(lower(vector.error.value_or(""))))
        << vector.name;
    ++refused;
  }
  fmt::print("  {} of {} negative vectors refused\n", refused, vectors.size());
}

TEST_F(Conformance, TheVectorsThatAreNotNegativeAreCorrectPrograms) {
  const std::vector<ConformanceVector> negative = load("bpf-negative");
  const std::vector<ConformanceVector> positive = load("bpf");
  CLEW_SKIP_WITHOUT(negative);
  for (const ConformanceVector& vector : negative) {
    if (!is_listed(kNotNegative, vector.name)) continue;
    const auto same = std::find_if(positive.begin(), positive.end(), [&](const auto& other) {
      return other.assembly == vector.assembly && other.memory == vector.memory;
    });
    ASSERT_NE(same, positive.end()) << vector.name;
    EXPECT_EQ(run_and_compare(*same), "");
    const bool wrong_result = vector.name.starts_with("incorrect");
    EXPECT_EQ(run_and_compare(vector) != "", wrong_result) << vector.name;
  }
}

}  // namespace
}  // namespace clew::isa

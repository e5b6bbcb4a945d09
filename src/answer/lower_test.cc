// SPDX-License-Identifier: Apache-2.0
// What lowering refuses, and what holds for every program.
#include "plan/lower.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "abi/context.h"
#include "answer/fake_machine.h"
#include "isa/accessor_host.h"
#include "isa/interpreter.h"
#include "plan/capture.h"
#include "query/parse.h"

namespace clew::answer {

using plan::capture;
using plan::Captured;
using plan::lower;
using plan::Lowered;
using plan::LowerInput;
using plan::make;
using plan::plain;
using plan::Plan;
using plan::ProbeProgram;
using plan::ProgramPoint;
using plan::SiteConstant;
using plan::StateForm;

namespace {

Plan plan_of(std::string_view text) {
  const Expected<query::Query> query =
      query::parse({.name = "query", .text = std::string(text)}, {});
  EXPECT_TRUE(query.has_value()) << query.error().message;
  return make(query.value_or(query::Query{}));
}

constexpr LowerInput kInput{
    .tick_multiplier = 3, .tick_shift = 6, .base_ticks = 0, .base_ns = 0, .group_count = 1};

// The instructions that may follow instruction `at`.
std::vector<size_t> successors(const std::vector<isa::Instruction>& code, size_t at) {
  constexpr uint8_t kJump = 0x05;
  constexpr uint8_t kJump32 = 0x06;
  const isa::Instruction& instruction = code[at];
  if (instruction.opcode == 0x18) return {at + 2};
  const uint8_t kind = instruction.opcode & 0x07;
  const uint8_t operation = instruction.opcode & 0xf0;
  if ((kind != kJump && kind != kJump32) || operation == 0x80) return {at + 1};
  if (operation == 0x90) return {};
  const int64_t distance =
      operation == 0 && kind == kJump32 ? instruction.immediate : instruction.offset;
  const auto target = static_cast<size_t>(static_cast<int64_t>(at) + 1 + distance);
  if (operation == 0) return {target};
  return {target, at + 1};
}

enum class Mark : uint8_t { New, Open, Done };

bool has_cycle(const std::vector<isa::Instruction>& code, size_t at, std::vector<Mark>& marks) {
  if (marks[at] != Mark::New) return marks[at] == Mark::Open;
  marks[at] = Mark::Open;
  for (const size_t next : successors(code, at)) {
    if (has_cycle(code, next, marks)) return true;
  }
  marks[at] = Mark::Done;
  return false;
}

TEST(Lower, ProgramsRunEachInstructionAtMostOnce) {
  constexpr std::string_view kQueries[] = {
      R"(from e in return("m!f") where str(e.entry.arg0) in ("a", "b") && e.elapsed > 3
         groupby e.entry.arg1, str(e.entry.arg2)
         select count(), stddev(e.elapsed), quantize(e.retval), llquantize(e.retval, 10, 0, 6, 20),
           distinct(str(e.entry.arg0)), quantile(e.elapsed, .9), sum(*(int *)e.entry.arg3))",
      R"(from e in return("m!f") where sample(3) && e.retval / 3 > 1
         select e.elapsed, e.time, str(e.entry.arg0, 200), e.comm, e.caller)",
      R"(from e in entry("m!f") groupby e.arg0 select count(), min(e.arg1) every 1s)"};
  for (const std::string_view text : kQueries) {
    const Plan plan = plan_of(text);
    const Expected<Lowered> lowered = lower(plan, kInput);
    ASSERT_TRUE(lowered.has_value()) << lowered.error().message;
    for (const ProbeProgram& program : lowered->programs) {
      std::vector<Mark> marks(program.program.code.size(), Mark::New);
      EXPECT_FALSE(has_cycle(program.program.code, 0, marks)) << program.program.name;
    }
  }
}

// The programs of a session, run over the accessors of the reference.
class FakeUnwinding {
 public:
  FakeUnwinding(const Plan& plan, const LowerInput& input)
      : lowered_(*lower(plan, input)), host_(lowered_.layout) {
    window_.assign((size_t{1} << lowered_.layout.size_log2) + abi::kWindowSlackBytes, 0);
  }
  void run(ProgramPoint point, const abi::Context& context) {
    for (const ProbeProgram& program : lowered_.programs) {
      if (program.point != point) continue;
      std::vector<uint64_t> constants;
      for (const SiteConstant constant : program.site_constants) {
        const bool is_tag = constant == SiteConstant::RecordTag;
        const bool is_group = constant == SiteConstant::GroupPointer;
        constants.push_back(is_tag     ? (program.source + 1ULL) << abi::kFunctionIdShift
                            : is_group ? lowered_.group_pointer(program.source)
                                       : 0);
      }
      const auto done = isa::interpret(
          program.program,
          {.window = window_, .context = &context, .site_constants = constants, .host = &host_});
      ASSERT_TRUE(done.has_value()) << done.error().message;
    }
  }
  uint64_t count_of(uint32_t group) {
    uint64_t count = 0;
    std::memcpy(&count, window_.data() + lowered_.group_pointer(group), sizeof count);
    return count;
  }

 private:
  Lowered lowered_;
  isa::RegionHost host_;
  std::vector<uint8_t> window_;
};

abi::Context at_frame(uint64_t frame, uint64_t argument) {
  abi::Context context{};
  context.arguments[0] = argument;
  context.frame = frame;
  return context;
}

// Sources 0 and 1 are exceptions, 2 a return with a record. All three are of one function, which
// calls itself. What passes the filter counts, for each call that is left, and only for those.
TEST(Lower, ALandingRunsEachExceptionSourceForTheCallsThatAreLeft) {
  constexpr uint64_t kStack = 0x7fff'0000'0000;
  const Plan plan = plan_of(
      R"(from e in exception("m!f"), exception("m!g"), return("m!f") where e.entry.arg0 > 1
         groupby e.probe select count())");
  LowerInput input = kInput;
  input.group_count = 3;
  FakeUnwinding session(plan, input);
  for (uint64_t i = 0; i < 6; ++i) {
    session.run(ProgramPoint::Entry, at_frame(kStack + 64 * i, i));
  }
  session.run(ProgramPoint::UnwindStart, at_frame(kStack + 64, 0));
  abi::Context landing{};
  landing.arguments[3] = kStack + 64 * 3;  // Where the calls of the frame that catches are made.
  session.run(ProgramPoint::Landing, landing);
  EXPECT_EQ(session.count_of(0), 2U);  // Arguments 2 and 3.
  EXPECT_EQ(session.count_of(1), 2U);
  EXPECT_EQ(session.count_of(2), 0U);
  session.run(ProgramPoint::Landing, landing);  // Nobody unwinds any more.
  session.run(ProgramPoint::Exit, at_frame(kStack + 64 * 5, 0));
  EXPECT_EQ(session.count_of(2), 1U);
  session.run(ProgramPoint::UnwindStart, at_frame(kStack, 0));
  landing.arguments[3] = kStack + 64 * 5;
  session.run(ProgramPoint::Landing, landing);
  EXPECT_EQ(session.count_of(0),
            3U);  // Argument 4: what returned was not left, 0 fails the filter.
  EXPECT_EQ(session.count_of(2), 1U);
}

void expect_limit(const Plan& plan, const LowerInput& input, std::string_view message) {
  const Expected<Lowered> lowered = lower(plan, input);
  ASSERT_FALSE(lowered.has_value());
  EXPECT_EQ(lowered.error().code, ErrorCode::Limit);
  EXPECT_NE(lowered.error().message.find(message), std::string::npos) << lowered.error().message;
}

TEST(Lower, KeysThatDoNotFitTheFrameAreAnError) {
  expect_limit(plan_of(R"(from e in entry("m!f")
                          groupby str(e.arg0, 256), str(e.arg1, 256), e.arg2 select count())"),
               kInput, "512 bytes");
}

TEST(Lower, EventsThatDoNotFitTheRingAreAnError) {
  std::string text = "from e in entry(\"m!f\") select e.arg0";
  for (int i = 0; i < 4; ++i) {
    text += fmt::format(", str(e.arg{}, 4096) as s{}", i, i);
  }
  expect_limit(plan_of(text), kInput, "an event of this query may have 16440 bytes");
}

// Text of so many bytes at each address of a memory of one page.
std::string text_of(size_t size) {
  std::string text;
  for (size_t i = 0; i < size; ++i)
    text += static_cast<char>('a' + i * i % 26);
  return text;
}

// The record of one hit, whose arguments are texts of these sizes.
std::vector<uint64_t> event_of(std::string_view query, const std::vector<size_t>& sizes) {
  constexpr uint64_t kPlace = 0x10000;
  const Plan plan = plan_of(query);
  const Lowered lowered = *lower(plan, kInput);
  std::vector<uint8_t> window((size_t{1} << lowered.layout.size_log2) + abi::kWindowSlackBytes);
  const auto ring = window.begin() + lowered.layout.ring.offset;
  std::fill(ring, ring + abi::kEventSizeMax, uint8_t{0xEE});  // Of an earlier event.
  isa::RegionHost host(lowered.layout);
  host.read_memory = [&](std::span<uint8_t> into, uint64_t address) {
    const std::string text = text_of(sizes.at(address / kPlace - 1));
    const size_t from = address % kPlace;
    for (size_t i = 0; i < into.size(); ++i)
      into[i] = from + i < text.size() ? static_cast<uint8_t>(text[from + i]) : 0;
    return true;
  };
  abi::Context context{};
  for (size_t i = 0; i < sizes.size(); ++i)
    context.arguments[i] = kPlace * (i + 1);
  const auto done = isa::interpret(lowered.programs.at(0).program,
                                   {.window = window, .context = &context, .host = &host});
  EXPECT_TRUE(done.has_value()) << done.error().message;
  uint64_t head = 0;
  std::memcpy(&head, window.data() + offsetof(abi::RegionHeader, ring_head), sizeof head);
  std::vector<uint64_t> words(head / 8);
  std::memcpy(words.data(), window.data() + lowered.layout.ring.offset, head);
  EXPECT_EQ(words.at(0) & 0xFFFF'FFFF, head);
  return words;
}

TEST(Lower, AnEventHasAsManyWordsAsItsTextsNeed) {
  constexpr std::string_view kQuery =
      R"(from e in entry("m!f") select str(e.arg0, 4096) as a, str(e.arg1), e.arg2 as n)";
  constexpr size_t kOther = 4;  // Header, the sizes of both texts, but for the number.
  constexpr std::pair<size_t, size_t> kWordsBySize[] = {
      {0, 0}, {1, 1}, {8, 1}, {9, 2}, {255, 32}, {256, 32}, {257, 33}, {4095, 512}, {9000, 512}};
  for (const auto& [size, words] : kWordsBySize) {
    const std::vector<uint64_t> event = event_of(kQuery, {size, 3, 0});
    ASSERT_EQ(event.size(), kOther + words + 1 + 1) << size;
    EXPECT_EQ(event.at(2), 8 * words);
    std::string text(8 * words, '\0');
    std::memcpy(text.data(), event.data() + 3, text.size());
    std::string expected = text_of(std::min<size_t>(size, 4095));
    expected.resize(text.size());
    EXPECT_EQ(text, expected) << size;
    EXPECT_EQ(event.at(3 + words), 8U);
    EXPECT_EQ(event.at(5 + words), 3 * 0x10000U);  // The number behind the texts.
  }
}

TEST(Lower, TheSideThatIsChosenSaysHowLongTextIs) {
  constexpr std::string_view kQuery =
      R"(from e in entry("m!f") select e.arg1 > 65536 ? str(e.arg0, 1000) : "short" as a)";
  EXPECT_EQ(event_of(kQuery, {600, 0}).size(), 3 + 75U);
  constexpr std::string_view kOther =
      R"(from e in entry("m!f") select e.arg1 == 1 ? str(e.arg0, 1000) : "short" as a)";
  EXPECT_EQ(event_of(kOther, {600, 0}).size(), 3 + 1U);
}

// It does not fit the scratch memory of a probe: what it is compared with is little.
TEST(Lower, LongTextIsComparedWithoutBeingKept) {
  constexpr std::string_view kQuery =
      R"(from e in entry("m!f") let a = str(e.arg0, 4096) let b = str(e.arg1, 4096)
         where startswith(a, "ab") && a != "ab" && b == "abej" select a, b)";
  EXPECT_EQ(event_of(kQuery, {300, 4}).size(), 2 + 1 + 38 + 1 + 1U);
}

TEST(Lower, ChoicesBetweenLongTextsAreReadWhereTheyAreUsed) {
  constexpr std::string_view kQuery =
      R"(from e in entry("m!f") let a = e.arg2 != 0 ? str(e.arg0) : "none"
         let b = e.arg2 != 0 ? str(e.arg1, 4096) : "none"
         where a != "x" && b == "abej" select a, b)";
  EXPECT_EQ(event_of(kQuery, {100, 4, 0}).size(), 2 + 1 + 13 + 1 + 1U);
}

TEST(Lower, MembershipReadsNoMoreThanItNeeds) {
  constexpr std::string_view kQuery =
      R"(from e in entry("m!f") let a = str(e.arg0, 4096)
         where a in ("abe", "abej") && e.arg1 > 0 select a)";
  EXPECT_EQ(event_of(kQuery, {4, 0}).size(), 2 + 1 + 1U);
  EXPECT_EQ(event_of(R"(from e in entry("m!f") where str(e.arg0, 4096) not in ("abe", "abej")
                        select e.arg1)",
                     {5, 0})
                .size(),
            2 + 1U);
}

TEST(Lower, StateThatDoesNotFitTheRegionIsAnError) {
  LowerInput input = kInput;
  input.group_count = 20'000;
  expect_limit(plan_of(R"(from e in entry("m!*") groupby e.function select p99(e.arg0))"), input,
               "MiB of state");
}

TEST(Lower, FieldsOfNeitherProbeNorTracerAreAnError) {
  Plan plan = plan_of(R"(from e in entry("m!f") select e.arg0)");
  plan.query.values[0].expression.kind = query::ExpressionKind::Value;
  const Plan joined = make(plan.query);
  const Expected<Captured> captured = capture(joined);
  ASSERT_FALSE(captured.has_value());
  EXPECT_EQ(captured.error().code, ErrorCode::InvalidQuery);
  EXPECT_EQ(lower(joined, kInput).error().message, captured.error().message);
}

TEST(Lower, StacksAreWalkedAtFunctionsAndWithinThem) {
  for (const char* text :
       {R"(from e in entry("m!f") group by e.ustack)", R"(from e in return("m!f") select e.ustack)",
        R"(from e in offset("m!f", 4) group by e.ustack)",
        R"(from e in line("m!f.c:4") select e.stack)",
        R"(from e in usdt("m:f"), entry("m!f") group by e.ustack(3))",
        R"(from e in exception("m!f") select e.ustack)"}) {
    const auto lowered = lower(plan_of(text), kInput);
    ASSERT_TRUE(lowered.has_value()) << lowered.error().message;
    EXPECT_TRUE(lowered->walks_stacks);
    EXPECT_GE(lowered->layout.walk_offset, abi::kFrameEnd);
  }
  const auto open =
      lower(plan_of(R"(from e in return("m!f") including open select e.ustack)"), kInput);
  ASSERT_FALSE(open.has_value());
  EXPECT_EQ(open.error().code, ErrorCode::InvalidQuery);
  const auto long_key =
      lower(plan_of(R"(from e in entry("m!f") group by e.ustack(200), e.stack(100))"), kInput);
  ASSERT_FALSE(long_key.has_value());
  EXPECT_EQ(long_key.error().code, ErrorCode::Limit);
}

// Cells of many large aggregates are further apart than an instruction's offset reaches.
TEST(Lower, ManyLargeAggregatesAreReached) {
  std::string text = "from e in entry(\"app!work\") groupby e.arg2 & 1 select count()";
  for (int i = 0; i < 9; ++i) {
    text += fmt::format(", quantile(e.arg3, .{}) as q{}, sum(e.arg{})", i + 1, i, i + 2);
  }
  const Plan plan = plan_of(text);
  const std::vector<FakeThread> threads = random_threads(5, 40);
  const Expected<FakeAnswer> got = answer_of(plan, threads);
  ASSERT_TRUE(got.has_value()) << got.error().message;
  const Expected<FakeAnswer> expected = answer_of(plain(plan.query), threads);
  ASSERT_TRUE(expected.has_value()) << expected.error().message;
  EXPECT_EQ(got->form, StateForm::Table);
  EXPECT_TRUE(got->rows == expected->rows);
}

// Both halves of the state must count what has passed: the collector clears the one at rest.
TEST(Lower, PassedHitsAreCountedInTheHalfInUse) {
  const Plan plan =
      plan_of(R"(from e in entry("app!work") groupby e.arg2 & 1 select max(e.arg3), count()
                 every 1s for 1000000 events)");
  const std::vector<FakeThread> threads = random_threads(6, 40);
  const Expected<FakeAnswer> first = answer_of(plan, threads, {.generation = 0});
  const Expected<FakeAnswer> second = answer_of(plan, threads, {.generation = 1});
  ASSERT_TRUE(first.has_value() && second.has_value());
  EXPECT_GT(first->passed, 0U);
  EXPECT_EQ(second->passed, first->passed);
}

// These programs run at every hit; a longer one should be a decision. Instructions as executed on
// the usual path.
TEST(Lower, UsualProgramsAreShort) {
  struct Limit {
    std::string_view text;
    double instructions;
  };
  constexpr Limit kLimits[] = {
      {R"(entry("app!work").Count())", 7},
      {R"(from e in entry("app!work") groupby e.arg2 & 1 select count())", 36},
      {R"(from e in entry("app!work") where e.arg2 > 1 && e.arg3 != 4 select sum(e.arg2))", 11},
      {R"(from e in return("app!work") select sum(e.elapsed))", 24},
      {R"(from e in entry("app!work") select e.arg2, e.arg3)", 26}};
  const std::vector<FakeThread> threads = random_threads(7, 400);
  for (const Limit& limit : kLimits) {
    const Expected<FakeAnswer> got = answer_of(plan_of(limit.text), threads);
    ASSERT_TRUE(got.has_value()) << got.error().message;
    EXPECT_LE(static_cast<double>(got->instructions) / static_cast<double>(got->runs),
              limit.instructions)
        << limit.text;
  }
}

}  // namespace
}  // namespace clew::answer

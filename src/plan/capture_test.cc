// SPDX-License-Identifier: Apache-2.0
// One hit has one time: how often its program reads the counter, and what the tracer makes of it.
#include "plan/capture.h"

#include <algorithm>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "plan/lower.h"
#include "query/parse.h"

namespace clew::plan {
namespace {

constexpr LowerInput kInput{.tick_multiplier = 419'430,
                            .tick_shift = 20,
                            .base_ticks = 1'000'000,
                            .base_ns = 7'000,
                            .group_count = 1};

Lowered lowered_of(std::string_view text) {
  const Expected<query::Query> query =
      query::parse({.name = "query", .text = std::string(text)}, {});
  EXPECT_TRUE(query.has_value()) << query.error().message;
  const Expected<Lowered> lowered = lower(make(query.value_or(query::Query{})), kInput);
  EXPECT_TRUE(lowered.has_value()) << lowered.error().message;
  return lowered.value_or(Lowered{});
}

// Calls of Accessor::Time in the program that is no recorder.
int64_t time_stamps(const Lowered& lowered) {
  constexpr uint8_t kCall = 0x85;
  const auto program = std::find_if(lowered.programs.begin(), lowered.programs.end(),
                                    [](const ProbeProgram& p) { return !p.is_recorder; });
  if (program == lowered.programs.end()) return -1;
  const auto& code = program->program.code;
  return std::count_if(code.begin(), code.end(), [](const isa::Instruction& i) {
    return i.opcode == kCall && i.source() == 0 &&
           i.immediate == static_cast<int32_t>(abi::Accessor::Time);
  });
}

TEST(Capture, TheTimeOfAnEventTakesNoWord) {
  const Lowered lowered =
      lowered_of(R"(from e in entry("m!f") let t = e.time select e.time, t as again, e.arg0)");
  EXPECT_EQ(lowered.event_words.at(0), (collect::EventWords{.least = 1, .most = 1}));
  EXPECT_EQ(time_stamps(lowered), 1);
}

TEST(Capture, ExpressionsOverTheTimeUseTheTimeStampOfTheEvent) {
  const Lowered lowered =
      lowered_of(R"(from e in entry("m!f") select e.time - e.arg0 as age, e.time % 7 as phase)");
  EXPECT_EQ(lowered.event_words.at(0), (collect::EventWords{.least = 2, .most = 2}));
  EXPECT_EQ(time_stamps(lowered), 1);
}

TEST(Capture, AnExitThatMeasuresElapsedReadsTheCounterOnce) {
  EXPECT_EQ(time_stamps(lowered_of(R"(from e in return("m!f") select e.elapsed, e.time)")), 1);
  EXPECT_EQ(time_stamps(lowered_of(
                R"(from e in return("m!f") where e.time > 9 select e.elapsed, e.retval)")),
            1);
  EXPECT_EQ(
      time_stamps(lowered_of(R"(from e in return("m!f") where e.time > 9 select sum(e.elapsed))")),
      1);
}

// The pane of an event is that of the times which are counted of it.
TEST(Capture, WhatCountsByWindowsReadsTheCounterOnce) {
  EXPECT_EQ(time_stamps(lowered_of(R"(from e in entry("m!f") groupby e.tid window session 5s)")),
            1);
  EXPECT_EQ(time_stamps(lowered_of(R"(from e in return("m!f") window tumbling 5s
                                      select max(e.elapsed), max(e.time), min(e.time))")),
            1);
}

// Nothing is stored twice: the time is there.
TEST(Capture, ThePaneOfASingleEventFollowsFromItsTime) {
  const Lowered lowered =
      lowered_of(R"(from e in entry("m!f") window tumbling 5s select avg(e.arg0 * 0.5))");
  EXPECT_EQ(lowered.event_words.at(0), (collect::EventWords{.least = 1, .most = 1}));
}

TEST(Capture, TimeStampsBeforeAndLongAfterTheStartAreScaled) {
  const Clock clock = lowered_of(R"(from e in entry("m!f") select e.time)").clock;
  EXPECT_EQ(clock.monotonic_ns(1'000'000), 7'000U);
  EXPECT_EQ(clock.monotonic_ns(1'000'000 + (uint64_t{1} << 20)), 7'000U + 419'430U);
  // A hundred days at 2.5 GHz: the product of the whole span would not fit 64 bits.
  EXPECT_EQ(clock.monotonic_ns(1'000'000 + (uint64_t{1} << 54)),
            7'000U + (uint64_t{419'430} << 34));
}

}  // namespace
}  // namespace clew::plan

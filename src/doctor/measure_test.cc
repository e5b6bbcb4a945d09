// SPDX-License-Identifier: Apache-2.0
#include "doctor/measure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace clew::doctor {
namespace {

using testing::HasSubstr;

IdPattern hex_pattern() {
  Expected<IdPattern> pattern = IdPattern::compile("h[0-9a-f]{4}");
  EXPECT_TRUE(pattern.has_value());
  return std::move(*pattern);
}

TEST(MeasuringCauses, FindsTheFirstIdOfAText) {
  EXPECT_EQ(hex_pattern().find("GET /t/h00ff?h1234 HTTP/1.1"), "h00ff");
  EXPECT_EQ(hex_pattern().find("GET / HTTP/1.1"), std::nullopt);
}

TEST(MeasuringCauses, SaysWhatIsWrongWithAPattern) {
  const auto pattern = IdPattern::compile("h[0-9");
  ASSERT_FALSE(pattern.has_value());
  EXPECT_THAT(pattern.error().message, HasSubstr("--id: 'h[0-9' is no regular expression: "));
}

TEST(MeasuringCauses, ComparesIdsAndCountsWhatHasNone) {
  const IdPattern pattern = hex_pattern();
  Measured sum;
  note(sum, pattern, "get h0001", "GET /h0001");
  note(sum, pattern, "get h0002", "GET /h0001");
  note(sum, pattern, "get h0003", std::nullopt);
  note(sum, pattern, "get h0004", "PING");
  note(sum, pattern, "PING", "GET /h0001");
  EXPECT_EQ(sum.messages, 4U);
  EXPECT_EQ(sum.right, 1U);
  EXPECT_EQ(sum.wrong, 1U);
  EXPECT_EQ(sum.unknown, 2U);
}

Finding judged(const Measured& measured) {
  Findings findings("process 12");
  judge(measured, findings);
  const Finding* const found = findings.find("measured");
  return found == nullptr ? Finding{} : *found;
}

TEST(MeasuringCauses, IsContentWithLessThanOneWrongOfAThousand) {
  EXPECT_EQ(judged({.messages = 1000, .right = 1000}).verdict, Verdict::Ok);
  EXPECT_EQ(judged({.messages = 1000, .right = 999, .wrong = 1}).verdict, Verdict::Ok);
  const Finding wrong = judged({.messages = 1000, .right = 900, .wrong = 50, .unknown = 50});
  EXPECT_EQ(wrong.verdict, Verdict::Note);
  EXPECT_THAT(wrong.detail, HasSubstr("precision 0.9474, recall 0.9500"));
  EXPECT_THAT(wrong.remedy, HasSubstr("heuristic"));
}

TEST(MeasuringCauses, SaysWhenThereWasNothingToMeasure) {
  EXPECT_THAT(judged({}).detail, HasSubstr("no message"));
}

TEST(MeasuringCauses, IsNotContentWithNothingKnown) {
  const Finding unknown = judged({.messages = 3, .unknown = 3});
  EXPECT_EQ(unknown.detail, "3 messages with an id: 0 right, 0 wrong, 3 unknown");
  EXPECT_EQ(unknown.verdict, Verdict::Note);
  EXPECT_THAT(unknown.remedy, HasSubstr("[[program]]"));
}

}  // namespace
}  // namespace clew::doctor

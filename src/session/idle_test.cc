// SPDX-License-Identifier: Apache-2.0
#include "session/idle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace clew::session {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

const Idle::Time::time_point kBegin{seconds(1000)};

TEST(Idle, IsOverWhenNothingWasAnsweredForItsTime) {
  Idle idle({.time = seconds(10), .is_unread = {}}, kBegin);
  EXPECT_FALSE(idle.why_over(kBegin + seconds(9)));
  ASSERT_TRUE(idle.why_over(kBegin + seconds(10)));
  EXPECT_THAT(*idle.why_over(kBegin + seconds(10)), HasSubstr("nothing was answered for 10 s"));
}

TEST(Idle, WhatIsAnsweredBeginsItsTimeAnew) {
  Idle idle({.time = seconds(10), .is_unread = {}}, kBegin);
  idle.note(kBegin + seconds(9));
  EXPECT_FALSE(idle.why_over(kBegin + seconds(18)));
  EXPECT_TRUE(idle.why_over(kBegin + seconds(19)));
}

TEST(Idle, WhatNobodyReadsIsOverAtOnce) {
  bool is_unread = false;
  Idle idle({.time = seconds(10), .is_unread = [&is_unread] { return is_unread; }}, kBegin);
  EXPECT_FALSE(idle.why_over(kBegin));
  is_unread = true;
  ASSERT_TRUE(idle.why_over(kBegin));
  EXPECT_THAT(*idle.why_over(kBegin), HasSubstr("nobody has read"));
}

TEST(Idle, LooksFourTimesInItsTime) {
  Idle idle({.time = seconds(20), .is_unread = {}}, kBegin);
  EXPECT_FALSE(idle.wants_look(kBegin + seconds(4)));
  EXPECT_TRUE(idle.wants_look(kBegin + seconds(5)));
  EXPECT_FALSE(idle.wants_look(kBegin + seconds(6)));
  EXPECT_TRUE(idle.wants_look(kBegin + seconds(10)));
}

// Looks come late: the fourth would come behind the end.
TEST(Idle, IsLookedAtOnceMoreInFrontOfItsEnd) {
  Idle idle({.time = seconds(20), .is_unread = {}}, kBegin);
  for (const int at : {6, 12, 18})
    EXPECT_TRUE(idle.wants_look(kBegin + seconds(at)));
  EXPECT_FALSE(idle.wants_look(kBegin + seconds(20)));
  EXPECT_TRUE(idle.is_quiet(kBegin + seconds(20)));
  idle.note(kBegin + seconds(20));
  EXPECT_FALSE(idle.is_quiet(kBegin + seconds(39)));
}

}  // namespace
}  // namespace clew::session

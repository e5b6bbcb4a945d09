// SPDX-License-Identifier: Apache-2.0
#include "cluster/gap_texts.h"

#include <cstdlib>
#include <ctime>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cluster/clock.h"

namespace clew::cluster {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr stream::Panes kPanes{.epoch_ns = 0, .width_ns = kSecond / 4};

TEST(GapTexts, AreTheNumbersOfIntervalsWhereThoseThatTouchAreOne) {
  EXPECT_THAT(texts_of({{.node = "b", .panes = {.first = 110, .last = 110}},
                        {.node = "a", .panes = {.first = 106, .last = 109}},
                        {.node = "a", .panes = {.first = 103, .last = 105}},
                        {.node = "a", .panes = {.first = 120, .last = 121}}},
                       kPanes, 101),
              ElementsAre("node a lacks intervals 3 to 9", "node a lacks intervals 20 to 21",
                          "node b lacks interval 10"));
}

TEST(GapTexts, LeaveOutWhatIsBeforeTheFirstInterval) {
  EXPECT_THAT(texts_of({{.node = "a", .panes = {.first = 90, .last = 99}}}, kPanes, 100),
              IsEmpty());
  EXPECT_THAT(texts_of({{.node = "a", .panes = {.first = 90, .last = 101}}}, kPanes, 100),
              ElementsAre("node a lacks intervals 1 to 2"));
}

TEST(GapTexts, AreTimesWhereThereAreNoIntervals) {
  (void)setenv("TZ", "UTC", 1);
  tzset();
  EXPECT_THAT(texts_of({{.node = "a", .panes = {.first = 4 * 3661, .last = 4 * 3661 + 1}}}, kPanes,
                       std::nullopt),
              ElementsAre("node a lacks what was from 01:01:01.000 to 01:01:01.500"));
}

TEST(GapTexts, SayWhatMayBeMissing) {
  (void)setenv("TZ", "UTC", 1);
  tzset();
  const std::vector<NodeGap> gaps = {{.node = "a", .panes = {.first = kNoPane, .last = 102}},
                                     {.node = "", .panes = {.first = 105, .last = 105}}};
  EXPECT_THAT(texts_of_unsure(gaps, kPanes, 101),
              ElementsAre("some node may lack interval 5", "node a may lack intervals 1 to 2"));
  EXPECT_THAT(texts_of_unsure({gaps[0]}, kPanes, std::nullopt),
              ElementsAre("node a may lack what was before 00:00:25.750"));
}

}  // namespace
}  // namespace clew::cluster

// SPDX-License-Identifier: Apache-2.0
// What joins carry, over events that are written down here: counted by hand.
#include "answer/join_tally.h"

#include <string>

#include <gtest/gtest.h>

#include "answer/join_scene.h"

namespace clew::answer {
namespace {

Exports arg(int64_t value) {
  return {{"arg1", value}};
}

TEST(JoinTally, CountsEventsTuplesAndBytesByStream) {
  Scene scene(
      "from b in entry(\"app!b\") join a in First(entry(\"app!a\")) on a -> b "
      "select a.arg1, b.arg1");
  JoinTally& tally = scene.count();
  scene.hit(1, "a", arg(1));  // In no request.
  scene.begin(1);
  scene.hit(1, "b", arg(8));  // Nothing is there for it.
  scene.hit(1, "a", arg(1));
  scene.hit(1, "a", arg(2));
  scene.hit(1, "b", arg(9));
  scene.hit(1, "b", arg(9));
  scene.end(1);
  scene.hit(1, "b", arg(9));  // In none again.
  const StageTally& stage = tally.stages()[0];
  EXPECT_EQ(stage.streams[0].events, 4);
  EXPECT_EQ(stage.streams[0].outside, 1);
  EXPECT_EQ(stage.streams[0].kept, 0);
  EXPECT_EQ(stage.unjoined, 1);
  EXPECT_EQ(stage.joined, 2);
  EXPECT_EQ(stage.streams[1].events, 3);
  EXPECT_EQ(stage.streams[1].outside, 1);
  EXPECT_EQ(stage.streams[1].kept, 2);
  EXPECT_EQ(stage.streams[1].bytes, 16);
  EXPECT_EQ(stage.streams[1].unpacked, 2);
}

TEST(JoinTally, CountsWhatTheLargestRequestCarries) {
  Scene scene(
      "from b in entry(\"app!b\") join a in entry(\"app!a\") on a -> b select a.arg1, a.arg2");
  JoinTally& tally = scene.count();
  const Exports both{{"arg1", int64_t{1}}, {"arg2", int64_t{2}}};
  for (const size_t tuples : {1U, 3U, 2U}) {
    scene.begin(1);
    for (size_t i = 0; i < tuples; ++i)
      scene.hit(1, "a", both);
    scene.hit(1, "b");
    scene.end(1);
  }
  EXPECT_EQ(tally.requests().requests, 3);
  EXPECT_EQ(tally.requests().tuples_max, 3);
  EXPECT_EQ(tally.requests().bytes_max, 3 * 16);
  EXPECT_EQ(tally.stages()[0].streams[1].unpacked, 6);
}

// A row is left out by the first condition that is not true; one that stands in the probe leaves
// out events.
TEST(JoinTally, CountsWhatEachConditionLeavesOut) {
  Scene scene(
      "from b in entry(\"app!b\") join a in First(entry(\"app!a\")) on a -> b "
      "where b.arg1 > 0 && a.arg1 != 2 && a.arg1 < b.arg1 select a.arg1, b.arg1");
  JoinTally& tally = scene.count();
  ASSERT_EQ(scene.joined().stages[0].pushed.size(), 1);
  for (const int64_t first : {1, 2, 3}) {
    scene.begin(1);
    scene.hit(1, "a", arg(first));
    for (const int64_t last : {0, 1, 2, 3})
      scene.hit(1, "b", arg(last));
    scene.end(1);
  }
  const StageTally& stage = tally.stages()[0];
  EXPECT_EQ(stage.streams[0].events, 9);
  EXPECT_EQ(stage.joined, 9);
  EXPECT_EQ(stage.dropped, (std::vector<uint64_t>{3, 4}));  // 2; 1 < 1, 3 < 1, 3 < 2, 3 < 3
  EXPECT_EQ(scene.lines(), (Strings{"1 2", "1 3"}));
}

TEST(JoinTally, AJoinedQueryIsAStageOfItsOwn) {
  Scene scene(
      "from b in entry(\"app!b\") join q in (from c in entry(\"app!c\") join a in "
      "First(entry(\"app!a\")) on a -> c select a.arg1 as x, c.arg1 as y) on q -> b "
      "select q.x, q.y");
  JoinTally& tally = scene.count();
  scene.begin(1);
  scene.hit(1, "a", arg(1));
  scene.hit(1, "c", arg(2));
  scene.hit(1, "c", arg(3));
  scene.hit(1, "b");
  EXPECT_EQ(tally.stages()[1].streams[1].kept, 1);
  EXPECT_EQ(tally.stages()[1].joined, 2);
  EXPECT_EQ(tally.stages()[0].streams[1].kept, 2);
  EXPECT_EQ(tally.stages()[0].streams[1].bytes, 32);
  EXPECT_EQ(tally.stages()[0].joined, 2);
}

}  // namespace
}  // namespace clew::answer

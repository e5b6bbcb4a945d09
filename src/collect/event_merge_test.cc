// SPDX-License-Identifier: Apache-2.0
#include "collect/event_merge.h"

#include <algorithm>
#include <random>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace clew::collect {
namespace {

using testing::ElementsAre;

EventBatch batch_of(std::initializer_list<uint64_t> times) {
  EventBatch batch;
  for (const uint64_t time : times)
    batch.push({.time = time});
  return batch;
}

std::vector<uint64_t> times_of(const EventBatch& batch) {
  return {batch.times().begin(), batch.times().end()};
}

TEST(EventMerge, HoldsEventsBackUntilALaterRoundBegan) {
  EventMerge merge;
  merge.add(batch_of({5, 8, 3}), 10);
  EXPECT_TRUE(merge.take_ready().empty());
  merge.add(batch_of({7, 12}), 20);
  EXPECT_THAT(times_of(merge.take_ready()), ElementsAre(3, 5, 7, 8));
  EXPECT_THAT(times_of(merge.take_all()), ElementsAre(12));
  EXPECT_EQ(merge.late(), 0U);
}

TEST(EventMerge, ExtraEventsDoNotEndARound) {
  EventMerge merge;
  merge.add(batch_of({5}), 10);
  merge.add_extra(batch_of({4}));
  EXPECT_TRUE(merge.take_ready().empty());
  merge.add({}, 20);
  EXPECT_THAT(times_of(merge.take_ready()), ElementsAre(4, 5));
}

TEST(EventMerge, CountsEventsThatComeTooLateForTheirPlace) {
  EventMerge merge;
  merge.add(batch_of({5}), 10);
  merge.add({}, 20);
  EXPECT_EQ(merge.take_ready().size(), 1U);
  merge.add(batch_of({4}), 30);
  EXPECT_THAT(times_of(merge.take_ready()), ElementsAre(4));
  EXPECT_EQ(merge.late(), 1U);
}

TEST(EventMerge, PutsRandomThreadsIntoOrder) {
  std::mt19937 random(6);
  EventMerge merge;
  EventBatch result;
  uint64_t now = 0;
  for (int round = 0; round < 50; ++round) {
    EventBatch batch;
    for (uint32_t tid = 0; tid < 5; ++tid) {
      uint64_t time = now;
      for (int i = 0; i < 20; ++i)
        batch.push({.tid = tid, .time = time += random() % 5});
    }
    now += 100;
    merge.add(batch, now);
    result.append(merge.take_ready());
  }
  result.append(merge.take_all());
  EXPECT_EQ(result.size(), 50U * 5 * 20);
  EXPECT_TRUE(std::is_sorted(result.times().begin(), result.times().end()));
  EXPECT_EQ(merge.late(), 0U);
}

TEST(EventBatch, KeepsTheFieldsOfEachEvent) {
  const std::vector<uint64_t> first = {1, 2};
  const std::vector<uint64_t> third = {3};
  EventBatch batch;
  batch.push({.shape = 4, .words = first});
  batch.push({.shape = 5});
  batch.push({.shape = 6, .words = third});
  EXPECT_THAT(batch.at(0).words, ElementsAre(1, 2));
  EXPECT_TRUE(batch.at(1).words.empty());
  EXPECT_THAT(batch.at(2).words, ElementsAre(3));
  EXPECT_EQ(batch.at(2).shape, 6U);
}

}  // namespace
}  // namespace clew::collect

// SPDX-License-Identifier: Apache-2.0
#include "causal/streams.h"

#include <vector>

#include <gtest/gtest.h>

namespace clew::causal {
namespace {

constexpr Thread kThread{1, 1};
constexpr StreamKey kStream{.from = 1, .to = 2, .from_port = 3, .to_port = 4, .space = 5};

class StreamsTest : public testing::Test {
 protected:
  // Each message is of a request of its own.
  ContextKey send(ByteRange bytes) {
    const auto key = streams_.send(kStream, bytes);
    EXPECT_TRUE(key);
    graph_.begin(kThread);
    graph_.put(kThread, *key);
    return *key;
  }
  std::vector<ContextKey> receive(ByteRange bytes) { return streams_.receive(kStream, bytes); }

  Graph graph_;
  Streams streams_{graph_, {.streams = 2, .ranges = 4, .unread = 2}};
};

using Brought = std::vector<ContextKey>;

TEST_F(StreamsTest, ARangeIsFoundByEachOfItsBytes) {
  const ContextKey one = send({1, 11});
  const ContextKey two = send({11, 21});
  EXPECT_EQ(receive({1, 2}), Brought{one});
  EXPECT_EQ(receive({10, 11}), Brought{one});
  EXPECT_EQ(receive({10, 12}), (Brought{one, two}));
  EXPECT_EQ(receive({20, 31}), Brought{two});
  EXPECT_EQ(receive({21, 31}), Brought{});
  EXPECT_EQ(streams_.receive(kStream.reversed(), {1, 2}), Brought{});
}

TEST_F(StreamsTest, WhatWasReadIsForgotten) {
  const ContextKey one = send({1, 11});
  const ContextKey two = send({11, 21});
  streams_.drop(kStream, {1, 10});
  EXPECT_TRUE(graph_.request_of(one)) << "a byte of it is left";
  streams_.drop(kStream, {10, 11});
  EXPECT_FALSE(graph_.request_of(one));
  EXPECT_TRUE(graph_.request_of(two));
  EXPECT_TRUE(streams_.has(kStream, {11, 21}));
  EXPECT_FALSE(streams_.has(kStream, {11, 22}));
}

TEST_F(StreamsTest, WhatNobodyReadsIsBounded) {
  const ContextKey one = send({1, 2});
  send({2, 3});
  send({3, 4});
  EXPECT_FALSE(graph_.request_of(one));
  streams_.drop_unread(kStream);
  EXPECT_EQ(receive({1, 4}), Brought{});
}

TEST_F(StreamsTest, WhatSomebodyReadsHasMoreRoom) {
  EXPECT_EQ(receive({0, 1}), Brought{});
  std::vector<ContextKey> keys;
  for (uint32_t i = 1; i <= 5; ++i)
    keys.push_back(send({i, i + 1}));
  EXPECT_EQ(receive({1, 6}), Brought(keys.begin() + 1, keys.end()));
  streams_.drop_unread(kStream);
  EXPECT_EQ(receive({1, 6}).size(), 4U) << "there is a reader";
}

TEST_F(StreamsTest, NumbersThatOverlapAreNobodys) {
  const ContextKey one = send({101, 201});
  EXPECT_FALSE(streams_.send(kStream, {151, 251}));
  EXPECT_FALSE(graph_.request_of(one));
  EXPECT_EQ(receive({101, 251}), Brought{});
  send({251, 261});
  EXPECT_EQ(receive({251, 261}).size(), 1U);
}

TEST_F(StreamsTest, ANewConnectionOfTheSameEndsBeginsAnew) {
  const ContextKey old = send({5'000, 5'010});
  streams_.renew(kStream.reversed());
  EXPECT_FALSE(graph_.request_of(old));
  const ContextKey made = send({1, 11});
  EXPECT_EQ(receive({1, 11}), Brought{made});
}

TEST_F(StreamsTest, TheLeastRecentlyUsedStreamGoes) {
  const ContextKey one = send({1, 11});
  StreamKey other = kStream;
  for (const auto port : {uint16_t{7}, uint16_t{8}}) {
    other.from_port = port;
    EXPECT_TRUE(streams_.send(other, {1, 11}));
  }
  EXPECT_FALSE(graph_.request_of(one));
  EXPECT_EQ(receive({1, 11}), Brought{});
}

}  // namespace
}  // namespace clew::causal

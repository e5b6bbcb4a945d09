// SPDX-License-Identifier: Apache-2.0
#include "cluster/chunks.h"

#include <algorithm>
#include <random>

#include <gtest/gtest.h>

namespace clew::cluster {
namespace {

Bytes random_bytes(size_t size) {
  std::mt19937 random(7);
  Bytes bytes(size);
  for (std::byte& one : bytes)
    one = static_cast<std::byte>(random());
  return bytes;
}

std::vector<Chunk> chunks_of(const Bytes& whole) {
  auto chunks = split(whole);
  EXPECT_TRUE(chunks) << chunks.error().message;
  return *chunks;
}

TEST(Chunks, AreTheWholeAgain) {
  for (const size_t size :
       {size_t{0}, size_t{1}, kChunkBytesMax, kChunkBytesMax + 1, 3 * kChunkBytesMax}) {
    const Bytes whole = random_bytes(size);
    const auto chunks = chunks_of(whole);
    Joiner joiner;
    for (size_t i = 0; i + 1 < chunks.size(); ++i)
      EXPECT_EQ(joiner.add(chunks[i])->has_value(), false);
    const auto joined = joiner.add(chunks.back());
    ASSERT_TRUE(joined && *joined) << size;
    EXPECT_EQ(**joined, whole);
    EXPECT_EQ(joiner.size_bytes(), 0U);
  }
}

TEST(Chunks, MayComeInAnyOrderAndTwice) {
  const Bytes whole = random_bytes(5 * kChunkBytesMax - 3);
  auto chunks = chunks_of(whole);
  std::mt19937 random(8);
  for (int i = 0; i < 10; ++i) {
    std::shuffle(chunks.begin(), chunks.end(), random);
    Joiner joiner;
    for (size_t at = 0; at + 1 < chunks.size(); ++at) {
      EXPECT_FALSE(joiner.add(chunks[at])->has_value());
      EXPECT_FALSE(joiner.add(chunks[at])->has_value());
    }
    EXPECT_LE(joiner.size_bytes(), whole.size());
    const auto joined = joiner.add(chunks.back());
    ASSERT_TRUE(joined && *joined);
    EXPECT_EQ(**joined, whole);
  }
}

TEST(Chunks, OfTwoWholesAreNotMixed) {
  const Bytes whole = random_bytes(2 * kChunkBytesMax);
  Bytes other = whole;
  other[0] ^= std::byte{1};
  Joiner joiner;
  EXPECT_TRUE(joiner.add(chunks_of(other)[0]));
  EXPECT_FALSE(joiner.add(chunks_of(whole)[1]));
  const auto joined = joiner.add(chunks_of(other)[1]);
  ASSERT_TRUE(joined && *joined);
  EXPECT_EQ(**joined, other);
}

TEST(Chunks, ThatWereChangedAreGivenUpAndComeAgain) {
  const Bytes whole = random_bytes(2 * kChunkBytesMax);
  const auto chunks = chunks_of(whole);
  Joiner joiner;
  Chunk wrong = chunks[0];
  wrong.bytes[5] ^= std::byte{1};
  EXPECT_TRUE(joiner.add(wrong));
  EXPECT_FALSE(joiner.add(chunks[1]));
  EXPECT_EQ(joiner.size_bytes(), 0U);
  EXPECT_TRUE(joiner.add(chunks[0]));
  EXPECT_TRUE(joiner.add(chunks[1])->has_value());
}

TEST(Chunks, HaveALimit) {
  const std::byte one{};
  // Never read: too large for that.
  const auto refused = split(std::span(&one, size_t{kChunksMax} * kChunkBytesMax + 1));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::Limit);
}

}  // namespace
}  // namespace clew::cluster

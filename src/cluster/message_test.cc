// SPDX-License-Identifier: Apache-2.0
#include "cluster/message.h"

#include <cstring>
#include <limits>
#include <string>

#include <gtest/gtest.h>

#include "cluster/message_examples.h"
#include "cluster/subjects.h"
#include "collect/crc32c.h"

namespace clew::cluster {
namespace {

constexpr size_t kCrcAt = 4;
constexpr size_t kVersionAt = 8;
constexpr size_t kMembersAt = 12;

// As somebody hostile would: the CRC is right.
Bytes sealed(Bytes bytes) {
  const uint32_t crc = collect::crc32c(std::span(bytes).subspan(kVersionAt));
  std::memcpy(&bytes[kCrcAt], &crc, sizeof crc);
  return bytes;
}

template <typename T>
void expect_damaged(const T& message) {
  const auto read = read_as<T>(to_bytes(message));
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::Io);
}

TEST(ClusterMessage, IsTheSameWhenItIsRead) {
  for_each_example([](const auto& message) {
    using Kind = std::decay_t<decltype(message)>;
    const auto read = read_as<Kind>(to_bytes(message));
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(*read, message);
  });
}

TEST(ClusterMessage, HasTheBytesThatItsHeaderSays) {
  const Bytes bytes =
      to_bytes(Again{.query = "q", .revision = 5, .panes = {{.first = -1, .last = 2}}});
  const std::string expected(
      "\x05\0\x06\0\x01\0\0\0q\x05\0\0\0\0\0\0\0\x01\0\0\0"
      "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x02\0\0\0\0\0\0\0",
      37);
  ASSERT_EQ(bytes.size(), kVersionAt + expected.size());
  EXPECT_EQ(std::memcmp(bytes.data(), "CLWM", 4), 0);
  EXPECT_EQ(std::memcmp(&bytes[kVersionAt], expected.data(), expected.size()), 0);
}

TEST(ClusterMessage, WithoutItsEndIsRefused) {
  for_each_example([](const auto& message) {
    using Kind = std::decay_t<decltype(message)>;
    const Bytes bytes = to_bytes(message);
    for (size_t size = 0; size < bytes.size(); ++size) {
      EXPECT_FALSE(read_as<Kind>(std::span(bytes).first(size))) << size;
      if (size < kMembersAt) continue;
      const Bytes shorter = sealed(Bytes(bytes.begin(), bytes.begin() + static_cast<long>(size)));
      EXPECT_FALSE(read_as<Kind>(shorter)) << size;
    }
    Bytes longer = bytes;
    longer.push_back(std::byte{0});
    EXPECT_FALSE(read_as<Kind>(sealed(longer)));
  });
}

TEST(ClusterMessage, WithAnotherBitIsRefused) {
  for_each_example([](const auto& message) {
    using Kind = std::decay_t<decltype(message)>;
    const Bytes bytes = to_bytes(message);
    for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
      Bytes other = bytes;
      other[bit / 8] ^= std::byte{1} << (bit % 8);
      EXPECT_FALSE(read_as<Kind>(other)) << bit;
    }
  });
}

// What can be read of bytes that somebody has made on purpose writes back as it was.
TEST(ClusterMessage, OfWhateverBytesWritesBackAsItWas) {
  for_each_example([](const auto& message) {
    using Kind = std::decay_t<decltype(message)>;
    const Bytes bytes = to_bytes(message);
    size_t readable = 0;
    for (size_t bit = kMembersAt * 8; bit < bytes.size() * 8; ++bit) {
      Bytes other = bytes;
      other[bit / 8] ^= std::byte{1} << (bit % 8);
      other = sealed(other);
      const auto read = read_as<Kind>(other);
      if (!read) continue;
      EXPECT_EQ(to_bytes(*read), other) << bit;
      ++readable;
    }
    EXPECT_GT(readable, 100U);
  });
}

TEST(ClusterMessage, OfAnotherVersionOrKindIsRefused) {
  Bytes bytes = to_bytes(example_want());
  const auto other_kind = read_as<Again>(bytes);
  ASSERT_FALSE(other_kind);
  EXPECT_EQ(other_kind.error().code, ErrorCode::Refused);
  bytes[kVersionAt] = std::byte{kMessageVersion + 1};
  const auto newer = read_as<Want>(sealed(bytes));
  ASSERT_FALSE(newer);
  EXPECT_EQ(newer.error().code, ErrorCode::Refused);
  EXPECT_EQ(newer.error().message, "the message has version 6; this version of clew reads 5");
}

// What is kept has not changed since.
TEST(ClusterMessage, OfAVersionBeforeIsReadWhereItIsKept) {
  Bytes bytes = to_bytes(example_want());
  bytes[kVersionAt] = std::byte{kKeptVersion};
  EXPECT_FALSE(read_as<Want>(sealed(bytes)));
  const auto kept = read_kept_as<Want>(sealed(bytes));
  ASSERT_TRUE(kept) << kept.error().message;
  EXPECT_EQ(*kept, example_want());
  bytes[kVersionAt] = std::byte{kKeptVersion - 1};
  EXPECT_FALSE(read_kept_as<Want>(sealed(bytes)));
}

TEST(ClusterMessage, HasNoMoreThanItsBytesHold) {
  Bytes bytes = to_bytes(Want{.revision = 1, .queries = {}});
  for (size_t i = 0; i < sizeof(uint32_t); ++i)
    bytes[bytes.size() - 1 - i] = std::byte{0xFF};  // The count of queries.
  EXPECT_FALSE(read_as<Want>(sealed(bytes)));
}

TEST(ClusterMessage, HasNamesThatAreWords) {
  for (const char* name : {"", "a.b", "a b", "*", ">", "a\n"}) {
    Partial partial = example_partial();
    partial.node = name;
    expect_damaged(partial);
    Beat beat = example_beat();
    beat.queries[0].query = name;
    expect_damaged(beat);
    Control control = example_control();
    control.safe[0].query = name;
    expect_damaged(control);
  }
  Control only_the_revision;
  only_the_revision.want_revision = 3;
  EXPECT_TRUE(read_as<Control>(to_bytes(only_the_revision)));
}

TEST(ClusterMessage, HasRangesOfPanesInOrder) {
  constexpr Pane kFirst = std::numeric_limits<Pane>::min();
  constexpr Pane kLast = std::numeric_limits<Pane>::max();
  Again again = example_again();
  again.panes = {{.first = kFirst, .last = kLast}};
  EXPECT_TRUE(read_as<Again>(to_bytes(again)));
  again.panes = {{.first = kFirst, .last = kFirst}, {.first = kLast, .last = kLast}};
  EXPECT_TRUE(read_as<Again>(to_bytes(again)));
  const std::vector<std::vector<PaneRange>> wrong = {
      {{.first = 2, .last = 1}},
      {{.first = 1, .last = 3}, {.first = 3, .last = 4}},
      {{.first = 1, .last = 3}, {.first = 4, .last = 4}},  // Should be one.
      {{.first = 5, .last = 5}, {.first = 1, .last = 1}},
      {{.first = kFirst, .last = kLast}, {.first = kFirst, .last = kFirst}},
  };
  for (const auto& panes : wrong) {
    again.panes = panes;
    expect_damaged(again);
    Beat beat = example_beat();
    beat.queries[1].lost = panes;
    expect_damaged(beat);
  }
}

TEST(ClusterMessage, OfAPartialIsBehindWhatItNames) {
  const Partial right = example_partial();
  for (const Pane wrong : {right.pane, right.pane + 1, std::numeric_limits<Pane>::max()}) {
    Partial partial = right;
    partial.previous = wrong;
    expect_damaged(partial);
    partial = right;
    partial.safe = wrong;
    expect_damaged(partial);
  }
}

TEST(ClusterMessage, HasAChunkOfItsWhole) {
  const auto expect_wrong = [](Chunk chunk) {
    Partial partial = example_partial();
    partial.table = std::move(chunk);
    expect_damaged(partial);
    RowUpdate row = example_row();
    row.table = partial.table;
    expect_damaged(row);
  };
  Chunk chunk = example_chunk();
  chunk.index = chunk.count;
  expect_wrong(chunk);
  chunk = example_chunk();
  chunk.count = 0;
  expect_wrong(chunk);
  chunk = example_chunk();
  chunk.count = kChunksMax + 1;
  expect_wrong(chunk);
  chunk = example_chunk();
  chunk.whole_bytes = 2;  // Fewer than the chunk has.
  expect_wrong(chunk);
  chunk.bytes.resize(kChunkBytesMax + 1);
  chunk.whole_bytes = chunk.bytes.size();
  expect_wrong(chunk);
}

TEST(ClusterMessage, OfTheLargestChunkFitsOnTheBus) {
  Partial partial = example_partial();
  partial.node = std::string(kSubjectMax, 'n');
  partial.table.bytes.resize(kChunkBytesMax);
  partial.table.whole_bytes = kChunkBytesMax;
  const Bytes bytes = to_bytes(partial);
  EXPECT_LE(bytes.size(), kMessageMax);
  EXPECT_TRUE(read_as<Partial>(bytes));
}

TEST(ClusterMessage, HasALimitedText) {
  Control control = example_control();
  control.text = std::string(kQueryTextMax, 'x');
  EXPECT_TRUE(read_as<Control>(to_bytes(control)));
  control.text += 'x';
  expect_damaged(control);
  control = example_control();
  control.width_ns = 0;
  expect_damaged(control);
}

TEST(Subjects, NameTheirNode) {
  const Subjects subjects("t1");
  EXPECT_EQ(subjects.partial("q1", "7", "n-1"), "clew.t1.part.q1.7.n-1");
  EXPECT_EQ(subjects.partial("*", "7", "*"), "clew.t1.part.*.7.*");
  EXPECT_EQ(Subjects::node_of(subjects.partial("q1", "7", "n-1")), "n-1");
  EXPECT_EQ(Subjects::node_of(subjects.beat("n-2")), "n-2");
  EXPECT_EQ(subjects.control_of_all(), "clew.t1.ctl.all");
}

}  // namespace
}  // namespace clew::cluster

// SPDX-License-Identifier: Apache-2.0
#include "engine/dtrace/followed_records.h"

#include <cstring>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace clew::engine {
namespace {

using abi::MachineRecordHeader;
using abi::MachineRecordKind;

struct Made {
  uint32_t cpu = 0;
  uint32_t probe = 0;
  uint32_t clause = 0;
  MachineRecordKind kind = MachineRecordKind::Data;
};

void add(FollowedRecords& records, const Made& made) {
  MachineRecordHeader header{};
  header.size_bytes = sizeof header;
  header.kind = made.kind;
  header.cpu = made.cpu;
  header.probe = made.probe;
  header.clause = made.clause;
  records.add({reinterpret_cast<const uint8_t*>(&header), sizeof header});
}

// "clause>clause that follows" for each record that is passed on.
std::string taken(FollowedRecords& records, size_t count) {
  std::string text;
  records.take(count, [&](std::span<const uint8_t> bytes, const MachineRecordHeader* next) {
    MachineRecordHeader header{};
    std::memcpy(&header, bytes.data(), sizeof header);
    text +=
        fmt::format("{}>{} ", header.clause, next == nullptr ? "-" : std::to_string(next->clause));
  });
  return text;
}

TEST(FollowedRecords, TheNextIsThatOfTheSameProcessor) {
  FollowedRecords records;
  add(records, {.cpu = 0, .clause = 1});
  add(records, {.cpu = 1, .clause = 2});
  add(records, {.cpu = 0, .clause = 3});
  add(records, {.cpu = 1, .clause = 4});
  EXPECT_EQ(taken(records, 4), "1>3 2>4 3>- 4>- ");
  EXPECT_EQ(records.size(), 0U);
}

TEST(FollowedRecords, OnlyDataFollows) {
  FollowedRecords records;
  add(records, {.clause = 1});
  add(records, {.clause = 2, .kind = MachineRecordKind::Commit});
  add(records, {.clause = 3});
  EXPECT_EQ(taken(records, 3), "1>3 2>- 3>- ");
}

TEST(FollowedRecords, ThoseThatStayAreKnownToThoseBefore) {
  FollowedRecords records;
  add(records, {.clause = 1});
  add(records, {.clause = 2});
  EXPECT_EQ(taken(records, 1), "1>2 ");
  add(records, {.clause = 3});
  EXPECT_EQ(taken(records, 1), "2>3 ");
  EXPECT_EQ(taken(records, 5), "3>- ");
}

}  // namespace
}  // namespace clew::engine

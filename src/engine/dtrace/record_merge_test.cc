// SPDX-License-Identifier: Apache-2.0
#include "engine/dtrace/record_merge.h"

#include <cstring>

#include <gtest/gtest.h>

namespace clew::engine {
namespace {

constexpr uint64_t kAlways = ~uint64_t{0};

struct MadeRecord {
  uint64_t time_ns = 0;
  uint32_t probe = 0;
};

void add(RecordMerge& merge, std::vector<MadeRecord> records) {
  for (const MadeRecord& made : records) {
    abi::MachineRecordHeader header{};
    header.size_bytes = sizeof header;
    header.time_ns = made.time_ns;
    header.probe = made.probe;
    merge.add({reinterpret_cast<const uint8_t*>(&header), sizeof header});
  }
}

std::vector<uint32_t> taken(RecordMerge& merge, uint64_t limit_ns) {
  std::vector<uint32_t> probes;
  merge.take(limit_ns, [&](std::span<const uint8_t> bytes) {
    abi::MachineRecordHeader header{};
    std::memcpy(&header, bytes.data(), sizeof header);
    probes.push_back(header.probe);
  });
  return probes;
}

TEST(RecordMerge, OrdersRecordsOfSeveralSourcesByTime) {
  RecordMerge merge;
  add(merge, {{10, 1}, {40, 4}});
  add(merge, {{20, 2}, {30, 3}});
  EXPECT_EQ(taken(merge, kAlways), (std::vector<uint32_t>{1, 2, 3, 4}));
}

TEST(RecordMerge, KeepsRecordsOfOneFiringAsTheyWereMade) {
  RecordMerge merge;
  add(merge, {{10, 3}, {10, 1}, {10, 2}});
  EXPECT_EQ(taken(merge, kAlways), (std::vector<uint32_t>{3, 1, 2}));
}

TEST(RecordMerge, HoldsBackWhatIsYoungerThanTheTurn) {
  RecordMerge merge;
  add(merge, {{10, 1}, {21, 3}});
  EXPECT_EQ(taken(merge, 20), (std::vector<uint32_t>{1}));
  add(merge, {{15, 2}});
  EXPECT_EQ(taken(merge, 30), (std::vector<uint32_t>{2, 3}));
  EXPECT_EQ(merge.size(), 0U);
}

}  // namespace
}  // namespace clew::engine

// SPDX-License-Identifier: Apache-2.0
// Rings of D records, also such as a traced program could make up.
#include <cstring>

#include <gtest/gtest.h>

#include "abi/machine/process.h"
#include "collect/ring.h"

namespace clew::collect {
namespace {

constexpr uint32_t kRingLog2 = 12;
constexpr uint64_t kRingBytes = uint64_t{1} << kRingLog2;
constexpr uint32_t kRingOffset = 4096;

// A region with a ring, and what follows it.
class RecordRing : public testing::Test {
 protected:
  RecordRing() : memory_(kRingOffset + kRingBytes + abi::kMachineEventBytesMax, std::byte{0}) {}

  abi::RegionHeader& header() { return *reinterpret_cast<abi::RegionHeader*>(memory_.data()); }

  // As a firing puts it: `size_bytes` with its header.
  void put(uint32_t size_bytes, uint64_t time_ns) {
    abi::MachineRecordHeader record{};
    record.size_bytes = size_bytes;
    record.time_ns = time_ns;
    put_event(abi::kMachineEventHeadBytes + size_bytes, record);
  }

  void put_event(uint32_t event_bytes, const abi::MachineRecordHeader& record,
                 uint32_t shape = abi::kMachineEventShape) {
    std::byte* const at = memory_.data() + kRingOffset + (header().ring_head & (kRingBytes - 1));
    std::memcpy(at, &event_bytes, 4);
    std::memcpy(at + 4, &shape, 4);
    std::memcpy(at + abi::kMachineEventHeadBytes, &record, sizeof record);
    header().ring_head += event_bytes;
  }

  // The times of what is there.
  std::vector<uint64_t> read() {
    std::vector<uint64_t> times;
    const RingSource source{.region = memory_.data(),
                            .layout = {.offset = kRingOffset, .size_log2 = kRingLog2},
                            .event_words = {},
                            .process = 0,
                            .tid = 1};
    read_records(source, state_, [&](std::span<const uint8_t> record) {
      abi::MachineRecordHeader copy{};
      std::memcpy(&copy, record.data(), sizeof copy);
      EXPECT_EQ(copy.size_bytes, record.size());
      times.push_back(copy.time_ns);
    });
    return times;
  }

  std::vector<std::byte> memory_;
  RingState state_;
};

TEST_F(RecordRing, GivesEachRecordOnce) {
  put(40, 1);
  put(32, 2);
  EXPECT_EQ(read(), (std::vector<uint64_t>{1, 2}));
  EXPECT_EQ(read(), std::vector<uint64_t>{});
  put(48, 3);
  EXPECT_EQ(read(), std::vector<uint64_t>{3});
  EXPECT_EQ(header().ring_tail, header().ring_head);
}

TEST_F(RecordRing, ReadsARecordThatRunsPastTheEnd) {
  header().ring_head = kRingBytes - 64;
  header().ring_tail = kRingBytes - 64;
  put(1024, 7);
  EXPECT_EQ(read(), std::vector<uint64_t>{7});
}

TEST_F(RecordRing, GivesUpWhatHasNoSizeThatCanBe) {
  for (const uint32_t size : {0U, 8U, 44U, abi::kMachineEventBytesMax + 8, ~uint32_t{0}}) {
    state_ = {};
    header().ring_tail = header().ring_head = 0;
    put_event(size, {});
    header().ring_head = 64;
    EXPECT_EQ(read(), std::vector<uint64_t>{}) << size;
    EXPECT_EQ(state_.damaged_bytes, 64U) << size;
  }
}

TEST_F(RecordRing, GivesUpWhatIsNoRecord) {
  abi::MachineRecordHeader record{};
  record.size_bytes = 4096;  // More than its event has.
  put_event(64, record);
  record.size_bytes = 48;
  record.kind = static_cast<abi::MachineRecordKind>(77);
  put_event(64, record);
  EXPECT_EQ(read(), std::vector<uint64_t>{});
  EXPECT_EQ(state_.damaged_bytes, 128U);
  put_event(64, record, 5);
  EXPECT_EQ(read(), std::vector<uint64_t>{});
  EXPECT_EQ(state_.damaged_bytes, 192U);
}

TEST_F(RecordRing, DoesNotFollowAHeadOrATailThatCannotBe) {
  put(40, 1);
  EXPECT_EQ(read(), std::vector<uint64_t>{1});
  header().ring_tail = 123'456;  // Ours counts.
  put(40, 2);
  EXPECT_EQ(read(), std::vector<uint64_t>{2});
  header().ring_head += kRingBytes + 8;
  EXPECT_EQ(read(), std::vector<uint64_t>{});
  put(40, 3);
  EXPECT_EQ(read(), std::vector<uint64_t>{3});
}

}  // namespace
}  // namespace clew::collect

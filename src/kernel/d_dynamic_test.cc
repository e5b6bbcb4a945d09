// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "abi/machine/dynamic.h"

namespace clew::abi {
namespace {

constexpr uint64_t kKeyBytes = 16;
constexpr uint64_t kValueBytes = 32;
constexpr uint64_t kEntryBytes = dynamic_entry_bytes(kKeyBytes, kValueBytes);

class Lookup : public DynamicTable<Lookup> {
 public:
  Lookup(std::vector<uint64_t>& words, uint64_t buckets, uint64_t variable, uint64_t key)
      : words_(words), buckets_(buckets), variable_(variable), keys_{key, ~key} {
    bucket_ = find_bucket();
  }

  [[nodiscard]] static uint64_t zero() { return 0; }
  [[nodiscard]] uint64_t buckets() const { return buckets_; }
  [[nodiscard]] static uint64_t entry_bytes() { return kEntryBytes; }
  [[nodiscard]] static uint64_t key_bytes_max() { return kKeyBytes; }
  [[nodiscard]] uint64_t identity() const { return variable_ << 32; }
  [[nodiscard]] static uint64_t key_words() { return 2; }
  [[nodiscard]] uint64_t key_word(uint64_t index) const { return keys_[index]; }
  [[nodiscard]] uint64_t bucket() const { return bucket_; }
  [[nodiscard]] static uint64_t home_way() { return 0; }
  [[nodiscard]] static uint64_t way_offset(uint64_t way) { return way * kEntryBytes; }
  [[nodiscard]] uint64_t& word(uint64_t offset, uint64_t index) const {
    return words_[offset / 8 + index];
  }
  [[nodiscard]] MachineFound find() const { return find_here(); }
  [[nodiscard]] MachineFound claim_new() const { return claim_new_here(); }

 private:
  std::vector<uint64_t>& words_;
  uint64_t buckets_;
  uint64_t variable_;
  uint64_t keys_[2];
  uint64_t bucket_ = 0;
};

class HostTable {
 public:
  explicit HostTable(uint64_t buckets)
      : words_(buckets * dynamic_bucket_bytes(kEntryBytes) / 8), buckets_(buckets) {}

  Lookup at(uint64_t variable, uint64_t key) { return {words_, buckets_, variable, key}; }
  bool store(uint64_t variable, uint64_t key, uint64_t value) {
    return at(variable, key).store([&](uint64_t offset) { word(offset, 0) = value; });
  }
  uint64_t load(uint64_t variable, uint64_t key) { return at(variable, key).load(); }
  void remove(uint64_t variable, uint64_t key) { at(variable, key).remove(); }
  uint64_t& word(uint64_t offset, uint64_t index) { return words_[offset / 8 + index]; }

 private:
  std::vector<uint64_t> words_;
  uint64_t buckets_;
};

TEST(DynamicTable, KeepsWhatIsStoredUntilItIsDeleted) {
  HostTable table(64);
  EXPECT_EQ(table.load(1, 7), 0U);
  ASSERT_TRUE(table.store(1, 7, 70));
  ASSERT_TRUE(table.store(2, 7, 71));
  EXPECT_EQ(table.load(1, 7), 70U);
  EXPECT_EQ(table.load(2, 7), 71U);
  ASSERT_TRUE(table.store(1, 7, 72));
  EXPECT_EQ(table.load(1, 7), 72U);
  table.remove(1, 7);
  EXPECT_EQ(table.load(1, 7), 0U);
  EXPECT_EQ(table.load(2, 7), 71U);
}

TEST(DynamicTable, DropsWhatHasNoRoomAndHasRoomAgainAfterADelete) {
  HostTable table(1);
  for (uint64_t key = 0; key < kMachineWays; ++key)
    ASSERT_TRUE(table.store(1, key, key + 1));
  EXPECT_FALSE(table.store(1, kMachineWays, 1));
  for (uint64_t key = 0; key < kMachineWays; ++key)
    EXPECT_EQ(table.load(1, key), key + 1);
  table.remove(1, 3);
  EXPECT_TRUE(table.store(1, kMachineWays, 99));
  EXPECT_EQ(table.load(1, kMachineWays), 99U);
  EXPECT_EQ(table.load(1, 3), 0U);
}

// What a store interrupts on its own CPU holds the claim until the end of the test.
TEST(DynamicTable, GivesUpOnAnEntryThatNobodyReleases) {
  HostTable table(1);
  ASSERT_TRUE(table.store(1, 1, 5));
  const MachineFound found = table.at(1, 1).find();
  ASSERT_NE(found.offset, 0U);
  table.word(found.offset, 0) = with_state(found.state, MachineEntryState::Updating);
  EXPECT_FALSE(table.store(1, 1, 6));
  EXPECT_EQ(table.load(1, 1), 5U);
}

// Two threads insert and delete the same keys; a third one's view: a value belongs to its key, and
// no key is there twice.
TEST(DynamicTable, TwoThreadsNeverMixUpKeysAndValues) {
  HostTable table(4);
  constexpr uint64_t kKeys = 12;
  constexpr uint64_t kRounds = 20000;
  std::vector<uint64_t> wrong(2);
  const auto work = [&](uint64_t thread) {
    for (uint64_t i = 0; i < kRounds; ++i) {
      const uint64_t key = (i * 7 + thread * 3) % kKeys;
      (void)table.store(1, key, 1000 * key + i % 1000);
      const uint64_t seen = table.load(1, (key + 1) % kKeys);
      if (seen != 0 && seen / 1000 != (key + 1) % kKeys) ++wrong[thread];
      if (i % 3 == 0) table.remove(1, (key + 2) % kKeys);
    }
  };
  std::thread other(work, 1);
  work(0);
  other.join();
  EXPECT_EQ(wrong[0], 0U);
  EXPECT_EQ(wrong[1], 0U);
  for (uint64_t key = 0; key < kKeys; ++key) {
    table.remove(1, key);
    EXPECT_EQ(table.load(1, key), 0U) << "twice: " << key;
  }
}

// Values of many bytes are copied whole or not at all.
TEST(DynamicTable, NeverShowsHalfOfAnUpdate) {
  HostTable table(4);
  const auto store = [&](uint64_t value) {
    return table.at(1, 1).store([&](uint64_t offset) {
      for (uint64_t i = 0; i < kValueBytes / 8; ++i)
        *const_cast<volatile uint64_t*>(&table.word(offset, i)) = value;
    });
  };
  ASSERT_TRUE(store(1));
  uint64_t torn = 0;
  uint64_t seen = 0;
  std::thread writer([&] {
    for (uint64_t i = 1; i < 50000; ++i)
      (void)store(i);
  });
  for (int i = 0; i < 20000; ++i) {
    uint64_t copy[kValueBytes / 8];
    const bool loaded = table.at(1, 1).load_bytes([&](uint64_t offset) {
      for (uint64_t k = 0; k < kValueBytes / 8; ++k)
        copy[k] = *const_cast<volatile uint64_t*>(&table.word(offset, k));
    });
    if (!loaded) continue;
    ++seen;
    if (copy[0] != copy[kValueBytes / 8 - 1]) ++torn;
  }
  writer.join();
  EXPECT_EQ(torn, 0U);
  EXPECT_GT(seen, 0U);
}

// A variable without keys, of one thread.
class Own : public DynamicTable<Own> {
 public:
  Own(std::vector<uint64_t>& words, uint64_t thread) : words_(words), thread_(thread) {}

  [[nodiscard]] static uint64_t zero() { return 0; }
  [[nodiscard]] static uint64_t buckets() { return 1; }
  [[nodiscard]] static uint64_t entry_bytes() { return kEntryBytes; }
  [[nodiscard]] static uint64_t key_bytes_max() { return kKeyBytes; }
  [[nodiscard]] uint64_t identity() const { return uint64_t{1} << 32 | thread_; }
  [[nodiscard]] static uint64_t key_words() { return 0; }
  [[nodiscard]] static uint64_t key_word(uint64_t) { return 0; }
  [[nodiscard]] static uint64_t bucket() { return 0; }
  [[nodiscard]] uint64_t home_way() const { return hashed_way(); }
  [[nodiscard]] static uint64_t way_offset(uint64_t way) { return way * kEntryBytes; }
  [[nodiscard]] uint64_t& word(uint64_t offset, uint64_t index) const {
    return words_[offset / 8 + index];
  }
  [[nodiscard]] MachineFound find() const { return find_here(); }
  [[nodiscard]] MachineFound claim_new() const { return claim_new_here(); }

  [[nodiscard]] bool store_value(uint64_t value) const {
    return store([&](uint64_t offset) { words_[offset / 8] = value; });
  }
  // In how many entries its name is.
  [[nodiscard]] uint64_t places() const {
    uint64_t places = 0;
    for (uint64_t way = 0; way < kMachineWays; ++way)
      places += word(kMachineBucketHeadBytes + way * kEntryBytes, 1) == identity() ? 1 : 0;
    return places;
  }

 private:
  std::vector<uint64_t>& words_;
  uint64_t thread_;
};

class OwnVariables : public ::testing::Test {
 protected:
  Own of(uint64_t thread) { return {words_, thread}; }

  std::vector<uint64_t> words_ = std::vector<uint64_t>(dynamic_bucket_bytes(kEntryBytes) / 8);
};

TEST_F(OwnVariables, AThreadTakesItsFreePlaceAgainWithoutTheLock) {
  ASSERT_TRUE(of(7).store_value(1));
  of(7).remove();
  words_[0] = 1;  // Somebody has the lock.
  const MachineFound home = of(7).find_home();
  ASSERT_NE(home.offset, 0U);
  ASSERT_TRUE(of(7).take_home(home));
  of(7).word(of(7).value_offset(home), 0) = 2;
  of(7).publish(home);
  EXPECT_EQ(of(7).load(), 2U);
  EXPECT_FALSE(of(7).take_home(home));  // As it was before.
  EXPECT_EQ(of(7).places(), 1U);
}

TEST_F(OwnVariables, AFreePlaceThatAnotherThreadTookIsNotTakenBack) {
  ASSERT_TRUE(of(7).store_value(1));
  of(7).remove();
  const MachineFound home = of(7).find_home();
  for (uint64_t thread = 10; thread < 10 + kMachineWays; ++thread)
    ASSERT_TRUE(of(thread).store_value(thread));
  EXPECT_FALSE(of(7).take_home(home));
  EXPECT_EQ(of(7).find_home().offset, 0U);
  EXPECT_EQ(of(7).load(), 0U);
  EXPECT_FALSE(of(7).store_value(2));  // All places are in use.
  of(12).remove();
  EXPECT_TRUE(of(7).store_value(2));
  EXPECT_EQ(of(7).load(), 2U);
  EXPECT_EQ(of(12).load(), 0U);
}

TEST_F(OwnVariables, EachIsInOnePlaceWhereverThatIs) {
  for (uint64_t round = 0; round < 3; ++round) {
    for (uint64_t thread = 1; thread <= kMachineWays; ++thread) {
      ASSERT_TRUE(of(thread).store_value(100 * round + thread));
      EXPECT_EQ(of(thread).places(), 1U);
    }
    for (uint64_t thread = 1; thread <= kMachineWays; ++thread)
      EXPECT_EQ(of(thread).load(), 100 * round + thread);
    for (uint64_t thread = kMachineWays; thread >= 1; --thread)
      of(thread).remove();
  }
}

// What a store interrupts has the entry: nobody may make a second one.
TEST_F(OwnVariables, AStoreThatInterruptsAnotherIsDropped) {
  ASSERT_TRUE(of(7).store_value(1));
  of(7).remove();
  ASSERT_TRUE(of(7).take_home(of(7).find_home()));
  EXPECT_FALSE(of(7).store_value(2));
  EXPECT_EQ(of(7).places(), 1U);
}

}  // namespace
}  // namespace clew::abi

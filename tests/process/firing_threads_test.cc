// SPDX-License-Identifier: Apache-2.0
// Firings in many threads at once, and in more than there is room for: what is lost is counted.
#include <atomic>
#include <map>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "firing_testing.h"

namespace clew::process {
namespace {

TEST_F(ProcessFiring, AFullRingIsCountedByCpu) {
  load("a:b:c:entry { tracemem(copyin(arg0, 4000), 4000); }");
  if (machine_ == nullptr) return;
  static const std::vector<uint8_t> kBytes(4096, 7);
  const InstalledFiring firing = install({}, script_.clauses);
  for (int i = 0; i < 100; ++i)
    machine_->fire(firing, with(kRdi, reinterpret_cast<uint64_t>(kBytes.data())));
  const auto records = machine_->read_records();
  uint64_t lost = 0;
  for (const uint64_t one : machine_->shared().losses.principal)
    lost += one;
  EXPECT_GT(lost, 0U);
  EXPECT_EQ(records.size() + lost, 100U);
  for (const auto& record : records)
    EXPECT_EQ(record.bytes.at(record.bytes.size() - 1), 7U);
}

// Few CPUs and keys for many threads: they meet in the same entries and buckets.
TEST_F(ProcessFiring, ThreadsLoseNothingThatIsNotCounted) {
  load(
      "int total; a:b:c:entry { self->n = arg0; @c[arg0] = count(); @s = sum(self->n); @all ="
      " count(); self->n = 0; @m[arg0 % 3, \"text\"] = max(arg0); }");
  if (machine_ == nullptr) return;
  constexpr uint64_t kThreads = 6;
  constexpr uint64_t kTurns = 20'000;
  constexpr uint64_t kKeys = 10;
  const InstalledFiring firing = install({}, script_.clauses);
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      EXPECT_TRUE(machine_->claim().has_value());
      for (uint64_t i = 0; i < kTurns; ++i)
        machine_->fire(firing, with(kRdi, i % kKeys));
      DMachine::leave();
    });
  }
  for (std::thread& one : threads)
    one.join();
  uint64_t lost = 0;
  for (const uint64_t one : machine_->shared().losses.aggregation)
    lost += one;
  const uint64_t dropped = machine_->shared().losses.dynamic;  // Such a clause ends there.
  const auto only = [&](uint32_t i) { return machine_->aggregate(i).at(0).cells.at(0); };
  uint64_t counted = 0;
  for (const auto& one : machine_->aggregate(0))
    counted += one.cells.at(0);
  EXPECT_EQ(machine_->aggregate(0).size(), kKeys);
  EXPECT_EQ(machine_->aggregate(3).size(), 3U);
  EXPECT_LE(lost, 10U);
  EXPECT_LE(dropped, kThreads * kTurns / 100);
  EXPECT_GE(counted + lost + dropped, kThreads * kTurns);
  EXPECT_LE(counted + dropped, kThreads * kTurns);
  EXPECT_GE(only(2) + lost + dropped, kThreads * kTurns);
  const bool is_whole = lost + dropped == 0;
  EXPECT_EQ(is_whole, only(1) == kThreads * kTurns / kKeys * 45);
  RecordProperty("dropped", static_cast<int>(dropped));
  RecordProperty("lost", static_cast<int>(lost));
}

// Entries are taken out and given to other keys while threads count in them.
TEST_F(ProcessFiring, WhatTheCollectorTakesMeanwhileIsExactByKey) {
  load("a:b:c:entry { @c[arg0] = count(); }", 1U << 14);
  if (machine_ == nullptr) return;
  constexpr uint64_t kThreads = 4;
  constexpr uint64_t kTurns = 50'000;
  constexpr uint64_t kKeys = 4096;
  const InstalledFiring firing = install({}, script_.clauses);
  std::atomic<uint64_t> running = kThreads;
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      EXPECT_TRUE(machine_->claim().has_value());
      for (uint64_t i = 0; i < kTurns; ++i)
        machine_->fire(firing, with(kRdi, (i * 7919) % kKeys));
      DMachine::leave();
      --running;
    });
  }
  std::map<uint64_t, uint64_t> counts;
  const auto collect = [&] {
    for (const auto& one : machine_->take(0)) {
      uint64_t key = 0;
      std::memcpy(&key, one.key.data(), 8);
      counts[key] += one.cells.at(0);
    }
  };
  while (running != 0)
    collect();
  for (std::thread& one : threads)
    one.join();
  collect();
  uint64_t lost = 0;
  for (const uint64_t one : machine_->shared().losses.aggregation)
    lost += one;
  std::map<uint64_t, uint64_t> truth;
  for (uint64_t i = 0; i < kTurns; ++i)
    truth[(i * 7919) % kKeys] += kThreads;
  uint64_t wrong = 0;
  for (const auto& [key, count] : truth)
    wrong += counts[key] > count ? 1 : 0;
  uint64_t all = 0;
  for (const auto& [key, count] : counts)
    all += count;
  EXPECT_EQ(wrong, 0U);
  EXPECT_EQ(all + lost, kThreads * kTurns);
  EXPECT_EQ(counts.size(), kKeys);
}

}  // namespace
}  // namespace clew::process

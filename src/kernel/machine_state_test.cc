// SPDX-License-Identifier: Apache-2.0
// State in the kernel: variables, globals, aggregations, scratch.
#include <map>

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "abi/buckets.h"
#include "kernel/session_testing.h"

namespace clew::kernel {
namespace {

using abi::AggregateFunction;
using abi::MachineAccessor;
using abi::MachineBuiltin;
using isa::Alu;
using isa::Register;
using isa::Size;

using StateTest = SessionTest;

abi::MachineVariable variable(uint32_t key_bytes, uint32_t value_bytes, bool is_thread) {
  return {.key_bytes = key_bytes,
          .value_bytes = value_bytes,
          .is_thread = is_thread ? 1U : 0U,
          .reserved = 0};
}

abi::MachineAggregation aggregation(AggregateFunction function, uint32_t key_bytes,
                                    uint32_t cells) {
  return {.function = function,
          .key_bytes = key_bytes,
          .cell_words = cells + 1,
          .reserved = 0,
          .parameters = {},
          .generation = 0};
}

TEST_F(StateTest, VariablesAreZeroUntilStoredAndAfterADelete) {
  Clause c;
  c.call(MachineAccessor::VariableLoad, {0}).record(0);
  c.call(MachineAccessor::VariableStore, {0, 77})
      .call(MachineAccessor::VariableLoad, {0})
      .record(1);
  c.put(abi::kMachineKeyOffset, 5);
  c.call(MachineAccessor::VariableStore, {1, 55});
  c.put(abi::kMachineKeyOffset, 6);
  c.call(MachineAccessor::VariableLoad, {1}).record(2);
  c.put(abi::kMachineKeyOffset, 5);
  c.call(MachineAccessor::VariableLoad, {1}).record(3);
  c.call(MachineAccessor::VariableDelete, {1}).call(MachineAccessor::VariableLoad, {1}).record(4);
  c.call(MachineAccessor::VariableLoad, {0}).record(5);
  c.commit(6);
  MachinePrograms programs = programs_of({c.finish()});
  programs.variables = {variable(0, 8, true), variable(8, 8, false)};
  run(std::move(programs));
  ASSERT_EQ(records_.size(), 1U);
  const uint64_t expected[] = {0, 77, 0, 55, 0, 77};
  for (uint32_t i = 0; i < 6; ++i)
    EXPECT_EQ(records_[0].word(i), expected[i]) << i;
}

TEST_F(StateTest, VariablesOfManyBytesKeepThemAll) {
  Clause c;
  c.text(kTestRoom, "hello").text(kTestRoom + 8, "world");
  c.call(MachineAccessor::VariableStoreBytes, {0, kTestRoom});
  c.call(MachineAccessor::VariableLoadBytes, {0, Clause::word_offset(1)}).record(0);
  c.call(MachineAccessor::VariableDelete, {0});
  c.call(MachineAccessor::VariableLoadBytes, {0, Clause::word_offset(4)}).record(3);
  c.commit(6);
  MachinePrograms programs = programs_of({c.finish()});
  programs.variables = {variable(0, 16, false)};
  run(std::move(programs));
  ASSERT_EQ(records_.size(), 1U);
  EXPECT_EQ(records_[0].word(0), 1U);
  EXPECT_EQ(records_[0].text(1), "hello");
  EXPECT_EQ(records_[0].text(2), "world");
  EXPECT_EQ(records_[0].word(3), 0U);
  EXPECT_EQ(records_[0].word(4), 0U);
}

TEST_F(StateTest, ATableWithoutRoomDropsAndEndsTheClause) {
  std::vector<isa::Program> clauses;
  Clause c;
  for (uint64_t key = 0; key < 64; ++key) {
    c.put(abi::kMachineKeyOffset, key);
    c.call(MachineAccessor::VariableStore, {0, key});
  }
  c.commit(1);
  MachinePrograms programs = programs_of({c.finish()});
  programs.variables = {variable(8, 8, false)};
  programs.dynamic_bytes = 1024;
  run(std::move(programs));
  EXPECT_TRUE(records_.empty());
  EXPECT_EQ(session_->shared().losses.dynamic, 1U);
}

TEST_F(StateTest, GlobalsOfManyBytesAreCopied) {
  Clause c;
  c.text(kTestRoom, "abcdefg");
  c.call(MachineAccessor::GlobalStoreBytes, {8, kTestRoom, 8});
  c.call(MachineAccessor::GlobalLoadBytes, {Clause::word_offset(0), 8, 8});
  c.code().load_global(Register::R1, 0).load(Size::Double, Register::R0, Register::R1, 0);
  c.record(1).commit(2);
  MachinePrograms programs = programs_of({c.finish()});
  programs.globals.resize(16);
  programs.globals[0] = 9;
  run(std::move(programs));
  ASSERT_EQ(records_.size(), 1U);
  EXPECT_EQ(records_[0].text(0), "abcdefg");
  EXPECT_EQ(records_[0].word(1), 9U);
}

TEST_F(StateTest, ScratchIsZeroedAlignedAndFinite) {
  Clause c;
  c.call(MachineAccessor::Alloca, {13}).record(0);
  c.call(MachineAccessor::Alloca, {8}).record(1);
  c.code().move(Register::R2, Register::R0).move(Register::R3, 8).move(Register::R4, 77);
  c.call_loaded(MachineAccessor::Store);
  c.code().load_window(Register::R1, 0x8420).load(Size::Double, Register::R0, Register::R1, 0);
  c.record(2).commit(3);
  Clause large;
  large.call(MachineAccessor::Alloca, {0x9000}).commit(0);
  run({c.finish(), large.finish()});
  ASSERT_EQ(records_.size(), 2U);
  EXPECT_EQ(records_[0].word(0), abi::kMachineWindowTag | 0x8400U);
  EXPECT_EQ(records_[0].word(1), abi::kMachineWindowTag | 0x8420U);
  EXPECT_EQ(records_[0].word(2), 77U);
  EXPECT_EQ(records_[1].header.kind, abi::MachineRecordKind::Error);
  EXPECT_EQ(records_[1].word(0), static_cast<uint64_t>(abi::MachineFault::NoScratch));
}

// Adds values to one aggregation without a key, in BEGIN.
class AggregationTest : public SessionTest {
 protected:
  std::vector<uint64_t> cells_of(const abi::MachineAggregation& a,
                                 const std::vector<int64_t>& values) {
    Clause c;
    for (const int64_t value : values)
      c.call(MachineAccessor::Aggregate, {0, static_cast<uint64_t>(value), 1});
    MachinePrograms programs = programs_of({c.finish()});
    programs.aggregations = {a};
    run(std::move(programs));
    if (session_ == nullptr) return {};
    const std::vector<MachineAggregate> all = session_->aggregate(0);
    return all.size() == 1 ? all[0].cells : std::vector<uint64_t>();
  }
};

TEST_F(AggregationTest, CountsSumsAndExtremes) {
  using V = std::vector<uint64_t>;
  const std::vector<int64_t> values = {5, -7, 100, 0};
  EXPECT_EQ(cells_of(aggregation(AggregateFunction::Count, 0, 1), values), V{4});
  EXPECT_EQ(cells_of(aggregation(AggregateFunction::Sum, 0, 1), values), V{98});
  EXPECT_EQ(cells_of(aggregation(AggregateFunction::Min, 0, 1), values),
            V{static_cast<uint64_t>(-7)});
  EXPECT_EQ(cells_of(aggregation(AggregateFunction::Max, 0, 1), values), V{100});
  EXPECT_EQ(cells_of(aggregation(AggregateFunction::Max, 0, 1), {-5, -3}),
            V{static_cast<uint64_t>(-3)});
  EXPECT_EQ(cells_of(aggregation(AggregateFunction::Average, 0, 2), values), (V{4, 98}));
}

TEST_F(AggregationTest, SquaresHave128Bits) {
  const int64_t large = -(int64_t{3} << 61);
  const std::vector<uint64_t> cells =
      cells_of(aggregation(AggregateFunction::StandardDeviation, 0, 4), {large, large, 7});
  ASSERT_EQ(cells.size(), 4U);
  EXPECT_EQ(cells[0], 3U);
  EXPECT_EQ(cells[2], 49U);
  EXPECT_EQ(cells[3], uint64_t{18} << 58);  // 2 · (3 · 2^61)² = 18 · 2^122
}

TEST_F(AggregationTest, DistributionsCountInTheirBuckets) {
  const std::vector<int64_t> values = {0, 1, 2, 3, -1, -5, 1000, 1 << 20};
  const auto expect_counted = [&](const abi::MachineAggregation& a, const auto& bucket_of) {
    std::map<uint64_t, uint64_t> expected;
    for (const int64_t value : values)
      ++expected[bucket_of(value)];
    const std::vector<uint64_t> cells = cells_of(a, values);
    ASSERT_EQ(cells.size() + 1, a.cell_words);
    for (uint64_t i = 0; i < cells.size(); ++i)
      EXPECT_EQ(cells[i], expected[i]) << i;
  };
  expect_counted(aggregation(AggregateFunction::Quantize, 0, abi::kMachineQuantizeBuckets),
                 [](int64_t value) { return abi::quantize_bucket(value); });

  const abi::LinearBuckets linear{.low = -2, .high = 10, .step = 2};
  abi::MachineAggregation a = aggregation(AggregateFunction::Lquantize, 0,
                                          static_cast<uint32_t>(abi::linear_buckets(linear)));
  a.parameters[0] = -2;
  a.parameters[1] = 10;
  a.parameters[2] = 2;
  expect_counted(a, [&](int64_t value) { return abi::linear_bucket(linear, value); });

  const abi::LogLinearBuckets logarithmic{.factor = 10, .low = 0, .high = 3, .steps = 10};
  a = aggregation(AggregateFunction::Llquantize, 0,
                  static_cast<uint32_t>(abi::log_linear_buckets(logarithmic)));
  a.parameters[0] = 10;
  a.parameters[2] = 3;
  a.parameters[3] = 10;
  expect_counted(a, [&](int64_t value) {
    return abi::log_linear_bucket(logarithmic, 0, abi::log_linear_steps(logarithmic), value);
  });
}

TEST_F(AggregationTest, KeysAreApartAndMergedOverCpus) {
  Clause c;
  c.builtin(MachineBuiltin::Arg0).put(abi::kMachineKeyOffset);
  c.call(MachineAccessor::Aggregate, {0, 0, 0});
  MachinePrograms programs = programs_of({c.finish()});
  programs.aggregations = {aggregation(AggregateFunction::Count, 8, 1)};
  load(std::move(programs), {{syscall_probe(SYS_dup), {0}}});
  ASSERT_NE(session_, nullptr);
  ASSERT_TRUE(session_->attach());
  ASSERT_TRUE(session_->begin());
  constexpr int kFirst = 100000;  // No descriptor is that large; other processes' are below.
  for (int i = 0; i < 500; ++i)
    syscall(SYS_dup, kFirst + i % 50);
  ASSERT_TRUE(session_->end());
  std::map<uint64_t, uint64_t> counts;
  for (const MachineAggregate& one : session_->aggregate(0)) {
    uint64_t key = 0;
    std::memcpy(&key, one.key.data(), 8);
    if (key >= kFirst) counts[key] += one.cells[0];
  }
  ASSERT_EQ(counts.size(), 50U);
  for (const auto& [key, count] : counts)
    EXPECT_EQ(count, 10U) << key;
}

TEST_F(AggregationTest, WhatIsTakenIsNotThereAnyMore) {
  Clause c;
  c.call(MachineAccessor::Aggregate, {0, 3, 1});
  MachinePrograms programs = programs_of({c.finish()});
  programs.aggregations = {aggregation(AggregateFunction::Sum, 0, 1)};
  load(std::move(programs), {{syscall_probe(SYS_getppid), {0}}});
  ASSERT_NE(session_, nullptr);
  ASSERT_TRUE(session_->attach());
  ASSERT_TRUE(session_->begin());
  uint64_t sum = 0;
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < 100; ++i)
      syscall(SYS_getppid);
    for (const MachineAggregate& one : session_->take(0))
      sum += one.cells[0];
  }
  ASSERT_TRUE(session_->end());
  EXPECT_TRUE(session_->aggregate(0).empty());
  EXPECT_GE(sum, 20U * 100 * 3);
  EXPECT_EQ(sum % 3, 0U);
}

TEST_F(AggregationTest, UpdatesWithoutRoomAreCounted) {
  Clause c;
  c.builtin(MachineBuiltin::Arg0).put(abi::kMachineKeyOffset);
  c.call(MachineAccessor::Aggregate, {0, 0, 0});
  MachinePrograms programs = programs_of({c.finish()});
  programs.aggregations = {aggregation(AggregateFunction::Count, 8, 1)};
  programs.aggregation_bytes = 40 * 16;
  load(std::move(programs), {{syscall_probe(SYS_dup), {0}}});
  ASSERT_NE(session_, nullptr);
  ASSERT_TRUE(session_->attach());
  ASSERT_TRUE(session_->begin());
  for (int i = 0; i < 200; ++i)
    syscall(SYS_dup, 100000 + i);
  ASSERT_TRUE(session_->end());
  uint64_t counted = 0;
  for (const MachineAggregate& one : session_->aggregate(0))
    counted += one.cells[0];
  uint64_t lost = 0;
  for (const uint64_t one : session_->shared().losses.aggregation)
    lost += one;
  EXPECT_GE(counted + lost, 200U);
  EXPECT_GE(lost, 200U - 2 * 16);
}

}  // namespace
}  // namespace clew::kernel

// SPDX-License-Identifier: Apache-2.0
// Plans for sources in the kernel: what is asked of the D machine, and that its cells mean the same
// as those of aggregate/function.h.
#include <map>
#include <random>
#include <set>
#include <span>

#include <gtest/gtest.h>

#include "abi/buckets.h"
#include "abi/query_window.h"
#include "aggregate/function.h"
#include "aggregate/hash.h"
#include "plan/kernel_cells.h"
#include "plan/kernel_form.h"
#include "plan/kernel_lower.h"
#include "plan/update.h"
#include "plan/uprobe_form.h"
#include "query/fake_types.h"
#include "query/parse.h"

namespace clew::plan {
namespace {

query::Query parse(const std::string& text) {
  query::FakeTypes types;
  Expected<query::Query> query =
      query::parse({.name = "query", .text = text}, {.vocabulary = nullptr, .types = &types});
  EXPECT_TRUE(query.has_value()) << (query ? "" : query.error().message);
  return query ? std::move(*query) : query::Query();
}

KernelLowered lower(const std::string& text, const std::set<uint16_t>& process_sources = {}) {
  const Plan plan = make_kernel_plan(parse(text));
  KernelLowerInput input{.pids = {}, .tracer_pid = 1, .epoch_ns = 0};
  input.process_sources = process_sources;
  Expected<KernelLowered> lowered = lower_kernel(plan, input);
  EXPECT_TRUE(lowered.has_value()) << (lowered ? "" : lowered.error().message);
  return lowered ? std::move(*lowered) : KernelLowered();
}

// --- cells ---------------------------------------------------------------------------------------

// What runtime/kernel/aggregate.cc leaves for these values.
std::vector<uint64_t> counted(const abi::MachineAggregation& a,
                              const std::vector<uint64_t>& values) {
  using abi::AggregateFunction;
  std::vector<uint64_t> cells(a.cell_words - 1);
  if (a.function == AggregateFunction::Min) cells[0] = INT64_MAX;
  if (a.function == AggregateFunction::Max) cells[0] = uint64_t{1} << 63;
  const abi::LogLinearBuckets steps{
      static_cast<uint64_t>(a.parameters[0]), static_cast<uint64_t>(a.parameters[1]),
      static_cast<uint64_t>(a.parameters[2]), static_cast<uint64_t>(a.parameters[3])};
  for (const uint64_t value : values) {
    const auto number = static_cast<int64_t>(value);
    switch (a.function) {
      case AggregateFunction::Count:
        ++cells[0];
        break;
      case AggregateFunction::Sum:
        cells[0] += value;
        break;
      case AggregateFunction::Min:
        cells[0] = std::min<int64_t>(static_cast<int64_t>(cells[0]), number);
        break;
      case AggregateFunction::Max:
        cells[0] = std::max<int64_t>(static_cast<int64_t>(cells[0]), number);
        break;
      case AggregateFunction::Average:
        ++cells[0];
        cells[1] += value;
        break;
      case AggregateFunction::StandardDeviation: {
        __extension__ using Wide = unsigned __int128;
        const uint64_t amount = number < 0 ? 0 - value : value;
        Wide squares = static_cast<Wide>(cells[3]) << 64 | cells[2];
        squares += static_cast<Wide>(amount) * amount;
        ++cells[0];
        cells[1] += value;
        cells[2] = static_cast<uint64_t>(squares);
        cells[3] = static_cast<uint64_t>(squares >> 64);
        break;
      }
      case AggregateFunction::Quantize:
        ++cells[abi::quantize_bucket(number)];
        break;
      case AggregateFunction::Lquantize:
        ++cells[abi::linear_bucket({a.parameters[0], a.parameters[1], a.parameters[2]}, number)];
        break;
      case AggregateFunction::Llquantize:
        ++cells[abi::log_linear_bucket(steps, 0, abi::log_linear_steps(steps), number)];
        break;
      case AggregateFunction::Distinct:
      case AggregateFunction::TopK:
      case AggregateFunction::Quantile:
      case AggregateFunction::Variance:
        ADD_FAILURE() << "the machine does not count it";
    }
  }
  return cells;
}

// Small, large, negative; as many bits as there are.
uint64_t random_value(std::mt19937_64& random, const query::Type& type) {
  uint64_t value = random() >> (random() % 64);
  if (random() % 3 == 0) value = 0 - value;
  const unsigned unused = 64 - 8U * type.size_bytes;
  if (type.is_signed) {
    return static_cast<uint64_t>(static_cast<int64_t>(value << unused) >> unused);
  }
  return value << unused >> unused;
}

struct CellCase {
  const char* name;
  const char* text;  // Of the aggregate.
};

class KernelCells : public testing::TestWithParam<CellCase> {};

TEST_P(KernelCells, MeanWhatTheTracerCounts) {
  const query::Query query =
      parse(std::string("from e in syscall(\"write\") select ") + GetParam().text);
  ASSERT_EQ(query.aggregates.size(), 1U);
  const query::Aggregate& aggregate = query.aggregates[0];
  ASSERT_TRUE(has_kernel_cells(aggregate));
  const abi::MachineAggregation machine = kernel_aggregation(aggregate, 0);
  const aggregate::AggregateSpec spec = spec_of(aggregate);
  std::mt19937_64 random(7);
  for (int round = 0; round < 50; ++round) {
    std::vector<uint64_t> expected(aggregate::cell_words(spec));
    std::vector<uint64_t> given;
    for (uint64_t n = 1 + random() % 40; n > 0; --n) {
      const uint64_t value =
          aggregate.arguments.empty() ? 0 : random_value(random, aggregate.arguments[0].type);
      aggregate::add(spec, expected, value);
      given.push_back(value ^ kernel_bias(aggregate));
    }
    EXPECT_EQ(cells_of(aggregate, counted(machine, given)), expected);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Plan, KernelCells,
    testing::Values(
        CellCase{"Count", "count()"}, CellCase{"Sum", "sum(e.arg0)"},
        CellCase{"SumUnsigned", "sum((unsigned long)e.arg0)"}, CellCase{"Min", "min(e.arg0)"},
        CellCase{"Max", "max(e.arg0)"}, CellCase{"MinUnsigned", "min((unsigned long)e.arg0)"},
        CellCase{"MaxUnsigned", "max((unsigned long)e.arg0)"},
        CellCase{"MaxByte", "max((unsigned char)e.arg0)"}, CellCase{"Average", "avg(e.arg0)"},
        CellCase{"AverageUnsigned", "avg((unsigned long)e.arg0)"},
        CellCase{"Deviation", "stddev(e.arg0)"}, CellCase{"Variance", "variance(e.arg0)"},
        CellCase{"Quantize", "quantize(e.arg0)"},
        CellCase{"QuantizeWord", "quantize((unsigned)e.arg0)"},
        CellCase{"Linear", "lquantize(e.arg0, -100, 1000, 7)"},
        CellCase{"LogLinear", "llquantize(e.arg0, 10, 0, 6, 20)"},
        CellCase{"LogLinearLate", "llquantize(e.arg0, 2, 3, 18, 4)"}),
    [](const auto& test) { return std::string(test.param.name); });

// What a table has of quantile() and distinct() is by bucket; together it is the tracer's cell.
TEST(KernelBuckets, AddUpToTheWholeCell) {
  const query::Query query = parse(
      "from e in syscall(\"write\") select quantile(e.arg0, .9), quantile((unsigned long)e.arg0, "
      ".5), distinct(e.arg0)");
  ASSERT_EQ(query.aggregates.size(), 3U);
  std::mt19937_64 random(8);
  for (const query::Aggregate& aggregate : query.aggregates) {
    ASSERT_TRUE(has_kernel_cells(aggregate) && has_kernel_buckets(aggregate));
    const aggregate::AggregateSpec spec = spec_of(aggregate);
    const bool is_distinct = aggregate.function == abi::AggregateFunction::Distinct;
    std::vector<uint64_t> expected(aggregate::cell_words(spec));
    std::map<uint64_t, uint64_t> entries;
    for (int i = 0; i < 5000; ++i) {
      const uint64_t value = random_value(random, aggregate.arguments[0].type);
      aggregate::add(spec, expected, value);
      if (is_distinct) {
        const uint64_t hash = aggregate::hash_step(aggregate::kHashSeed, value);
        const abi::DistinctUpdate update = abi::distinct_update(hash);
        uint64_t& rank = entries[update.register_index];
        rank = std::max<uint64_t>(rank, update.rank);
      } else {
        ++entries[abi::quantile_bucket(value, spec.is_signed)];
      }
    }
    std::vector<uint64_t> got(expected.size());
    for (const auto& [bucket, cell] : entries)
      aggregate::merge(spec, got, cells_of(aggregate, std::span(&cell, 1), bucket));
    EXPECT_EQ(got, expected);
  }
}

TEST(KernelCellsThatAreNot, AreLeftToTheTracer) {
  const query::Query query = parse(
      "from e in syscall(\"write\") select quantize((unsigned long)e.arg0), "
      "stddev((unsigned long)e.arg0)");
  ASSERT_EQ(query.aggregates.size(), 2U);
  for (const query::Aggregate& aggregate : query.aggregates)
    EXPECT_FALSE(has_kernel_cells(aggregate));
}

// --- plans ---------------------------------------------------------------------------------------

TEST(KernelPlan, CountsInTablesWhereTheMachineCan) {
  const KernelLowered lowered = lower(
      "from e in syscall(\"write\") where e.arg0 > 1 groupby e.pid, e.comm select e.pid, "
      "e.comm, count(), max(e.arg1)");
  EXPECT_EQ(lowered.root.form, StateForm::Table);
  ASSERT_EQ(lowered.aggregations.size(), 2U);
  EXPECT_EQ(lowered.aggregations[0].key_bytes, 8U + abi::kQueryCommBytes);
  EXPECT_EQ(lowered.programs.size(), 1U);
}

TEST(KernelPlan, KeysAloneAreCounted) {
  const KernelLowered lowered = lower("syscall(\"write\").Select(e => e.pid).Distinct()");
  EXPECT_EQ(lowered.root.form, StateForm::Table);
  ASSERT_EQ(lowered.aggregations.size(), 1U);
  EXPECT_EQ(lowered.aggregations[0].function, abi::AggregateFunction::Count);
}

TEST(KernelPlan, LeavesToTheTracerWhatItCannotCount) {
  for (const char* text :
       {"from e in syscall(\"write\") groupby e.pid select quantize((unsigned long)e.arg0)",
        "from e in syscall(\"write\") where e.comm like \"%x%\" groupby e.pid select count()",
        "from e in syscall(\"write*\") groupby substr(e.function, 0, 2) select count()",
        "from e in syscall(\"write\") select count() for 10 events"}) {
    EXPECT_EQ(lower(text).root.form, StateForm::Events) << text;
  }
}

TEST(KernelPlan, QuantilesAndDistinctHaveAnEntryForEachBucket) {
  const KernelLowered lowered = lower(
      "from e in syscall(\"write\") groupby e.pid select e.pid, count(), p50(e.arg2), "
      "p99(e.arg2), distinct(e.arg0), p99(e.arg1)");
  EXPECT_EQ(lowered.root.form, StateForm::Table);
  // Quantiles of the same value share a table.
  EXPECT_EQ(lowered.table_of, (std::vector<size_t>{0, 1, 1, 2, 3}));
  ASSERT_EQ(lowered.aggregations.size(), 4U);
  EXPECT_EQ(lowered.aggregations[0].key_bytes, 8U);
  EXPECT_EQ(lowered.aggregations[1].key_bytes, 16U);
  EXPECT_EQ(lowered.aggregations[1].function, abi::AggregateFunction::Count);
  EXPECT_EQ(lowered.aggregations[2].key_bytes, 16U);
  EXPECT_EQ(lowered.aggregations[2].function, abi::AggregateFunction::Max);
  EXPECT_EQ(lowered.root.state.tables[0].key_words, 1U);
}

TEST(KernelPlan, ElapsedNeedsAProgramAtTheEntry) {
  const KernelLowered lowered = lower(
      "from e in syscall_return(\"write\"), syscall_return(\"read\") where e.elapsed > 10 select "
      "count()");
  ASSERT_EQ(lowered.programs.size(), 4U);
  EXPECT_TRUE(lowered.programs[1].is_recorder);
  EXPECT_TRUE(lowered.programs[3].is_recorder);
  EXPECT_EQ(lowered.variables.size(), 2U);  // A thread's calls of one are not those of the other.
}

// A thread is in many functions at once, also in one of them twice.
TEST(KernelPlan, OpenCallsOfFunctionsAreKnownByTheirFrames) {
  const KernelLowered lowered = lower(
      "from e in kernel_return(\"vfs_read\"), syscall_return(\"read\") where e.elapsed > 10 select "
      "count(), sum(e.retval)");
  ASSERT_EQ(lowered.programs.size(), 4U);
  ASSERT_EQ(lowered.variables.size(), 2U);
  EXPECT_EQ(lowered.variables[0].key_bytes, 16U);
  EXPECT_EQ(lowered.variables[0].is_thread, 1U);
  EXPECT_EQ(lowered.variables[1].key_bytes, 0U);
}

TEST(KernelPlan, SourcesInProcessesHaveNoProgram) {
  EXPECT_EQ(lower("from e in entry(\"shopd!close_card\"), syscall(\"write\") select count()")
                .programs.size(),
            1U);
}

TEST(KernelPlan, SourcesInProcessesHaveProgramsWhereTheyAreUprobes) {
  const KernelLowered lowered = lower(
      "from e in entry(\"shopd!close_card\"), syscall(\"write\"), return(\"shopd!close_card\") "
      "where "
      "e.time != 0 select max(e.tid)",
      {0, 2});
  ASSERT_EQ(lowered.programs.size(), 2U);
  EXPECT_EQ(lowered.programs[0].source, 0U);
  EXPECT_EQ(lowered.programs[1].source, 2U);
}

TEST(KernelPlan, OpenCallsOfFunctionsInProcessesAreKnownByTheirFrames) {
  const KernelLowered lowered = lower(
      "from e in return(\"shopd!close_card\") where e.entry.arg0 != 1 select max(e.elapsed)", {0});
  ASSERT_EQ(lowered.programs.size(), 2U);
  EXPECT_TRUE(lowered.programs[1].is_recorder);
  ASSERT_EQ(lowered.variables.size(), 1U);
  EXPECT_EQ(lowered.variables[0].key_bytes, 16U);
  EXPECT_TRUE(lowered.calls.empty()) << "of system calls";
}

// --- uprobes -------------------------------------------------------------------------------------

TEST(KernelPlan, UprobesServeWhatIsInRegisters) {
  const auto is_served = [](const std::string& text) {
    const query::Query query = parse(text);
    return can_be_uprobe(query, query.sources[0]);
  };
  EXPECT_TRUE(is_served("from e in entry(\"shopd!charge_card\") select e.cents, e.card->number"));
  EXPECT_TRUE(
      is_served("from e in return(\"shopd!charge_card\") select e.retval, e.elapsed, "
                "e.caller, e.entry.arg5, e.comm"));
  EXPECT_TRUE(is_served("from e in offset(\"shopd!close_card\", 4) select e.arg0"));
  EXPECT_FALSE(is_served("from e in entry(\"shopd!charge_card\") select e.arg6"));
  EXPECT_FALSE(is_served("from e in entry(\"shopd!charge_card\") where e.rate > 1 select count()"));
  EXPECT_FALSE(is_served("from e in return(\"shopd!rate_of\") select sum(e.retval)"));
  EXPECT_FALSE(is_served("from e in exception(\"shopd!close_card\") select count()"));
  EXPECT_FALSE(is_served("from e in syscall(\"write\") select count()"));
}

TEST(KernelPlan, WhoAsksForResultsAndForCodeIsKnown) {
  const query::Query result = parse("from e in return(\"shopd!find_card\") select e.retval");
  EXPECT_TRUE(reads_result(result, result.sources[0]));
  EXPECT_FALSE(names_code(result));
  const query::Query caller = parse("from e in return(\"shopd!close_card\") select e.caller");
  EXPECT_FALSE(reads_result(caller, caller.sources[0]));
  EXPECT_TRUE(names_code(caller));
}

TEST(KernelPlan, WhatIsTooLargeIsALimit) {
  std::string text = "from e in syscall(\"write\") groupby ";
  for (int i = 0; i < 20; ++i)
    text += (i == 0 ? "" : ", ") + ("str(e.arg0 + " + std::to_string(i) + ", 256)");
  const Plan plan = make_kernel_plan(parse(text + " select count()"));
  const auto lowered = lower_kernel(plan, {.pids = {}, .tracer_pid = 1, .epoch_ns = 0});
  ASSERT_FALSE(lowered.has_value());
  EXPECT_EQ(lowered.error().code, ErrorCode::Limit);
}

// --- owners --------------------------------------------------------------------------------------

TEST(KernelOwners, AKeyHoldsANumberThatTheTracerNames) {
  const KernelLowered lowered = lower(
      "from s in syscall(\"read\") groupby s.container, s.cgroup, s.user select s.container, "
      "s.cgroup, s.user, count()");
  ASSERT_EQ(lowered.root.form, StateForm::Table);
  EXPECT_EQ(lowered.root.state.tables[0].key_words, 3U);
}

TEST(KernelOwners, AConditionOnThemStandsBehindTheKey) {
  const Plan plan = make_kernel_plan(parse(
      "from s in syscall(\"read\") where s.container == \"web\" && s.unit != \"\" && s.arg0 > 2 "
      "groupby s.arg0 select s.arg0, count()"));
  EXPECT_EQ(cell_filters(plan).size(), 2U);
  EXPECT_EQ(plan.program_filters().size(), 1U);
  EXPECT_EQ(owner_keys(plan).size(), 1U);  // Both are about the control group.
  const KernelLowered lowered = lower(
      "from s in syscall(\"read\") where s.container == \"web\" && s.user == \"root\" "
      "groupby s.arg0 select s.arg0, count()");
  ASSERT_EQ(lowered.root.form, StateForm::Table);
  EXPECT_EQ(lowered.root.state.tables[0].key_words, 3U);
}

TEST(KernelOwners, ANumberOfAUserIsComparedByThePrograms) {
  const Plan plan = make_kernel_plan(
      parse("from s in syscall(\"read\") where s.uid == 0 groupby s.uid select s.uid, count()"));
  EXPECT_EQ(plan.program_filters().size(), 1U);
  EXPECT_TRUE(cell_filters(plan).empty());
}

TEST(KernelOwners, SingleEventsAreLookedAtByTheTracer) {
  const Plan plan = make_kernel_plan(
      parse("from s in syscall(\"read\") where s.container == \"web\" select s.pid, s.container"));
  EXPECT_FALSE(plan.pushed(OperatorKind::Filter, 0));
  EXPECT_TRUE(owner_keys(plan).empty());
}

}  // namespace
}  // namespace clew::plan

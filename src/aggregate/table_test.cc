// SPDX-License-Identifier: Apache-2.0
#include "aggregate/table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace clew::aggregate {
namespace {

using testing::ElementsAre;

const AggregateSpec kCountSpec{};
const AggregateSpec kMaxSpec{.function = AggregateFunction::Max};

TableSchema counts_by_function() {
  return {.keys = {{.name = "function", .type = ColumnType::String}},
          .aggregates = {{.name = "count", .spec = kCountSpec}}};
}

Key key(const char* text) {
  return {Value(std::string(text))};
}

void count(Table& table, const char* function, uint64_t times) {
  table.add(key(function), std::vector<uint64_t>{times});
}

Row row(const char* function, uint64_t times) {
  return {Value(std::string(function)), times};
}

TEST(Table, MergesRowsOfTheSameKey) {
  Table table(counts_by_function());
  count(table, "open", 3);
  count(table, "close", 1);
  count(table, "open", 4);
  EXPECT_THAT(table.rows(), ElementsAre(row("close", 1), row("open", 7)));
}

TEST(Table, MergeAddsLossesAndRefusesAnotherSchema) {
  Table a(counts_by_function());
  Table b(counts_by_function());
  a.losses.missed["no_slot"] = 2;
  b.losses.missed["no_slot"] = 3;
  count(b, "open", 1);
  ASSERT_TRUE(a.merge(b));
  EXPECT_EQ(a.losses.missed.at("no_slot"), 5U);
  EXPECT_EQ(a.size(), 1U);
  EXPECT_FALSE(a.merge(Table({.keys = {}, .aggregates = {{.name = "count", .spec = kCountSpec}}})));
}

TEST(Table, KeepsCellsOfSeveralAggregatesApart) {
  Table table(
      {.keys = {},
       .aggregates = {{.name = "count", .spec = kCountSpec}, {.name = "max", .spec = kMaxSpec}}});
  table.add({}, std::vector<uint64_t>{1, 50, 1});
  table.add({}, std::vector<uint64_t>{2, 0, 0});
  table.add({}, std::vector<uint64_t>{1, 70, 1});
  EXPECT_THAT(table.rows(), ElementsAre(Row{Value(uint64_t{4}), Value(int64_t{70})}));
}

TEST(Table, SinceLeavesOutRowsThatDidNotChange) {
  Table before(counts_by_function());
  count(before, "open", 3);
  count(before, "close", 1);
  Table now = before;
  count(now, "open", 2);
  count(now, "read", 9);
  EXPECT_THAT(now.since(before).rows(), ElementsAre(row("open", 2), row("read", 9)));
}

TEST(Table, FoldTopKeepsTheMostFrequentValuesOfEachKey) {
  const AggregateSpec top{.function = AggregateFunction::TopK, .count_max = 2};
  Table table({.keys = {{.name = "function", .type = ColumnType::String}, {.name = "size"}},
               .aggregates = {{.name = "sizes", .spec = top}}});
  const auto see = [&](const char* function, int64_t size, uint64_t times) {
    table.add({Value(std::string(function)), Value(size)}, std::vector<uint64_t>{times});
  };
  see("malloc", 16, 5);
  see("malloc", 32, 9);
  see("malloc", 64, 7);
  see("calloc", 8, 1);
  const TopList calloc_sizes{{{int64_t{8}, 1}}};
  const TopList malloc_sizes{{{int64_t{32}, 9}, {int64_t{64}, 7}}};
  EXPECT_THAT(table.fold_top(1),
              ElementsAre(Row{Value(std::string("calloc")), Value(calloc_sizes)},
                          Row{Value(std::string("malloc")), Value(malloc_sizes)}));
}

TEST(Table, FoldTopMergesTheAggregatesBesideIt) {
  const AggregateSpec top{.function = AggregateFunction::TopK, .count_max = 1};
  Table table({.keys = {{.name = "size"}, {.name = "tid"}},
               .aggregates = {{.name = "sizes", .spec = top},
                              {.name = "max", .spec = kMaxSpec},
                              {.name = "tids", .spec = top}}});
  const auto see = [&](int64_t size, int64_t tid, uint64_t times, uint64_t largest) {
    table.add({Value(size), Value(tid)}, std::vector<uint64_t>{times, largest, 1, times});
  };
  see(16, 1, 5, 70);
  see(16, 2, 4, 90);
  see(32, 2, 8, 80);
  const TopList sizes{{{int64_t{16}, 9}}};
  const TopList tids{{{int64_t{2}, 12}}};
  EXPECT_THAT(table.fold_top(0), ElementsAre(Row{Value(sizes), Value(int64_t{90}), Value(tids)}));
}

TEST(Compare, OrdersNumbersOfAllTypesByTheirValue) {
  const std::vector<Value> ascending = {Value(),
                                        Value(-1e300),
                                        Value(INT64_MIN),
                                        Value(int64_t{-1}),
                                        Value(uint64_t{0}),
                                        Value(0.5),
                                        Value(int64_t{1}),
                                        Value(INT64_MAX),
                                        Value(UINT64_MAX - 1),
                                        Value(UINT64_MAX),
                                        Value(1e300),
                                        Value(std::string("")),
                                        Value(std::string("a")),
                                        Value(Stack{}),
                                        Value(Stack{{{.symbol = "main"}}}),
                                        Value(Stack{{{.symbol = "main"}, {.address = 1}}}),
                                        Value(Stack{{{.symbol = "open"}}})};
  for (size_t i = 0; i < ascending.size(); ++i) {
    for (size_t j = 0; j < ascending.size(); ++j) {
      EXPECT_EQ(compare(ascending[i], ascending[j]), i < j ? -1 : (i > j ? 1 : 0)) << i << ' ' << j;
    }
  }
}

TEST(SortRows, IsStableAndTakesSeveralColumns) {
  std::vector<Row> rows = {row("b", 1), row("a", 2), row("c", 2), row("d", 1)};
  const Order by_count{.column = 1, .descending = true};
  sort_rows(rows, std::span(&by_count, 1));
  EXPECT_THAT(rows, ElementsAre(row("a", 2), row("c", 2), row("b", 1), row("d", 1)));
}

}  // namespace
}  // namespace clew::aggregate

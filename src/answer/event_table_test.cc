// SPDX-License-Identifier: Apache-2.0
#include "answer/event_table.h"

#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "aggregate/table_bytes.h"
#include "query/parse.h"

namespace clew::answer {
namespace {

using aggregate::Row;
using aggregate::Stack;
using aggregate::Table;
using aggregate::Value;
using testing::ElementsAre;
using testing::SizeIs;

constexpr int64_t kAhead = 1'000'000;

// Of the values `function`, `tid` and `time`; behind these stands the time once more.
query::Query query_of_events() {
  return query::parse_any(
             {.name = "query", .text = "from e in entry(\"a!f\") select e.function, e.tid, e.time"},
             {})
      .value();
}

EventTable table_of_events(EventLimits limits = {}) {
  static const query::Query query = query_of_events();
  return {query, {.width = 3, .time = 2}, kAhead, limits};
}

void add(EventTable& table, const std::string& function, int64_t tid, int64_t time) {
  RowBatch rows(3);
  const std::span<Value> row = rows.add();
  row[0] = function;
  row[1] = tid;
  row[2] = time;
  table.add(rows);
}

std::vector<Row> rows_of(const Table& table, const query::Query& query = query_of_events()) {
  std::vector<Row> all;
  const auto given = give_events(table, query, [&all](RowBatch& rows) {
    for (size_t i = 0; i < rows.size(); ++i)
      all.emplace_back(rows.at(i).begin(), rows.at(i).end());
  });
  EXPECT_TRUE(given) << given.error().message;
  return all;
}

Row row_of(const std::string& function, int64_t tid, int64_t time) {
  return {function, tid, time + kAhead};
}

TEST(EventTable, HasEachEventInTheOrderOfTimes) {
  EventTable events = table_of_events();
  add(events, "f", 1, 30);
  add(events, "g", 2, 10);
  add(events, "f", 1, 30);  // Two that are alike are two.
  const auto read = aggregate::table_of(aggregate::to_bytes(events.take()));
  ASSERT_TRUE(read);
  EXPECT_THAT(rows_of(*read),
              ElementsAre(row_of("g", 2, 10), row_of("f", 1, 30), row_of("f", 1, 30)));
  EXPECT_THAT(rows_of(events.take()), SizeIs(0));
}

// One that comes twice is there once; those of another session are others, whatever they hold.
TEST(EventTable, MergesByEvent) {
  EventTable one = table_of_events();
  EventTable other = table_of_events();
  add(one, "f", 1, 30);
  add(other, "f", 1, 30);
  add(other, "g", 1, 20);
  Table all = one.take();
  const Table again = all;
  ASSERT_TRUE(all.merge(other.take()));
  ASSERT_TRUE(all.merge(again));
  EXPECT_THAT(rows_of(all),
              ElementsAre(row_of("g", 1, 20), row_of("f", 1, 30), row_of("f", 1, 30)));
}

TEST(EventTable, CountsWhatFindsNoRoom) {
  EventTable events = table_of_events({.bytes = 200});
  for (int i = 0; i < 10; ++i)
    add(events, "f", i, i);
  const size_t kept = rows_of(events.take()).size();
  EXPECT_EQ(kept, 3U);
  EXPECT_EQ(events.dropped(), 7U);
  add(events, "f", 1, 100);
  EXPECT_THAT(rows_of(events.take()), SizeIs(1)) << "the next table has room";
}

// A long text takes what it takes.
TEST(EventTable, CountsBytesAndNotRows) {
  EventTable events = table_of_events({.bytes = 200});
  add(events, std::string(1000, 'f'), 1, 1);
  add(events, "f", 1, 1);
  EXPECT_THAT(rows_of(events.take()), ElementsAre(row_of("f", 1, 1)));
  EXPECT_EQ(events.dropped(), 1U);
}

TEST(EventTable, LeavesOutWhatNobodyWants) {
  EventTable events = table_of_events({.rows = 2});
  for (int i = 0; i < 5; ++i)
    add(events, "f", i, i);
  EXPECT_THAT(rows_of(events.take()), SizeIs(2));
  add(events, "f", 9, 9);
  EXPECT_THAT(rows_of(events.take()), SizeIs(0));
  EXPECT_EQ(events.dropped(), 0U);
}

// Whoever has sent them: operators get what they can work with, or nothing.
TEST(EventTable, RefusesNumbersOfAnotherKind) {
  const auto is_taken = [](query::TypeKind kind, const Value& value) {
    query::Query query = query_of_events();
    query.values[1].expression.type.kind = kind;
    EventTable events = table_of_events();
    add(events, "f", 1, 1);
    const Table right = events.take();
    aggregate::Key key = right.cells().begin()->first;
    key[kEventOwnKeys + 1] = value;
    Table table(right.schema());
    table.add(key, {});
    return give_events(table, query, [](RowBatch&) {}).has_value();
  };
  for (const Value& whole : {Value(int64_t{-1}), Value(uint64_t{1})}) {
    EXPECT_TRUE(is_taken(query::TypeKind::Integer, whole));
    EXPECT_FALSE(is_taken(query::TypeKind::Float, whole));
  }
  EXPECT_TRUE(is_taken(query::TypeKind::Float, 1.5));
  EXPECT_FALSE(is_taken(query::TypeKind::Integer, 1.5));
  EXPECT_TRUE(is_taken(query::TypeKind::Integer, {}));
  EXPECT_TRUE(is_taken(query::TypeKind::Float, {}));
}

TEST(EventTable, RefusesOtherRows) {
  const query::Query query = query_of_events();
  const auto is_refused = [&query](Table table) {
    const auto given = give_events(table, query, [](RowBatch&) { FAIL(); });
    return !given && given.error().code == ErrorCode::Refused;
  };
  const Table right = [] {
    EventTable events = table_of_events();
    add(events, "f", 1, 1);
    return events.take();
  }();
  aggregate::Key key = right.cells().begin()->first;
  const std::vector<std::pair<size_t, Value>> wrong = {
      {3, int64_t{1}}, {4, std::string("one")}, {5, Stack{}}};
  for (const auto& [place, value] : wrong) {
    Table other(right.schema());
    aggregate::Key changed = key;
    changed[place] = value;
    other.add(changed, {});
    EXPECT_TRUE(is_refused(other)) << place;
  }
  aggregate::TableSchema narrow = right.schema();
  narrow.keys.pop_back();
  key.pop_back();
  Table less(narrow);
  less.add(key, {});
  EXPECT_TRUE(is_refused(less));
  Table counts({.keys = right.schema().keys, .aggregates = {{.name = "count", .spec = {}}}});
  EXPECT_TRUE(is_refused(counts));
}

}  // namespace
}  // namespace clew::answer

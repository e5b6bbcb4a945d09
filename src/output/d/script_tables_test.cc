// SPDX-License-Identifier: Apache-2.0
#include "output/d/script_tables.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "output/d/record_testing.h"
#include "output/sinks.h"

namespace clew::output::d {
namespace {

using nlohmann::json;
using query::d::Action;
using query::d::FieldKind;
using query::d::RecordField;

RecordField named(std::string text, RecordField field = {}) {
  field.text = std::move(text);
  return field;
}

// What the result stream has of it.
class Tables : public testing::Test {
 protected:
  void add_aggregation(const std::string& name, bool is_used = true) {
    query::d::Aggregation& made = script_.aggregations.emplace_back();
    made.name = name;
    made.is_used = is_used;
    keys_.push_back({.fields = {named("execname", {.kind = FieldKind::String, .size_bytes = 16})},
                     .size_bytes = 16});
  }
  void add_clause(const std::vector<RecordField>& fields, Action action = Action::Trace) {
    query::d::RecordedAction& made = records_.emplace_back().actions.emplace_back();
    made.action = action;
    made.fields = fields;
    records_.back().size_bytes = 64;
  }
  ScriptTables& tables() {
    if (!tables_) tables_.emplace(script_, records_, keys_, *sink_);
    return *tables_;
  }
  std::vector<json> lines() {
    sink_->flush();
    std::vector<json> all;
    const std::string text = bytes_.take();
    for (size_t at = 0; at < text.size(); at = text.find('\n', at) + 1)
      all.push_back(json::parse(text.substr(at, text.find('\n', at) - at)));
    return all;
  }

  query::d::Script script_;
  std::vector<query::d::KeyLayout> keys_;
  std::vector<query::d::RecordLayout> records_;
  StringSink bytes_;
  std::unique_ptr<RowSink> sink_ = make_sink({.format = Format::Stream}, bytes_, bytes_);
  std::optional<ScriptTables> tables_;
};

TEST_F(Tables, AreTheAggregationsAndTheClausesThatRecord) {
  add_aggregation("calls");
  add_aggregation("never", false);
  add_aggregation("");
  add_clause({named("execname", {.kind = FieldKind::String, .size_bytes = 16}),
              named("arg0", {.is_signed = true})});
  records_.emplace_back();  // One that only counts.
  add_clause({}, Action::Printa);
  tables();
  const std::vector<json> all = lines();
  ASSERT_EQ(all.size(), 5U);
  EXPECT_EQ(all[1].at("table"), "calls");
  EXPECT_EQ(all[1].at("mode"), "table");
  EXPECT_EQ(all[1].at("columns").at(1).at("name"), "calls");
  EXPECT_EQ(all[2].at("table"), "count");
  EXPECT_EQ(all[3].at("table"), "clause_0");
  EXPECT_EQ(all[3].at("mode"), "events");
  std::string names;
  for (const json& column : all[3].at("columns"))
    names +=
        column.at("name").get<std::string>() + ' ' + column.at("type").get<std::string>() + ',';
  EXPECT_EQ(names, "time time,cpu unsigned,probe string,execname string,arg0 integer,text string,");
  EXPECT_EQ(all[4].at("table"), "clause_2");
}

TEST_F(Tables, HaveTheTimeOfDay) {
  add_clause({named("arg0")});
  abi::MachineRecordHeader header = Firing{.cpu = 3}.header();
  header.time_ns = 7;
  tables().set_wall_offset(1'790'000'000'000'000'000);
  tables().add_record(header, {7, "syscall", "vmlinux", "read", "entry"}, {int64_t{-1}}, "-1");
  const std::vector<json> all = lines();
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[2].at("table"), "clause_0");
  const json& row = all[2].at("rows").at(0);
  EXPECT_EQ(row.at(0), "1790000000000000007");
  EXPECT_EQ(row.at(1), 3);
  EXPECT_EQ(row.at(2), "syscall:vmlinux:read:entry");
  EXPECT_EQ(row.at(3), -1);
  EXPECT_EQ(row.at(4), "-1");
}

TEST_F(Tables, RowsOfAnAggregationAreOfTheIntervalInWhichTheyWerePrinted) {
  add_aggregation("a");
  add_aggregation("b");
  tables().add_rows(1, {.columns = {}, .rows = {{"cat", int64_t{2}}, {"ls", int64_t{1}}}});
  tables().add_rows(0, {.columns = {}, .rows = {{"cat", int64_t{5}}}});
  const std::vector<json> all = lines();
  ASSERT_EQ(all.size(), 7U);
  EXPECT_EQ(all[3].at("rows"), json::parse(R"([["cat",2],["ls",1]])"));
  EXPECT_EQ(all[3].at("table"), "b");
  EXPECT_EQ(all[4].at("table"), "b");
  EXPECT_EQ(all[4].at("interval").at("number"), 1);
  EXPECT_LE(all[4].at("interval").at("begin"), all[4].at("interval").at("end"));
  EXPECT_EQ(all[5].at("table"), "a");
  EXPECT_EQ(all[6].at("interval").at("number"), 2);
}

TEST_F(Tables, WithoutANameMakeWayForThoseThatHaveIt) {
  add_aggregation("");
  add_aggregation("count");
  tables();
  const std::vector<json> all = lines();
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[1].at("table"), "count");
  EXPECT_EQ(all[2].at("table"), "count_");
}

TEST_F(Tables, OfClausesMakeWayForAggregationsOfTheirNames) {
  add_aggregation("clause_0");
  add_clause({});
  tables();
  const std::vector<json> all = lines();
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[1].at("table"), "clause_0");
  EXPECT_EQ(all[2].at("table"), "clause_0_");
}

class RecordAsRow : public RecordTest {
 protected:
  void SetUp() override {
    RecordTest::SetUp();
    options_.format = Format::Stream;
    options_.is_quiet = true;
  }
};

TEST_F(RecordAsRow, HasItsValuesAndItsText) {
  const uint32_t format = add_format("%s has %d\n");
  fire(Builder()
           .action(Action::Printf)
           .format(format)
           .string("cat")
           .integer(-3, 4)
           .action(Action::Trace, false)
           .integer(9)
           .action(Action::Trace)
           .integer(255, 1, false));
  ASSERT_EQ(host_.rows.size(), 1U);
  EXPECT_EQ(host_.rows[0], (std::vector<aggregate::Value>{
                               "cat", int64_t{-3}, {}, uint64_t{255}, "cat has -3\n255"}));
  EXPECT_EQ(host_.log, "");
}

TEST_F(RecordAsRow, IsNoneWhereOnlyAggregationsArePrinted) {
  fire(Builder().action(Action::Printa).of({0}));
  EXPECT_TRUE(host_.rows.empty());
}

TEST_F(RecordAsRow, KeepsItsTextWhereTheHostIsCalledInTheMiddle) {
  fire(Builder()
           .action(Action::Trace)
           .integer(1)
           .action(Action::System)
           .format(add_format("date"))
           .action(Action::Trace)
           .integer(2));
  EXPECT_EQ(host_.log, "<run date>");
  ASSERT_EQ(host_.rows.size(), 1U);
  EXPECT_EQ(host_.rows[0].back(), aggregate::Value("12"));
}

TEST_F(RecordAsRow, IsThereForAnEmptyClause) {
  fire(Builder());
  ASSERT_EQ(host_.rows.size(), 1U);
  EXPECT_EQ(host_.rows[0], std::vector<aggregate::Value>{""});
}

}  // namespace
}  // namespace clew::output::d

// SPDX-License-Identifier: Apache-2.0
// The result stream, as docs/output-stream.md has it. What values look like is in
// tests/golden/output.
#include <cmath>
#include <cstdint>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "output/sinks.h"

namespace clew::output {
namespace {

using aggregate::Column;
using aggregate::ColumnType;
using aggregate::Value;
using ParsedJson = nlohmann::json;

const std::vector<Column> kColumns = {
    {.name = "function", .type = ColumnType::String, .role = aggregate::ColumnRole::Key},
    {.name = "p99",
     .type = ColumnType::Unsigned,
     .unit = aggregate::Unit::Nanoseconds,
     .approximate = true,
     .role = aggregate::ColumnRole::Aggregate}};

class Stream : public testing::Test {
 protected:
  void begin(RowMode mode = RowMode::Table) { sink_->begin(kColumns, mode); }
  void row(const Value& first, const Value& second) {
    const std::vector<Value> values = {first, second};
    sink_->row(values);
  }
  // What has come since the last call, without the numbers of the lines, which are in order.
  std::vector<ParsedJson> lines() {
    std::vector<ParsedJson> all;
    std::istringstream text(bytes_.take());
    for (std::string line; std::getline(text, line);) {
      ParsedJson json = ParsedJson::parse(line);
      EXPECT_EQ(json.at("seq"), seq_++);
      json.erase("seq");
      all.push_back(std::move(json));
    }
    return all;
  }

  StringSink bytes_;
  std::unique_ptr<RowSink> sink_ = make_sink({.format = Format::Stream,
                                              .about = {.query = "select 1",
                                                        .version = "0.1",
                                                        .host = "here",
                                                        .started_ns = 1'790'000'000'000'000'001,
                                                        .targets = {{"pid", "7"}}}},
                                             bytes_, bytes_);

 private:
  uint64_t seq_ = 0;
};

TEST_F(Stream, BeginsWithTheSessionAndItsColumns) {
  begin();
  const std::vector<ParsedJson> head = lines();
  ASSERT_EQ(head.size(), 2U);
  EXPECT_EQ(head[0], ParsedJson({{"session",
                                  {{"version", 1},
                                   {"clew", "0.1"},
                                   {"query", "select 1"},
                                   {"targets", ParsedJson::array({{{"pid", "7"}}})},
                                   {"host", "here"},
                                   {"started", "1790000000000000001"}}}}));
  EXPECT_EQ(head[1]["mode"], "table");
  EXPECT_EQ(head[1]["columns"][0],
            ParsedJson({{"name", "function"}, {"type", "string"}, {"role", "key"}}));
  EXPECT_EQ(head[1]["columns"][1], ParsedJson({{"name", "p99"},
                                               {"type", "unsigned"},
                                               {"unit", "ns"},
                                               {"role", "aggregate"},
                                               {"approximate", true}}));
}

TEST_F(Stream, SaysRowsBeforeTheEndOfTheirInterval) {
  begin();
  (void)lines();
  row("f", uint64_t{1});
  row("g", uint64_t{2});
  sink_->end_interval({.number = 3, .partial = true, .begin_ns = 5, .end_ns = 6});
  const std::vector<ParsedJson> told = lines();
  ASSERT_EQ(told.size(), 2U);
  EXPECT_EQ(told[0], ParsedJson::parse(R"({"rows":[["f",1],["g",2]]})"));
  EXPECT_EQ(told[1],
            ParsedJson::parse(R"({"interval":{"number":3,"begin":"5","end":"6","partial":true}})"));
}

TEST_F(Stream, HoldsNoRowBackAtTheEndOfATurn) {
  begin(RowMode::Stream);
  EXPECT_EQ(lines()[1]["mode"], "events");
  row("f", uint64_t{1});
  EXPECT_TRUE(lines().empty());
  sink_->flush();
  EXPECT_EQ(lines().size(), 1U);
  sink_->flush();
  EXPECT_TRUE(lines().empty()) << "nothing new";
}

TEST_F(Stream, HasAtMost256RowsInALine) {
  begin(RowMode::Stream);
  (void)lines();
  for (uint64_t i = 0; i < 600; ++i)
    row("f", i);
  sink_->flush();
  const std::vector<ParsedJson> told = lines();
  ASSERT_EQ(told.size(), 3U);
  EXPECT_EQ(told[0]["rows"].size(), 256U);
  EXPECT_EQ(told[2]["rows"].size(), 88U);
  EXPECT_EQ(told[2]["rows"][87][1], 599);
}

TEST_F(Stream, RoundsNoNumber) {
  begin();
  (void)lines();
  row("", uint64_t{9007199254740991});
  row("", uint64_t{9007199254740992});
  row("", UINT64_MAX);
  row("", int64_t{-9007199254740991});
  row("", INT64_MIN);
  row("", std::numeric_limits<double>::quiet_NaN());
  row("", -std::numeric_limits<double>::infinity());
  row("", 0.5);
  row("", {});
  sink_->flush();
  std::vector<ParsedJson> numbers;
  const ParsedJson rows = lines().at(0)["rows"];
  for (const ParsedJson& one : rows)
    numbers.push_back(one[1]);
  const ParsedJson expected = ParsedJson::parse(
      R"([9007199254740991, "9007199254740992", "18446744073709551615", -9007199254740991,
          "-9223372036854775808", "nan", "-inf", 0.5, null])");
  EXPECT_EQ(ParsedJson(numbers), expected);
}

TEST_F(Stream, ReplacesNoByteOfAText) {
  begin();
  (void)lines();
  row("a\"\n\x01é", uint64_t{1});
  row("a\xff", uint64_t{1});
  sink_->flush();
  const ParsedJson rows = lines().at(0)["rows"];
  EXPECT_EQ(rows[0][0], "a\"\n\x01é");
  EXPECT_EQ(rows[1][0], ParsedJson({{"hex", "61ff"}}));
}

TEST_F(Stream, TellsLossesWhenThereAreMore) {
  begin();
  (void)lines();
  collect::Losses losses;
  sink_->losses_so_far(losses);
  EXPECT_TRUE(lines().empty()) << "none";
  losses.dropped["ring_full"] = 4;
  sink_->losses_so_far(losses);
  sink_->losses_so_far(losses);
  const std::vector<ParsedJson> told = lines();
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0],
            ParsedJson::parse(R"({"losses":{"missed":{},"dropped":{"ring_full":4},"lost":[]}})"));
}

TEST_F(Stream, EndsWithAllLosses) {
  begin();
  row("f", uint64_t{1});
  collect::Losses losses;
  losses.missed["reentry"] = 2;
  losses.sites = 3;
  sink_->finish(losses);
  ASSERT_TRUE(sink_->close(nullptr));
  const ParsedJson end = lines().back()["end"];
  EXPECT_EQ(end["error"], nullptr);
  EXPECT_EQ(end["losses"]["missed"]["reentry"], 2);
  EXPECT_EQ(end["losses"]["sites"], 3);
}

TEST_F(Stream, SaysWhyThereIsNoAnswer) {
  const Error error{ErrorCode::NotFound, "query:1:3: error: no function 'x'\n  x\n  ^"};
  ASSERT_TRUE(sink_->close(&error));
  const std::vector<ParsedJson> told = lines();
  ASSERT_EQ(told.size(), 2U);
  EXPECT_TRUE(told[0].contains("session"));
  EXPECT_EQ(told[1]["end"]["error"]["message"], error.message);
  EXPECT_EQ(told[1]["end"]["losses"], nullptr);
}

TEST_F(Stream, OfSeveralTablesNamesThem) {
  const std::vector<TableShape> tables = {{.name = "calls", .columns = kColumns},
                                          {.name = "clause_0",
                                           .columns = {{.name = "n", .type = ColumnType::Unsigned}},
                                           .mode = RowMode::Stream}};
  sink_->begin_tables(tables);
  sink_->choose(1);
  const std::vector<Value> one = {uint64_t{1}};
  sink_->row(one);
  sink_->row(one);
  sink_->choose(0);
  row("f", uint64_t{2});
  sink_->end_interval({.number = 1, .begin_ns = 4, .end_ns = 5});
  sink_->choose(1);
  sink_->row(one);
  sink_->flush();
  const std::vector<ParsedJson> all = lines();
  ASSERT_EQ(all.size(), 7U);
  EXPECT_EQ(all[1].at("table"), "calls");
  EXPECT_EQ(all[2].at("table"), "clause_0");
  EXPECT_EQ(all[2].at("mode"), "events");
  EXPECT_EQ(all[3], ParsedJson::parse(R"({"rows":[[1],[1]],"table":"clause_0"})"));
  EXPECT_EQ(all[4], ParsedJson::parse(R"({"rows":[["f",2]],"table":"calls"})"));
  EXPECT_EQ(all[5],
            ParsedJson::parse(R"({"interval":{"number":1,"begin":"4","end":"5","partial":false},)"
                              R"("table":"calls"})"));
  EXPECT_EQ(all[6], ParsedJson::parse(R"({"rows":[[1]],"table":"clause_0"})"));
}

}  // namespace
}  // namespace clew::output

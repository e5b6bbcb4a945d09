// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include "output/sinks.h"

namespace clew::output {
namespace {

namespace fs = std::filesystem;
using aggregate::Column;
using aggregate::ColumnType;
using aggregate::Value;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Lines = std::vector<std::string>;

const FormatRow& row_of_sqlite() {
  return formats()[static_cast<size_t>(Format::Sqlite)];
}

// What another program reads of the file: a line a row, with the types of the values.
class Reader {
 public:
  explicit Reader(const std::string& file) {
    EXPECT_EQ(sqlite3_open_v2(file.c_str(), &database_, SQLITE_OPEN_READONLY, nullptr), SQLITE_OK);
  }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;
  ~Reader() { sqlite3_close(database_); }

  Lines ask(const std::string& sql) {
    sqlite3_stmt* statement = nullptr;
    EXPECT_EQ(sqlite3_prepare_v2(database_, sql.c_str(), -1, &statement, nullptr), SQLITE_OK)
        << sqlite3_errmsg(database_);
    Lines lines;
    while (sqlite3_step(statement) == SQLITE_ROW) {
      std::string line;
      for (int i = 0; i < sqlite3_column_count(statement); ++i) {
        const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement, i));
        line += (i == 0 ? "" : "|") + std::string(text == nullptr ? "NULL" : text);
      }
      lines.push_back(line);
    }
    EXPECT_EQ(sqlite3_finalize(statement), SQLITE_OK);
    return lines;
  }

 private:
  sqlite3* database_ = nullptr;
};

class Sqlite : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "clew-sqlite-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override {
    sink_.reset();
    fs::remove_all(folder_);
  }

  [[nodiscard]] std::string file() const { return (folder_ / "answer.sqlite").string(); }
  Lines ask(const std::string& sql) { return Reader(file()).ask(sql); }

  void begin(const std::vector<Column>& columns, RowMode mode = RowMode::Table) {
    auto sink = row_of_sqlite().open(
        {.format = Format::Sqlite, .about = {.query = "select 1", .version = "0.1"}}, file());
    ASSERT_TRUE(sink) << sink.error().message;
    sink_ = std::move(*sink);
    sink_->begin(columns, mode);
  }
  void row(const std::vector<Value>& values) { sink_->row(values); }
  void end(const collect::Losses& losses = {}) {
    sink_->finish(losses);
    const Expected<void> closed = sink_->close(nullptr);
    EXPECT_TRUE(closed) << closed.error().message;
  }

  std::unique_ptr<RowSink> sink_;

 private:
  fs::path folder_;
};

const std::vector<Column> kNumber = {{.name = "n", .type = ColumnType::Unsigned}};

TEST_F(Sqlite, KeepsTypesAndEveryDigit) {
  begin({{.name = "i", .type = ColumnType::Integer},
         {.name = "u", .type = ColumnType::Unsigned},
         {.name = "f", .type = ColumnType::Float},
         {.name = "s", .type = ColumnType::String},
         {.name = "b", .type = ColumnType::Boolean},
         {.name = "a", .type = ColumnType::Address},
         {.name = "e", .type = ColumnType::Enum}});
  row({INT64_MIN, UINT64_MAX, 0.5, "x", uint64_t{1}, uint64_t{0x1000}, "Red"});
  row({int64_t{-1}, uint64_t{INT64_MAX}, {}, "007", {}, UINT64_MAX, int64_t{7}});
  end();
  EXPECT_THAT(ask("SELECT i, u, f, s, b, a, e FROM rows"),
              ElementsAre("-9223372036854775808|0xffffffffffffffff|0.5|x|1|0x1000|Red",
                          "-1|9223372036854775807|NULL|007|NULL|0xffffffffffffffff|7"));
  EXPECT_THAT(ask("SELECT typeof(i), typeof(u), typeof(f), typeof(s), typeof(e) FROM rows"),
              ElementsAre("integer|text|real|text|text", "integer|integer|null|text|integer"));
  EXPECT_THAT(ask("SELECT type FROM pragma_table_info('rows')"),
              ElementsAre("INTEGER", "INTEGER", "INTEGER", "REAL", "TEXT", "INTEGER", "TEXT", ""));
}

TEST_F(Sqlite, KeepsTextThatIsNoneByteForByte) {
  begin({{.name = "s", .type = ColumnType::String}});
  row({std::string("a\xff")});
  row({std::string("a\0b", 3)});
  row({std::string("it's \"é\"; DROP TABLE rows")});
  end();
  EXPECT_THAT(ask("SELECT typeof(s), hex(s) FROM rows WHERE typeof(s) = 'blob'"),
              ElementsAre("blob|61FF", "blob|610062"));
  EXPECT_THAT(ask("SELECT s FROM rows WHERE typeof(s) = 'text'"),
              ElementsAre("it's \"é\"; DROP TABLE rows"));
}

TEST_F(Sqlite, WritesStacksAsTextAndHistogramsAsJson) {
  begin({{.name = "stack", .type = ColumnType::Stack},
         {.name = "sizes", .type = ColumnType::Histogram},
         {.name = "top", .type = ColumnType::TopList}});
  row({aggregate::Stack{{{.symbol = "read", .offset = 1, .module = "libc"}, {.symbol = "main"}}},
       aggregate::Histogram{.buckets = {{.low = 8, .count = 3}, {.low = 16}}},
       aggregate::TopList{{{.value = int64_t{5}, .count = 2}}}});
  end();
  EXPECT_THAT(ask("SELECT stack FROM rows"), ElementsAre("libc!read+0x1\nmain"));
  EXPECT_THAT(ask("SELECT sizes, top FROM rows"),
              ElementsAre(R"([{"value":8,"count":3}]|[{"value":5,"count":2}])"));
}

TEST_F(Sqlite, GivesColumnsNamesOfTheirOwn) {
  begin({{.name = "n"}, {.name = "N"}, {.name = "interval"}, {.name = "rowid"}, {.name = "a\"b"}});
  row({int64_t{1}, int64_t{2}, int64_t{3}, int64_t{4}, int64_t{5}});
  end();
  EXPECT_THAT(ask("SELECT n, N_2, interval_2, rowid_2, \"a\"\"b\" FROM rows"),
              ElementsAre("1|2|3|4|5"));
  EXPECT_THAT(ask("SELECT name, type, role FROM columns WHERE number = 2"),
              ElementsAre("N_2|integer|plain"));
}

TEST_F(Sqlite, GivesRowsTheirIntervalAndShowsWholeOnes) {
  begin(kNumber);
  row({uint64_t{1}});
  row({uint64_t{2}});
  EXPECT_THAT(ask("SELECT count(*) FROM rows"), ElementsAre("0"));
  sink_->end_interval({.number = 1, .begin_ns = 10, .end_ns = 20});
  EXPECT_THAT(ask("SELECT count(*) FROM rows"), ElementsAre("2"));
  sink_->end_interval({.number = 2, .begin_ns = 20, .end_ns = 30});
  row({uint64_t{3}});
  sink_->end_interval({.number = 3, .partial = true, .begin_ns = 30, .end_ns = 35});
  end();
  EXPECT_THAT(ask("SELECT interval, n FROM rows"), ElementsAre("1|1", "1|2", "3|3"));
  EXPECT_THAT(ask("SELECT * FROM intervals"),
              ElementsAre("1|10|20|0|rows", "2|20|30|0|rows", "3|30|35|1|rows"));
}

TEST_F(Sqlite, ShowsEventsAThousandAtATime) {
  begin(kNumber, RowMode::Stream);
  for (uint64_t i = 0; i < 2500; ++i)
    row({i});
  EXPECT_THAT(ask("SELECT count(*) FROM rows"), ElementsAre("2000"));
  EXPECT_THAT(ask("SELECT value FROM meta WHERE name = 'state'"), ElementsAre("running"));
  end();
  EXPECT_THAT(ask("SELECT count(*), sum(n) FROM rows"), ElementsAre("2500|3123750"));
  EXPECT_THAT(ask("SELECT value FROM meta WHERE name = 'state'"), ElementsAre("answered"));
  EXPECT_THAT(ask("PRAGMA integrity_check"), ElementsAre("ok"));
}

TEST_F(Sqlite, KeepsTheLossesAndTheQuery) {
  begin(kNumber);
  collect::Losses losses;
  losses.dropped["ring_full"] = 4;
  losses.lost.emplace_back("process 7 is gone");
  losses.refused.push_back({"f", "entry", "cold-part"});
  losses.sites = 3;
  end(losses);
  EXPECT_THAT(ask("SELECT kind, what, count FROM losses"),
              ElementsAre("dropped|ring_full|4", "lost||1", "refused|f|1"));
  EXPECT_THAT(ask("SELECT why FROM losses WHERE kind = 'refused'"),
              ElementsAre("entry: cold-part"));
  EXPECT_THAT(ask("SELECT value FROM meta WHERE name IN ('query', 'sites') ORDER BY name"),
              ElementsAre("select 1", "3"));
}

TEST_F(Sqlite, SaysThatTheSessionFailed) {
  begin(kNumber);
  row({uint64_t{1}});
  const Error error{ErrorCode::Io, "the disk is gone"};
  ASSERT_TRUE(sink_->close(&error));
  EXPECT_THAT(ask("SELECT value FROM meta WHERE name IN ('error', 'state') ORDER BY name"),
              ElementsAre("the disk is gone", "failed"));
  EXPECT_THAT(ask("SELECT n FROM rows"), ElementsAre("1"));
}

TEST_F(Sqlite, OverwritesWhatClewWroteAndOnlyWhenItBegins) {
  begin(kNumber);
  row({uint64_t{1}});
  end();
  auto second = row_of_sqlite().open({.format = Format::Sqlite}, file());
  ASSERT_TRUE(second) << second.error().message;
  ASSERT_TRUE((*second)->close(nullptr));
  EXPECT_THAT(ask("SELECT n FROM rows"), ElementsAre("1"));
  begin({{.name = "other", .type = ColumnType::String}});
  end();
  EXPECT_THAT(ask("SELECT other FROM rows"), ElementsAre());
}

TEST_F(Sqlite, RefusesTheFileOfSomebodyElse) {
  sqlite3* theirs = nullptr;
  ASSERT_EQ(sqlite3_open(file().c_str(), &theirs), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(theirs, "CREATE TABLE mine (x)", nullptr, nullptr, nullptr), SQLITE_OK);
  ASSERT_EQ(sqlite3_close(theirs), SQLITE_OK);
  const auto database = row_of_sqlite().open({}, file());
  ASSERT_FALSE(database);
  EXPECT_THAT(database.error().message, HasSubstr("no database that clew wrote"));
  EXPECT_THAT(ask("SELECT name FROM sqlite_master"), ElementsAre("mine"));

  std::ofstream(file(), std::ios::trunc) << "a letter";
  EXPECT_FALSE(row_of_sqlite().open({}, file()));
  EXPECT_EQ(fs::file_size(file()), 8U);
  EXPECT_FALSE(row_of_sqlite().open({}, "/dev/null"));
  EXPECT_FALSE(row_of_sqlite().open({}, file() + "/no/folder.sqlite"));
}

TEST_F(Sqlite, IsNotHinderedByAReaderThatStays) {
  begin(kNumber);
  sink_->end_interval({.number = 1});
  sqlite3* other = nullptr;
  ASSERT_EQ(sqlite3_open(file().c_str(), &other), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(other, "BEGIN; SELECT * FROM meta", nullptr, nullptr, nullptr), SQLITE_OK);
  row({uint64_t{2}});
  sink_->end_interval({.number = 2});
  row({uint64_t{3}});
  sink_->end_interval({.number = 3});
  ASSERT_EQ(sqlite3_exec(other, "COMMIT", nullptr, nullptr, nullptr), SQLITE_OK);
  ASSERT_EQ(sqlite3_close(other), SQLITE_OK);
  end();
  EXPECT_THAT(ask("SELECT interval, n FROM rows"), ElementsAre("2|2", "3|3"));
  EXPECT_THAT(ask("SELECT * FROM intervals WHERE number = 1"), ElementsAre("1|NULL|NULL|0|rows"));
}

TEST_F(Sqlite, OfSeveralTablesHasThemByTheirNames) {
  auto sink = row_of_sqlite().open({.format = Format::Sqlite}, file());
  ASSERT_TRUE(sink) << sink.error().message;
  sink_ = std::move(*sink);
  const std::vector<TableShape> tables = {
      {.name = "calls", .columns = kNumber},
      {.name = "Calls", .columns = kNumber},
      {.name = "meta", .columns = kNumber, .mode = RowMode::Stream}};
  sink_->begin_tables(tables);
  row({uint64_t{1}});
  sink_->end_interval({.number = 1, .begin_ns = 4, .end_ns = 5});
  sink_->choose(2);
  row({uint64_t{7}});
  sink_->choose(1);
  row({uint64_t{2}});
  sink_->end_interval({.number = 2});
  sink_->choose(0);
  row({uint64_t{3}});
  sink_->end_interval({.number = 3});
  end();
  EXPECT_THAT(ask("SELECT interval, n FROM calls"), ElementsAre("1|1", "3|3"));
  EXPECT_THAT(ask("SELECT interval, n FROM Calls_2"), ElementsAre("2|2"));
  EXPECT_THAT(ask("SELECT interval, n FROM meta_2"), ElementsAre("NULL|7"));
  EXPECT_THAT(ask("SELECT number, table_name, begin_ns, end_ns FROM intervals"),
              ElementsAre("1|calls|4|5", "2|Calls_2|NULL|NULL", "3|calls|NULL|NULL"));
  EXPECT_THAT(ask("SELECT table_name, number, name FROM columns"),
              ElementsAre("calls|1|n", "Calls_2|1|n", "meta_2|1|n"));
}

}  // namespace
}  // namespace clew::output

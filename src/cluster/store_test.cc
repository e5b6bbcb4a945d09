// SPDX-License-Identifier: Apache-2.0
// What of a root's store is there, and what is not, where its file cannot be written for a while.
#include "cluster/store.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include "cluster/world_testing.h"
#include "collect/crc32c.h"

namespace clew::cluster {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Another one that writes to the file.
class OtherWriter {
 public:
  explicit OtherWriter(const TestFolder& folder) {
    EXPECT_EQ(sqlite3_open((folder.path() + "/clew-root.sqlite").c_str(), &database_), SQLITE_OK);
  }
  OtherWriter(const OtherWriter&) = delete;
  OtherWriter& operator=(const OtherWriter&) = delete;
  ~OtherWriter() { (void)sqlite3_close(database_); }
  void run(const std::string& sql) {
    EXPECT_EQ(sqlite3_exec(database_, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK)
        << sqlite3_errmsg(database_);
  }

 private:
  sqlite3* database_ = nullptr;
};

// SQLite hands out each connection that is opened.
sqlite3* opened_last = nullptr;
int note_opened(sqlite3* database, const char** /*problem*/, const sqlite3_api_routines* /*all*/) {
  opened_last = database;
  return SQLITE_OK;
}

class StoreThatFails : public testing::Test {
 protected:
  StoreThatFails() {
    const auto note = reinterpret_cast<void (*)()>(note_opened);
    (void)sqlite3_auto_extension(note);
    store_ = Store::open(folder_.path()).value();
    (void)sqlite3_cancel_auto_extension(note);
    other_ = std::make_unique<OtherWriter>(folder_);
    for (Pane pane = 1; pane <= 3; ++pane)
      put(pane);
    EXPECT_TRUE(store_->commit());
  }
  void put(Pane pane) {
    store_->put(StoredQuery{.want = {.query = "q1", .text = kFakeText}, .given = pane});
    store_->put("q1", StoredPane{.pane = pane, .table = {}});
    put_mark(pane);
  }
  void put_mark(Pane mark) {
    store_->put("q1", StoredMember{.node = "n1", .incarnation = {}, .mark = mark, .losses = {}});
  }
  // By a root that begins anew: with which mark, and up to where panes are forgotten.
  std::vector<Pane> panes_there(Pane mark, std::optional<Pane> forgotten) {
    const auto reader = Store::open_to_read(folder_.path()).value();
    const StoredAnswer head = reader->read_head("q1").value();
    EXPECT_EQ(head.members.at(0).mark, mark);
    EXPECT_EQ(head.forgotten, forgotten);
    std::vector<Pane> panes;
    const auto all = reader->read_panes("q1", kAllPanes, size_t{1} << 20).value();
    for (const StoredPane& one : all)
      panes.push_back(one.pane);
    return panes;
  }
  // Nothing of a write is there before all of it is.
  void expect_to_write_on() {
    put(4);
    EXPECT_THAT(panes_there(3, std::nullopt), ElementsAre(1, 2, 3));
    ASSERT_TRUE(store_->commit());
    EXPECT_THAT(panes_there(4, std::nullopt), ElementsAre(1, 2, 3, 4));
    EXPECT_EQ(store_->forget("q1", 3, 10).value(), 2U);
    ASSERT_TRUE(store_->commit());
    EXPECT_THAT(panes_there(4, 2), ElementsAre(3, 4));
  }

  TestFolder folder_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<OtherWriter> other_;
};

// A version before has written it, or one that is not known.
TEST_F(StoreThatFails, ReadsRowsOfAVersionBefore) {
  const auto put_version = [this](uint16_t version) {
    constexpr size_t kVersionAt = 8;
    Bytes want = to_bytes(Control{.query = "q1", .text = kFakeText});
    want[kVersionAt] = static_cast<std::byte>(version);
    const uint32_t crc = collect::crc32c(std::span(want).subspan(kVersionAt));
    std::memcpy(&want[kVersionAt - sizeof crc], &crc, sizeof crc);
    std::string hex;
    for (const std::byte each : want)
      hex += fmt::format("{:02x}", std::to_integer<unsigned>(each));
    other_->run("update query set want = x'" + hex + "' where id = 'q1'");
  };
  put_version(kKeptVersion);
  const auto head = store_->read_head("q1");
  ASSERT_TRUE(head) << head.error().message;
  EXPECT_EQ(head->query.want.text, kFakeText);
  EXPECT_TRUE(store_->spans()->at(0).is_readable);
  put_version(kKeptVersion - 1);
  EXPECT_EQ(store_->read_head("q1").error().code, ErrorCode::Refused);
  const StoredSpan span = store_->spans()->at(0);
  EXPECT_FALSE(span.is_readable);
  EXPECT_EQ(span.want.query, "q1");
  EXPECT_EQ(store_->forget("q1", 3, 10).value(), 2U);
  ASSERT_TRUE(store_->commit());
}

TEST_F(StoreThatFails, ForgetsNothingByHalves) {
  other_->run(
      "create trigger fails before insert on forgotten begin"
      " select raise(abort, 'disk I/O error'); end");
  const auto forgotten = store_->forget("q1", 3, 10);
  ASSERT_FALSE(forgotten);
  EXPECT_THAT(forgotten.error().message, HasSubstr("disk I/O error"));
  other_->run("drop trigger fails");
  expect_to_write_on();
}

// As SQLite does where a disk is full.
TEST_F(StoreThatFails, WritesOnWhereTheDatabaseHasRolledBack) {
  other_->run(
      "create trigger fails before insert on forgotten begin"
      " select raise(rollback, 'database or disk is full'); end");
  EXPECT_FALSE(store_->forget("q1", 3, 10));
  other_->run("drop trigger fails");
  expect_to_write_on();
}

TEST_F(StoreThatFails, WritesOnWhereNothingCouldBegin) {
  (void)sqlite3_busy_timeout(opened_last, 0);
  other_->run("begin immediate");
  EXPECT_FALSE(store_->forget("q1", 3, 10));
  put(4);
  EXPECT_FALSE(store_->commit()) << "nodes would forget what is not there";
  other_->run("rollback");
  expect_to_write_on();
}

TEST_F(StoreThatFails, WritesOnWhereTheFileMayNotGrow) {
  (void)sqlite3_exec(opened_last, "pragma max_page_count=1", nullptr, nullptr, nullptr);
  store_->put("q1", StoredPane{.pane = 4, .table = Bytes(size_t{1} << 20)});
  put_mark(4);
  const auto full = store_->commit();
  ASSERT_FALSE(full);
  EXPECT_THAT(full.error().message, HasSubstr("full"));
  (void)sqlite3_exec(opened_last, "pragma max_page_count=100000", nullptr, nullptr, nullptr);
  expect_to_write_on();
}

}  // namespace
}  // namespace clew::cluster

// SPDX-License-Identifier: Apache-2.0
// Members that do not belong together: other versions of clew, two of one name, a store of another
// version, an asker that asks for too much. Each is told, and what the others count stays right.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include "cluster/bus_local.h"
#include "cluster/names.h"
#include "cluster/roles.h"
#include "cluster/store.h"
#include "cluster/subjects.h"
#include "cluster/world_testing.h"
#include "collect/crc32c.h"

namespace clew::cluster {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr int64_t kTurnTakes = kSecond / 20;

// As another version of clew would write it, whatever that has in it.
Bytes of_version(Bytes message, uint16_t version) {
  constexpr size_t kVersionAt = 8;
  std::memcpy(&message[kVersionAt], &version, sizeof version);
  const uint32_t crc = collect::crc32c(std::span(message).subspan(kVersionAt));
  std::memcpy(&message[kVersionAt - sizeof crc], &crc, sizeof crc);
  return message;
}

class Strangers : public testing::Test {
 protected:
  // So long all turn.
  void pass(int64_t ns) {
    for (const int64_t end = clock_.now + ns; clock_.now < end;) {
      clock_.now += kTurnTakes;
      if (root_) root_->root.turn();
      for (const auto& node : nodes_)
        node->node.turn();
      if (asker_) asker_->asker.turn();
      if (asker_) asker_->take();
      keep(root_notes_, root_ ? root_->root.take_notes() : std::vector<std::string>());
    }
  }
  void add_root(const std::string& name) {
    root_ = std::make_unique<TestRoot>(hub_.connect(), name, clock_);
    ASSERT_TRUE(root_->root.begin());
  }
  TestNode& add_node(const std::string& name, uint64_t incarnation = 1, Labels labels = {}) {
    nodes_.push_back(std::make_unique<TestNode>(hub_.connect(), name, clock_, truth_,
                                                std::move(labels), incarnation));
    EXPECT_TRUE(nodes_.back()->node.begin());
    return *nodes_.back();
  }
  void ask(Labels labels = {}) {
    asker_ = std::make_unique<TestAsker>(hub_.connect(), clock_,
                                         Ask{.query = "q1",
                                             .asker = "me",
                                             .text = kFakeText,
                                             .labels = std::move(labels),
                                             .width_ns = kSecond});
    ASSERT_TRUE(asker_->asker.begin());
  }
  static void keep(std::vector<std::string>& kept, std::vector<std::string> more) {
    kept.insert(kept.end(), more.begin(), more.end());
  }

  TestClock clock_;
  Truth truth_;
  LocalHub hub_;
  std::unique_ptr<TestRoot> root_;
  std::vector<std::unique_ptr<TestNode>> nodes_;
  std::unique_ptr<TestAsker> asker_;
  std::vector<std::string> root_notes_;
};

TEST_F(Strangers, OfOtherVersionsAreToldByAll) {
  add_root("r1");
  TestNode& node = add_node("a");
  const Subjects subjects("default");
  const auto other = hub_.connect();
  for (const uint16_t version : {uint16_t{1}, uint16_t{kMessageVersion + 1}}) {
    const std::string why = fmt::format("the message has version {}; this version of clew reads {}",
                                        version, kMessageVersion);
    // A node, an asker and a reader of that version; each hears of the root's.
    ASSERT_TRUE(
        other->publish(subjects.beat("old"), of_version(to_bytes(Beat{.node = "old"}), version)));
    ASSERT_TRUE(other->subscribe(subjects.status(kOfStrangers)));
    ASSERT_TRUE(other->subscribe(subjects.found(kOfStrangers)));
    ASSERT_TRUE(other->publish(subjects.ask(), of_version(to_bytes(Ask{.query = "q"}), version)));
    ASSERT_TRUE(
        other->publish(subjects.read(), of_version(to_bytes(Read{.reader = "r"}), version)));
    pass(kSecond);
    EXPECT_THAT(root_notes_, Contains(HasSubstr("node old is not understood: " + why)).Times(1));
    EXPECT_THAT(root_notes_, Contains(HasSubstr("who asks is not understood: " + why)).Times(1));
    std::vector<std::string> heard;
    while (const auto message = other->next())
      heard.push_back(message->subject);
    EXPECT_THAT(heard, ElementsAre(subjects.status("_others"), subjects.found("_others")));
    // A root of that version.
    ASSERT_TRUE(other->publish(subjects.control("a"), of_version(to_bytes(Control{}), version)));
    pass(kSecond);
    EXPECT_THAT(node.node.take_notes(), Contains(HasSubstr(why)).Times(1));
  }
  ask();
  pass(4 * kSecond);
  EXPECT_EQ(asker_->asker.status()->armed, 1U);
  EXPECT_GE(asker_->rows.size(), 2U);
}

// Who asks hears from its root's first words that it will not be understood.
TEST_F(Strangers, ThatAreRootsAreToldByWhoAsks) {
  ask();
  const auto root = hub_.connect();
  ASSERT_TRUE(root->publish(Subjects("default").status(kOfStrangers),
                            of_version(to_bytes(Status{.query = "_others"}), kMessageVersion + 1)));
  pass(kSecond);
  EXPECT_THAT(asker_->asker.stranger(), HasSubstr("this version of clew reads"));
  // One of ours that speaks to others is none.
  ask();
  ASSERT_TRUE(root->publish(Subjects("default").status(kOfStrangers),
                            to_bytes(Status{.query = "_others"})));
  pass(kSecond);
  EXPECT_EQ(asker_->asker.stranger(), "");
}

TEST_F(Strangers, ThatLeadAreStoodBy) {
  const auto other = hub_.connect();
  const auto put = [&](const Bytes& leader) {
    const auto known = other->get(bucket_of("default"), kRootKey);
    const uint64_t revision = known && *known ? (*known)->revision : 0;
    ASSERT_TRUE(other->put(bucket_of("default"), kRootKey, leader, revision));
  };
  put(of_version(to_bytes(Leader{.root = "r9"}), 1));
  add_root("r1");
  pass(2 * kSecond);
  EXPECT_FALSE(root_->root.leads());
  EXPECT_THAT(root_notes_, ElementsAre(HasSubstr("a root of another version of clew leads")));
  EXPECT_THAT(root_->root.problem(), HasSubstr("all roots need the same version"));
  put(to_bytes(Leader{.root = "r2"}));
  pass(2 * kSecond);
  EXPECT_EQ(root_notes_.back(), "root r2 leads, and this one stands by");
  // It is not renewed.
  pass(8 * kSecond);
  EXPECT_TRUE(root_->root.leads());
  EXPECT_EQ(root_->root.problem(), "");
}

// Two machines of one name, say by one image: the one that came later ends.
TEST_F(Strangers, OfOneNameAreToldApart) {
  add_root("r1");
  TestNode& first = add_node("n1", 10);
  pass(2 * kSecond);
  TestNode& second = add_node("n1", 20);
  pass(2 * kSecond);
  EXPECT_FALSE(second.node.problem()) << "it may be what comes late for the one before";
  pass(3 * kSecond);
  EXPECT_FALSE(first.node.problem());
  ASSERT_TRUE(second.node.problem());
  EXPECT_EQ(second.node.problem()->message,
            "another node is called n1, and has been there longer: each needs a --name of its own");
  EXPECT_THAT(first.node.take_notes(),
              Contains(HasSubstr("another node is called so: n1")).Times(1));
  EXPECT_THAT(root_notes_,
              Contains("two nodes are called n1: one has to have another --name").Times(1));
  EXPECT_THAT(root_notes_, Contains("node n1 is there").Times(2));
}

// A node that was begun anew is no second one.
TEST_F(Strangers, AreNotThoseThatComeAgain) {
  add_root("r1");
  for (uint64_t life = 1; life <= 3; ++life) {
    nodes_.clear();
    TestNode& node = add_node("n1", life);
    pass(5 * kSecond);
    EXPECT_FALSE(node.node.problem());
  }
  EXPECT_THAT(root_notes_, Not(Contains(HasSubstr("two nodes"))));
}

// What a root has told a node is safe is named where another root lacks it; but nobody can have
// what is in no calendar, and the next life of that node would lack all of it, too.
TEST_F(Strangers, FromTheFutureMakeNoGaps) {
  add_root("r1");
  add_node("a");
  ask();
  pass(3 * kSecond);
  const auto end = hub_.connect();
  const auto want =
      read_as<Control>(end->get(bucket_of("default"), want_key("q1")).value().value().bytes);
  Beat beat{.node = "odd", .log = end->ends(partials_log("default")).value().log};
  beat.queries = {{.query = "q1",
                   .revision = want.value().revision,
                   .state = NodeState::Armed,
                   .safe = std::numeric_limits<Pane>::max()}};
  const auto say = [&](Pane safe) {
    beat.queries[0].safe = safe;
    ASSERT_TRUE(end->publish(Subjects("default").beat("odd"), to_bytes(beat)));
    pass(kSecond);
  };
  say(std::numeric_limits<Pane>::max());
  EXPECT_THAT(asker_->asker.status()->gaps, IsEmpty());
  ASSERT_EQ(asker_->asker.status()->refusals.size(), 1U);
  EXPECT_EQ(asker_->asker.status()->refusals[0].reason, "its clock is days off");
  const Pane now = clock_.realtime_ns() / kSecond;
  say(now);
  ASSERT_EQ(asker_->asker.status()->gaps.size(), 1U);
  EXPECT_EQ(asker_->asker.status()->gaps[0].panes.last, now);
}

TEST_F(Strangers, ToAllLabelsHearWhichThereAre) {
  add_root("r1");
  add_node("a", 1, {{"zone", "a"}, {"rack", "7"}});
  add_node("b", 1, {{"zone", "b"}});
  pass(2 * kSecond);
  ask({{"zone", "c"}});
  pass(2 * kSecond);
  ASSERT_TRUE(asker_->asker.status());
  EXPECT_EQ(asker_->asker.status()->meant, 0U);
  EXPECT_THAT(asker_->asker.status()->labels, ElementsAre("rack=7", "zone=a", "zone=b"));
}

// A bus that a root is not permitted, or that is full: told once, and over when it is.
TEST_F(Strangers, ToABusAreToldWhatItLacks) {
  add_root("r1");
  add_node("a");
  pass(2 * kSecond);
  hub_.set_reachable(false);
  pass(3 * kSecond);
  EXPECT_THAT(root_notes_,
              Contains(HasSubstr("this root cannot do its work at present: ")).Times(1));
  EXPECT_THAT(nodes_[0]->node.take_notes(),
              ElementsAre("the bus is not reached: what is counted is kept, and sent later"));
  hub_.set_reachable(true);
  pass(3 * kSecond);
  EXPECT_EQ(root_->root.problem(), "");
  EXPECT_THAT(nodes_[0]->node.take_notes(), ElementsAre("the bus is reached again"));
}

// --- stores --------------------------------------------------------------------------------------

std::string error_of_store(const std::string& folder) {
  const auto store = Store::open(folder);
  return store ? std::string() : store.error().message;
}

TEST_F(Strangers, ThatAreStoresStayAsTheyAre) {
  const TestFolder folder;
  const std::string path = folder.path() + "/store";
  ASSERT_EQ(error_of_store(path), "");
  for (const int version : {1, 99}) {
    sqlite3* database = nullptr;
    ASSERT_EQ(sqlite3_open((path + "/clew-root.sqlite").c_str(), &database), SQLITE_OK);
    const std::string sql = fmt::format("pragma user_version={}", version);
    ASSERT_EQ(sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK);
    (void)sqlite3_close(database);
    const std::string why = fmt::format(
        "clew-root.sqlite is a store of version {}; this version of clew reads ", version);
    EXPECT_THAT(error_of_store(path), HasSubstr(why));
    const auto read = Store::open_to_read(path);
    ASSERT_FALSE(read);
    EXPECT_THAT(read.error().message, HasSubstr(why));
  }
}

// A slip of the path makes no store among other things.
TEST_F(Strangers, AmongOtherFilesNoStoreBegins) {
  const TestFolder folder;
  EXPECT_EQ(error_of_store(folder.path() + "/new"), "");
  EXPECT_EQ(error_of_store(folder.path() + "/new"), "") << "once more";
  EXPECT_THAT(error_of_store(folder.path()), HasSubstr("has no store of a root, but other files"));
  EXPECT_FALSE(fs::exists(folder.path() + "/lock"));
  EXPECT_THAT(error_of_store(folder.path() + "/no/such"), HasSubstr("cannot make"));
  EXPECT_THAT(error_of_store(""), HasSubstr("--store needs a folder"));
}

}  // namespace
}  // namespace clew::cluster

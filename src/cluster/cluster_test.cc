// SPDX-License-Identifier: Apache-2.0
// Nodes, a root and an asker on a bus inside one process. What the asker gets is compared with what
// the nodes' sessions have counted.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include "cluster/bus_local.h"
#include "cluster/cluster_testing.h"
#include "cluster/names.h"
#include "cluster/store_answers.h"
#include "cluster/world_testing.h"
#include "collect/crc32c.h"

namespace clew::cluster {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

TEST_F(Cluster, GivesEachPaneOfAllNodesOnce) {
  add_root("r1");
  for (const char* name : {"a", "b", "c"})
    add_node(name);
  ask();
  run(10 * kSecond);
  EXPECT_EQ(status().phase, Phase::Running);
  EXPECT_EQ(status().armed, 3);
  EXPECT_GE(asker_->rows.size(), 3 * 9U) << "while it runs";
  ASSERT_TRUE(finish());
  EXPECT_EQ(status().phase, Phase::Done);
  EXPECT_EQ(asker_->rows, truth_);
  EXPECT_GE(truth_.size(), 30U);
}

TEST_F(Cluster, GivesTheSumOfAllPanesAtTheEnd) {
  add_root("r1");
  add_node("a");
  add_node("b");
  ask(Gives::AtEnd);
  run(7 * kSecond);
  EXPECT_THAT(asker_->rows, IsEmpty());
  ASSERT_TRUE(finish());
  EXPECT_EQ(asker_->rows, sums());
}

TEST_F(Cluster, AsksNodesThatHaveTheLabels) {
  add_root("r1");
  add_node("a", {{"zone", "x"}, {"rack", "1"}});
  add_node("b", {{"zone", "y"}});
  add_node("c");
  ask(Gives::Panes, {{"zone", "x"}});
  run(3 * kSecond);
  ASSERT_TRUE(finish());
  EXPECT_EQ(asker_->rows, truth_);
  for (const auto& [where, count] : truth_)
    EXPECT_EQ(where.second, "a");
  EXPECT_FALSE(truth_.empty());
}

TEST_F(Cluster, TellsWhyANodeRefuses) {
  add_root("r1");
  add_node("a");
  add_node("b");
  nodes_["b"]->sessions.refusal = "no function 'f' in a";
  ask();
  run(2 * kSecond);
  EXPECT_THAT(status().refusals,
              ElementsAre(Refusal{.reason = "no function 'f' in a", .node = "b", .nodes = 1}));
  ASSERT_TRUE(finish());
  EXPECT_EQ(asker_->rows, truth_);
}

// What it traces has begun by then, or other sessions of it have ended.
TEST_F(Cluster, AsksANodeAgainThatHasRefused) {
  add_root("r1");
  add_node("a");
  add_node("b");
  nodes_["b"]->sessions.refusal = "8 sessions trace this process already";
  ask();
  run(4 * kSecond);
  EXPECT_EQ(status().armed, 1U);
  EXPECT_EQ(status().refusals.size(), 1U);
  nodes_["b"]->sessions.refusal.clear();
  ASSERT_TRUE(run_until([this] { return status().armed == 2; }));
  EXPECT_THAT(status().refusals, IsEmpty());
  run(3 * kSecond);
  ASSERT_TRUE(finish());
  EXPECT_EQ(asker_->rows, truth_);
}

TEST_F(Cluster, TakesNodesThatComeLater) {
  add_root("r1");
  add_node("a");
  ask();
  run(3 * kSecond);
  add_node("b");
  run(3 * kSecond);
  EXPECT_EQ(status().armed, 2);
  ASSERT_TRUE(finish());
  EXPECT_EQ(asker_->rows, truth_);
}

// What it had sent counts, and its open pane is gone. The others' panes do not wait for it for
// ever.
TEST_F(Cluster, GoesOnWhenANodeIsKilled) {
  add_root("r1");
  add_node("a");
  add_node("b");
  ask();
  run(4 * kSecond + kSecond / 2);
  nodes_.erase("b");
  const Pane killed_in = clock_.realtime_ns() / kSecond;
  run(10 * kSecond);
  for (const auto& [pane, version] : asker_->versions)
    EXPECT_EQ(asker_->partial.contains(pane), pane >= killed_in) << pane - killed_in;
  EXPECT_EQ(status().silent, 1);
  EXPECT_THAT(status().silent_nodes, ElementsAre("b"));
  EXPECT_GE(asker_->rows.size(), 4 + 13U);
  ASSERT_TRUE(finish());
  EXPECT_EQ(asker_->rows, truth_);
}

// With another incarnation: it counts in panes of its own.
TEST_F(Cluster, TakesANodeThatIsKilledAndBegunAnew) {
  add_root("r1");
  add_node("a");
  ask();
  run(3 * kSecond + kSecond / 2);
  nodes_.erase("a");
  run(kSecond / 5);
  add_node("a", {}, 2);
  run(3 * kSecond);
  ASSERT_TRUE(finish());
  EXPECT_EQ(asker_->rows, truth_);
}

// Nobody is reached for a while: nothing is lost, and late panes come as they are or once more.
TEST_F(Cluster, LosesNothingBehindAPartition) {
  add_root("r1");
  add_node("a");
  add_node("b");
  ask();
  run(3 * kSecond);
  hub().set_reachable(false);
  run(8 * kSecond);
  hub().set_reachable(true);
  run(5 * kSecond);
  ASSERT_TRUE(finish());
  EXPECT_EQ(asker_->rows, truth_);
  EXPECT_EQ(asker_->stale, 0);
}

// What a node had in its files when it was killed is sent by the next one.
TEST_F(Cluster, LosesNothingThatAKilledNodeHasInItsFiles) {
  const TestFolder spill;
  add_root("r1");
  add_node("b");
  add_node("a", {}, 1, spill.path());
  ask();
  run(3 * kSecond);
  hub().set_reachable(false);
  run(8 * kSecond);
  nodes_.erase("a");
  hub().set_reachable(true);
  add_node("a", {}, 2, spill.path());
  run(5 * kSecond);
  ASSERT_TRUE(finish());
  EXPECT_EQ(asker_->rows, truth_);
  // It is told so with its beats.
  run(2 * kSecond);
  EXPECT_TRUE(std::filesystem::is_empty(spill.path()));
}

// The same with the log, which had some of it.
TEST_F(Cluster, LosesNothingOfFilesWithAServersDisk) {
  for (int moment = 0; moment < 20; ++moment) {
    begin_anew();
    const TestFolder spill;
    add_root("r1");
    add_node("b");
    add_node("a", {}, 1, spill.path());
    ask();
    run(3 * kSecond);
    hub().set_reachable(false);
    run(6 * kSecond);
    nodes_.erase("a");
    hub().set_reachable(true);
    add_node("a", {}, 2, spill.path());
    run(moment * kStep);
    hub().lose_disk();
    run(8 * kSecond);
    ASSERT_TRUE(finish()) << moment;
    EXPECT_EQ(asker_->rows, truth_) << moment;
    run(2 * kSecond);
    EXPECT_TRUE(std::filesystem::is_empty(spill.path())) << moment;
    nodes_.clear();
  }
}

TEST_F(Cluster, TakesProbesOutWhenNoRootAnswersAnyMore) {
  add_root("r1");
  add_node("a");
  ask();
  run(3 * kSecond);
  root_.reset();
  asker_.reset();
  run(29 * kSecond);
  EXPECT_FALSE(nodes_["a"]->node.is_done());
  run(3 * kSecond);
  EXPECT_TRUE(nodes_["a"]->node.is_done());
}

TEST_F(Cluster, EndsAQueryWhoseAskerHasGone) {
  add_root("r1");
  add_node("a");
  ask();
  run(3 * kSecond);
  asker_.reset();
  run(12 * kSecond);
  EXPECT_TRUE(nodes_["a"]->node.is_done());
}

TEST_F(Cluster, HasAStandingQueryGoOnWithoutItsAsker) {
  add_root("r1");
  add_node("a");
  ask(Gives::Panes, {}, true);
  run(3 * kSecond);
  asker_.reset();
  run(60 * kSecond);
  EXPECT_FALSE(nodes_["a"]->node.is_done());
  ask();
  asker_->asker.end();
  run(5 * kSecond);
  EXPECT_TRUE(nodes_["a"]->node.is_done());
}

TEST_F(Cluster, HasAStandingQueryCountAgainBehindALeaseWithoutARoot) {
  add_root("r1");
  add_node("a");
  ask(Gives::Panes, {}, true);
  run(3 * kSecond);
  root_.reset();
  run(40 * kSecond);
  EXPECT_TRUE(nodes_["a"]->node.is_done());
  const size_t before = truth_.size();
  add_root("r2");
  run(20 * kSecond);
  EXPECT_FALSE(nodes_["a"]->node.is_done());
  EXPECT_GT(truth_.size(), before + 5);
  ASSERT_TRUE(finish());
}

// Who cannot take over says so, and does not stand in the way of who can.
TEST_F(Cluster, HasAnotherRootWhereTheStoreOfOneIsDamaged) {
  const TestFolder folder;
  const std::unique_ptr<Store> store = Store::open(folder.path()).value();
  store->put(StoredQuery{.want = {.query = "q0", .text = kFakeText}, .phase = Phase::Running});
  ASSERT_TRUE(store->commit());
  sqlite3* file = nullptr;
  ASSERT_EQ(sqlite3_open((folder.path() + "/clew-root.sqlite").c_str(), &file), SQLITE_OK);
  EXPECT_EQ(sqlite3_exec(file, "alter table query rename to other", nullptr, nullptr, nullptr),
            SQLITE_OK);
  (void)sqlite3_close(file);
  TestRoot damaged(hub().connect(), "r1", clock_, store.get());
  ASSERT_TRUE(damaged.root.begin());
  EXPECT_FALSE(damaged.root.leads());
  for (const int64_t end = clock_.now + 10 * kSecond; clock_.now < end; step())
    damaged.root.turn();
  EXPECT_NE(damaged.root.problem(), "");
  EXPECT_THAT(damaged.root.take_notes(),
              ElementsAre("this root cannot take over, and leaves it to another one: " +
                          damaged.root.problem()));
  add_root("r2");
  for (const int64_t end = clock_.now + 4 * kSecond; clock_.now < end; step())
    damaged.root.turn();
  EXPECT_TRUE(root_->root.leads());
  EXPECT_FALSE(damaged.root.leads());
}

// It costs its query alone, or its interval; the others go on.
TEST_F(Cluster, GoesOnThoughRowsOfItsStoreCannotBeRead) {
  const TestFolder folder;
  std::unique_ptr<Store> store = Store::open(folder.path()).value();
  root_ = std::make_unique<TestRoot>(hub().connect(), "r1", clock_, store.get());
  ASSERT_TRUE(root_->root.begin());
  add_node("a");
  ask();
  TestAsker other(hub().connect(), clock_,
                  {.query = "q2", .text = kFakeText, .width_ns = kSecond, .gives = Gives::Panes});
  ASSERT_TRUE(other.asker.begin());
  const auto run_both = [&](int64_t duration) {
    for (const int64_t end = clock_.now + duration; clock_.now < end; other.asker.turn())
      step();
  };
  run_both(4 * kSecond);
  root_.reset();
  store.reset();
  sqlite3* file = nullptr;
  ASSERT_EQ(sqlite3_open((folder.path() + "/clew-root.sqlite").c_str(), &file), SQLITE_OK);
  for (const char* sql : {"update query set want = x'01' where id = 'q2'",
                          "update pane set cells = x'01' where query = 'q1' and pane ="
                          " (select min(pane) from pane where query = 'q1')"})
    EXPECT_EQ(sqlite3_exec(file, sql, nullptr, nullptr, nullptr), SQLITE_OK) << sql;
  (void)sqlite3_close(file);
  store = Store::open(folder.path()).value();
  root_ = std::make_unique<TestRoot>(hub().connect(), "r2", clock_, store.get());
  ASSERT_TRUE(root_->root.begin());
  run_both(9 * kSecond);
  EXPECT_TRUE(root_->root.leads());
  EXPECT_EQ(other.asker.status()->phase, Phase::Failed);
  EXPECT_THAT(other.asker.status()->reason, HasSubstr("its row in the store cannot be read"));
  EXPECT_THAT(root_->root.take_notes(),
              testing::Contains(HasSubstr("query q2 is given up: its row in the store")));
  EXPECT_THAT(status().lost,
              ElementsAre(HasSubstr("1 interval of the store, which cannot be read: from ")));
  ASSERT_TRUE(finish());
  StoreAnswers answers(*store);
  const AnswerPart part = answers.read("q1", 1, 1'000).value();
  EXPECT_GT(part.panes.size(), 9U);
  EXPECT_FALSE(answers.read("q2", 1, 1));
  const std::vector<AnswerSummary> all = answers.list().value();
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[1].query, "q2");
  EXPECT_EQ(all[1].phase, Phase::Failed);
  EXPECT_THAT(all[1].refused, HasSubstr("cannot be read"));
  root_.reset();
}

// What a store has is its root's: nodes would forget what is nowhere else.
TEST_F(Cluster, HasNoRootWithoutAStoreWhereOneIsAway) {
  const TestFolder folder;
  std::unique_ptr<Store> store = Store::open(folder.path()).value();
  auto owner = std::make_unique<TestRoot>(hub().connect(), "r1", clock_, store.get());
  ASSERT_TRUE(owner->root.begin());
  root_ = std::move(owner);
  add_node("a");
  ask(Gives::Panes, {}, true);
  run(3 * kSecond);
  root_.reset();
  add_root("r2");
  run(20 * kSecond);
  EXPECT_FALSE(root_->root.leads());
  store.reset();
  store = Store::open(folder.path()).value();
  root_ = std::make_unique<TestRoot>(hub().connect(), "r3", clock_, store.get());
  ASSERT_TRUE(root_->root.begin());
  run(10 * kSecond);
  EXPECT_TRUE(root_->root.leads());
  ASSERT_TRUE(finish());
  EXPECT_EQ(asker_->rows, truth_);
  root_.reset();
}

// A root that knows nothing of it is asked under the same name.
TEST_F(Cluster, TakesANameThatWasUsedForAnotherQuery) {
  add_root("r1");
  add_node("a");
  ask();
  run(3 * kSecond);
  ASSERT_TRUE(finish());
  ASSERT_TRUE(root_->root.leave());
  add_root("r2");
  truth_.clear();
  ask();
  run(3 * kSecond);
  EXPECT_EQ(status().armed, 1);
  ASSERT_TRUE(finish());
  EXPECT_EQ(asker_->rows, truth_);
}

// The same: a clock is set. A node's panes go by the monotonic clock, so nothing is lost; whoever
// was begun with another time of day is named.
TEST_F(Cluster, NamesANodeWhoseClockIsOff) {
  add_root("r1");
  add_node("a");
  run(kSecond);
  TestClock ahead;
  ahead.now = clock_.now;
  ahead.offset += 3 * kSecond;
  nodes_["b"] = std::make_unique<TestNode>(hub().connect(), "b", ahead, truth_);
  ASSERT_TRUE(nodes_["b"]->node.begin());
  ask();
  const auto go_on = [&](int64_t duration) {
    for (const int64_t end = clock_.now + duration; clock_.now < end; step())
      ahead.now = clock_.now + kStep;
  };
  go_on(4 * kSecond);
  ahead.offset += 3600 * kSecond;  // Set while it counts.
  go_on(6 * kSecond);
  EXPECT_THAT(status().lost,
              ElementsAre("the clock of node b is 3.0 s ahead: its intervals are skewed"));
  asker_->asker.end();
  for (int i = 0; i < 400 && !asker_->asker.is_done(); ++i)
    go_on(kStep);
  EXPECT_EQ(asker_->rows, truth_);
}

// Each says it once, and goes on when it can.
TEST_F(Cluster, SaysThatTheBusDoesNotAnswer) {
  hub().set_reachable(false);
  nodes_["a"] = std::make_unique<TestNode>(hub().connect(), "a", clock_, truth_);
  (void)nodes_["a"]->node.begin();
  hub().set_reachable(true);
  add_root("r1");
  ask();
  run(3 * kSecond);
  hub().set_log_full(true);
  run(3 * kSecond);
  EXPECT_THAT(
      nodes_["a"]->node.take_notes(),
      Contains(testing::HasSubstr("what is counted cannot be sent, and is kept: ")).Times(1));
  hub().set_log_full(false);
  run(3 * kSecond);
  ASSERT_TRUE(finish());
  EXPECT_EQ(asker_->rows, truth_);
}

// A node that waits says for whom; where the bus is away, it does not know.
TEST_F(Cluster, SaysThatNoRootIsThere) {
  const testing::Matcher<std::string> is_alone = testing::StartsWith("no root is there: ");
  const auto notes = [this] { return nodes_["a"]->node.take_notes(); };
  add_node("a");
  run(9 * kSecond);
  EXPECT_THAT(notes(), IsEmpty());
  run(20 * kSecond);
  EXPECT_THAT(notes(), ElementsAre(is_alone));
  add_root("r1");
  run(20 * kSecond);
  EXPECT_THAT(notes(), ElementsAre("a root is there"));
  hub().set_reachable(false);
  run(20 * kSecond);
  EXPECT_THAT(notes(), ElementsAre(testing::StartsWith("the bus is not reached")));
  hub().set_reachable(true);
  run(20 * kSecond);
  EXPECT_THAT(notes(), ElementsAre("the bus is reached again"));
  root_.reset();
  run(20 * kSecond);
  EXPECT_THAT(notes(), ElementsAre(is_alone));
}

// Another version of clew: neither is silent about it.
TEST_F(Cluster, SaysThatANodeIsOfAnotherVersion) {
  add_root("r1");
  add_node("a");
  ask();
  const auto stranger = hub().connect();
  Bytes beat = to_bytes(Beat{.node = "old"});
  constexpr size_t kVersionAt = 8;
  beat[kVersionAt] = std::byte{kMessageVersion - 1};
  const uint32_t crc = collect::crc32c(std::span(beat).subspan(kVersionAt));
  std::memcpy(&beat[kVersionAt - sizeof crc], &crc, sizeof crc);
  ASSERT_TRUE(stranger->publish(Subjects("default").beat("old"), beat));
  run(2 * kSecond);
  ASSERT_EQ(status().refusals.size(), 1U);
  EXPECT_EQ(status().refusals[0].node, "old");
  EXPECT_THAT(status().refusals[0].reason, testing::HasSubstr("all need the same version of clew"));
  Bytes control = to_bytes(Control{});
  control[kVersionAt] = std::byte{kMessageVersion - 1};
  const uint32_t other = collect::crc32c(std::span(control).subspan(kVersionAt));
  std::memcpy(&control[kVersionAt - sizeof other], &other, sizeof other);
  ASSERT_TRUE(stranger->publish(Subjects("default").control("a"), control));
  run(kSecond);
  EXPECT_THAT(nodes_["a"]->node.take_notes(),
              Contains(testing::HasSubstr("it needs the same version of clew")));
  ASSERT_TRUE(finish());
  EXPECT_EQ(asker_->rows, truth_);
}

TEST_F(Cluster, HasOneRootThatLeads) {
  add_root("r1");
  TestRoot other(hub().connect(), "r2", clock_);
  ASSERT_TRUE(other.root.begin());
  for (int i = 0; i < 200; ++i) {
    step();
    other.root.turn();
    ASSERT_TRUE(root_->root.leads());
    ASSERT_FALSE(other.root.leads());
  }
  root_.reset();
  for (int i = 0; i < 130; ++i) {
    step();
    other.root.turn();
  }
  EXPECT_TRUE(other.root.leads()) << "within 6.5 s";
}

// With a server's disk goes the key that says who leads. That root puts it anew; who stands by does
// not take that for its end, however soon it looks.
TEST_F(Cluster, HasOneRootThatLeadsWhereItsKeyIsLost) {
  for (int moment = 0; moment < 40; ++moment) {
    begin_anew();
    add_root("r1");
    add_node("a");
    ask();
    TestRoot other(hub().connect(), "r2", clock_);
    ASSERT_TRUE(other.root.begin());
    const auto pass = [&](int64_t duration) {
      for (const int64_t end = clock_.now + duration; clock_.now < end; step())
        other.root.turn();
    };
    pass(3 * kSecond + moment * kStep);
    hub().lose_disk();
    for (int i = 0; i < 60; ++i) {
      pass(kStep);
      ASSERT_TRUE(root_->root.leads()) << moment;
      ASSERT_FALSE(other.root.leads()) << moment;
    }
    ASSERT_TRUE(finish()) << moment;
    EXPECT_EQ(asker_->rows, truth_) << moment;
    EXPECT_THAT(asker_->asker.gaps(), IsEmpty()) << moment;
    root_.reset();
    hub().lose_disk();
    pass(6 * kSecond + kSecond / 2);
    EXPECT_TRUE(other.root.leads()) << moment << ": its root has gone, too";
  }
}

}  // namespace
}  // namespace clew::cluster

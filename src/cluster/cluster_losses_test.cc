// SPDX-License-Identifier: Apache-2.0
// Roots, servers and nodes that are killed, and disks that are full: what of the answer is lost
// then is named, and nothing else is lost.
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

// With a store, at any moment. Panes that were told come once more, and as they were.
TEST_F(Cluster, LosesNothingWhenARootIsKilled) {
  for (int moment = 0; moment < 60; ++moment) {
    const Gives gives = moment % 3 != 0 ? Gives::Panes : Gives::AtEnd;
    begin_anew();
    const TestFolder folder;
    auto store = Store::open(folder.path()).value();
    root_ = std::make_unique<TestRoot>(hub().connect(), "r1", clock_, store.get());
    ASSERT_TRUE(root_->root.begin());
    add_node("a");
    add_node("b");
    ask(gives);
    run(kSecond + moment * kStep);
    root_.reset();
    store.reset();
    run(kSecond / 3 * (moment % 7));
    store = Store::open(folder.path()).value();
    root_ = std::make_unique<TestRoot>(hub().connect(), "r2", clock_, store.get());
    ASSERT_TRUE(root_->root.begin());
    run(8 * kSecond);
    ASSERT_TRUE(finish()) << moment;
    EXPECT_EQ(asker_->rows, gives == Gives::Panes ? truth_ : sums()) << moment;
    EXPECT_EQ(asker_->asker.lost(), 0) << moment;
    root_.reset();
  }
}

// Without a store, and in order: what was not told is in the log.
TEST_F(Cluster, LosesNoPaneWhenARootWithoutAStoreIsKilled) {
  for (int moment = 0; moment < 60; ++moment) {
    begin_anew();
    add_root("r1");
    add_node("a");
    add_node("b");
    ask();
    run(2 * kSecond + moment * kStep);
    root_.reset();
    run(kSecond);
    add_root("r2");
    run(9 * kSecond);
    ASSERT_TRUE(finish()) << moment;
    EXPECT_EQ(asker_->rows, truth_) << moment;
  }
}

// What is in a store that nobody has: nodes do not have it any more.
TEST_F(Cluster, NamesWhatIsInTheStoreOfARootThatHasGone) {
  const TestFolder folder;
  std::unique_ptr<Store> store = Store::open(folder.path()).value();
  root_ = std::make_unique<TestRoot>(hub().connect(), "r1", clock_, store.get());
  ASSERT_TRUE(root_->root.begin());
  add_node("a");
  ask();
  run(4 * kSecond);
  root_.reset();
  run(kSecond);
  add_root("r2");
  root_->root.wait_for_store(8 * kSecond);
  run(6 * kSecond);
  EXPECT_FALSE(root_->root.leads());
  run(9 * kSecond);
  EXPECT_TRUE(root_->root.leads());
  ASSERT_TRUE(finish());
  EXPECT_EQ(asker_->rows, truth_);
  EXPECT_THAT(status().lost,
              ElementsAre("what the root before has merged in its store and had not given"));
}

// It names what the one before it did.
TEST_F(Cluster, KnowsTheLivesOfNodesBehindARootWithoutAStore) {
  for (int moment = 0; moment < 40; ++moment) {
    begin_anew();
    add_root("r1");
    add_node("a");
    add_node("b");
    ask();
    run(3 * kSecond);
    nodes_.erase("b");
    const Pane killed_in = clock_.realtime_ns() / kSecond;
    run(2 * kSecond);
    add_node("b", {}, 2);
    const Pane begun_in = clock_.realtime_ns() / kSecond;
    run(4 * kSecond + moment * kStep);
    root_.reset();
    run(kSecond);
    add_root("r2");
    run(9 * kSecond);
    ASSERT_TRUE(finish()) << moment;
    EXPECT_EQ(status().root, "r2");
    EXPECT_EQ(asker_->rows, truth_) << moment;
    EXPECT_EQ(asker_->asker.lost(), 0U) << moment;
    const NodeGap lost = {.node = "b", .panes = {.first = killed_in, .last = begun_in}};
    EXPECT_THAT(status().gaps, ElementsAre(lost)) << moment;
  }
}

// The fault table of the design: a server's disk. Logs and keys are gone; nodes have what was not
// safe, and a root has the rest.
TEST_F(Cluster, LosesNothingWithAServersDisk) {
  for (int moment = 0; moment < 40; ++moment) {
    begin_anew();
    add_root("r1");
    add_node("a");
    add_node("b");
    const Gives gives = moment % 2 == 0 ? Gives::Panes : Gives::AtEnd;
    ask(gives);
    run(2 * kSecond + moment * kStep);
    hub().lose_disk();
    run(6 * kSecond);
    ASSERT_TRUE(finish()) << moment;
    EXPECT_EQ(asker_->rows, gives == Gives::Panes ? truth_ : sums()) << moment;
    EXPECT_THAT(asker_->asker.gaps(), IsEmpty()) << moment;
  }
}

// The same: an election. What servers had confirmed is lost with the leader that had it, and what
// comes then has its numbers; keys are as they were before.
TEST_F(Cluster, LosesNothingThatALogHadConfirmedAndLost) {
  for (int moment = 0; moment < 60; ++moment) {
    begin_anew();
    const TestFolder folder;
    const std::unique_ptr<Store> store = Store::open(folder.path()).value();
    root_ = std::make_unique<TestRoot>(hub().connect(), "r1", clock_, store.get());
    ASSERT_TRUE(root_->root.begin());
    for (const char* name : {"a", "b", "c"})
      add_node(name);
    ask();
    run(2 * kSecond + moment * kStep);
    for (int i = 0; i < 3; ++i) {
      hub().lose_end(1 + static_cast<uint64_t>(moment) % 4, moment % 2 == 0);
      run(kSecond);
    }
    run(4 * kSecond);
    ASSERT_TRUE(finish()) << moment;
    EXPECT_EQ(asker_->rows, truth_) << moment;
    EXPECT_THAT(asker_->asker.gaps(), IsEmpty()) << moment;
    root_.reset();
  }
}

// A node that has gone cannot send it again.
TEST_F(Cluster, NamesWhatALogHadConfirmedAndLostOfANodeThatIsKilled) {
  for (int moment = 0; moment < 60; ++moment) {
    begin_anew();
    add_root("r1");
    add_node("a");
    add_node("b");
    ask();
    run(4 * kSecond + moment * kStep);
    // Between what it says to have sent and what a root reads.
    nodes_["b"]->node.turn();
    nodes_["a"]->node.turn();
    hub().lose_end(2, false);
    nodes_.erase("b");
    run(2 * kSecond);
    add_node("b", {}, 2);
    run(3 * kSecond);
    ASSERT_TRUE(finish()) << moment;
    const std::vector<NodeGap> gaps = asker_->asker.gaps();
    for (const auto& [where, count] : truth_) {
      const Pane pane = where.first;
      const bool is_named = std::any_of(gaps.begin(), gaps.end(), [&](const NodeGap& gap) {
        return gap.node == where.second && gap.panes.first <= pane && pane <= gap.panes.last;
      });
      const auto row = asker_->rows.find(where);
      const bool is_there = row != asker_->rows.end() && row->second == count;
      EXPECT_TRUE(is_there || is_named) << where.second << " in " << pane << ", " << moment;
    }
    EXPECT_FALSE(gaps.empty()) << moment;
  }
}

// The same: what traces is killed, and its node goes on. Its open pane is named, and those in which
// there was none.
TEST_F(Cluster, BeginsASessionAgainThatIsKilled) {
  add_root("r1");
  add_node("a");
  add_node("b");
  ask();
  run(4 * kSecond + kSecond / 2);
  nodes_["b"]->sessions.running->kill();
  const Pane killed_in = clock_.realtime_ns() / kSecond;
  ASSERT_TRUE(run_until([&] { return nodes_["b"]->sessions.begun == 2; }));
  const Pane begun_in = clock_.realtime_ns() / kSecond;
  EXPECT_LE(begun_in, killed_in + 2);
  run(4 * kSecond);
  ASSERT_TRUE(finish());
  EXPECT_EQ(asker_->rows, truth_);
  const NodeGap lost = {.node = "b", .panes = {.first = killed_in, .last = begun_in}};
  EXPECT_THAT(asker_->asker.gaps(), ElementsAre(lost));
}

// The same: a node is killed. Its open pane is named, and nothing else.
TEST_F(Cluster, NamesThePanesOfANodeThatIsKilled) {
  const TestFolder folder;
  const std::unique_ptr<Store> store = Store::open(folder.path()).value();
  root_ = std::make_unique<TestRoot>(hub().connect(), "r1", clock_, store.get());
  ASSERT_TRUE(root_->root.begin());
  add_node("a");
  add_node("b");
  ask();
  run(4 * kSecond + kSecond / 2);
  nodes_.erase("b");
  const Pane killed_in = clock_.realtime_ns() / kSecond;
  run(4 * kSecond);
  ASSERT_EQ(status().gaps.size(), 1U) << "while it is away";
  add_node("b", {}, 2);
  const Pane begun_in = clock_.realtime_ns() / kSecond;
  run(3 * kSecond);
  ASSERT_TRUE(finish());
  EXPECT_EQ(asker_->rows, truth_);
  const auto is_lost =
      ElementsAre(NodeGap{.node = "b", .panes = {.first = killed_in, .last = begun_in}});
  EXPECT_THAT(asker_->asker.gaps(), is_lost);
  EXPECT_THAT(StoreAnswers(*store).read("q1", 1, 1).value().gaps, is_lost);
  root_.reset();
}

// The same: a node's disk is full. It says which panes it has dropped, and the next node of this
// name has not these either.
TEST_F(Cluster, NamesWhatANodeHadNoRoomToKeep) {
  const TestFolder folder;
  const std::unique_ptr<Store> store = Store::open(folder.path()).value();
  root_ = std::make_unique<TestRoot>(hub().connect(), "r1", clock_, store.get());
  ASSERT_TRUE(root_->root.begin());
  add_node("a");
  ask();
  run(3 * kSecond);
  const auto end = hub().connect();
  const auto want = end->get(bucket_of("default"), want_key("q1"));
  ASSERT_TRUE(want && *want);
  Beat said{.node = "full", .log = end->ends(partials_log("default")).value().log};
  said.queries = {{.query = "q1",
                   .revision = read_as<Control>((*want)->bytes).value().revision,
                   .state = NodeState::Closed,
                   .lost = {{.first = 5, .last = 6}}}};
  ASSERT_TRUE(end->publish(Subjects("default").beat("full"), to_bytes(said)));
  run(kSecond);
  const auto is_lost = ElementsAre(NodeGap{.node = "full", .panes = {.first = 5, .last = 6}});
  EXPECT_THAT(status().gaps, is_lost);
  said.incarnation.start_ns = 2;
  said.queries[0].lost.clear();
  ASSERT_TRUE(end->publish(Subjects("default").beat("full"), to_bytes(said)));
  run(kSecond);
  EXPECT_THAT(status().gaps, is_lost);
  ASSERT_TRUE(finish());
  EXPECT_EQ(asker_->rows, truth_);
  EXPECT_THAT(StoreAnswers(*store).read("q1", 1, 1).value().gaps, is_lost);
  root_.reset();
}

// More of them than a status can have: those that are left out are counted, and when they were.
TEST_F(Cluster, SaysHowManyGapsItDoesNotName) {
  (void)setenv("TZ", "UTC", 1);
  tzset();
  const TestFolder folder;
  const std::unique_ptr<Store> store = Store::open(folder.path()).value();
  root_ = std::make_unique<TestRoot>(hub().connect(), "r1", clock_, store.get());
  ASSERT_TRUE(root_->root.begin());
  add_node("a");
  ask();
  run(3 * kSecond);
  const auto end = hub().connect();
  const auto want = end->get(bucket_of("default"), want_key("q1"));
  ASSERT_TRUE(want && *want);
  Beat said{.node = "full", .log = end->ends(partials_log("default")).value().log};
  said.queries = {{.query = "q1",
                   .revision = read_as<Control>((*want)->bytes).value().revision,
                   .state = NodeState::Closed}};
  const auto say = [&](Pane first, Pane last) {
    said.queries[0].lost.clear();
    for (Pane pane = first; pane <= last; pane += 2)
      said.queries[0].lost.push_back({.first = pane, .last = pane});
    ASSERT_TRUE(end->publish(Subjects("default").beat("full"), to_bytes(said)));
    run(kSecond);
  };
  say(2, 1'400);
  EXPECT_THAT(status().gaps, SizeIs(700));
  EXPECT_THAT(status().lost, IsEmpty());
  ++said.incarnation.start_ns;
  say(1'402, 2'200);
  EXPECT_THAT(status().gaps, SizeIs(1'000));
  const auto is_said =
      Contains("intervals of nodes in 100 more gaps than are named, from 00:00:02 to 00:03:21");
  EXPECT_THAT(status().lost, is_said);
  // Those that are kept of lives before are as few.
  ++said.incarnation.start_ns;
  say(2'202, 2'206);
  EXPECT_THAT(status().lost,
              Contains("intervals of nodes in 103 more gaps than are named, from 00:00:02 to "
                       "00:03:27"));
  ASSERT_TRUE(finish());
  const AnswerPart kept = StoreAnswers(*store).read("q1", 1, 1).value();
  EXPECT_THAT(kept.gaps, SizeIs(1'000));
  EXPECT_THAT(kept.lost, Contains(HasSubstr("in 103 more gaps")));
  root_.reset();
}

}  // namespace
}  // namespace clew::cluster

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

class Cluster : public testing::Test {
 protected:
  static constexpr int64_t kStep = kSecond / 20;

  void add_node(const std::string& name, Labels labels = {}, uint64_t incarnation = 1,
                const std::string& spill = {}) {
    nodes_[name] = std::make_unique<TestNode>(hub().connect(), name, clock_, truth_,
                                              std::move(labels), incarnation, nullptr, spill);
    ASSERT_TRUE(nodes_[name]->node.begin());
  }
  void add_root(const std::string& name) {
    root_ = std::make_unique<TestRoot>(hub().connect(), name, clock_);
    ASSERT_TRUE(root_->root.begin());
  }
  void ask(Gives gives = Gives::Panes, Labels labels = {}, bool is_standing = false) {
    asker_ = std::make_unique<TestAsker>(hub().connect(), clock_,
                                         Ask{.query = "q1",
                                             .is_standing = is_standing,
                                             .text = kFakeText,
                                             .labels = std::move(labels),
                                             .width_ns = kSecond,
                                             .gives = gives});
    ASSERT_TRUE(asker_->asker.begin());
  }

  void step() {
    clock_.now += kStep;
    if (root_) root_->root.turn();
    for (auto& [name, each] : nodes_)
      each->node.turn();
    if (root_) root_->root.turn();
    if (!asker_) return;
    asker_->asker.turn();
    asker_->take();
  }
  void run(int64_t duration) {
    for (const int64_t end = clock_.now + duration; clock_.now < end;)
      step();
  }
  // False: it is not so within a minute.
  bool run_until(const std::function<bool()>& is_so) {
    for (const int64_t end = clock_.now + 60 * kSecond; clock_.now < end; step()) {
      if (is_so()) return true;
    }
    return false;
  }
  bool finish() {
    asker_->asker.end();
    return run_until([this] { return asker_->asker.is_done(); });
  }
  void begin_anew() {
    asker_.reset();
    nodes_.clear();
    root_.reset();
    truth_.clear();
    hub_ = std::make_unique<LocalHub>();
  }
  [[nodiscard]] LocalHub& hub() { return *hub_; }
  // Of all panes.
  [[nodiscard]] Truth sums() const {
    Truth sums;
    for (const auto& [where, count] : truth_)
      sums[{0, where.second}] += count;
    return sums;
  }
  [[nodiscard]] const Status& status() const { return asker_->asker.status().value(); }

  std::unique_ptr<LocalHub> hub_ = std::make_unique<LocalHub>();
  TestClock clock_;
  Truth truth_;
  std::map<std::string, std::unique_ptr<TestNode>> nodes_;
  std::unique_ptr<TestRoot> root_;
  std::unique_ptr<TestAsker> asker_;
};

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
  EXPECT_EQ(sqlite3_exec(file, "update query set want = x'01'", nullptr, nullptr, nullptr),
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

}  // namespace
}  // namespace clew::cluster

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
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
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

// For a while it does not answer where the marks of a root before are asked for.
class BusWithoutMarks final : public Bus {
 public:
  explicit BusWithoutMarks(std::unique_ptr<Bus> bus) : bus_(std::move(bus)) {}
  [[nodiscard]] int descriptor() const override { return bus_->descriptor(); }
  [[nodiscard]] bool is_connected() const override { return bus_->is_connected(); }
  std::vector<std::string> take_complaints() override { return bus_->take_complaints(); }
  [[nodiscard]] uint64_t dropped() const override { return bus_->dropped(); }
  Expected<void> publish(std::string_view subject, std::span<const std::byte> bytes,
                         std::string_view reply) override {
    return bus_->publish(subject, bytes, reply);
  }
  Expected<void> subscribe(std::string_view pattern, std::string_view group) override {
    return bus_->subscribe(pattern, group);
  }
  Expected<void> unsubscribe(std::string_view pattern) override {
    return bus_->unsubscribe(pattern);
  }
  std::optional<Message> next() override { return bus_->next(); }
  [[nodiscard]] std::string inbox() const override { return bus_->inbox(); }
  Expected<void> make_log(std::string_view log, std::string_view pattern, uint64_t most) override {
    return bus_->make_log(log, pattern, most);
  }
  Expected<uint64_t> append(std::string_view subject, std::string_view id,
                            std::span<const std::byte> bytes) override {
    return bus_->append(subject, id, bytes);
  }
  Expected<std::vector<Entry>> read(std::string_view log, uint64_t after, size_t most) override {
    return bus_->read(log, after, most);
  }
  Expected<LogEnds> ends(std::string_view log) override { return bus_->ends(log); }
  Expected<void> forget(std::string_view log, uint64_t up_to) override {
    return bus_->forget(log, up_to);
  }
  Expected<std::optional<Revised>> get(std::string_view bucket, std::string_view key) override {
    if (!answers && key == mark_key("q1")) return fail(ErrorCode::Io, "no answer came");
    return bus_->get(bucket, key);
  }
  Expected<uint64_t> put(std::string_view bucket, std::string_view key,
                         std::span<const std::byte> bytes, uint64_t revision) override {
    return bus_->put(bucket, key, bytes, revision);
  }
  bool answers = false;

 private:
  std::unique_ptr<Bus> bus_;
};

TEST_F(Cluster, GivesUpNoQueryWhereTheBusDoesNotAnswer) {
  const TestFolder folder;
  auto store = Store::open(folder.path()).value();
  root_ = std::make_unique<TestRoot>(hub().connect(), "r1", clock_, store.get());
  ASSERT_TRUE(root_->root.begin());
  add_node("a");
  ask();
  run(3 * kSecond);
  root_.reset();
  store.reset();
  store = Store::open(folder.path()).value();
  auto bus = std::make_unique<BusWithoutMarks>(hub().connect());
  bool& answers = bus->answers;
  root_ = std::make_unique<TestRoot>(std::move(bus), "r2", clock_, store.get());
  ASSERT_TRUE(root_->root.begin());
  run(10 * kSecond);
  EXPECT_FALSE(root_->root.leads());
  EXPECT_THAT(root_->root.take_notes(), Contains(HasSubstr("no answer came")));
  answers = true;
  ASSERT_TRUE(run_until([this] { return root_->root.leads(); }));
  run(3 * kSecond);
  EXPECT_EQ(status().phase, Phase::Running) << status().reason;
  ASSERT_TRUE(finish());
  EXPECT_EQ(asker_->rows, truth_);
  root_.reset();
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

// What is in a store that nobody has: nodes do not have it any more. Each count is there, or its
// interval is named; and of those alone that the root may have merged in its last moments.
class StoreAway : public Cluster {
 protected:
  void begin(int moment) {
    begin_anew();
    folder_ = std::make_unique<TestFolder>();
    store_ = Store::open(folder_->path()).value();
    root_ = std::make_unique<TestRoot>(hub().connect(), "r1", clock_, store_.get());
    ASSERT_TRUE(root_->root.begin());
    for (const char* name : {"a", "b", "c"})
      add_node(name);
    ask();
    run(3 * kSecond + moment % 20 * kStep);
    // What others have counted is merged meanwhile, and not given.
    auto slow = nodes_.extract("b");
    run(moment % 3 * kSecond / 2);
    root_.reset();
    away_ = clock_.realtime_ns() / kSecond;
    nodes_.insert(std::move(slow));
    if (moment % 4 == 1) nodes_.erase("c");
    if (moment % 4 == 2) add_node("c", {}, 2);
    run(kSecond);
  }
  void lead_without_it() {
    add_root("r2");
    ASSERT_TRUE(run_until([this] { return root_->root.leads(); }));
    led_ = clock_.realtime_ns() / kSecond;
  }
  [[nodiscard]] static bool has(const std::vector<NodeGap>& gaps, const std::string& node,
                                Pane pane) {
    return std::any_of(gaps.begin(), gaps.end(), [&](const NodeGap& gap) {
      return (gap.node == node || gap.node.empty()) && gap.panes.first <= pane &&
             pane <= gap.panes.last;
    });
  }
  // How many counts are named as what may be lost.
  size_t expect_all_or_named(int moment) {
    size_t unsure = 0;
    for (const auto& [where, count] : truth_) {
      const auto& [pane, node] = where;
      const bool may_lack = has(asker_->asker.unsure(), node, pane);
      const bool is_named = may_lack || has(asker_->asker.gaps(), node, pane);
      const auto row = asker_->rows.find(where);
      const bool is_there = row != asker_->rows.end() && row->second == count;
      EXPECT_TRUE(is_there || is_named) << node << " in " << pane << ", " << moment;
      EXPECT_TRUE(!may_lack || std::abs(pane - away_) <= 3) << node << " in " << pane;
      unsure += may_lack ? 1 : 0;
    }
    EXPECT_EQ(asker_->asker.lost(), 0U) << moment;
    return unsure;
  }

  std::unique_ptr<TestFolder> folder_;
  std::unique_ptr<Store> store_;
  Pane away_ = 0;
  Pane led_ = 0;
};

TEST_F(StoreAway, HasItsIntervalsNamed) {
  size_t unsure = 0;
  for (int moment = 0; moment < 120; ++moment) {
    begin(moment);
    lead_without_it();
    run(5 * kSecond);
    ASSERT_TRUE(finish()) << moment;
    EXPECT_THAT(status().lost, IsEmpty()) << moment;
    unsure += expect_all_or_named(moment);
    ASSERT_FALSE(HasFailure()) << moment;
    root_.reset();
  }
  EXPECT_GT(unsure, 0U);
}

// It takes the lead back, and its store has what the other root did not.
TEST_F(StoreAway, HasItsIntervalsNamedWhenItComesBack) {
  for (int moment = 0; moment < 120; ++moment) {
    begin(moment);
    lead_without_it();
    run(moment % 7 * kSecond / 2);
    root_.reset();
    store_.reset();
    run(kSecond);
    store_ = Store::open(folder_->path()).value();
    root_ = std::make_unique<TestRoot>(hub().connect(), "r3", clock_, store_.get());
    ASSERT_TRUE(root_->root.begin());
    run(12 * kSecond);
    ASSERT_TRUE(finish()) << moment;
    (void)expect_all_or_named(moment);
    // The same of what is in the store.
    const AnswerPart part = StoreAnswers(*store_).read("q1", 1, 1'000).value();
    Truth stored;
    for (const AnswerPane& one : part.panes) {
      const aggregate::Table table = aggregate::table_of(one.table).value();
      for (const aggregate::Row& row : table.rows())
        stored[{one.pane, std::get<std::string>(row[0])}] = std::get<uint64_t>(row[1]);
    }
    for (const auto& [where, count] : truth_) {
      const auto row = stored.find(where);
      const bool is_there = row != stored.end() && row->second == count;
      EXPECT_TRUE(is_there || has(part.gaps, where.second, where.first))
          << where.second << " in " << where.first << ", " << moment;
    }
    ASSERT_FALSE(HasFailure()) << moment;
    root_.reset();
  }
}

// With the root of the store its keys are lost that say whose counts it has, and the end of the
// log. Nodes know it still.
TEST_F(StoreAway, HasItsIntervalsNamedByNodesWhereKeysAreLost) {
  for (int moment = 0; moment < 120; ++moment) {
    begin_anew();
    folder_ = std::make_unique<TestFolder>();
    store_ = Store::open(folder_->path()).value();
    root_ = std::make_unique<TestRoot>(hub().connect(), "r1", clock_, store_.get());
    ASSERT_TRUE(root_->root.begin());
    add_node("a");
    ask();
    run(3 * kSecond);
    add_node("b");
    run(2 * kSecond + moment % 20 * kStep);
    hub().lose_end(1 + static_cast<uint64_t>(moment) % 8, moment % 2 == 0);
    root_.reset();
    store_.reset();
    run(kSecond);
    lead_without_it();
    run(5 * kSecond);
    ASSERT_TRUE(finish()) << moment;
    for (const auto& [where, count] : truth_) {
      const auto& [pane, node] = where;
      const bool is_named =
          has(asker_->asker.unsure(), node, pane) || has(asker_->asker.gaps(), node, pane);
      const auto row = asker_->rows.find(where);
      const bool is_there = row != asker_->rows.end() && row->second == count;
      EXPECT_TRUE(is_there || is_named) << node << " in " << pane << ", " << moment;
    }
    ASSERT_FALSE(HasFailure()) << moment;
  }
}

// Of all intervals as one it can be said in words alone.
TEST_F(Cluster, NamesWhatIsInTheStoreOfARootThatHasGone) {
  const TestFolder folder;
  std::unique_ptr<Store> store = Store::open(folder.path()).value();
  root_ = std::make_unique<TestRoot>(hub().connect(), "r1", clock_, store.get());
  ASSERT_TRUE(root_->root.begin());
  add_node("a");
  ask(Gives::AtEnd);
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
    EXPECT_TRUE(status().root.starts_with("r2."));
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

// Of a node whose disk is full, and that takes no part in q1 any more.
Beat beat_of_full(Bus& end) {
  const auto want = end.get(bucket_of("default"), want_key("q1"));
  const auto control = read_as<Control>(want.value().value().bytes);
  Beat beat{.node = "full", .log = end.ends(partials_log("default")).value().log};
  beat.queries = {
      {.query = "q1", .revision = control.value().revision, .state = NodeState::Closed}};
  return beat;
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
  Beat said = beat_of_full(*end);
  said.queries[0].lost = {{.first = 5, .last = 6}};
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
  Beat said = beat_of_full(*end);
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

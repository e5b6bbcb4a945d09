// SPDX-License-Identifier: Apache-2.0
// A cluster on a bus on which everything goes wrong, by a seed, while nodes and roots are killed
// and cut off. What the asker has at the end is what was counted, each count once; of a node that
// was killed what it had not sent is missing, by intervals that are named, and nothing else.
#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "cluster/world_by_seed.h"
#include "cluster/world_testing.h"

namespace clew::cluster {
namespace {

class FaultyCluster : public WorldBySeed<TestNode, TestAsker> {
 public:
  explicit FaultyCluster(uint64_t seed, bool stores_are_away = false)
      : WorldBySeed(seed), gives_(stores_are_away ? Gives::Panes : static_cast<Gives>(seed % 3)) {
    stores_are_away_ = stores_are_away;
    begin_all(std::make_unique<TestAsker>(hub_.connect("asker"), clock_,
                                          Ask{.query = "q1",
                                              .asker = "a1",
                                              .text = kFakeText,
                                              .width_ns = kSecond,
                                              .gives = gives_}));
  }

  // Nothing goes wrong, but that whoever asks is cut off for a while.
  void cut_off_the_asker(int64_t duration) {
    hub_.heal();
    const auto go_on = [this](int64_t part) {
      for (const int64_t end = clock_.now + part; clock_.now < end; step()) {
      }
    };
    go_on(5 * kSecond);
    hub_.cut("asker");
    go_on(duration);
  }

  void check() const {
    EXPECT_EQ(asker_->asker.lost(), 0);
    EXPECT_EQ(asker_->stale, 0);
    if (gives_ != Gives::Panes) return check_sums();
    for (const auto& [where, count] : asker_->rows) {
      const auto counted = truth_.find(where);
      ASSERT_NE(counted, truth_.end()) << where.second << " in " << where.first;
      EXPECT_EQ(count, counted->second) << where.second << " in " << where.first;
    }
    for (const auto& [where, count] : truth_) {
      if (is_named(where.second) || is_in_gap(where.first, where.second)) continue;
      if (is_for_nobody(where.first, where.second)) continue;
      EXPECT_TRUE(asker_->rows.contains(where)) << where.second << " in " << where.first;
    }
  }

 private:
  // In what the root says that is lost.
  [[nodiscard]] bool is_named(const std::string& node) const {
    const std::vector<std::string>& lost = asker_->asker.status()->lost;
    return std::any_of(lost.begin(), lost.end(), [&node](const std::string& each) {
      return each.find("node " + node + " ") != std::string::npos;
    });
  }

  // A node that was killed before anything of it came may have been there for nobody.
  [[nodiscard]] bool is_in_gap(Pane pane, const std::string& node) const {
    const auto first = std::find_if(asker_->rows.begin(), asker_->rows.end(),
                                    [&node](const auto& row) { return row.first.second == node; });
    const bool is_before_all = first == asker_->rows.end() || pane < first->first.first;
    if (killed_.contains(node) && is_before_all) return true;
    std::vector<NodeGap> gaps = asker_->asker.gaps();
    const std::vector<NodeGap> unsure = asker_->asker.unsure();
    gaps.insert(gaps.end(), unsure.begin(), unsure.end());
    return std::any_of(gaps.begin(), gaps.end(), [&](const NodeGap& gap) {
      return (gap.node == node || gap.node.empty()) && gap.panes.first <= pane &&
             pane <= gap.panes.last;
    });
  }

  // A server has lost the word that the query is over, and the node has begun once more until a
  // root puts that right. Had it gone on for a root, there were rows from then on.
  [[nodiscard]] bool is_for_nobody(Pane pane, const std::string& node) const {
    const auto begun = begun_behind_.find(node);
    if (begun == begun_behind_.end() || pane < begun->second) return false;
    return std::none_of(asker_->rows.begin(), asker_->rows.end(),
                        [&begun](const auto& row) { return row.first.first >= begun->second; });
  }

  void check_sums() const {
    Truth sums;
    Truth may_lack;  // Of these.
    for (const auto& [where, count] : truth_) {
      sums[{0, where.second}] += count;
      if (is_for_nobody(where.first, where.second) || is_in_gap(where.first, where.second))
        may_lack[{0, where.second}] += count;
    }
    Truth given;  // Where panes are given once, what came late is in later ones.
    for (const auto& [where, count] : asker_->rows)
      given[{0, where.second}] += count;
    for (const auto& [where, sum] : sums) {
      const uint64_t count = given[where];
      EXPECT_LE(count, sum) << where.second;
      if (killed_.contains(where.second) || is_named(where.second)) continue;
      EXPECT_GE(count + may_lack[where], sum) << where.second;
    }
  }

  std::unique_ptr<TestNode> new_node(const std::string& name, uint64_t incarnation) override {
    return std::make_unique<TestNode>(hub_.connect(name), name, clock_, truth_, Labels{},
                                      incarnation);
  }
  void happen() override {
    happen_to_root();
    const bool may_lose = !stores_are_away_ || is_root_there();
    if (chance(60) && may_lose) hub_.lose_end(1 + random_() % 6, chance(2));
    happen_to_connections();
    const std::string tracing = std::string(1, static_cast<char>('a' + random_() % 3));
    FakeSession* const session = nodes_[tracing]->sessions.running;
    if (session != nullptr && chance(100)) session->kill();
    if (gives_ != Gives::AtEnd && chance(250)) kill_node_c();
  }

  void look() override {
    for (const std::string& note : root_ ? root_->root.take_notes() : std::vector<std::string>()) {
      if (note.find("nobody listens any more") == std::string::npos || !begun_.empty()) continue;
      for (const auto& [name, each] : nodes_)
        begun_[name] = each->sessions.begun;
    }
    for (const auto& [name, begun] : begun_) {
      if (nodes_[name]->sessions.begun > begun)
        begun_behind_.try_emplace(name, clock_.realtime_ns() / kSecond);
    }
  }

  Gives gives_;
  Truth truth_;
  std::map<std::string, int> begun_;            // Sessions of each node when the query had ended.
  std::map<std::string, Pane> begun_behind_{};  // In which one has begun since.
};

constexpr int kHalfAMinute = 600;
constexpr int kToSettle = 400;

TEST(ClusterFaults, LoseNothingAndCountNothingTwice) {
  const auto [first, last] = seeds();
  for (uint64_t seed = first; seed <= last; ++seed) {
    FaultyCluster world(seed);
    world.run(kHalfAMinute);
    ASSERT_TRUE(world.finish(kToSettle)) << "seed " << seed;
    world.check();
    ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed;
  }
}

// The store is with none of the roots for a while, and its root comes back. Keys are lost where a
// root is there to put them anew.
TEST(ClusterFaults, NameWhatIsInAStoreThatIsAway) {
  const auto [first, last] = seeds(600);
  for (uint64_t seed = first; seed <= last; ++seed) {
    FaultyCluster world(seed, true);
    world.run(kHalfAMinute);
    ASSERT_TRUE(world.finish(kToSettle)) << "seed " << seed;
    world.check();
    ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed;
  }
}

// A seed with which a node begins once more behind the end of the query, by keys from before it.
TEST(ClusterFaults, OweNothingOfAQueryThatIsOver) {
  FaultyCluster world(4223);
  world.run(kHalfAMinute);
  ASSERT_TRUE(world.finish(kToSettle));
  world.check();
}

// A seed with which a node's counts come when the answer is over already, and its root is killed.
TEST(ClusterFaults, NameWhatComesBehindTheEnd) {
  FaultyCluster world(12492);
  world.run(kHalfAMinute);
  ASSERT_TRUE(world.finish(kToSettle));
  world.check();
}

// A seed with which what a root had said comes behind the words of the next one.
TEST(ClusterFaults, HearNoRootThatHasGone) {
  FaultyCluster world(1733);
  world.run(kHalfAMinute);
  ASSERT_TRUE(world.finish(kToSettle));
  world.check();
}

// The query ends meanwhile, as nobody listens; what it gave until then is there for some time.
TEST(ClusterFaults, LoseNoRowForAnAskerThatComesBackLate) {
  FaultyCluster world(1);
  world.cut_off_the_asker(13 * kSecond);
  ASSERT_TRUE(world.finish(kToSettle));
  world.check();
}

}  // namespace
}  // namespace clew::cluster

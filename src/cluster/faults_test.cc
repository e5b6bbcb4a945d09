// SPDX-License-Identifier: Apache-2.0
// A cluster on a bus on which everything goes wrong, by a seed, while nodes and roots are killed
// and cut off. What the asker has at the end is what was counted, each count once; of a node that
// was killed what it had not sent is missing, by intervals that are named, and nothing else.
#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "cluster/bus_faulty.h"
#include "cluster/world_testing.h"

namespace clew::cluster {
namespace {

constexpr int64_t kStep = kSecond / 20;

Faults faults_of(std::mt19937_64& random) {
  const auto up_to = [&random](double most) {
    return std::uniform_real_distribution<>(0, most)(random);
  };
  return {.lose = up_to(0.3),
          .twice = up_to(0.3),
          .late = up_to(0.3),
          .disconnect = up_to(0.02),
          .fail_before = up_to(0.2),
          .fail_after = up_to(0.2),
          .behind = up_to(0.3),
          .skip = up_to(0.2),
          .steps_max = 20};
}

class FaultyCluster {
 public:
  explicit FaultyCluster(uint64_t seed)
      : random_(seed), hub_(seed, faults_of(random_)), gives_(static_cast<Gives>(seed % 3)) {
    begin_root();
    for (const char* name : {"a", "b", "c"})
      begin_node(name);
    asker_ = std::make_unique<TestAsker>(
        hub_.connect("asker"), clock_,
        Ask{.query = "q1", .asker = "a1", .text = kFakeText, .width_ns = kSecond, .gives = gives_});
    (void)asker_->asker.begin();
  }

  // Half a minute in which everything happens.
  void run() {
    for (int i = 0; i < 600; ++i) {
      step();
      happen();
    }
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

  // Nothing goes wrong any more. False: it does not end.
  bool finish() {
    hub_.heal();
    for (const char* name : {"a", "b", "c", "root", "asker"})
      hub_.cut(name, false);
    if (!root_) begin_root();
    for (int i = 0; i < 400; ++i)
      step();
    asker_->asker.end();
    for (int i = 0; i < 1'200 && !asker_->asker.is_done(); ++i)
      step();
    return asker_->asker.is_done();
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
    const std::vector<NodeGap> gaps = asker_->asker.gaps();
    return std::any_of(gaps.begin(), gaps.end(), [&](const NodeGap& gap) {
      return gap.node == node && gap.panes.first <= pane && pane <= gap.panes.last;
    });
  }

  void check_sums() const {
    Truth sums;
    for (const auto& [where, count] : truth_)
      sums[{0, where.second}] += count;
    Truth given;  // Where panes are given once, what came late is in later ones.
    for (const auto& [where, count] : asker_->rows)
      given[{0, where.second}] += count;
    for (const auto& [where, sum] : sums) {
      const uint64_t count = given[where];
      if (killed_.contains(where.second) || is_named(where.second)) {
        EXPECT_LE(count, sum) << where.second;
      } else {
        EXPECT_EQ(count, sum) << where.second;
      }
    }
  }

  bool chance(uint32_t in) { return random_() % in == 0; }

  void step() {
    clock_.now += kStep;
    hub_.step();
    if (root_) root_->root.turn();
    for (auto& [name, each] : nodes_)
      each->node.turn();
    asker_->asker.turn();
    asker_->take();
  }

  void happen() {
    if (root_ && chance(150)) {
      root_.reset();
      store_.reset();
    } else if (!root_ && chance(40)) {
      begin_root();
    }
    if (chance(400)) hub_.lose_disk();
    if (chance(60)) hub_.lose_end(1 + random_() % 6, chance(2));
    for (const char* name : {"a", "b", "c", "root", "asker"}) {
      if (chance(200)) hub_.cut(name, true);
      if (chance(30)) hub_.cut(name, false);
    }
    const std::string tracing = std::string(1, static_cast<char>('a' + random_() % 3));
    FakeSession* const session = nodes_[tracing]->sessions.running;
    if (session != nullptr && chance(100)) session->kill();
    // Of one node alone: the others have all that they counted.
    if (gives_ != Gives::AtEnd && chance(250)) {
      nodes_.erase("c");
      killed_.insert("c");
      begin_node("c");
    }
  }

  void begin_root() {
    store_ = Store::open(folder_.path()).value();
    root_ = std::make_unique<TestRoot>(hub_.connect("root"), "r" + std::to_string(++roots_), clock_,
                                       store_.get());
    while (!root_->root.begin())
      hub_.step();
  }

  void begin_node(const std::string& name) {
    nodes_[name] = std::make_unique<TestNode>(hub_.connect(name), name, clock_, truth_, Labels{},
                                              ++incarnations_);
    (void)nodes_[name]->node.begin();
  }

  std::mt19937_64 random_;
  FaultyHub hub_;
  Gives gives_;
  TestClock clock_;
  Truth truth_;
  std::set<std::string> killed_;
  TestFolder folder_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<TestRoot> root_;
  std::map<std::string, std::unique_ptr<TestNode>> nodes_;
  std::unique_ptr<TestAsker> asker_;
  uint64_t roots_ = 0;
  uint64_t incarnations_ = 0;
};

TEST(ClusterFaults, LoseNothingAndCountNothingTwice) {
  const auto [first, last] = seeds();
  for (uint64_t seed = first; seed <= last; ++seed) {
    FaultyCluster world(seed);
    world.run();
    ASSERT_TRUE(world.finish()) << "seed " << seed;
    world.check();
    ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed;
  }
}

// A seed with which what a root had said comes behind the words of the next one.
TEST(ClusterFaults, HearNoRootThatHasGone) {
  FaultyCluster world(1733);
  world.run();
  ASSERT_TRUE(world.finish());
  world.check();
}

// The query ends meanwhile, as nobody listens; what it gave until then is there for some time.
TEST(ClusterFaults, LoseNoRowForAnAskerThatComesBackLate) {
  FaultyCluster world(1);
  world.cut_off_the_asker(13 * kSecond);
  ASSERT_TRUE(world.finish());
  world.check();
}

}  // namespace
}  // namespace clew::cluster

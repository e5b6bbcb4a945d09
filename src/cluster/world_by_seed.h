// SPDX-License-Identifier: Apache-2.0
// Test support: three nodes, a root with a store and who asks, on a bus on which everything goes
// wrong, by a seed, while roots and nodes are killed and cut off. What nodes count, and who asks,
// is the test's.
#pragma once

#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>

#include "cluster/bus_faulty.h"
#include "cluster/world_testing.h"

namespace clew::cluster {

inline Faults faults_of(std::mt19937_64& random) {
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

template <typename OneNode, typename OneAsker>
class WorldBySeed {
 public:
  WorldBySeed(const WorldBySeed&) = delete;
  WorldBySeed& operator=(const WorldBySeed&) = delete;
  virtual ~WorldBySeed() = default;

  // Everything happens.
  void run(int steps) {
    for (int i = 0; i < steps; ++i) {
      step();
      happen();
    }
  }
  // Nothing goes wrong any more. False: it does not end.
  bool finish(int steps) {
    hub_.heal();
    for (const char* name : {"a", "b", "c", "root", "asker"})
      hub_.cut(name, false);
    if (!root_) begin_root();
    for (int i = 0; i < steps; ++i)
      step();
    asker_->asker.end();
    for (int i = 0; i < 1'200 && !asker_->asker.is_done(); ++i)
      step();
    return asker_->asker.is_done();
  }

 protected:
  explicit WorldBySeed(uint64_t seed) : random_(seed), hub_(seed, faults_of(random_)) {}

  virtual std::unique_ptr<OneNode> new_node(const std::string& name, uint64_t incarnation) = 0;
  // To those that the test has, at each step.
  virtual void happen() = 0;
  // Behind each step, also of those in which nothing happens.
  virtual void look() {}

  void begin_all(std::unique_ptr<OneAsker> asker) {
    begin_root();
    for (const char* name : {"a", "b", "c"})
      begin_node(name);
    asker_ = std::move(asker);
    (void)asker_->asker.begin();
  }
  void step() {
    clock_.now += kSecond / 20;
    hub_.step();
    if (root_) root_->root.turn();
    for (auto& [name, each] : nodes_)
      each->node.turn();
    asker_->asker.turn();
    asker_->take();
    look();
  }
  bool chance(uint32_t in) { return random_() % in == 0; }

  void happen_to_root() {
    if (root_ && chance(150)) {
      root_.reset();
      store_.reset();
    } else if (!root_ && chance(40)) {
      begin_root(stores_are_away_ && chance(2));
    }
    if (!stores_are_away_ && chance(400)) hub_.lose_disk();
  }
  void happen_to_connections() {
    for (const char* name : {"a", "b", "c", "root", "asker"}) {
      if (chance(200)) cut(name, true);
      if (chance(30)) cut(name, false);
    }
  }
  void cut(const std::string& name, bool is_cut) {
    hub_.cut(name, is_cut);
    is_cut ? (void)cut_.insert(name) : (void)cut_.erase(name);
  }
  // And puts keys anew that are lost.
  [[nodiscard]] bool is_root_there() const {
    return root_ && root_->root.leads() && !cut_.contains("root");
  }
  // Of one node alone: the others have all that they counted.
  void kill_node_c() {
    nodes_.erase("c");
    killed_.insert("c");
    begin_node("c");
  }

  std::mt19937_64 random_;
  FaultyHub hub_;
  TestClock clock_;
  bool stores_are_away_ = false;  // Roots may be begun without one.
  std::set<std::string> killed_;
  std::set<std::string> cut_;
  TestFolder folder_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<TestRoot> root_;
  std::map<std::string, std::unique_ptr<OneNode>> nodes_;
  std::unique_ptr<OneAsker> asker_;

 private:
  void begin_root(bool is_bare = false) {
    if (!is_bare) store_ = Store::open(folder_.path()).value();
    root_ = std::make_unique<TestRoot>(hub_.connect("root"), "r" + std::to_string(++roots_), clock_,
                                       store_.get());
    while (!root_->root.begin())
      hub_.step();
  }
  void begin_node(const std::string& name) {
    nodes_[name] = new_node(name, ++incarnations_);
    (void)nodes_[name]->node.begin();
  }

  uint64_t roots_ = 0;
  uint64_t incarnations_ = 0;
};

}  // namespace clew::cluster

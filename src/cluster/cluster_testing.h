// SPDX-License-Identifier: Apache-2.0
// Test support: nodes, a root and an asker on a bus inside one process.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "cluster/bus_local.h"
#include "cluster/world_testing.h"

namespace clew::cluster {

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

}  // namespace clew::cluster

// SPDX-License-Identifier: Apache-2.0
// What a root gives beside those that ask: each hit is exported once, though nodes are late and
// roots are killed; and what its store forgets.
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sqlite3.h>

#include "cluster/bus_local.h"
#include "cluster/export_panes.h"
#include "cluster/names.h"
#include "cluster/results.h"
#include "cluster/store_answers.h"
#include "cluster/world_testing.h"

namespace clew::cluster {
namespace {

using testing::HasSubstr;

// A receiver that takes all, or nothing from some moment on.
class Place final : public output::OtlpPlace {
 public:
  void post(output::OtlpRequest request) override {
    if (!takes) return;
    const auto body = nlohmann::json::parse(request.body);
    const auto& metric = body["resourceMetrics"][0]["scopeMetrics"][0]["metrics"][0];
    for (const auto& point : metric["sum"]["dataPoints"]) {
      const std::string node = point["attributes"][0]["value"]["stringValue"];
      const std::string begin = point["startTimeUnixNano"];
      const auto [known, is_new] = points.try_emplace({node, begin});
      known->second = std::stoull(point["asInt"].get<std::string>());
      if (!is_new) ++doubles;
    }
    if (request.mark != 0) mark = request.mark;
  }
  void uncorrected(uint64_t count) override { uncorrected_values += count; }
  [[nodiscard]] std::optional<uint64_t> done(const std::string&, uint64_t) const override {
    return mark;
  }
  void forget(const std::string& query) override { forgotten.insert(query); }

  // Of each node, where a point that comes again is the same one.
  [[nodiscard]] std::map<std::string, uint64_t> sums() const {
    std::map<std::string, uint64_t> sums;
    for (const auto& [of, count] : points)
      sums[of.first] += count;
    return sums;
  }

  bool takes = true;
  std::map<std::pair<std::string, std::string>, uint64_t> points;  // By node and begin.
  int doubles = 0;
  uint64_t uncorrected_values = 0;
  std::optional<uint64_t> mark;
  std::set<std::string> forgotten;
};

class Exports : public testing::Test {
 protected:
  void add_node(const std::string& name, uint64_t incarnation = 1) {
    nodes_[name].reset();
    nodes_[name] =
        std::make_unique<TestNode>(hub_.connect(), name, clock_, truth_, Labels{}, incarnation);
    ASSERT_TRUE(nodes_[name]->node.begin());
  }
  void begin_root(RootOptions options = {}) {
    root_.reset();
    exports_ = std::make_unique<ExportPanes>(ExportOptions{.otlp = &place_, .version = "1"});
    store_.reset();
    store_ = Store::open(folder_.path()).value();
    bus_ = hub_.connect();
    options.name = "r" + std::to_string(++roots_);
    options.exports = exports_.get();
    root_ = std::make_unique<Root>(*bus_, clock_, options, store_.get());
    ASSERT_TRUE(root_->begin());
  }
  void stand() {
    asker_ = std::make_unique<TestAsker>(
        hub_.connect(), clock_,
        Ask{.query = "q1", .is_standing = true, .text = kFakeText, .width_ns = kSecond});
    ASSERT_TRUE(asker_->asker.begin());
  }
  void step() {
    clock_.now += kSecond / 20;
    if (root_) root_->turn();
    for (auto& [name, each] : nodes_) {
      if (!away_.contains(name)) each->node.turn();
    }
    if (root_) root_->turn();
    if (asker_) asker_->asker.turn();
  }
  void run(int64_t duration) {
    for (const int64_t end = clock_.now + duration; clock_.now < end;)
      step();
  }
  void end_query() {
    asker_->asker.end();
    for (int i = 0; i < 1'000 && !asker_->asker.is_done(); ++i)
      step();
    EXPECT_TRUE(asker_->asker.is_done());
    run(kSecond);
  }
  [[nodiscard]] std::map<std::string, uint64_t> sums() const {
    std::map<std::string, uint64_t> sums;
    for (const auto& [where, count] : truth_)
      sums[where.second] += count;
    return sums;
  }
  // As `clew results q1 --store` shows them.
  std::pair<std::vector<uint64_t>, std::vector<std::string>> results(uint64_t first = 1) {
    struct Seen final : output::RowSink {
      void begin(output::Columns, output::RowMode) override {}
      void row(std::span<const aggregate::Value>) override {}
      void end_interval(const output::Interval& interval) override {
        numbers.push_back(interval.number);
      }
      void finish(const collect::Losses& losses) override { lost = losses.lost; }
      std::vector<uint64_t> numbers;
      std::vector<std::string> lost;
    } seen;
    StoreAnswers answers(*store_);
    const auto accept = [](output::Columns) { return Expected<void>{}; };
    const auto shown =
        show_results(answers, {.query = "q1", .first = first, .accept = accept}, seen);
    EXPECT_TRUE(shown);
    return {seen.numbers, seen.lost};
  }
  [[nodiscard]] size_t kept_panes() {
    const auto panes = store_->read_panes(
        "q1", {.first = std::numeric_limits<Pane>::min(), .last = std::numeric_limits<Pane>::max()},
        std::numeric_limits<size_t>::max());
    return panes->size();
  }

  LocalHub hub_;
  TestClock clock_;
  Truth truth_;
  TestFolder folder_;
  Place place_;
  int roots_ = 0;
  std::set<std::string> away_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<ExportPanes> exports_;
  std::unique_ptr<Bus> bus_;
  std::map<std::string, std::unique_ptr<TestNode>> nodes_;
  std::unique_ptr<Root> root_;
  std::unique_ptr<TestAsker> asker_;
};

TEST_F(Exports, HaveEachHitOfAStandingQueryOnce) {
  begin_root();
  add_node("a");
  add_node("b");
  stand();
  run(10 * kSecond);
  EXPECT_GE(place_.points.size(), 16U) << "while it runs";
  end_query();
  EXPECT_EQ(place_.sums(), sums());
  EXPECT_EQ(place_.doubles, 0);
}

TEST_F(Exports, OfNodesThatAreLateGoWithLaterIntervals) {
  begin_root();
  add_node("a");
  add_node("b");
  stand();
  run(5 * kSecond);
  away_ = {"b"};
  run(12 * kSecond);
  EXPECT_LT(place_.sums()["b"], place_.sums()["a"]);
  away_.clear();
  run(10 * kSecond);
  end_query();
  EXPECT_EQ(place_.sums(), sums());
  EXPECT_EQ(place_.doubles, 0) << "no two points of a series have one time";
}

// Its first intervals come behind those of a node that has begun later.
TEST_F(Exports, HaveWhatANodeCountedBeforeAllOthersAndTellsLast) {
  begin_root();
  add_node("b");
  stand();
  run(3 * kSecond / 2);
  away_ = {"b"};
  run(3 * kSecond);
  add_node("a");
  run(12 * kSecond);
  ASSERT_GT(place_.sums()["a"], 0U);
  away_.clear();
  run(10 * kSecond);
  end_query();
  EXPECT_EQ(place_.sums(), sums());
  EXPECT_EQ(place_.doubles, 0);
  EXPECT_EQ(place_.uncorrected_values, 0U);
}

TEST_F(Exports, GoOnWhereTheReceiverWasWhenARootIsKilled) {
  begin_root();
  add_node("a");
  stand();
  run(6 * kSecond);
  place_.takes = false;  // The rest waits in the root, and dies with it.
  run(4 * kSecond);
  place_.takes = true;
  begin_root();
  run(12 * kSecond);
  end_query();
  EXPECT_EQ(place_.sums(), sums());
  EXPECT_EQ(place_.doubles, 0);
}

// What waits then is given again where it leads again.
TEST_F(Exports, EndWhereAnotherRootLeads) {
  begin_root();
  add_node("a");
  stand();
  run(6 * kSecond);
  const auto other = hub_.connect();
  const auto known = other->get(bucket_of("default"), kRootKey);
  ASSERT_TRUE(known && *known);
  ASSERT_TRUE(other->put(bucket_of("default"), kRootKey, to_bytes(Leader{.root = "x"}),
                         (*known)->revision));
  run(2 * kSecond);
  EXPECT_THAT(root_->take_notes(), testing::Contains("another root leads"));
  EXPECT_EQ(place_.forgotten, std::set<std::string>{"q1"});
  run(60 * kSecond);
  EXPECT_THAT(root_->take_notes(), testing::Contains("this root leads"));
  end_query();
  EXPECT_EQ(place_.sums(), sums());
  EXPECT_EQ(place_.doubles, 0);
}

TEST_F(Exports, AreOfStandingQueriesAlone) {
  begin_root();
  add_node("a");
  asker_ = std::make_unique<TestAsker>(hub_.connect(), clock_,
                                       Ask{.query = "q2", .text = kFakeText, .width_ns = kSecond});
  ASSERT_TRUE(asker_->asker.begin());
  run(5 * kSecond);
  EXPECT_TRUE(place_.points.empty());
}

// --- what is kept --------------------------------------------------------------------------------

TEST_F(Exports, AStoreKeepsIntervalsAsLongAsItIsTold) {
  begin_root({.keep_ns = 10 * kSecond});
  add_node("a");
  stand();
  run(60 * kSecond);
  EXPECT_LE(kept_panes(), 13U);
  EXPECT_GE(kept_panes(), 9U);
  const auto [numbers, lost] = results();
  ASSERT_FALSE(numbers.empty());
  EXPECT_GE(numbers.front(), 45U) << "they keep their numbers";
  EXPECT_LE(numbers.back(), 61U);
  ASSERT_EQ(lost.size(), 1U);
  EXPECT_THAT(lost[0], HasSubstr("intervals 1 to " + std::to_string(numbers.front() - 1) +
                                 " are not kept: there is something from 20"));
  EXPECT_TRUE(results(numbers.front()).second.empty()) << "of these nothing is missing";
  end_query();
  EXPECT_EQ(place_.sums(), sums()) << "it was counted all the same";
  run(40 * kSecond);
  EXPECT_TRUE(store_->list()->empty()) << "the query has ended long ago";
}

TEST_F(Exports, AStoreHasNoMoreThanItMay) {
  begin_root();
  const uint64_t empty = store_->bytes().value();
  constexpr uint64_t kPage = 4'096;
  begin_root({.keep_bytes = empty + 2 * kPage});
  add_node("a");
  stand();
  run(100 * kSecond);
  EXPECT_LE(store_->bytes().value(), empty + 4 * kPage);
  EXPECT_LT(kept_panes(), 80U);
  const auto [numbers, lost] = results();
  ASSERT_FALSE(numbers.empty());
  EXPECT_GE(numbers.back(), 95U) << "the newest are there";
}

TEST_F(Exports, AStoreForgetsFirstWhatNobodyCanRead) {
  begin_root();
  const uint64_t empty = store_->bytes().value();
  constexpr uint64_t kPage = 4'096;
  store_->put(StoredQuery{.want = {.query = "q0", .text = kFakeText}, .given = 100});
  for (Pane pane = 1; pane <= 100; ++pane)
    store_->put("q0", StoredPane{.pane = pane, .table = Bytes(kPage)});
  ASSERT_TRUE(store_->commit());
  sqlite3* file = nullptr;
  ASSERT_EQ(sqlite3_open((folder_.path() + "/clew-root.sqlite").c_str(), &file), SQLITE_OK);
  EXPECT_EQ(sqlite3_exec(file, "update query set want = x'01'", nullptr, nullptr, nullptr),
            SQLITE_OK);
  (void)sqlite3_close(file);
  begin_root({.keep_bytes = empty + 32 * kPage});
  add_node("a");
  stand();
  run(30 * kSecond);
  EXPECT_LE(store_->bytes().value(), empty + 36 * kPage);
  EXPECT_GE(kept_panes(), 20U);
}

TEST_F(Exports, AStoreForgetsLivesOfWhichNothingIsKept) {
  begin_root({.keep_ns = 10 * kSecond});
  stand();
  for (uint64_t life = 1; life <= 8; ++life) {
    add_node("a", life);
    run(5 * kSecond);
  }
  EXPECT_GE(store_->read_head("q1")->members.size(), 2U);
  run(100 * kSecond);
  EXPECT_EQ(store_->read_head("q1")->members.size(), 1U);
  // Nor do they come back with what is left of the log.
  begin_root({.keep_ns = 10 * kSecond});
  run(20 * kSecond);
  EXPECT_EQ(store_->read_head("q1")->members.size(), 1U);
}

TEST_F(Exports, WhatWasForgottenStaysSoWhenARootBeginsAnew) {
  begin_root({.keep_ns = 10 * kSecond});
  add_node("a");
  stand();
  run(30 * kSecond);
  const std::vector<uint64_t> before = results().first;
  begin_root({.keep_ns = 10 * kSecond});
  run(10 * kSecond);
  const std::vector<uint64_t> after = results().first;
  ASSERT_FALSE(before.empty() || after.empty());
  EXPECT_GE(after.front(), before.front());
  end_query();
  EXPECT_EQ(place_.sums(), sums());
  EXPECT_LE(place_.doubles, 1) << "what was on its way when the root was killed";
}

TEST_F(Exports, AStoreThatCannotForgetSaysSoOnce) {
  begin_root({.keep_ns = 10 * kSecond});
  add_node("a");
  stand();
  sqlite3* other = nullptr;
  ASSERT_EQ(sqlite3_open((folder_.path() + "/clew-root.sqlite").c_str(), &other), SQLITE_OK);
  const auto run_sql = [other](const char* sql) {
    EXPECT_EQ(sqlite3_exec(other, sql, nullptr, nullptr, nullptr), SQLITE_OK);
  };
  run_sql("create trigger fails before insert on forgotten begin select raise(abort, 'full'); end");
  run(20 * kSecond);
  const auto told = [this]() {
    size_t times = 0;
    for (const std::string& note : root_->take_notes())
      times += note.starts_with("the store forgets nothing: ") ? 1 : 0;
    return times;
  };
  EXPECT_EQ(told(), 1U);
  EXPECT_GE(kept_panes(), 17U) << "the rest is written all the same";
  run_sql("drop trigger fails");
  run(2 * kSecond);
  EXPECT_LE(kept_panes(), 13U);
  EXPECT_EQ(told(), 0U);
  (void)sqlite3_close(other);
}

TEST_F(Exports, ListsOfAnswersHaveTimesAndRefusals) {
  begin_root();
  add_node("a");
  add_node("b");
  nodes_["b"]->sessions.refusal = "no function 'f'";
  stand();
  run(10 * kSecond);
  const auto listed = store_->list().value();
  ASSERT_EQ(listed.size(), 1U);
  EXPECT_EQ(listed[0].refused, "no function 'f' (b)");
  const auto seconds = static_cast<int64_t>(listed[0].intervals);
  EXPECT_EQ(listed[0].given_ns - listed[0].begun_ns, seconds * kSecond);
  EXPECT_GE(seconds, 8);
  EXPECT_LE(listed[0].given_ns, clock_.realtime_ns());
  EXPECT_GE(listed[0].given_ns, clock_.realtime_ns() - 3 * kSecond);
}

}  // namespace
}  // namespace clew::cluster

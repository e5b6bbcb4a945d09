// SPDX-License-Identifier: Apache-2.0
#include "causal/graph.h"

#include <array>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace clew::causal {
namespace {

constexpr Thread kFirst{1, 1};
constexpr Thread kSecond{1, 2};
constexpr Thread kThird{2, 3};
constexpr auto kHow = EdgeClass::Explicit;

bool happened_before(const Graph& graph, const Moment& a, const Moment& b) {
  if (a.request != b.request) return false;
  for (const Reach& reach : graph.before(b)) {
    if (reach.segment == a.segment) return a.step <= reach.step;
  }
  return false;
}

std::optional<Moment> counted(Graph& graph, Thread thread) {
  const std::optional<Moment> moment = graph.event(thread);
  if (moment) graph.count(thread);
  return moment;
}

TEST(Graph, EventsOfAThreadFollowEachOther) {
  Graph graph;
  graph.begin(kFirst);
  const Moment a = *counted(graph, kFirst);
  const Moment b = *counted(graph, kFirst);
  EXPECT_TRUE(happened_before(graph, a, b));
  EXPECT_FALSE(happened_before(graph, b, a));
  EXPECT_FALSE(happened_before(graph, a, a));
  EXPECT_EQ(a.number, 1);
  EXPECT_EQ(b.number, 2);
  EXPECT_EQ(graph.event(kFirst)->number, 3);
  EXPECT_EQ(graph.event(kFirst)->number, 3) << "the one before was not counted";
}

TEST(Graph, AnEventWithoutARequestIsAnOrphan) {
  Graph graph;
  EXPECT_FALSE(graph.event(kFirst));
  graph.begin(kFirst);
  EXPECT_TRUE(graph.event(kFirst));
  EXPECT_FALSE(graph.event(kSecond));
  graph.end(kFirst);
  EXPECT_FALSE(graph.event(kFirst));
  EXPECT_EQ(graph.counts().orphans, 3);
}

TEST(Graph, WhatIsTakenIsBehindWhatWasPutAndNotBehindWhatCameLater) {
  Graph graph;
  graph.begin(kFirst);
  const Moment before = *counted(graph, kFirst);
  graph.put(kFirst, {1, 77});
  const Moment later = *graph.event(kFirst);
  graph.take(kSecond, {1, 77}, kHow);
  const Moment there = *graph.event(kSecond);
  EXPECT_TRUE(happened_before(graph, before, there));
  EXPECT_FALSE(happened_before(graph, later, there));
  EXPECT_FALSE(happened_before(graph, there, later));
  EXPECT_EQ(there.number, 2);
}

TEST(Graph, AThreadThatJoinsIsBehindBoth) {
  Graph graph;
  graph.begin(kFirst);
  graph.put(kFirst, {1, 1});
  const Moment own = *graph.event(kFirst);
  graph.take(kSecond, {1, 1}, kHow);
  const Moment other = *graph.event(kSecond);
  graph.put(kSecond, {1, 2});
  graph.join(kFirst, {1, 2}, kHow);
  const Moment both = *graph.event(kFirst);
  EXPECT_TRUE(happened_before(graph, own, both));
  EXPECT_TRUE(happened_before(graph, other, both));
  EXPECT_EQ(graph.counts().edges[0], 2);
}

TEST(Graph, WhatNobodyHasPutIsUnknown) {
  Graph graph;
  graph.begin(kFirst);
  graph.take(kFirst, {1, 5}, kHow);
  EXPECT_FALSE(graph.event(kFirst));
  EXPECT_EQ(graph.counts().missing, 1);
}

// A pool that uses memory again: an object that is put without a request carries none.
TEST(Graph, APutWithoutARequestForgetsWhatTheKeyHad) {
  Graph graph;
  graph.begin(kFirst);
  graph.put(kFirst, {1, 5});
  graph.put(kThird, {1, 5});
  graph.take(kSecond, {1, 5}, kHow);
  EXPECT_FALSE(graph.event(kSecond));
}

TEST(Graph, RequestsAreNotMixed) {
  Graph graph;
  graph.begin(kFirst);
  graph.put(kFirst, {1, 1});
  graph.begin(kSecond);
  const Moment mine = *graph.event(kSecond);
  graph.join(kSecond, {1, 1}, kHow);
  EXPECT_EQ(graph.event(kSecond)->request, mine.request);
  EXPECT_EQ(graph.counts().mixed, 1);
}

TEST(Graph, AChildGoesOnWhereItsParentIs) {
  Graph graph;
  graph.begin(kFirst);
  const Moment before = *graph.event(kFirst);
  graph.fork(kFirst, kThird, EdgeClass::Sound);
  const Moment later = *graph.event(kFirst);
  const Moment there = *graph.event(kThird);
  EXPECT_TRUE(happened_before(graph, before, there));
  EXPECT_FALSE(happened_before(graph, later, there));
  graph.fork(kSecond, kThird, EdgeClass::Sound);
  EXPECT_FALSE(graph.event(kThird));
  EXPECT_EQ(graph.counts().edges[1], 1);
}

// --- edges that are not known well enough --------------------------------------------------------

// Whoever takes leaves its request for another one, though nobody knows which.
TEST(Graph, WhatIsTakenByAWeakEdgeIsUnknown) {
  Graph graph({}, EdgeClass::Recipe);
  graph.begin(kFirst);
  graph.put(kFirst, {1, 1});
  graph.put(kFirst, {1, 2});
  graph.begin(kSecond);
  graph.take(kSecond, {1, 1}, EdgeClass::Heuristic);
  EXPECT_FALSE(graph.event(kSecond));
  graph.take(kSecond, {1, 2}, EdgeClass::Recipe);
  EXPECT_TRUE(graph.event(kSecond));
  EXPECT_EQ(graph.counts().weak, 1);
  EXPECT_EQ(graph.counts().edges, (std::array<uint64_t, kEdgeClasses>{0, 0, 1, 0}));
}

TEST(Graph, AnEdgeIsKnownAsWellAsTheWorseOfItsEnds) {
  Graph graph({}, EdgeClass::Recipe);
  graph.begin(kFirst);
  graph.put(kFirst, {1, 1}, EdgeClass::Recipe);
  graph.take(kSecond, {1, 1}, EdgeClass::Explicit);
  EXPECT_TRUE(graph.event(kSecond));
  EXPECT_EQ(graph.counts().edges, (std::array<uint64_t, kEdgeClasses>{0, 0, 1, 0}));
  graph.put(kFirst, {1, 1}, EdgeClass::Heuristic);
  graph.take(kSecond, {1, 1}, EdgeClass::Explicit);
  EXPECT_FALSE(graph.event(kSecond));
  // The last one to put is the one that counts.
  graph.put(kFirst, {1, 1}, EdgeClass::Sound);
  graph.take(kSecond, {1, 1}, EdgeClass::Sound);
  EXPECT_TRUE(graph.event(kSecond));
  EXPECT_EQ(graph.counts().weak, 1);
}

// Behind it, what happened before the thread's events is not known whole: the first of it could be
// another one.
TEST(Graph, AThreadBehindAWeakJoinIsInNoRequest) {
  Graph graph({}, EdgeClass::Sound);
  graph.begin(kFirst);
  graph.put(kFirst, {1, 1});
  graph.take(kSecond, {1, 1}, EdgeClass::Explicit);
  graph.put(kSecond, {1, 2});
  graph.join(kFirst, {1, 2}, EdgeClass::Recipe);
  EXPECT_FALSE(graph.event(kFirst));
  EXPECT_TRUE(graph.event(kSecond));
  EXPECT_EQ(graph.counts().weak, 1);
}

TEST(Graph, AChildByAWeakEdgeIsInNoRequest) {
  Graph graph({}, EdgeClass::Explicit);
  graph.begin(kFirst);
  graph.fork(kFirst, kThird, EdgeClass::Sound);
  EXPECT_FALSE(graph.event(kThird));
  EXPECT_TRUE(graph.event(kFirst));
  EXPECT_EQ(graph.counts().weak, 1);
}

TEST(Graph, ARequestThatBeginsByAWeakRuleIsNone) {
  Graph graph({}, EdgeClass::Recipe);
  graph.begin(kFirst);
  graph.begin(kFirst, EdgeClass::Heuristic);
  EXPECT_FALSE(graph.event(kFirst));
  EXPECT_EQ(graph.counts().weak, 1);
  EXPECT_EQ(graph.counts().requests, 1);
  EXPECT_EQ(graph.take_gone().size(), 1);
}

TEST(Graph, ARequestIsOverWhenNobodyIsInIt) {
  Graph graph;
  graph.begin(kFirst);
  graph.put(kFirst, {1, 1});
  graph.end(kFirst);
  EXPECT_TRUE(graph.take_gone().empty());
  graph.take(kSecond, {1, 1}, kHow);
  graph.put(kThird, {1, 1});  // The key is used again, outside of requests.
  EXPECT_TRUE(graph.take_gone().empty());
  EXPECT_TRUE(graph.event(kSecond));
  graph.begin(kSecond);
  EXPECT_EQ(graph.take_gone(), std::vector<uint64_t>{1});
  EXPECT_EQ(graph.counts().forgotten, 0);
}

TEST(Graph, TheLeastRecentlyUsedRequestIsForgotten) {
  Graph graph({.requests = 2});
  graph.begin(kFirst);
  graph.begin(kSecond);
  ASSERT_TRUE(graph.event(kFirst));
  graph.begin(kThird);
  EXPECT_EQ(graph.take_gone(), std::vector<uint64_t>{2});
  EXPECT_TRUE(graph.event(kFirst));
  EXPECT_FALSE(graph.event(kSecond));
  EXPECT_EQ(graph.counts().forgotten, 1);
}

TEST(Graph, TheOldestContextIsForgottenWhereThereAreTooMany) {
  Graph graph({.contexts = 2});
  graph.begin(kFirst);
  for (uint64_t object = 1; object <= 3; ++object)
    graph.put(kFirst, {1, object});
  graph.take(kSecond, {1, 1}, kHow);
  EXPECT_FALSE(graph.event(kSecond));
  graph.take(kSecond, {1, 3}, kHow);
  EXPECT_TRUE(graph.event(kSecond));
}

TEST(Graph, TheOldestThreadIsForgottenWhereThereAreTooMany) {
  Graph graph({.threads = 2});
  graph.begin(kFirst);
  graph.begin(kSecond);
  graph.begin(kThird);
  EXPECT_FALSE(graph.event(kFirst));
  EXPECT_TRUE(graph.event(kSecond));
  EXPECT_TRUE(graph.event(kThird));
}

// Hands over and back, an event each time, `count` times.
void hand_over(Graph& graph, Thread from, Thread to, int count) {
  for (int i = 0; i < count; ++i) {
    (void)graph.event(from);
    graph.put(from, {1, 9});
    graph.take(to, {1, 9}, kHow);
    std::swap(from, to);
  }
}

TEST(Graph, ARequestOfTooManySegmentsIsForgotten) {
  Graph graph({.segments = 3});
  graph.begin(kFirst);
  hand_over(graph, kFirst, kSecond, 2);
  EXPECT_TRUE(graph.event(kFirst));
  hand_over(graph, kFirst, kSecond, 1);
  EXPECT_FALSE(graph.event(kFirst));
  EXPECT_FALSE(graph.event(kSecond));
  EXPECT_EQ(graph.counts().forgotten, 1);
}

TEST(Graph, TheLeastRecentlyUsedMakesRoomForWhatOthersKnow) {
  Graph graph({.reaches = 100});
  graph.begin(kThird);
  graph.begin(kFirst);
  hand_over(graph, kFirst, kSecond, 10);  // 1 + 2 + … + 10
  EXPECT_TRUE(graph.event(kThird));
  EXPECT_TRUE(graph.event(kFirst));
  hand_over(graph, kFirst, kSecond, 10);
  EXPECT_FALSE(graph.event(kThird));
  EXPECT_FALSE(graph.event(kFirst));  // It was alone, and still too much.
  EXPECT_EQ(graph.counts().forgotten, 2);
}

TEST(Graph, BehindALossNothingIsKnown) {
  Graph graph;
  graph.begin(kFirst);
  graph.put(kFirst, {1, 1});
  graph.lose();
  EXPECT_EQ(graph.take_gone(), std::vector<uint64_t>{1});
  EXPECT_FALSE(graph.event(kFirst));
  graph.take(kSecond, {1, 1}, kHow);
  EXPECT_FALSE(graph.event(kSecond));
}

// --- against histories that are written out as sets ----------------------------------------------

// All that happened before, by number of the event: the definition itself.
struct Past {
  uint64_t request = 0;
  std::set<int> events;
};

class GraphModel {
 public:
  explicit GraphModel(uint64_t seed) : random_(seed) {}

  // Compares what the graph says of each event with its history.
  void run(int steps) {
    for (int i = 0; i < steps; ++i)
      step();
  }
  [[nodiscard]] size_t compared() const { return compared_; }

 private:
  static constexpr int64_t kThreads = 6;
  static constexpr uint64_t kKeys = 8;

  Thread any_thread() { return {1, 1 + static_cast<int64_t>(random_() % kThreads)}; }

  void step() {
    const Thread thread = any_thread();
    const ContextKey key{1, random_() % kKeys};
    const uint64_t dice = random_() % 100;
    if (dice < 2) return begin(thread);
    if (dice < 3) {
      graph_.end(thread);
      threads_.erase(thread);
    } else if (dice < 20) {
      graph_.put(thread, key);
      keys_.erase(key);
      if (threads_.contains(thread)) keys_[key] = threads_[thread];
    } else if (dice < 28) {
      graph_.take(thread, key, kHow);
      move(thread, keys_.contains(key) ? &keys_[key] : nullptr);
    } else if (dice < 40) {
      join(thread, key);
    } else {
      event(thread);
    }
  }

  void begin(Thread thread) {
    graph_.begin(thread);
    threads_[thread] = {.request = ++requests_, .events = {}};
  }

  void move(Thread thread, const Past* to) {
    if (to == nullptr) {
      threads_.erase(thread);
    } else {
      threads_[thread] = *to;
    }
  }

  void join(Thread thread, ContextKey key) {
    graph_.join(thread, key, kHow);
    if (!keys_.contains(key)) return;
    if (!threads_.contains(thread)) return move(thread, &keys_[key]);
    if (threads_[thread].request == keys_[key].request)
      threads_[thread].events.insert(keys_[key].events.begin(), keys_[key].events.end());
  }

  void event(Thread thread) {
    const std::optional<Moment> moment = counted(graph_, thread);
    ASSERT_EQ(moment.has_value(), threads_.contains(thread));
    if (!moment) return;
    Past& history = threads_[thread];
    std::set<int> said;
    for (const auto& [number, other] : moments_) {
      if (!happened_before(graph_, other, *moment)) continue;
      said.insert(number);
      ASSERT_LT(other.number, moment->number);
    }
    ASSERT_EQ(said, history.events);
    compared_ += said.size();
    moments_[++events_] = *moment;
    history.events.insert(events_);
  }

  std::mt19937_64 random_;
  Graph graph_;
  uint64_t requests_ = 0;
  int events_ = 0;
  size_t compared_ = 0;
  std::map<Thread, Past> threads_;
  std::map<ContextKey, Past> keys_;
  std::map<int, Moment> moments_;
};

TEST(Graph, SaysOfEachEventWhatHappenedBefore) {
  size_t compared = 0;
  for (uint64_t seed = 1; seed <= 50 && !testing::Test::HasFatalFailure(); ++seed) {
    GraphModel model(seed);
    model.run(1500);
    compared += model.compared();
  }
  EXPECT_GT(compared, 200'000);
}

// --- keys that gather ----------------------------------------------------------------------------

constexpr ContextKey kHome{.pid = 1, .object = 1, .kind = ContextKey::Kind::Home};
constexpr ContextKey kBytes{.object = 1, .kind = ContextKey::Kind::Bytes};

TEST(Graph, WhatSeveralThreadsDidIsBehindWhoeverEntersNext) {
  Graph graph;
  graph.begin(kFirst);
  const Moment asked = *graph.event(kFirst);
  graph.gather(kFirst, kHome);
  graph.fork(kFirst, kSecond, kHow);
  const Moment beside = *graph.event(kSecond);
  const Moment own = *graph.event(kFirst);
  graph.gather(kSecond, kHome);
  graph.gather(kFirst, kHome);
  graph.enter(kThird, {{kHome}}, kHow);
  const Moment later = *graph.event(kThird);
  for (const Moment& one : {asked, beside, own})
    EXPECT_TRUE(happened_before(graph, one, later));
  EXPECT_FALSE(happened_before(graph, beside, own));
}

TEST(Graph, AThreadThatComesBackGoesOnInItsSegment) {
  Graph graph;
  graph.begin(kFirst);
  const Moment before = *graph.event(kFirst);
  for (int i = 0; i < 10'000; ++i) {
    graph.gather(kFirst, kHome);
    graph.end(kFirst);
    graph.enter(kFirst, {{kHome}}, kHow);
  }
  const Moment behind = *graph.event(kFirst);
  EXPECT_EQ(behind.segment, before.segment);
  EXPECT_TRUE(happened_before(graph, before, behind));
  // Behind another thread it is another one.
  graph.gather(kFirst, kHome);
  graph.end(kFirst);
  graph.enter(kSecond, {{kHome}}, kHow);
  const Moment other = *graph.event(kSecond);
  graph.gather(kSecond, kHome);
  graph.enter(kFirst, {{kHome}}, kHow);
  const Moment last = *graph.event(kFirst);
  EXPECT_NE(last.segment, before.segment);
  EXPECT_TRUE(happened_before(graph, other, last));
  EXPECT_TRUE(happened_before(graph, behind, last));
}

TEST(Graph, WhoEntersIsBehindTheKeysOfOneRequest) {
  Graph graph;
  graph.begin(kFirst);
  const Moment one = *graph.event(kFirst);
  graph.put(kFirst, kBytes);
  graph.begin(kSecond);
  const Moment other = *graph.event(kSecond);
  graph.put(kSecond, kHome);
  graph.enter(kThird, {{kBytes, kHome}}, kHow);
  const Moment later = *graph.event(kThird);
  EXPECT_TRUE(happened_before(graph, one, later));
  EXPECT_FALSE(happened_before(graph, other, later));
  graph.enter(kThird, {{ContextKey{.pid = 9, .object = 9}}}, kHow);
  EXPECT_FALSE(graph.event(kThird)) << "unknown is better than wrong";
  EXPECT_EQ(graph.counts().missing, 1);
}

TEST(Graph, ACopyIsWhereItsKeyWas) {
  Graph graph;
  graph.begin(kFirst);
  const Moment before = *graph.event(kFirst);
  graph.put(kFirst, kHome);
  graph.copy(kHome, kBytes);
  const Moment later = *graph.event(kFirst);
  graph.forget(kHome);
  EXPECT_FALSE(graph.request_of(kHome));
  EXPECT_EQ(graph.request_of(kBytes), before.request);
  graph.enter(kSecond, {{kBytes}}, kHow);
  const Moment there = *graph.event(kSecond);
  EXPECT_TRUE(happened_before(graph, before, there));
  EXPECT_FALSE(happened_before(graph, later, there));
  graph.copy(kHome, kBytes);
  EXPECT_FALSE(graph.request_of(kBytes));
}

// --- who watches --------------------------------------------------------------------------------

std::string text_of(const Moment& at) {
  return std::to_string(at.request) + "." + std::to_string(at.segment) + "." +
         std::to_string(at.step);
}

class Watcher final : public GraphObserver {
 public:
  void begins(Thread thread, const Moment& at) override {
    said.push_back("begins " + std::to_string(thread.tid) + " " + text_of(at));
  }
  void puts(const ContextKey& key, const Moment& at) override {
    said.push_back("puts " + std::to_string(key.object) + " " + text_of(at));
  }
  void goes_on(Thread thread, const Moment& at, const Crossing& crossing) override {
    std::string text = "goes on " + std::to_string(thread.tid) + " " + text_of(at);
    if (crossing.own) text += " own " + text_of(*crossing.own);
    for (const From& from : crossing.from) {
      text += " from " + text_of(from.place);
      if (from.key) text += " by " + std::to_string(from.key->object);
    }
    said.push_back(text);
  }
  void leaves(const Moment& at) override { said.push_back("leaves " + text_of(at)); }
  void comes_back(const Moment& at) override { said.push_back("comes back " + text_of(at)); }
  void comes_together(const Moment& at) override { said.push_back("together " + text_of(at)); }
  void is_gone(uint64_t request, bool is_over) override {
    said.push_back((is_over ? "over " : "forgotten ") + std::to_string(request));
  }

  std::vector<std::string> take() { return std::exchange(said, {}); }
  std::vector<std::string> said;
};

using Said = std::vector<std::string>;

TEST(Graph, SaysWhatBecomesOfRequests) {
  Watcher watcher;
  Graph graph({}, EdgeClass::Heuristic, &watcher);
  graph.begin(kFirst);
  (void)graph.event(kFirst);
  graph.put(kFirst, {1, 7});
  graph.take(kSecond, {1, 7}, kHow);
  graph.fork(kSecond, kThird, EdgeClass::Sound);
  EXPECT_EQ(watcher.take(),
            (Said{"begins 1 1.0.0", "puts 7 1.0.1", "goes on 2 1.1.0 from 1.0.1 by 7",
                  "goes on 3 1.2.0 from 1.1.0"}));
  (void)graph.event(kSecond);
  graph.put(kSecond, {1, 7});
  graph.join(kFirst, {1, 7}, kHow);
  EXPECT_EQ(watcher.take(),
            (Said{"puts 7 1.1.1", "leaves 1.0.1", "goes on 1 1.3.0 own 1.0.1 from 1.1.1 by 7"}));
  graph.take(kFirst, {1, 99}, kHow);  // Nobody has put it.
  graph.end(kSecond);
  graph.end(kThird);
  EXPECT_EQ(watcher.take(), (Said{"leaves 1.3.0", "leaves 1.1.1", "leaves 1.2.0"}));
  graph.put(kThird, {1, 7});  // Without a request: the key has none any more.
  EXPECT_EQ(watcher.take(), Said{"over 1"});
}

TEST(Graph, SaysWhichRequestsAreForgotten) {
  Watcher watcher;
  Graph graph({.segments = 2}, EdgeClass::Heuristic, &watcher);
  graph.begin(kFirst);
  graph.put(kFirst, {1, 7});
  graph.take(kSecond, {1, 7}, kHow);
  watcher.take();
  graph.take(kThird, {1, 7}, kHow);  // A third segment.
  EXPECT_EQ(watcher.take(), Said{"forgotten 1"});
  graph.begin(kSecond);
  EXPECT_EQ(watcher.take(), (Said{"leaves 1.1.0", "begins 2 2.0.0"}));
  graph.lose();
  EXPECT_EQ(watcher.take(), Said{"forgotten 2"});
}

TEST(Graph, SaysWhereThreadsComeBackAndTogether) {
  Watcher watcher;
  Graph graph({}, EdgeClass::Heuristic, &watcher);
  graph.begin(kFirst);
  (void)graph.event(kFirst);
  graph.gather(kFirst, kHome);
  graph.end(kFirst);
  graph.enter(kFirst, {{kHome}}, kHow);
  graph.fork(kFirst, kSecond, kHow);
  (void)graph.event(kSecond);
  (void)graph.event(kFirst);
  graph.gather(kFirst, kHome);
  watcher.take();
  graph.gather(kSecond, kHome);
  EXPECT_EQ(watcher.take(), (Said{"together 1.2.0", "puts 1 1.1.1"}));
  graph.end(kFirst);
  graph.gather(kSecond, kBytes);
  graph.enter(kThird, {{kHome, kBytes}}, kHow);
  EXPECT_EQ(watcher.take(),
            (Said{"leaves 1.0.2", "puts 1 1.1.1", "goes on 3 1.3.0 from 1.1.1 by 1"}));
}

}  // namespace
}  // namespace clew::causal

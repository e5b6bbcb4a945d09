// SPDX-License-Identifier: Apache-2.0
#include "cluster/bus_faulty.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <poll.h>

#include "cluster/bus_world.h"

namespace clew::cluster {
namespace {

constexpr int kMessages = 1000;
constexpr uint64_t kBytes = 1 << 20;

std::vector<std::string> texts_at(Bus& bus) {
  std::vector<std::string> texts;
  while (const auto message = bus.next())
    texts.push_back(text_of(message->bytes));
  return texts;
}

void publish_all(Bus& bus) {
  for (int i = 0; i < kMessages; ++i)
    EXPECT_TRUE(bus.publish("a", bytes_of(std::to_string(i))));
}

std::set<std::string> all_texts() {
  std::set<std::string> texts;
  for (int i = 0; i < kMessages; ++i)
    texts.insert(std::to_string(i));
  return texts;
}

// Everything goes wrong at times; what two ends saw of it.
std::vector<std::string> story_of(uint64_t seed) {
  FaultyHub hub(seed, {.lose = 0.1,
                       .twice = 0.1,
                       .late = 0.2,
                       .disconnect = 0.1,
                       .fail_before = 0.1,
                       .fail_after = 0.1});
  const auto one = hub.connect("one");
  const auto other = hub.connect("other");
  std::vector<std::string> story;
  EXPECT_TRUE(other->subscribe("a"));
  for (int i = 0; i < 200; ++i) {
    EXPECT_TRUE(one->publish("a", bytes_of(std::to_string(i))));
    story.push_back(one->make_log("log", "kept.*", kBytes) ? "made" : "not made");
    story.push_back(one->append("kept.a", std::to_string(i), {}) ? "kept" : "not kept");
    story.push_back(one->is_connected() ? "connected" : "not connected");
    hub.step();
    for (std::string& text : texts_at(*other))
      story.push_back(std::move(text));
  }
  return story;
}

TEST(FaultyBus, DoesTheSameForASeed) {
  const auto story = story_of(1);
  EXPECT_EQ(story_of(1), story);
  EXPECT_NE(story_of(2), story);
  for (const char* expected : {"kept", "not kept", "not connected"})
    EXPECT_NE(std::find(story.begin(), story.end(), expected), story.end()) << expected;
}

TEST(FaultyBus, LosesItsShareOfMessagesForEachEnd) {
  FaultyHub hub(1, {.lose = 0.3});
  const auto one = hub.connect("one");
  const auto other = hub.connect("other");
  const auto third = hub.connect("third");
  ASSERT_TRUE(other->subscribe("a"));
  ASSERT_TRUE(third->subscribe("*"));
  publish_all(*one);
  const auto texts = texts_at(*other);
  EXPECT_GT(texts.size(), 600U);
  EXPECT_LT(texts.size(), 800U);
  EXPECT_NE(texts_at(*third), texts);
}

TEST(FaultyBus, DeliversTwice) {
  FaultyHub hub(1, {.twice = 0.5});
  const auto one = hub.connect("one");
  ASSERT_TRUE(one->subscribe("a"));
  publish_all(*one);
  const auto texts = texts_at(*one);
  EXPECT_GT(texts.size(), 1400U);
  EXPECT_LT(texts.size(), 1600U);
  EXPECT_EQ(std::set<std::string>(texts.begin(), texts.end()), all_texts());
}

TEST(FaultyBus, DeliversLateAndInAnotherOrder) {
  FaultyHub hub(1, {.late = 0.5, .steps_max = 3});
  const auto one = hub.connect("one");
  ASSERT_TRUE(one->subscribe("a"));
  publish_all(*one);
  auto texts = texts_at(*one);
  EXPECT_LT(texts.size(), 600U);
  EXPECT_GT(texts.size(), 400U);
  for (int i = 0; i < 3; ++i) {
    hub.step();
    pollfd ready = {.fd = one->descriptor(), .events = POLLIN, .revents = 0};
    EXPECT_EQ(poll(&ready, 1, 0), 1);
    const auto later = texts_at(*one);
    EXPECT_GT(later.size(), 100U);
    texts.insert(texts.end(), later.begin(), later.end());
  }
  EXPECT_EQ(texts.size(), static_cast<size_t>(kMessages));
  EXPECT_EQ(std::set<std::string>(texts.begin(), texts.end()), all_texts());
  EXPECT_FALSE(std::is_sorted(texts.begin(), texts.end(), [](const auto& a, const auto& b) {
    return std::stoi(a) < std::stoi(b);
  }));
}

TEST(FaultyBus, DeliversAllThatIsLateWhenItIsHealed) {
  FaultyHub hub(1, {.late = 1, .disconnect = 1, .steps_max = 1000});
  const auto one = hub.connect("one");
  ASSERT_TRUE(one->subscribe("a"));
  publish_all(*one);
  EXPECT_TRUE(texts_at(*one).empty());
  hub.heal();
  const auto texts = texts_at(*one);
  EXPECT_EQ(std::set<std::string>(texts.begin(), texts.end()), all_texts());
  hub.step();
  EXPECT_TRUE(one->is_connected());
}

TEST(FaultyBus, LosesConnectionsForSomeSteps) {
  FaultyHub hub(1, {.disconnect = 0.2, .steps_max = 4});
  const auto one = hub.connect("one");
  ASSERT_TRUE(one->subscribe("a"));
  int lost = 0;
  int longest = 0;
  for (int i = 0, present = 0; i < 1000; ++i) {
    const bool was_connected = one->is_connected();
    hub.step();
    const bool is_connected = one->is_connected();
    pollfd ready = {.fd = one->descriptor(), .events = POLLIN, .revents = 0};
    EXPECT_EQ(poll(&ready, 1, 0) == 1, is_connected != was_connected);
    present = is_connected ? 0 : present + 1;
    longest = std::max(longest, present);
    if (!is_connected) ++lost;
    ASSERT_TRUE(one->publish("a", bytes_of("text")));
    EXPECT_EQ(texts_at(*one).size(), is_connected ? 1U : 0U);
  }
  EXPECT_GT(lost, 200);
  EXPECT_LT(lost, 500);
  EXPECT_EQ(longest, 4);
}

TEST(FaultyBus, FailsBeforeOrAfterItHappened) {
  FaultyHub before(1, {.fail_before = 1});
  FaultyHub after(1, {.fail_after = 1});
  for (FaultyHub* hub : {&before, &after}) {
    const auto one = hub->connect("one");
    EXPECT_EQ(one->make_log("log", "kept.*", kBytes).error().code, ErrorCode::Io);
    EXPECT_EQ(one->append("kept.a", "id", bytes_of("text")).error().code, ErrorCode::Io);
    EXPECT_EQ(one->put("keys", "key", bytes_of("text"), 0).error().code, ErrorCode::Io);
    hub->heal();
    const bool has_happened = hub == &after;
    ASSERT_TRUE(one->make_log("log", "kept.*", kBytes));
    EXPECT_EQ(one->read("log", 0, 10)->size(), has_happened ? 1U : 0U);
    EXPECT_EQ(one->get("keys", "key")->has_value(), has_happened);
    EXPECT_EQ(*one->append("kept.a", "id", bytes_of("text")), 1U);
    EXPECT_EQ(one->put("keys", "key", bytes_of("text"), 0).has_value(), !has_happened);
  }
}

TEST(FaultyBus, CutsOffWhomATestNames) {
  FaultyHub hub(1, {});
  const auto one = hub.connect("one");
  const auto other = hub.connect("other");
  ASSERT_TRUE(one->make_log("log", "kept.*", kBytes));
  ASSERT_TRUE(one->subscribe("a"));
  ASSERT_TRUE(other->subscribe("a"));
  ASSERT_TRUE(other->publish("a", bytes_of("before")));
  hub.cut("one");
  EXPECT_FALSE(one->is_connected());
  EXPECT_TRUE(other->is_connected());
  ASSERT_TRUE(other->publish("a", bytes_of("meanwhile")));
  ASSERT_TRUE(one->publish("a", bytes_of("from nowhere")));
  EXPECT_EQ(one->append("kept.a", "id", {}).error().code, ErrorCode::Io);
  EXPECT_EQ(texts_at(*one), (std::vector<std::string>{"before"}));
  hub.cut("one", false);
  ASSERT_TRUE(one->publish("a", bytes_of("after")));
  EXPECT_EQ(texts_at(*one), (std::vector<std::string>{"after"}));
  EXPECT_EQ(texts_at(*other), (std::vector<std::string>{"before", "meanwhile", "after"}));
}

TEST(FaultyBus, LosesTheEndOfALogAndGivesItsNumbersOnceMore) {
  FaultyHub hub(1, {});
  const auto one = hub.connect("one");
  ASSERT_TRUE(one->make_log("log", "kept.*", kBytes));
  ASSERT_TRUE(one->put("keys", "key", bytes_of("first"), 0));
  for (const char* text : {"a", "b", "c"})
    ASSERT_TRUE(one->append("kept.a", text, bytes_of(text)));
  ASSERT_TRUE(one->put("keys", "key", bytes_of("second"), 1));
  hub.lose_end(1, true);
  EXPECT_EQ(one->ends("log")->last, 2U);
  EXPECT_EQ(text_of((*one->get("keys", "key"))->bytes), "first");
  EXPECT_EQ(one->append("kept.a", "c", bytes_of("c")), 3U) << "as if it were there";
  EXPECT_EQ(one->read("log", 0, 10)->size(), 2U);
  EXPECT_EQ(one->append("kept.a", "d", bytes_of("d")), 3U);
  hub.lose_end(2, false);
  EXPECT_EQ(one->append("kept.a", "d", bytes_of("d")), 2U);
  EXPECT_EQ(one->read("log", 0, 10)->size(), 2U);
  EXPECT_FALSE(*one->get("keys", "key"));
}

// The last one stays, so that whoever reads goes on.
TEST(FaultyBus, LeavesOutAnEntryThatAReplicaLacks) {
  FaultyHub hub(1, {.skip = 1});
  const auto one = hub.connect("one");
  ASSERT_TRUE(one->make_log("log", "kept.*", kBytes));
  for (const char* text : {"a", "b", "c"})
    ASSERT_TRUE(one->append("kept.a", text, bytes_of(text)));
  const auto entries = one->read("log", 0, 10);
  ASSERT_EQ(entries->size(), 2U);
  EXPECT_EQ(text_of(entries->back().bytes), "c");
}

// What the interface is for: with ids and another try, each entry is there once.
TEST(FaultyBus, KeepsOnceWhatIsAppendedUntilItSucceeds) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    FaultyHub hub(seed, {.disconnect = 0.05, .fail_before = 0.3, .fail_after = 0.3});
    const auto one = hub.connect("one");
    while (!one->make_log("log", "kept.*", kBytes))
      hub.step();
    std::vector<std::string> texts;
    for (int i = 0; i < 50; ++i) {
      texts.push_back(std::to_string(i));
      while (!one->append("kept.a", texts.back(), bytes_of(texts.back())))
        hub.step();
    }
    hub.heal();
    std::vector<std::string> kept;
    const auto entries = one->read("log", 0, 1000);
    ASSERT_TRUE(entries);
    for (const Entry& entry : *entries)
      kept.push_back(text_of(entry.bytes));
    ASSERT_EQ(kept, texts) << seed;
  }
}

}  // namespace
}  // namespace clew::cluster

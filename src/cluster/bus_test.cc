// SPDX-License-Identifier: Apache-2.0
// The same for each kind of bus: what bus.h promises.
#include "cluster/bus.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "cluster/arrivals.h"
#include "cluster/bus_world.h"

namespace clew::cluster {
namespace {

constexpr uint64_t kLogBytes = 64 << 20;

class BusTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    world_ = make_world(GetParam());
    if (world_ == nullptr) GTEST_SKIP() << "no bus of kind " << GetParam() << " here";
  }
  std::unique_ptr<Bus> connect() {
    auto end = world_->connect();
    EXPECT_TRUE(end) << end.error().message;
    return end ? std::move(*end) : nullptr;
  }
  BusWorld& world() { return *world_; }

 private:
  std::unique_ptr<BusWorld> world_;
};

template <typename T>
ErrorCode code_of(const Expected<T>& result) {
  EXPECT_FALSE(result);
  return result ? ErrorCode::NotFound : result.error().code;  // No bus gives NotFound for these.
}

void publish(Bus& bus, std::string_view subject, std::string_view text) {
  const auto published = bus.publish(subject, bytes_of(text));
  EXPECT_TRUE(published) << published.error().message;
}

void subscribe(Bus& bus, std::string_view pattern, std::string_view group = {}) {
  const auto subscribed = bus.subscribe(pattern, group);
  EXPECT_TRUE(subscribed) << subscribed.error().message;
}

uint64_t append(Bus& bus, std::string_view subject, std::string_view id, std::string_view text) {
  const auto appended = bus.append(subject, id, bytes_of(text));
  EXPECT_TRUE(appended) << appended.error().message;
  return appended.value_or(0);
}

std::vector<Entry> read_all(Bus& bus, std::string_view log, uint64_t after = 0) {
  std::vector<Entry> all;
  while (true) {
    auto some = bus.read(log, after, 100);
    EXPECT_TRUE(some) << some.error().message;
    if (!some || some->empty()) return all;
    all.insert(all.end(), some->begin(), some->end());
    after = all.back().sequence;
  }
}

std::vector<std::string> texts_of(const std::vector<Entry>& entries) {
  std::vector<std::string> texts;
  for (const Entry& entry : entries)
    texts.push_back(text_of(entry.bytes));
  return texts;
}

std::string next_text(Bus& bus) {
  const auto message = next_message(bus);
  return message ? text_of(message->bytes) : "(nothing came)";
}

using Texts = std::vector<std::string>;

// --- messages

TEST_P(BusTest, PublishesToWhoHasSubscribed) {
  const auto one = connect();
  const auto other = connect();
  subscribe(*other, "greetings");
  publish(*one, "unheard", "nobody gets this");
  ASSERT_TRUE(one->publish("greetings", bytes_of("hello"), one->inbox()));
  const auto message = next_message(*other);
  ASSERT_TRUE(message);
  EXPECT_EQ(message->subject, "greetings");
  EXPECT_EQ(text_of(message->bytes), "hello");
  EXPECT_EQ(message->reply, one->inbox());
}

TEST_P(BusTest, PassesEveryByteOn) {
  const auto one = connect();
  subscribe(*one, "bytes");
  std::string text;
  for (int i = 0; i < 256; ++i)
    text += static_cast<char>(i);
  publish(*one, "bytes", text);
  EXPECT_EQ(next_text(*one), text);
  publish(*one, "bytes", "");
  EXPECT_EQ(next_text(*one), "");
}

TEST_P(BusTest, MatchesWildcards) {
  const auto one = connect();
  const auto other = connect();
  subscribe(*other, "part.*.7.>");
  publish(*one, "part.q.8.node", "another shard");
  publish(*one, "part.q.7", "no node");
  publish(*one, "part.q.7.node", "a");
  publish(*one, "part.r.7.node.x", "b");
  EXPECT_EQ(next_text(*other), "a");
  EXPECT_EQ(next_text(*other), "b");
}

TEST_P(BusTest, DeliversOnceForEachPattern) {
  const auto one = connect();
  subscribe(*one, "a.b");
  subscribe(*one, "a.*");
  subscribe(*one, "a.*");
  publish(*one, "a.b", "twice");
  publish(*one, "a.c", "once");
  std::multiset<std::string> texts;
  for (int i = 0; i < 3; ++i)
    texts.insert(next_text(*one));
  EXPECT_EQ(texts, (std::multiset<std::string>{"once", "twice", "twice"}));
}

TEST_P(BusTest, DeliversToOneOfAGroup) {
  const auto one = connect();
  const auto first = connect();
  const auto second = connect();
  const auto third = connect();
  subscribe(*first, "work", "group");
  subscribe(*second, "work", "group");
  subscribe(*third, "work");
  constexpr int kMessages = 200;
  for (int i = 0; i < kMessages; ++i)
    publish(*one, "work", std::to_string(i));
  std::multiset<std::string> texts;
  for (int i = 0; i < kMessages; ++i)
    texts.insert(next_text(*third));
  std::multiset<std::string> of_group;
  for (Bus* end : {first.get(), second.get()}) {
    subscribe(*end, "end");
    publish(*one, "end", "end");
    size_t own = 0;
    for (std::string text = next_text(*end); text != "end" && own <= kMessages; ++own) {
      of_group.insert(text);
      text = next_text(*end);
    }
    EXPECT_GT(own, 0U);
    EXPECT_TRUE(end->unsubscribe("end"));
  }
  EXPECT_EQ(of_group, texts);
}

TEST_P(BusTest, StopsWhenUnsubscribed) {
  const auto one = connect();
  subscribe(*one, "a");
  subscribe(*one, "b.*");
  EXPECT_TRUE(one->unsubscribe("a"));
  EXPECT_TRUE(one->unsubscribe("b.*"));
  EXPECT_FALSE(one->unsubscribe("b.*"));
  subscribe(*one, "c");
  publish(*one, "a", "a");
  publish(*one, "b.x", "b");
  publish(*one, "c", "c");
  EXPECT_EQ(next_text(*one), "c");
}

TEST_P(BusTest, AnswersToAnInbox) {
  const auto asker = connect();
  const auto answerer = connect();
  EXPECT_NE(asker->inbox(), answerer->inbox());
  subscribe(*answerer, "question");
  ASSERT_TRUE(asker->publish("question", bytes_of("6 * 7"), asker->inbox()));
  const auto question = next_message(*answerer);
  ASSERT_TRUE(question);
  publish(*answerer, question->reply, "42");
  EXPECT_EQ(next_text(*asker), "42");
}

TEST_P(BusTest, KeepsTheOrderOfEachEnd) {
  const auto one = connect();
  const auto other = connect();
  const auto reader = connect();
  subscribe(*reader, "from.*");
  constexpr int kMessages = 1000;
  for (int i = 0; i < kMessages; ++i) {
    publish(*one, "from.one", std::to_string(i));
    publish(*other, "from.other", std::to_string(i));
  }
  int next_of_one = 0;
  int next_of_other = 0;
  for (int i = 0; i < 2 * kMessages; ++i) {
    const auto message = next_message(*reader);
    ASSERT_TRUE(message);
    int& next = message->subject == "from.one" ? next_of_one : next_of_other;
    ASSERT_EQ(text_of(message->bytes), std::to_string(next++));
  }
  EXPECT_EQ(next_of_one, kMessages);
  EXPECT_EQ(reader->dropped(), 0U);
}

TEST_P(BusTest, ServesAThreadForEachEnd) {
  const auto reader = connect();
  ASSERT_TRUE(reader->make_log("parts", "part.>", kLogBytes));
  subscribe(*reader, "from.*");
  constexpr int kMessages = 1000;
  constexpr int kEntries = 100;
  const auto work = [](Bus& bus, const std::string& name) {
    for (int i = 0; i < kMessages; ++i) {
      publish(bus, "from." + name, std::to_string(i));
      if (i % (kMessages / kEntries) == 0) append(bus, "part." + name, {}, name);
      (void)bus.next();
    }
  };
  const auto one = connect();
  const auto other = connect();
  std::thread first([&] { work(*one, "one"); });
  std::thread second([&] { work(*other, "other"); });
  std::map<std::string, int> next;
  for (int i = 0; i < 2 * kMessages; ++i) {
    const auto message = next_message(*reader);
    EXPECT_TRUE(message);
    if (!message) break;
    EXPECT_EQ(text_of(message->bytes), std::to_string(next[message->subject]++));
  }
  first.join();
  second.join();
  EXPECT_EQ(next["from.one"], kMessages);
  EXPECT_EQ(next["from.other"], kMessages);
  const Texts texts = texts_of(read_all(*reader, "parts"));
  EXPECT_EQ(std::count(texts.begin(), texts.end(), "one"), kEntries);
  EXPECT_EQ(std::count(texts.begin(), texts.end(), "other"), kEntries);
}

TEST_P(BusTest, RefusesWhatIsNoSubject) {
  const auto one = connect();
  EXPECT_EQ(code_of(one->publish("", {})), ErrorCode::InvalidQuery);
  EXPECT_EQ(code_of(one->publish("a b", {})), ErrorCode::InvalidQuery);
  EXPECT_EQ(code_of(one->publish("a.*", {})), ErrorCode::InvalidQuery);
  EXPECT_EQ(code_of(one->publish("a\r\nPUB b 0", {})), ErrorCode::InvalidQuery);
  EXPECT_EQ(code_of(one->publish("a", {}, "b c")), ErrorCode::InvalidQuery);
  EXPECT_EQ(code_of(one->subscribe("a.>.b")), ErrorCode::InvalidQuery);
  EXPECT_EQ(code_of(one->subscribe("a", "g h")), ErrorCode::InvalidQuery);
  EXPECT_EQ(code_of(one->make_log("a.b", "c", kLogBytes)), ErrorCode::InvalidQuery);
  EXPECT_EQ(code_of(one->append("a..b", "", {})), ErrorCode::InvalidQuery);
  EXPECT_EQ(code_of(one->append("a", "id\r\nTo: x", {})), ErrorCode::InvalidQuery);
  EXPECT_EQ(code_of(one->read("a/b", 0, 1)), ErrorCode::InvalidQuery);
  EXPECT_EQ(code_of(one->forget("", 1)), ErrorCode::InvalidQuery);
  EXPECT_EQ(code_of(one->get("a", "b c")), ErrorCode::InvalidQuery);
  EXPECT_EQ(code_of(one->put("a.b", "c", {}, 0)), ErrorCode::InvalidQuery);
}

TEST_P(BusTest, RefusesTooLargeMessages) {
  const auto one = connect();
  ASSERT_TRUE(one->make_log("large", "large.*", kLogBytes));
  subscribe(*one, "message");
  const Bytes largest(kMessageMax, std::byte{7});
  const Bytes too_large(kMessageMax + 1);
  EXPECT_EQ(code_of(one->publish("message", too_large)), ErrorCode::Limit);
  EXPECT_EQ(code_of(one->append("large.a", "id", too_large)), ErrorCode::Limit);
  EXPECT_EQ(code_of(one->put("large", "key", too_large, 0)), ErrorCode::Limit);
  EXPECT_TRUE(one->publish("message", largest));
  const auto message = next_message(*one);
  ASSERT_TRUE(message);
  EXPECT_EQ(message->bytes, largest);
  EXPECT_TRUE(one->append("large.a", std::string(200, 'x'), largest));
  const auto entries = read_all(*one, "large");
  ASSERT_EQ(entries.size(), 1U);
  EXPECT_EQ(entries[0].bytes, largest);
  EXPECT_TRUE(one->put("large", "key", largest, 0));
  const auto value = one->get("large", "key");
  ASSERT_TRUE(value && *value);
  EXPECT_EQ((*value)->bytes, largest);
}

// --- logs

TEST_P(BusTest, ReadsALogInItsOrder) {
  const auto one = connect();
  const auto other = connect();
  ASSERT_TRUE(one->make_log("parts", "part.>", kLogBytes));
  ASSERT_TRUE(other->make_log("parts", "part.>", kLogBytes));
  EXPECT_TRUE(read_all(*one, "parts").empty());
  Texts texts;
  uint64_t last = 0;
  for (int i = 0; i < 500; ++i) {
    texts.push_back(std::to_string(i));
    const uint64_t sequence =
        append(i % 2 == 0 ? *one : *other, fmt::format("part.q.{}", i % 3), {}, texts.back());
    EXPECT_GT(sequence, last);
    last = sequence;
  }
  const auto entries = read_all(*other, "parts");
  EXPECT_EQ(texts_of(entries), texts);
  EXPECT_EQ(entries[1].subject, "part.q.1");
  EXPECT_EQ(entries.back().sequence, last);
  const auto some = one->read("parts", entries[9].sequence, 3);
  ASSERT_TRUE(some);
  EXPECT_EQ(texts_of(*some), (Texts{"10", "11", "12"}));
  EXPECT_TRUE(read_all(*one, "parts", last).empty());
  EXPECT_TRUE(one->read("parts", 0, 0)->empty());
}

TEST_P(BusTest, AppendsTheSameIdOnce) {
  const auto one = connect();
  const auto other = connect();
  ASSERT_TRUE(one->make_log("parts", "part.>", kLogBytes));
  const uint64_t first = append(*one, "part.a", "pane 1", "first");
  EXPECT_EQ(append(*other, "part.a", "pane 1", "first"), first);
  EXPECT_GT(append(*one, "part.a", "pane 2", "second"), first);
  EXPECT_EQ(append(*one, "part.a", "pane 1", "first"), first);
  EXPECT_EQ(texts_of(read_all(*one, "parts")), (Texts{"first", "second"}));
}

TEST_P(BusTest, ReadsWhatIsNotForgotten) {
  const auto one = connect();
  ASSERT_TRUE(one->make_log("parts", "part.>", kLogBytes));
  const uint64_t log = one->ends("parts").value().log;
  EXPECT_NE(log, 0);
  EXPECT_EQ(one->ends("parts").value(), LogEnds{.log = log});
  std::vector<uint64_t> sequences;
  for (int i = 0; i < 10; ++i)
    sequences.push_back(append(*one, "part.a", fmt::format("id {}", i), std::to_string(i)));
  EXPECT_TRUE(one->forget("parts", 0));
  EXPECT_EQ(read_all(*one, "parts").size(), 10U);
  EXPECT_TRUE(one->forget("parts", sequences[6]));
  EXPECT_TRUE(one->forget("parts", sequences[3]));  // Again, and less.
  EXPECT_EQ(texts_of(read_all(*one, "parts")), (Texts{"7", "8", "9"}));
  EXPECT_EQ(texts_of(read_all(*one, "parts", sequences[2])), (Texts{"7", "8", "9"}));
  EXPECT_EQ(texts_of(read_all(*one, "parts", sequences[7])), (Texts{"8", "9"}));
  EXPECT_EQ(one->ends("parts").value(),
            (LogEnds{.log = log, .first = sequences[7], .last = sequences[9]}));
  EXPECT_TRUE(one->forget("parts", sequences[9]));
  EXPECT_TRUE(read_all(*one, "parts").empty());
  EXPECT_EQ(one->ends("parts").value(),
            (LogEnds{.log = log, .first = sequences[9] + 1, .last = sequences[9]}));
  EXPECT_GT(append(*one, "part.a", {}, "later"), sequences[9]);
  EXPECT_EQ(texts_of(read_all(*one, "parts", sequences[9])), (Texts{"later"}));
}

TEST_P(BusTest, KeepsInALogWhatIsPublishedAndTellsWhatIsAppended) {
  const auto one = connect();
  ASSERT_TRUE(one->make_log("parts", "part.>", kLogBytes));
  subscribe(*one, "part.*");
  publish(*one, "part.a", "published");
  EXPECT_EQ(next_text(*one), "published");
  append(*one, "part.b", "id", "appended");
  EXPECT_EQ(next_text(*one), "appended");
  EXPECT_EQ(texts_of(read_all(*one, "parts")), (Texts{"published", "appended"}));
}

TEST_P(BusTest, TellsWhatALogIsFor) {
  const auto one = connect();
  ASSERT_TRUE(one->make_log("parts", "part.>", kLogBytes));
  EXPECT_EQ(code_of(one->make_log("parts", "other.>", kLogBytes)), ErrorCode::Refused);
  EXPECT_EQ(code_of(one->make_log("more", "part.*.b", kLogBytes)), ErrorCode::Refused);
  EXPECT_TRUE(one->make_log("parts", "part.>", 2 * kLogBytes));
  EXPECT_EQ(code_of(one->append("elsewhere", "id", {})), ErrorCode::Io);
  EXPECT_EQ(code_of(one->read("absent", 0, 1)), ErrorCode::Io);
  EXPECT_EQ(code_of(one->forget("absent", 1)), ErrorCode::Io);
  EXPECT_EQ(code_of(one->ends("absent")), ErrorCode::NotFound);
}

TEST_P(BusTest, TakesNothingIntoAFullLog) {
  const auto one = connect();
  constexpr uint64_t kSmall = 64 << 10;
  ASSERT_TRUE(one->make_log("small", "small.*", kSmall));
  const Bytes bytes(1 << 10);
  uint64_t fit = 0;
  ErrorCode code = ErrorCode::NotFound;
  for (int i = 0; i < 100 && code == ErrorCode::NotFound; ++i) {
    const auto appended = one->append("small.a", fmt::format("id {}", i), bytes);
    if (appended) fit = *appended;
    if (!appended) code = appended.error().code;
  }
  EXPECT_EQ(code, ErrorCode::Limit);
  EXPECT_GT(fit, 50U);
  EXPECT_EQ(read_all(*one, "small").size(), fit);
  EXPECT_TRUE(one->forget("small", fit / 2));
  EXPECT_TRUE(one->append("small.a", "later", bytes));
}

// --- keys

TEST_P(BusTest, PutsByRevision) {
  const auto one = connect();
  const auto other = connect();
  const auto absent = one->get("want", "query");
  ASSERT_TRUE(absent) << absent.error().message;
  EXPECT_FALSE(*absent);
  const auto first = one->put("want", "query", bytes_of("1"), 0);
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_EQ(code_of(other->put("want", "query", bytes_of("x"), 0)), ErrorCode::Refused);
  const auto second = other->put("want", "query", bytes_of("2"), *first);
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_GT(*second, *first);
  EXPECT_EQ(code_of(one->put("want", "query", bytes_of("y"), *first)), ErrorCode::Refused);
  const auto value = one->get("want", "query");
  ASSERT_TRUE(value && *value);
  EXPECT_EQ((*value)->revision, *second);
  EXPECT_EQ(text_of((*value)->bytes), "2");
  EXPECT_TRUE(one->put("want", "other.key", bytes_of("z"), 0));
  EXPECT_EQ((*one->get("want", "query"))->revision, *second);
  EXPECT_FALSE(*one->get("want", "third"));
}

TEST_P(BusTest, LetsOneOfTwoWritersWin) {
  const auto one = connect();
  const auto other = connect();
  uint64_t revision = 0;
  for (int i = 0; i < 50; ++i) {
    Bus& early = i % 2 == 0 ? *one : *other;
    Bus& late = i % 2 == 0 ? *other : *one;
    const auto won = early.put("lease", "relay.7", bytes_of(std::to_string(i)), revision);
    ASSERT_TRUE(won) << won.error().message;
    EXPECT_EQ(code_of(late.put("lease", "relay.7", bytes_of("late"), revision)),
              ErrorCode::Refused);
    revision = *won;
  }
  EXPECT_EQ(text_of((*one->get("lease", "relay.7"))->bytes), "49");
}

// --- what goes wrong

TEST_P(BusTest, ComesBackWithLogsKeysAndSubscriptions) {
  const auto one = connect();
  const auto other = connect();
  ASSERT_TRUE(one->make_log("parts", "part.>", kLogBytes));
  append(*one, "part.a", "id 1", "before");
  const auto revision = one->put("want", "query", bytes_of("1"), 0);
  ASSERT_TRUE(revision);
  subscribe(*other, "news.*");
  ASSERT_TRUE(one->is_connected() && other->is_connected());

  world().stop();
  for (Bus* end : {one.get(), other.get()}) {
    const auto is_lost = [&] {
      (void)end->next();
      return !end->is_connected();
    };
    ASSERT_TRUE(wait_until(*end, is_lost));
  }
  EXPECT_EQ(code_of(one->append("part.a", "id 2", bytes_of("meanwhile"))), ErrorCode::Io);
  EXPECT_EQ(code_of(one->read("parts", 0, 1)), ErrorCode::Io);
  EXPECT_EQ(code_of(one->get("want", "query")), ErrorCode::Io);
  EXPECT_EQ(code_of(one->put("want", "query", {}, *revision)), ErrorCode::Io);
  EXPECT_TRUE(one->publish("news.a", bytes_of("meanwhile")));
  subscribe(*other, "late.*");

  world().start();
  for (Bus* end : {one.get(), other.get()}) {
    const auto is_back = [&] {
      (void)end->next();
      return end->is_connected();
    };
    ASSERT_TRUE(wait_until(*end, is_back));
  }
  append(*one, "part.a", "id 2", "after");
  EXPECT_EQ(texts_of(read_all(*other, "parts")), (Texts{"before", "after"}));
  EXPECT_EQ((*other->get("want", "query"))->revision, *revision);
  publish(*one, "news.a", "fresh");
  EXPECT_EQ(next_text(*other), "fresh");
  publish(*one, "late.a", "fresh, too");
  EXPECT_EQ(next_text(*other), "fresh, too");
}

TEST_P(BusTest, CountsWhatIsNotTaken) {
  const auto one = connect();
  const auto reader = connect();
  subscribe(*reader, "many");
  constexpr uint64_t kTooMany = 100;
  const Bytes byte(1);
  for (uint64_t i = 0; i < kArrivalsMax + kTooMany; ++i)
    EXPECT_TRUE(one->publish("many", byte));
  EXPECT_TRUE(try_until(*reader, [&] { return reader->dropped() >= kTooMany; }));
  uint64_t taken = 0;
  while (reader->dropped() + taken < kArrivalsMax + kTooMany) {
    ASSERT_TRUE(next_message(*reader));
    ++taken;
  }
  EXPECT_EQ(reader->dropped() + taken, kArrivalsMax + kTooMany);
  EXPECT_GT(taken, kArrivalsMax / 2);
}

TEST_P(BusTest, RefusesForbiddenSubjects) {
  const auto free = connect();
  auto connected = world().connect_restricted();
  ASSERT_TRUE(connected) << connected.error().message;
  Bus& restricted = **connected;
  ASSERT_TRUE(free->make_log("parts", "part.>", kLogBytes));
  subscribe(*free, ">");

  EXPECT_EQ(code_of(restricted.subscribe("closed.a")), ErrorCode::Refused);
  EXPECT_EQ(code_of(restricted.subscribe(">")), ErrorCode::Refused);
  EXPECT_EQ(code_of(restricted.append("part.a", "id", {})), ErrorCode::Refused);
  (void)restricted.take_complaints();
  EXPECT_TRUE(restricted.publish("closed.a", bytes_of("forbidden")));
  std::vector<std::string> complaints;
  const auto has_complained = [&] {
    (void)restricted.next();
    complaints = restricted.take_complaints();
    return !complaints.empty();
  };
  EXPECT_TRUE(wait_until(restricted, has_complained));
  ASSERT_EQ(complaints.size(), 1U);
  EXPECT_NE(complaints[0].find("closed.a"), std::string::npos) << complaints[0];

  EXPECT_TRUE(restricted.is_connected());
  EXPECT_TRUE(restricted.subscribe("open.*"));
  publish(*free, restricted.inbox(), "to the inbox");
  EXPECT_EQ(next_text(restricted), "to the inbox");
  publish(restricted, "open.a", "allowed");
  EXPECT_EQ(next_text(restricted), "allowed");
  EXPECT_EQ(next_message(*free)->subject, restricted.inbox());
  EXPECT_EQ(next_text(*free), "allowed");
}

INSTANTIATE_TEST_SUITE_P(Kinds, BusTest, testing::Values("local", "faulty", "nats"),
                         [](const auto& kind) { return std::string(kind.param); });

}  // namespace
}  // namespace clew::cluster

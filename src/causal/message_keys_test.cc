// SPDX-License-Identifier: Apache-2.0
#include "causal/message_keys.h"

#include <string>

#include <gtest/gtest.h>

#include "causal/graph.h"

namespace clew::causal {
namespace {

constexpr Thread kFrom{.pid = 1, .tid = 1};
constexpr Thread kElsewhere{.pid = 2, .tid = 2};

TEST(MessageKeys, OfTextsAreExact) {
  Graph graph;
  MessageKeys keys(graph, 10);
  const auto order = keys.sent("order-17");
  ASSERT_TRUE(order);
  EXPECT_EQ(keys.sent("order-17"), order);
  EXPECT_EQ(keys.received("order-17"), order);
  for (const std::string other : {"order-1", "order-18", "order-17 ", "Order-17"})
    EXPECT_NE(keys.received(other), order) << other;
  EXPECT_NE(keys.sent("order-18"), order);
}

// What nobody has sent leads nowhere, and is not kept.
TEST(MessageKeys, OfTextsThatNobodySentAreNobodys) {
  Graph graph;
  MessageKeys keys(graph, 1);
  graph.begin(kFrom);
  graph.put(kFrom, *keys.sent("a"), EdgeClass::Explicit);
  for (int i = 0; i < 1000; ++i)
    EXPECT_FALSE(graph.admit(*keys.received("forged " + std::to_string(i))));
  EXPECT_TRUE(graph.admit(*keys.received("a")));
  EXPECT_EQ(graph.counts().not_sent, 1000);
}

TEST(MessageKeys, ThatAreTokensAreTheSameAsNumbersAndAsText) {
  Graph graph;
  const MessageKeys keys(graph, 10);
  const auto token = key_of_token(0x0123456789abcdef, 0x10);
  ASSERT_TRUE(token);
  EXPECT_EQ(keys.received("0123456789abcdef0000000000000010"), token);
  EXPECT_NE(keys.received("0123456789ABCDEF0000000000000010"), token);
  EXPECT_NE(keys.received("0123456789abcdef000000000000001"), token);
  EXPECT_NE(keys.received("0123456789abcdef00000000000000100"), token);
  EXPECT_NE(key_of_token(0x10, 0x0123456789abcdef), token);
}

TEST(MessageKeys, OfNothingAreNone) {
  Graph graph;
  MessageKeys keys(graph, 10);
  EXPECT_FALSE(key_of_token(0, 0));
  EXPECT_FALSE(keys.sent(""));
  EXPECT_FALSE(keys.received(""));
  EXPECT_FALSE(keys.received(std::string(32, '0')));
  EXPECT_FALSE(keys.received(std::string(1 << 20, 'a')));
}

TEST(MessageKeys, ThatWereSentLongestAgoAreForgotten) {
  Graph graph;
  MessageKeys keys(graph, 2);
  graph.begin(kFrom);
  for (const std::string text : {"a", "b", "a", "c"})
    graph.put(kFrom, *keys.sent(text), EdgeClass::Explicit);
  EXPECT_TRUE(graph.admit(*keys.received("a")));
  EXPECT_FALSE(graph.admit(*keys.received("b")));
  EXPECT_TRUE(graph.admit(*keys.received("c")));
  // It is not what it was: nothing of before comes back with it.
  const auto again = keys.sent("b");
  EXPECT_FALSE(graph.admit(*again));
}

// --- who may go on with a message ----------------------------------------------------------------

TEST(Messages, AreReceivedByMany) {
  Graph graph;
  const ContextKey message = *key_of_token(1, 2);
  graph.begin(kFrom);
  const auto sent = graph.event(kFrom);
  graph.put(kFrom, message, EdgeClass::Explicit);
  for (int64_t i = 10; i < 13; ++i) {
    ASSERT_TRUE(graph.admit(message));
    graph.take({.pid = i, .tid = i}, message, EdgeClass::Explicit);
    EXPECT_EQ(graph.request_of(Thread{.pid = i, .tid = i}), sent->request);
  }
  EXPECT_EQ(graph.counts().again, 2);
}

// Whoever was given a token can fill its request no further than that.
TEST(Messages, AreReceivedSoOften) {
  Graph graph({.receivers = 3});
  const ContextKey message = *key_of_token(1, 2);
  graph.begin(kFrom);
  graph.put(kFrom, message, EdgeClass::Explicit);
  int admitted = 0;
  for (int i = 0; i < 100; ++i)
    admitted += graph.admit(message) ? 1 : 0;
  EXPECT_EQ(admitted, 3);
  EXPECT_EQ(graph.counts().worn, 97);
  EXPECT_TRUE(graph.request_of(kFrom));
}

TEST(Messages, ThatTwoRequestsSentAreNobodys) {
  Graph graph;
  const ContextKey message = *key_of_token(1, 2);
  graph.begin(kFrom);
  graph.put(kFrom, message, EdgeClass::Explicit);
  EXPECT_TRUE(graph.admit(message));
  graph.begin(kElsewhere);
  graph.put(kElsewhere, message, EdgeClass::Explicit);
  EXPECT_FALSE(graph.admit(message));
  graph.put(kFrom, message, EdgeClass::Explicit);
  EXPECT_FALSE(graph.admit(message)) << "it is still not known which of the two is meant";
  EXPECT_EQ(graph.counts().sent_twice, 2);
}

// Who passes a message on under its name is behind who sent it.
TEST(Messages, ThatAreSentAgainInTheirRequestAreOfTheLastOne) {
  Graph graph;
  const ContextKey message = *key_of_token(1, 2);
  graph.begin(kFrom);
  graph.put(kFrom, message, EdgeClass::Explicit);
  graph.take(kElsewhere, message, EdgeClass::Explicit);
  const auto passed_on = graph.event(kElsewhere);
  graph.count(kElsewhere);
  graph.put(kElsewhere, message, EdgeClass::Explicit);
  constexpr Thread kThird{.pid = 3, .tid = 3};
  ASSERT_TRUE(graph.admit(message));
  graph.take(kThird, message, EdgeClass::Explicit);
  const auto last = graph.event(kThird);
  ASSERT_TRUE(last && passed_on);
  EXPECT_GT(last->number, passed_on->number);
}

// What only messages carry could be received for ever. It makes room first, and that is no loss.
TEST(Messages, KeepTheirRequestsWhileThereIsRoom) {
  Graph graph({.requests = 2});
  const ContextKey object{.pid = 1, .object = 3};
  const ContextKey message = *key_of_token(1, 2);
  graph.begin(kElsewhere);
  graph.put(kElsewhere, object, EdgeClass::Explicit);
  graph.end(kElsewhere);
  graph.begin(kFrom);
  graph.put(kFrom, message, EdgeClass::Explicit);
  graph.put(kFrom, *key_of_token(1, 3), EdgeClass::Explicit);
  graph.end(kFrom);
  EXPECT_TRUE(graph.request_of(message));
  graph.begin(kFrom);
  EXPECT_FALSE(graph.request_of(message));
  EXPECT_TRUE(graph.request_of(object)) << "it is older, and could be taken";
  EXPECT_EQ(graph.counts().forgotten, 0);
  graph.begin(kElsewhere);
  EXPECT_FALSE(graph.request_of(kFrom)) << "the object was asked for since";
  EXPECT_EQ(graph.counts().forgotten, 1);
}

TEST(Messages, BringTheirRequestBackToThreads) {
  Graph graph({.requests = 2});
  const ContextKey message = *key_of_token(1, 2);
  graph.begin(kFrom);
  graph.put(kFrom, message, EdgeClass::Explicit);
  graph.end(kFrom);
  ASSERT_TRUE(graph.admit(message));
  graph.take(kFrom, message, EdgeClass::Explicit);
  graph.begin(kElsewhere);
  graph.put(kElsewhere, *key_of_token(1, 3), EdgeClass::Explicit);
  graph.end(kElsewhere);
  graph.begin({.pid = 3, .tid = 3});
  EXPECT_TRUE(graph.request_of(kFrom)) << "the other one is only in a message";
  graph.end(kFrom);
  graph.forget(message);
  EXPECT_EQ(graph.take_gone().size(), 2U) << "the one that made room, and this one, which is over";
}

TEST(Messages, OfARequestThatIsForgottenCanBeSentByAnother) {
  Graph graph({.requests = 1});
  const ContextKey message = *key_of_token(1, 2);
  graph.begin(kFrom);
  graph.put(kFrom, message, EdgeClass::Explicit);
  graph.begin(kElsewhere);
  EXPECT_FALSE(graph.admit(message));
  graph.put(kElsewhere, message, EdgeClass::Explicit);
  EXPECT_TRUE(graph.admit(message));
}

}  // namespace
}  // namespace clew::causal

// SPDX-License-Identifier: Apache-2.0
// Rules from messages to threads, on histories that are written down here: two servers behind each
// other, with clients that nobody looks at.
#include "causal/sockets.h"

#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "causal/sockets_testing.h"

namespace clew::causal {
namespace {

TEST_F(SocketsTest, AMessageOfAStrangerBeginsARequest) {
  const End client = this->client();
  EXPECT_FALSE(event(kFront));
  read(kFront, client, {1, 11});
  const auto first = event(kFront);
  ASSERT_TRUE(first);
  read(kFront, client, {11, 21});
  const auto second = event(kFront);
  EXPECT_TRUE(before(first, second)) << "more of the same message";
  write(kFront, client, {1, 101});
  sockets_.wait(kFront);
  EXPECT_FALSE(event(kFront)) << "between two slices";
  read(kFront, client, {21, 31});
  const auto next = event(kFront);
  ASSERT_TRUE(next);
  EXPECT_NE(next->request, first->request) << "the first one was answered";
  EXPECT_EQ(graph_.counts().requests, 2);
}

TEST_F(SocketsTest, AProgramThatNobodyKnowsTakesNothing) {
  profiles_.erase(1);
  read(kFront, client(), {1, 11});
  EXPECT_FALSE(event(kFront));
  EXPECT_EQ(graph_.counts().requests, 0);
}

TEST_F(SocketsTest, BytesBringTheRequestAndItsAnswerBringsItBack) {
  const End client = this->client();
  const auto [front, back] = connection();
  read(kFront, client, {1, 11});
  const auto asked = event(kFront);
  write(kFront, front, {1, 51});
  sockets_.wait(kFront);

  read(kBack, back, {1, 51});
  const auto done = event(kBack);
  EXPECT_TRUE(before(asked, done));
  write(kBack, back, {1, 901});
  const auto behind = event(kBack);
  EXPECT_TRUE(before(done, behind));
  sockets_.wait(kBack);

  read(kFront, front, {1, 901});
  const auto answered = event(kFront);
  EXPECT_TRUE(before(asked, answered));
  EXPECT_TRUE(before(done, answered));
  EXPECT_FALSE(before(behind, answered)) << "it came when the answer had gone";
  EXPECT_EQ(graph_.counts().requests, 1);
}

TEST_F(SocketsTest, ARangeIsReadInPiecesAndAtOnce) {
  const auto [front, back] = connection();
  read(kFront, client(), {1, 11});
  const auto asked = event(kFront);
  write(kFront, front, {1, 51});
  write(kFront, front, {51, 61});
  read(kBack, back, {1, 2});
  EXPECT_TRUE(before(asked, event(kBack)));
  sockets_.wait(kBack);
  read(kBack, back, {2, 61});
  EXPECT_TRUE(before(asked, event(kBack)));
}

TEST_F(SocketsTest, SequenceNumbersGoRound) {
  const auto [front, back] = connection();
  read(kFront, client(), {1, 11});
  const auto asked = event(kFront);
  write(kFront, front, {0xfffffff0, 0x10});
  read(kBack, back, {0xfffffff0, 0xfffffff8});
  EXPECT_TRUE(before(asked, event(kBack)));
  sockets_.wait(kBack);
  read(kBack, back, {0xfffffff8, 0x10});
  EXPECT_TRUE(before(asked, event(kBack)));
}

// HTTP pipelining through a proxy, or a connection that several share.
TEST_F(SocketsTest, BytesOfTwoRequestsThatAreReadAtOnceAreOfNone) {
  const auto [front, back] = connection();
  read(kFront, client(), {1, 11});
  write(kFront, front, {1, 51});
  sockets_.wait(kFront);
  profiles_[1].alternates = false;
  read(kFront, client(), {1, 11});
  write(kFront, front, {51, 61});
  read(kBack, back, {1, 61});
  EXPECT_FALSE(event(kBack));
  EXPECT_EQ(sockets_.counts().ambiguous, 1);
}

TEST_F(SocketsTest, AnAnswerOfAStrangerIsOfWhoAsked) {
  const End one = client();
  const End two = client();
  const End upstream_one = connection().first;
  const End upstream_two = connection().first;
  read(kFront, one, {1, 11});
  const auto first = event(kFront);
  write(kFront, upstream_one, {1, 51});
  read(kFront, two, {1, 11});
  const auto second = event(kFront);
  write(kFront, upstream_two, {1, 51});
  sockets_.wait(kFront);
  read(kFront, upstream_one, {1, 51});
  EXPECT_TRUE(before(first, event(kFront)));
  read(kFront, upstream_two, {1, 51});
  EXPECT_TRUE(before(second, event(kFront)));
}

// The connection is made in the slice, and written to in another one, when the thread does
// something else.
TEST_F(SocketsTest, TheFirstMessageIsOfTheSliceThatConnected) {
  const auto [front, back] = connection();
  read(kFront, client(), {1, 11});
  const auto first = event(kFront);
  sockets_.connect(kFront, front.socket);
  const auto in_slice = event(kFront);
  sockets_.wait(kFront);
  read(kFront, client(), {1, 11});
  write(kFront, front, {1, 51});
  read(kBack, back, {1, 51});
  const auto there = event(kBack);
  EXPECT_TRUE(before(first, there));
  EXPECT_TRUE(before(in_slice, there));
  sockets_.wait(kBack);
  // And more of it, without a message in between.
  sockets_.wait(kFront);
  write(kFront, front, {51, 61});
  read(kBack, back, {51, 61});
  EXPECT_TRUE(before(first, event(kBack)));
}

TEST_F(SocketsTest, TheMemoryOfASocketIsUsedAgain) {
  auto [front, back] = connection();
  read(kFront, client(), {1, 11});
  write(kFront, front, {1, 51});
  sockets_.wait(kFront);
  const uint64_t socket = front.socket;
  std::tie(front, back) = connection();
  front.socket = socket;
  read(kFront, front, {1, 11});
  EXPECT_FALSE(event(kFront)) << "of another connection nothing is known";
}

TEST_F(SocketsTest, WithoutARuleSeveralMessagesOfASliceAreAmbiguous) {
  profiles_[1].onward = Onward::Slice;
  const auto [front, back] = connection();
  const End one = client();
  const End two = client();
  read(kFront, one, {1, 11});
  EXPECT_TRUE(event(kFront));
  read(kFront, two, {1, 11});
  EXPECT_FALSE(event(kFront));
  write(kFront, front, {1, 51});
  read(kBack, back, {1, 51});
  const auto there = event(kBack);
  ASSERT_TRUE(there) << "an accepted message begins a request";
  EXPECT_EQ(graph_.counts().requests, 3);
  EXPECT_GT(sockets_.counts().ambiguous, 0);
  // Their answers are known all the same, by their connections.
  write(kFront, one, {1, 51});
  sockets_.wait(kFront);
  // And the next slice is not ambiguous.
  read(kFront, one, {11, 21});
  EXPECT_TRUE(event(kFront));
}

TEST_F(SocketsTest, OfTheOldestThatWasNotHandedOn) {
  profiles_[1].onward = Onward::Oldest;
  const End one = client();
  const End two = client();
  read(kFront, one, {1, 11});
  const auto first = event(kFront);
  read(kFront, two, {1, 11});
  const auto second = event(kFront);
  ASSERT_NE(first->request, second->request);
  const auto [front_one, back_one] = connection();
  const auto [front_two, back_two] = connection();
  write(kFront, front_one, {1, 51});
  write(kFront, front_two, {1, 51});
  read(kBack, back_two, {1, 51});
  EXPECT_TRUE(before(second, event(kBack)));
  read(kBack, back_one, {1, 51});
  EXPECT_TRUE(before(first, event(kBack)));
}

TEST_F(SocketsTest, AProgramThatBlocksGoesOnBehindAWait) {
  profiles_[1].onward = Onward::Blocking;
  const End client = this->client();
  read(kFront, client, {1, 11});
  const auto first = event(kFront);
  sockets_.wait(kFront);
  const auto behind = event(kFront);
  EXPECT_TRUE(before(first, behind));
  write(kFront, client, {1, 11});
  EXPECT_TRUE(before(first, event(kFront)));
}

// A worker of a pool, to which the program hands a job that a vocabulary knows of.
TEST_F(SocketsTest, WhatAProgramSaysItselfOutlivesItsSlice) {
  profiles_[1].onward = Onward::Slice;
  const auto [front, back] = connection();
  read(kFront, client(), {1, 11});
  const auto first = event(kFront);
  graph_.put(kFront, {1, 77});
  read(kFront, client(), {1, 11});
  sockets_.take(kOther, {1, 77}, EdgeClass::Recipe);
  sockets_.wait(kOther);
  write(kOther, front, {1, 51});
  read(kBack, back, {1, 51});
  EXPECT_TRUE(before(first, event(kBack)));
}

TEST_F(SocketsTest, NoRequestBeginsWhereOneHasCome) {
  const auto [front, back] = connection();
  read(kFront, client(), {1, 11});
  const auto first = event(kFront);
  sockets_.begin(kFront, EdgeClass::Recipe);
  const auto own = event(kFront);
  EXPECT_NE(own->request, first->request) << "nobody has sent it";
  write(kFront, front, {1, 51});
  read(kBack, back, {1, 51});
  sockets_.begin(kBack, EdgeClass::Recipe);
  EXPECT_TRUE(before(own, event(kBack)));
}

// COPY of PostgreSQL, and questions that come in pieces.
TEST_F(SocketsTest, AProgramThatSaysWhatItWorksForReadsMoreOfIt) {
  profiles_[1].onward = Onward::Blocking;
  const End client = this->client();
  read(kFront, client, {1, 11});
  sockets_.begin(kFront, EdgeClass::Recipe);
  const auto begun = event(kFront);
  read(kFront, client, {11, 21});
  EXPECT_TRUE(before(begun, event(kFront)));
  write(kFront, client, {1, 11});
  read(kFront, client, {21, 31});
  EXPECT_TRUE(before(begun, event(kFront)));
  sockets_.leave(kFront);
  write(kFront, client, {11, 21});
  read(kFront, client, {31, 41});
  EXPECT_FALSE(before(begun, event(kFront)));
}

TEST_F(SocketsTest, AConnectionOfSeveralQuestionsBeginsARequestForEachThatIsPut) {
  const End client = this->client();
  sockets_.multiplex(kFront);
  read(kFront, client, {1, 11});
  EXPECT_FALSE(event(kFront)) << "whose it is is not known";
  sockets_.put(kFront, {1, 71}, EdgeClass::Recipe);
  const auto put = event(kFront);
  sockets_.put(kFront, {1, 71}, EdgeClass::Recipe);
  sockets_.put(kFront, {1, 72}, EdgeClass::Recipe);
  sockets_.wait(kFront);
  read(kFront, client, {11, 21});
  sockets_.put(kFront, {1, 73}, EdgeClass::Recipe);
  sockets_.take(kFront, {1, 71}, EdgeClass::Recipe);
  const auto first = event(kFront);
  sockets_.take(kFront, {1, 72}, EdgeClass::Recipe);
  const auto second = event(kFront);
  sockets_.take(kFront, {1, 73}, EdgeClass::Recipe);
  const auto third = event(kFront);
  ASSERT_TRUE(first && second && third);
  EXPECT_TRUE(before(put, first)) << "what is put again is the same one";
  EXPECT_NE(first->request, second->request);
  EXPECT_NE(second->request, third->request);
}

// A backend that is down, whose socket's memory another process gets.
TEST_F(SocketsTest, TheMemoryOfAConnectionThatFailedIsUsedAgain) {
  const auto [front, back] = connection();
  read(kFront, client(), {1, 11});
  sockets_.connect(kFront, front.socket);
  const auto asked = event(kFront);
  write(kFront, connection().first, {1, 51});
  End other = back;
  other.socket = front.socket;
  read(kBack, other, {1, 11});
  EXPECT_FALSE(before(asked, event(kBack)));
  sockets_.wait(kFront);
  // And a child that writes on what its parent has connected.
  const auto [inherited, there] = connection();
  read(kFront, client(), {1, 11});
  sockets_.connect(kFront, inherited.socket);
  sockets_.fork(kFront, {5, 5}, EdgeClass::Sound);
  profiles_.erase(5);
  write({5, 5}, inherited, {1, 11});
  read(kBack, there, {1, 11});
  EXPECT_TRUE(event(kBack));
}

TEST_F(SocketsTest, AChildRunsItsParentsProgram) {
  const Thread child{7, 7};
  sockets_.fork(kFront, child, EdgeClass::Sound);
  read(child, client(), {1, 11});
  EXPECT_TRUE(event(child));
  sockets_.execute(child);
  read(child, client(), {1, 11});
  sockets_.end(child);
  read(child, client(), {1, 11});
  EXPECT_FALSE(event(child)) << "another program, and then another process";
}

TEST_F(SocketsTest, WhatAThreadInheritsEndsAsItWaits) {
  read(kFront, client(), {1, 11});
  const auto begun = event(kFront);
  for (const bool is_known : {true, false}) {
    if (!is_known) profiles_.erase(1);
    sockets_.fork(kFront, kOther, EdgeClass::Sound);
    EXPECT_TRUE(before(begun, event(kOther)));
    sockets_.wait(kOther);
    EXPECT_FALSE(event(kOther));
  }
}

// Their calls return in another order than they have written in, so that the numbers overlap.
TEST_F(SocketsTest, OfTwoThreadsThatWriteAtAMomentNothingIsKnown) {
  const auto [front, back] = connection();
  read(kFront, client(), {1, 11});
  read(kOther, client(), {1, 11});
  write(kFront, front, {101, 201});
  write(kOther, front, {101, 201});
  read(kBack, back, {101, 201});
  EXPECT_EQ(graph_.counts().requests, 3) << "it begins anew";
  EXPECT_EQ(sockets_.counts().ambiguous, 1);
}

TEST_F(SocketsTest, CountsWhatProgramsReadThatNobodyKnows) {
  profiles_.erase(1);
  read(kFront, client(), {1, 11});
  read(kFront, client(), {1, 11});
  EXPECT_EQ(sockets_.counts().unknown.at(1), 2);
}

// A client that is looked at, too, asks again when it has its answer.
TEST_F(SocketsTest, WhatAsksForNobodyIsNotInTheRequestOfItsAnswer) {
  const auto [front, back] = connection();
  std::optional<uint64_t> last;
  for (uint32_t i = 0; i < 3; ++i) {
    write(kFront, front, {1 + i, 2 + i});
    read(kBack, back, {1 + i, 2 + i});
    const auto there = event(kBack);
    ASSERT_TRUE(there);
    EXPECT_NE(last, there->request);
    last = there->request;
    write(kBack, back, {1 + i * 10, 11 + i * 10});
    read(kFront, front, {1 + i * 10, 4 + i * 10});
    EXPECT_FALSE(event(kFront));
    read(kFront, front, {4 + i * 10, 11 + i * 10});
    EXPECT_FALSE(event(kFront));
  }
}

// As those who subscribe to something.
TEST_F(SocketsTest, WhatIsSentUnaskedBringsItsRequest) {
  profiles_[1].alternates = false;
  const auto [front, back] = connection();
  write(kFront, front, {1, 2});
  read(kBack, client(), {1, 11});
  const auto there = event(kBack);
  write(kBack, {.socket = back.socket, .out = back.out}, {1, 11});
  read(kFront, front, {1, 11});
  EXPECT_TRUE(before(there, event(kFront)));
}

// Nobody reads the answers of this server in a process that is looked at.
TEST_F(SocketsTest, RequestsEndWhereNobodyIsInThem) {
  const End client = this->client();
  for (uint32_t i = 0; i < 1'000; ++i) {
    read(kFront, client, {1 + i * 10, 11 + i * 10});
    write(kFront, client, {1 + i * 10, 11 + i * 10});
    sockets_.wait(kFront);
  }
  EXPECT_EQ(graph_.counts().requests, 1'000);
  EXPECT_GE(graph_.take_gone().size(), 998);
}

TEST_F(SocketsTest, ARequestOfManyReadsHasFewSegments) {
  const End client = this->client();
  read(kFront, client, {1, 11});
  const auto first = event(kFront);
  for (uint32_t i = 1; i < 10'000; ++i) {
    sockets_.wait(kFront);
    read(kFront, client, {1 + i * 10, 11 + i * 10});
  }
  EXPECT_TRUE(before(first, event(kFront)));
  EXPECT_EQ(graph_.counts().forgotten, 0);
}

TEST_F(SocketsTest, KnowsNothingBehindALoss) {
  const auto [front, back] = connection();
  read(kFront, client(), {1, 11});
  write(kFront, front, {1, 51});
  graph_.lose();
  sockets_.lose();
  EXPECT_FALSE(event(kFront));
  read(kBack, back, {1, 51});
  EXPECT_EQ(event(kBack)->number, 1) << "it begins anew";
}

// Servers of 3 levels with 4 connections between any two; each message's bytes are read in parts by
// chance. Whoever has a context has the right one: what the ids in the payloads would say.
TEST_F(SocketsTest, RandomMessagesNeverGetAWrongRequest) {
  std::mt19937 random(4711);
  const auto chance = [&random](uint32_t n) { return static_cast<uint32_t>(random() % n); };
  struct Link {
    End from, to;
    uint32_t sent = 1, back = 1;
  };
  std::vector<Link> links;
  std::vector<Link> clients;
  for (int i = 0; i < 4; ++i) {
    const auto [from, to] = connection();
    links.push_back({.from = from, .to = to});
    clients.push_back({.from = {}, .to = client()});
  }
  size_t pairs = 0;
  for (int round = 0; round < 20'000; ++round) {
    const size_t which = chance(4);
    Link& from = clients[which];
    Link& link = links[which];
    const uint32_t length = 1 + chance(100);
    read(kFront, from.to, {from.sent, from.sent + length});
    from.sent += length;
    const auto asked = event(kFront);
    ASSERT_TRUE(asked);
    if (chance(3) == 0) sockets_.connect(kOther, 77);
    write(kFront, link.from, {link.sent, link.sent + length});
    if (chance(2) == 0) sockets_.wait(kFront);
    const uint32_t part = chance(length);
    if (part != 0) read(kBack, link.to, {link.sent, link.sent + part});
    if (chance(4) == 0) sockets_.wait(kBack);
    read(kBack, link.to, {link.sent + part, link.sent + length});
    link.sent += length;
    const auto there = event(kBack);
    ASSERT_TRUE(before(asked, there)) << "round " << round;
    ++pairs;
    write(kBack, link.to, {link.back, link.back + 9});
    if (chance(2) == 0) sockets_.wait(kBack);
    read(kFront, link.from, {link.back, link.back + 9});
    link.back += 9;
    ASSERT_TRUE(before(there, event(kFront)));
    write(kFront, from.to, {from.back, from.back + 9});
    from.back += 9;
    sockets_.wait(kFront);
  }
  EXPECT_EQ(pairs, 20'000);
  EXPECT_EQ(graph_.counts().requests, 20'000);
  EXPECT_EQ(sockets_.counts().ambiguous, 0);
}

}  // namespace
}  // namespace clew::causal

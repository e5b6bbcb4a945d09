// SPDX-License-Identifier: Apache-2.0
#include "causal/positions.h"

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace clew::causal {
namespace {

constexpr Thread kClient{1, 1};
constexpr Thread kClients{1, 11};  // Another one of the same program.
constexpr Thread kServer{2, 2};
constexpr Thread kServers{2, 22};

class PositionsTest : public testing::Test {
 protected:
  // An event of the thread that is no message.
  void see(Thread thread) { seen_[thread] = ++time_; }

  Passage passage(Thread thread, const StreamKey& out, uint32_t length) {
    Passage made;
    made.thread = thread;
    made.socket = out.from;
    made.out = out;
    made.bytes.end = length;
    Passage::Count& count = made.count.emplace();
    const auto seen = seen_.find(thread);
    if (seen != seen_.end()) count.before = seen->second;
    count.time = seen_[thread] = ++time_;
    count.own = numbers_[out.from];
    count.peers = numbers_[out.to];
    return made;
  }
  Passage send(Thread thread, uint32_t length) {
    return positions_.place_sent(passage(thread, kOut, length));
  }
  // So many bytes are left then.
  Passage receive(Thread thread, uint32_t length, std::optional<uint32_t> unread) {
    Passage made = passage(thread, kOut.reversed(), length);
    made.count->unread = unread;
    return positions_.place_received(made);
  }
  // Both ends have been closed, and others are where they were.
  void reuse() {
    for (auto& [socket, number] : numbers_)
      number += 100;
  }

  static constexpr StreamKey kOut{.from = 10, .to = 20};
  std::map<uint64_t, uint32_t> numbers_ = {{10, 1}, {20, 2}};
  std::map<Thread, int64_t> seen_;
  int64_t time_ = 0;
  Graph graph_;
  Streams streams_{graph_};
  Positions positions_{streams_};
};

std::vector<uint32_t> ends(const Passage& passage) {
  if (!passage.is_placed()) return {};
  return {passage.bytes.begin, passage.bytes.end};
}
using Range = std::vector<uint32_t>;

TEST_F(PositionsTest, AreUnknownUntilSomebodySeesWhatIsUnread) {
  EXPECT_EQ(ends(send(kClient, 10)), Range{});
  EXPECT_EQ(ends(receive(kServer, 4, std::nullopt)), Range{});
  EXPECT_EQ(ends(receive(kServer, 6, 0)), Range{}) << "nobody knows of which";
  see(kClient);
  EXPECT_EQ(ends(send(kClient, 5)), (Range{10, 15}));
  EXPECT_EQ(ends(send(kClient, 5)), (Range{15, 20}));
  EXPECT_EQ(ends(receive(kServer, 7, 3)), (Range{10, 17}));
  EXPECT_EQ(ends(receive(kServer, 3, 0)), (Range{17, 20}));
}

TEST_F(PositionsTest, WhatIsUnreadThenIsNobodys) {
  send(kClient, 10);
  EXPECT_EQ(ends(receive(kServer, 4, 6)), Range{});
  see(kClient);
  EXPECT_EQ(ends(send(kClient, 5)), (Range{10, 15}));
  EXPECT_EQ(ends(receive(kServer, 6, 5)), (Range{4, 10}));
  EXPECT_EQ(ends(receive(kServer, 5, 0)), (Range{10, 15}));
}

// Its bytes may have been read already.
TEST_F(PositionsTest, OfACallThatMayHaveBegunBeforeAreUnknown) {
  receive(kServer, 10, 0);
  EXPECT_EQ(ends(send(kClient, 10)), Range{});
  EXPECT_EQ(ends(send(kClient, 10)), Range{}) << "what the first one was is not known any more";
  receive(kServer, 10, 0);
  see(kClient);
  EXPECT_EQ(ends(send(kClient, 10)), (Range{20, 30}));
}

TEST_F(PositionsTest, BeginWithTheConnectionWhereAnotherOneWas) {
  send(kClient, 10);
  reuse();
  const Passage one = send(kClient, 3);
  EXPECT_EQ(ends(one), (Range{0, 3}));
  EXPECT_EQ(ends(receive(kServer, 3, 0)), (Range{0, 3})) << "the first one's are not read";
  reuse();
  const Passage other = receive(kServer, 7, 0);
  EXPECT_EQ(ends(other), Range{}) << "its send is seen later";
  EXPECT_NE(other.out.space, one.out.space);
  EXPECT_EQ(ends(send(kClient, 7)), (Range{0, 7}));
  EXPECT_EQ(ends(send(kClient, 1)), (Range{7, 8}));
}

// A socket that was seen before, with another peer, tells as much.
TEST_F(PositionsTest, BeginWithTheConnectionOfAnotherPair) {
  positions_.place_sent(passage(kClient, {.from = 10, .to = 30}, 10));
  numbers_[10] = 7;
  EXPECT_EQ(ends(send(kClient, 3)), (Range{0, 3}));
}

TEST_F(PositionsTest, APeerThatIsNotAcceptedYetIsTheSameLater) {
  send(kClient, 1);
  reuse();
  const uint32_t accepted = std::exchange(numbers_[20], 0);
  const Passage sent = send(kClient, 3);
  numbers_[20] = accepted;
  const Passage received = receive(kServer, 3, 0);
  EXPECT_EQ(ends(received), (Range{0, 3}));
  EXPECT_EQ(received.out.space, sent.out.space);
}

// What an end has sent, that was closed before, is not read by another connection's.
TEST_F(PositionsTest, OfAPeerThatHasGoneAreNotThoseOfOneThatWasThere) {
  send(kClient, 1);
  reuse();
  numbers_[20] = 0;
  send(kClient, 3);
  numbers_ = {{10, 0}, {20, 777}};
  EXPECT_EQ(ends(receive(kServer, 3, 0)), Range{});
}

TEST_F(PositionsTest, AreWrongIfLessIsUnreadThanWasSent) {
  send(kClient, 1);
  reuse();
  send(kClient, 10);
  send(kClient, 10);
  EXPECT_EQ(ends(receive(kServer, 10, 0)), Range{}) << "somebody has read the others";
  see(kClient);
  EXPECT_EQ(ends(send(kClient, 10)), (Range{10, 20})) << "known from there on";
}

// Who is not looked at has sent: what comes behind that is known again.
TEST_F(PositionsTest, WhatNobodyWasSeenToSendIsLeftOut) {
  send(kClient, 1);
  reuse();
  send(kClient, 10);
  EXPECT_EQ(ends(receive(kServer, 15, 0)), Range{}) << "nobody knows in which order";
  see(kClient);
  EXPECT_EQ(ends(send(kClient, 10)), (Range{15, 25}));
}

// A call that is long sends bytes that are read long before it returns.
TEST_F(PositionsTest, OfACallThatIsSeenLaterAreThoseThatWereMissing) {
  send(kClient, 1);
  reuse();
  receive(kServer, 100, 0);
  receive(kServer, 100, 50);
  EXPECT_EQ(ends(send(kClient, 250)), (Range{0, 250}));
}

// What a call sends that has not returned may be in front of it.
TEST_F(PositionsTest, WhereMoreWasSentThanIsSeenAreNotKnown) {
  send(kClient, 1);
  reuse();
  EXPECT_EQ(ends(send(kClient, 10)), (Range{0, 10}));
  EXPECT_EQ(ends(receive(kServer, 10, 10)), Range{});
  EXPECT_EQ(ends(send(kClients, 10)), Range{});
}

// Linux before 6.17, where something waits.
TEST_F(PositionsTest, WhereNobodyKnowsWhatIsUnreadAreNotKnown) {
  send(kClient, 1);
  reuse();
  send(kClient, 10);
  EXPECT_EQ(ends(receive(kServer, 4, std::nullopt)), Range{});
  EXPECT_EQ(ends(receive(kServer, 6, 0)), (Range{4, 10}));
}

TEST_F(PositionsTest, TwoThatSendAtAMomentAreNotKnown) {
  send(kClient, 1);
  reuse();
  see(kClients);
  EXPECT_EQ(ends(send(kClient, 10)), (Range{0, 10}));
  EXPECT_EQ(ends(send(kClients, 10)), Range{});
}

TEST_F(PositionsTest, ThoseThatSendInTurnAreKnown) {
  send(kClient, 1);
  reuse();
  EXPECT_EQ(ends(send(kClient, 10)), (Range{0, 10}));
  see(kClients);
  EXPECT_EQ(ends(send(kClients, 10)), (Range{10, 20}));
  receive(kServer, 20, 0);
  EXPECT_EQ(ends(send(kClient, 10)), (Range{20, 30})) << "all that anybody has sent was read";
}

TEST_F(PositionsTest, TwoThatReceiveAtAMomentAreNotKnown) {
  send(kClient, 1);
  reuse();
  see(kServers);
  send(kClient, 20);
  EXPECT_EQ(ends(receive(kServer, 10, 10)), (Range{0, 10}));
  EXPECT_EQ(ends(receive(kServers, 10, 0)), Range{});
  see(kClient);
  send(kClient, 10);
  EXPECT_EQ(ends(receive(kServers, 10, 0)), Range{}) << "the other one may be in a call again";
}

TEST_F(PositionsTest, ThoseThatReceiveInTurnAreKnown) {
  send(kClient, 1);
  reuse();
  send(kClient, 20);
  EXPECT_EQ(ends(receive(kServer, 10, 10)), (Range{0, 10}));
  see(kServers);
  EXPECT_EQ(ends(receive(kServers, 10, 0)), (Range{10, 20}));
}

TEST_F(PositionsTest, BothDirectionsAreForThemselves) {
  send(kClient, 1);
  reuse();
  EXPECT_EQ(ends(send(kClient, 10)), (Range{0, 10}));
  EXPECT_EQ(ends(positions_.place_sent(passage(kServer, kOut.reversed(), 4))), (Range{0, 4}));
  receive(kServer, 10, 0);
  Passage back = passage(kClient, kOut, 4);
  back.count->unread = 0;
  EXPECT_EQ(ends(positions_.place_received(back)), (Range{0, 4}));
}

TEST_F(PositionsTest, ALossForgetsAll) {
  send(kClient, 1);
  reuse();
  send(kClient, 10);
  positions_.lose();
  reuse();
  EXPECT_EQ(ends(send(kClient, 10)), Range{}) << "what came with the connection may be lost";
}

TEST_F(PositionsTest, WhatIsReceivedMayLackACallThatIsSeenLater) {
  send(kClient, 1);
  reuse();
  Passage received = passage(kServer, kOut.reversed(), 10);
  const Passage sent = passage(kClient, kOut, 10);
  EXPECT_TRUE(positions_.lacks(received, sent));
  positions_.place_sent(sent);
  EXPECT_FALSE(positions_.lacks(received, sent));
  received.bytes.end = 11;
  EXPECT_TRUE(positions_.lacks(received, sent));
  Passage others = sent;
  others.count->own = 99;
  EXPECT_FALSE(positions_.lacks(received, others)) << "of a later connection";
}

// --- a kernel that is written down here ----------------------------------------------------------

// Bytes go from several threads to others, which take turns, through one connection after another,
// which all have the same two sockets. Calls take a while, are seen at their end, and do what they
// do at some moment before.
class Machine {
 public:
  // So many threads of 3 send, and of 2 receive.
  Machine(uint64_t seed, size_t senders, size_t receivers)
      : random_(seed), senders_(senders), receivers_(receivers) {
    threads_.resize(kSenders + receivers);
  }

  void run(int steps) {
    for (time_ = 1; time_ < steps; ++time_)
      step(below(2) == 0 ? below(senders_) : kSenders + below(receivers_));
  }
  uint64_t wrong = 0;
  uint64_t right = 0;
  uint64_t missing = 0;

 private:
  static constexpr size_t kSenders = 3;  // The first threads.
  struct Call {
    uint32_t generation = 0;
    bool is_done = false;
    uint64_t message = 0;
    std::vector<uint64_t> received{};  // Message by byte.
    uint32_t length = 0;
  };
  struct State {
    std::optional<Call> call;
    int64_t seen = Passage::Count::kNever;
  };

  size_t below(size_t bound) {
    return std::uniform_int_distribution<size_t>(0, bound - 1)(random_);
  }

  void step(size_t index) {
    State& state = threads_[index];
    if (!state.call) {
      const size_t what = below(20);
      if (what == 0) return close();
      if (what < 5) state.seen = time_;
      const bool is_busy =
          index >= kSenders && std::any_of(threads_.begin() + kSenders, threads_.end(),
                                           [](const State& each) { return each.call.has_value(); });
      if (what >= 5 && !is_busy)
        state.call = Call{.generation = generation_, .message = ++messages_};
    } else if (!state.call->is_done) {
      act(index, *state.call);
    } else {
      if (state.call->length != 0 && state.call->generation == generation_) finish(index, state);
      state.call.reset();
      state.seen = time_;
    }
  }

  // Unless somebody is inside.
  void close() {
    for (const State& state : threads_) {
      if (state.call) return;
    }
    queue_.clear();
    ++generation_;
  }

  void act(size_t index, Call& call) {
    call.is_done = true;
    if (index < kSenders) {
      call.length = below(2) == 0 ? 4 : static_cast<uint32_t>(1 + below(9));
      queue_.insert(queue_.end(), call.length, call.message);
      return;
    }
    const size_t most = below(2) == 0 ? 4 : 1 + below(20);
    while (!queue_.empty() && call.length < most) {
      call.received.push_back(queue_.front());
      queue_.pop_front();
      ++call.length;
    }
  }

  void finish(size_t index, const State& state) {
    Passage passage;
    passage.thread = {1, static_cast<int64_t>(index)};
    passage.out = {.from = 10, .to = 20};
    if (index >= kSenders) passage.out = passage.out.reversed();
    passage.bytes.end = state.call->length;
    Passage::Count& count = passage.count.emplace();
    count.time = time_;
    count.before = state.seen;
    count.own = 2 * generation_ + (index < kSenders ? 1 : 2);
    count.peers = below(4) == 0 ? 0 : 2 * generation_ + (index < kSenders ? 2 : 1);
    if (index < kSenders) return sent(positions_.place_sent(passage), *state.call);
    if (below(3) != 0) count.unread = static_cast<uint32_t>(queue_.size());
    received(positions_.place_received(passage), *state.call);
  }

  void sent(const Passage& passage, const Call& call) {
    if (!passage.is_placed()) return;
    if (const auto key = streams_.send(passage.out, passage.bytes)) {
      graph_.begin({9, 9});
      graph_.put({9, 9}, *key);
      message_of_[key->object] = call.message;
    }
  }

  // What is said to be read has been.
  void received(const Passage& passage, const Call& call) {
    const auto keys = streams_.receive(passage.out.reversed(), passage.bytes);
    for (const ContextKey& key : passage.is_placed() ? keys : std::vector<ContextKey>{}) {
      const uint64_t message = message_of_.at(key.object);
      const auto& all = call.received;
      ++(std::find(all.begin(), all.end(), message) != all.end() ? right : wrong);
    }
    if (keys.empty()) ++missing;
    if (passage.is_placed()) streams_.drop(passage.out.reversed(), passage.bytes);
  }

  std::mt19937_64 random_;
  size_t senders_;
  size_t receivers_;
  std::vector<State> threads_;
  std::deque<uint64_t> queue_;  // Message by byte.
  uint32_t generation_ = 1;
  uint64_t messages_ = 0;
  int64_t time_ = 0;
  std::map<uint64_t, uint64_t> message_of_;
  Graph graph_;
  Streams streams_{graph_};
  Positions positions_{streams_};
};

TEST(PositionsOfAMachine, AreRightOrUnknown) {
  for (const auto& [senders, receivers] : {std::pair{1, 1}, {2, 1}, {1, 2}, {3, 2}}) {
    uint64_t right = 0;
    uint64_t missing = 0;
    for (uint64_t seed = 0; seed < 500; ++seed) {
      Machine machine(seed, static_cast<size_t>(senders), static_cast<size_t>(receivers));
      machine.run(1'000);
      ASSERT_EQ(machine.wrong, 0) << "seed " << seed << ": " << senders << ", " << receivers;
      right += machine.right;
      missing += machine.missing;
    }
    const bool is_simple = senders == 1 && receivers == 1;
    EXPECT_GT(right, is_simple ? missing : 20U) << missing << " are missing";
  }
}

}  // namespace
}  // namespace clew::causal

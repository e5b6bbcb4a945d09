// SPDX-License-Identifier: Apache-2.0
// The rules of sockets.h where bytes have no numbers (positions.h).
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include <gtest/gtest.h>

#include "causal/sockets.h"
#include "causal/sockets_testing.h"

namespace clew::causal {
namespace {

// Bytes without numbers, which are counted from the moment when nothing is on its way.
class UnixSocketsTest : public SocketsTest {
 protected:
  Passage passage(Thread thread, const StreamKey& out, bool is_servers) {
    const int64_t before = std::exchange(seen_[thread], ++time_);
    Passage made{.thread = thread, .socket = out.from, .out = out, .bytes = {0, 10}};
    made.accepted = is_servers && !is_pair_;
    made.is_of_pair = is_pair_;
    made.count = {.time = time_, .before = before, .own = 1, .peers = 1, .unread = 0};
    return made;
  }
  static constexpr StreamKey kOut{.from = 10, .to = 20};
  bool is_pair_ = false;
  int64_t time_ = 0;
  std::map<Thread, int64_t> seen_;
};

TEST_F(UnixSocketsTest, BringTheRequestOnceItsPlaceIsKnown) {
  const End asking = client();
  for (uint32_t round = 0; round < 3; ++round) {
    read(kFront, asking, {round, round + 1});
    const auto asked = event(kFront);
    sockets_.send(passage(kFront, kOut, false));
    sockets_.receive(passage(kBack, kOut.reversed(), true));
    EXPECT_EQ(before(asked, event(kBack)), round != 0) << round;
    sockets_.send(passage(kBack, kOut.reversed(), true));
    sockets_.receive(passage(kFront, kOut, false));
    write(kFront, asking, {round, round + 1});
    sockets_.wait(kFront);
  }
  EXPECT_EQ(sockets_.counts().unplaced, 2) << "the first question and the first answer";
}

// A question that was spliced out looks like the next one, where that is seen to be sent behind
// its read. Its answer says that it has gone.
TEST_F(UnixSocketsTest, OfAQuestionThatWasSplicedOutIsNotTheNextOnes) {
  const End asking = client();
  std::optional<Moment> spliced;
  for (uint32_t round = 0; round < 4; ++round) {
    const bool is_read = round != 2;
    const bool is_late = round == 3;
    read(kFront, asking, {round, round + 1});
    const auto asked = event(kFront);
    if (!is_read) spliced = asked;
    if (!is_late) sockets_.send(passage(kFront, kOut, false));
    if (is_read) sockets_.receive(passage(kBack, kOut.reversed(), true));
    if (is_late) sockets_.send(passage(kFront, kOut, false));
    if (round == 1) {
      EXPECT_TRUE(before(asked, event(kBack)));
    }
    if (is_late) {
      EXPECT_FALSE(before(spliced, event(kBack)));
    }
    sockets_.send(passage(kBack, kOut.reversed(), true));
    sockets_.receive(passage(kFront, kOut, false));
    write(kFront, asking, {round, round + 1});
    sockets_.wait(kFront);
  }
}

// Neither end has accepted it: what is sent there takes its thread's request along, and none
// begins.
TEST_F(UnixSocketsTest, OfAPairTakeTheRequestAlongInBothDirections) {
  is_pair_ = true;
  const StreamKey other = kOut.reversed();
  for (const auto& [thread, out] : {std::pair{kFront, kOut}, std::pair{kBack, other}}) {
    sockets_.send(passage(thread, out, false));
    sockets_.receive(passage(thread == kFront ? kBack : kFront, out.reversed(), false));
  }
  EXPECT_FALSE(event(kFront));
  EXPECT_FALSE(event(kBack));
  read(kFront, client(), {1, 2});
  const auto asked = event(kFront);
  sockets_.send(passage(kFront, kOut, false));
  sockets_.receive(passage(kBack, other, false));
  const auto there = event(kBack);
  EXPECT_TRUE(before(asked, there));
  sockets_.wait(kFront);
  sockets_.send(passage(kBack, other, false));
  sockets_.receive(passage(kFront, kOut, false));
  EXPECT_TRUE(before(there, event(kFront)));
}

}  // namespace
}  // namespace clew::causal

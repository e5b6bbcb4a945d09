// SPDX-License-Identifier: Apache-2.0
// Requests through pipes, on histories that are written down here.
#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "causal/sockets.h"

namespace clew::causal {
namespace {

constexpr Thread kWriter{1, 1};
constexpr Thread kWriters{1, 11};  // Of the same process.
constexpr Thread kReader{2, 2};
constexpr Thread kUnknown{3, 3};  // Of which nothing is said.

class PipeProfiles final : public Profiles {
 public:
  const Profile* of(int64_t pid) override {
    const auto found = known.find(pid);
    return found == known.end() ? nullptr : &found->second;
  }
  void forks(int64_t, int64_t) override {}
  void executes(int64_t) override {}
  void ends(int64_t) override {}
  std::string name_of(int64_t pid) override { return std::to_string(pid); }
  bool is_guessed(int64_t) override { return false; }

  std::map<int64_t, Profile> known;
};

class PipesTest : public testing::Test {
 protected:
  PipesTest() : sockets_(graph_, &profiles_) {
    for (const int64_t pid : {1, 2})
      profiles_.known[pid] = {
          .onward = Onward::Last, .how = EdgeClass::Recipe, .follows_pipes = true};
    sockets_.begin({.last = {5}});  // The number of the pipe is a later one.
  }

  Passage passage(Thread thread, uint64_t pipe, uint32_t length) {
    Passage made;
    made.thread = thread;
    made.socket = pipe;
    made.out = {.from = pipe, .to = pipe ^ 1};
    made.bytes.end = length;
    made.is_of_pipe = true;
    const auto number = static_cast<uint32_t>(pipe / 16 + 6);
    const auto seen = seen_.find(thread);
    made.count = {.time = ++time_, .own = number, .peers = number};
    if (seen != seen_.end()) made.count->before = seen->second;
    seen_[thread] = time_;
    return made;
  }
  void write(Thread thread, uint32_t length, uint64_t pipe = kPipe) {
    seen_[thread] = ++time_;  // In its program.
    in_pipe_[pipe] += length;
    sockets_.send(passage(thread, pipe, length));
  }
  void read(Thread thread, uint32_t length, uint64_t pipe = kPipe, bool is_moved = false) {
    Passage made = passage(thread, pipe + 1, length);
    made.is_moved = is_moved;
    made.count->unread = in_pipe_[pipe] -= length;
    sockets_.receive(made);
  }
  // The thread begins a request by itself.
  uint64_t begin(Thread thread) {
    sockets_.leave(thread);
    sockets_.begin(thread, EdgeClass::Recipe);
    return *request_of(thread);
  }
  std::optional<uint64_t> request_of(Thread thread) {
    const auto moment = graph_.event(thread);
    return moment ? std::optional(moment->request) : std::nullopt;
  }

  static constexpr uint64_t kPipe = 16;
  static constexpr uint64_t kOtherPipe = 32;
  PipeProfiles profiles_;
  Graph graph_;
  Sockets sockets_;
  std::map<Thread, int64_t> seen_;
  std::map<uint64_t, uint32_t> in_pipe_;
  int64_t time_ = 0;
};

TEST_F(PipesTest, BringTheRequestToAnotherProcess) {
  const uint64_t request = begin(kWriter);
  write(kWriter, 10);
  write(kWriter, 5);
  read(kReader, 3);
  EXPECT_EQ(request_of(kReader), request);
  const uint64_t next = begin(kWriter);
  read(kReader, 12);
  EXPECT_EQ(request_of(kReader), request) << "written before the next one began";
  write(kWriter, 10);
  read(kReader, 10);
  EXPECT_EQ(request_of(kReader), next);
  write(kReader, 4, kOtherPipe);
  sockets_.leave(kWriter);
  read(kWriter, 4, kOtherPipe);
  EXPECT_EQ(request_of(kWriter), next) << "the answer";
}

TEST_F(PipesTest, BytesOfSeveralRequestsThatAreReadAtOnceAreOfNone) {
  begin(kWriter);
  write(kWriter, 10);
  begin(kWriter);
  write(kWriter, 10);
  read(kReader, 20);
  EXPECT_EQ(request_of(kReader), std::nullopt);
  EXPECT_EQ(sockets_.counts().ambiguous, 1);
}

// Whoever writes in no request, or is unknown, has written something else.
TEST_F(PipesTest, BytesOfARequestAndOfNoneAreOfNone) {
  for (const Thread other : {kWriter, kUnknown}) {
    const uint64_t request = begin(kWriter);
    write(kWriter, 10);
    sockets_.leave(kWriter);
    write(other, 1);
    read(kReader, 11);
    EXPECT_EQ(request_of(kReader), std::nullopt);
    begin(kWriter);
    write(kWriter, 10);
    read(kReader, 10);
    EXPECT_NE(request_of(kReader), std::nullopt);
    EXPECT_NE(request_of(kReader), request);
  }
}

TEST_F(PipesTest, WhatNobodyKnowsEndsTheRequestOfItsReader) {
  begin(kWriter);
  write(kWriter, 10);
  read(kReader, 10);
  ASSERT_NE(request_of(kReader), std::nullopt);
  write(kUnknown, 10);
  read(kReader, 10);
  EXPECT_EQ(request_of(kReader), std::nullopt);
}

// As where a shell begins the second command later.
TEST_F(PipesTest, KeepWhatIsWrittenBeforeAnybodyReads) {
  std::vector<uint64_t> requests;
  for (int i = 0; i < 1'000; ++i) {
    requests.push_back(begin(kWriter));
    write(kWriter, 64);
  }
  for (const uint64_t request : requests) {
    read(kReader, 64);
    ASSERT_EQ(request_of(kReader), request);
  }
}

// Though the last answer has come from elsewhere.
TEST_F(PipesTest, AProgramBeginsAnotherRequestBehindEachAnswer) {
  std::set<uint64_t> all;
  for (int round = 0; round < 3; ++round) {
    sockets_.begin(kWriter, EdgeClass::Recipe);
    const auto request = request_of(kWriter);
    ASSERT_TRUE(request);
    all.insert(*request);
    write(kWriter, 10);
    read(kReader, 10);
    write(kReader, 5, kOtherPipe);
    read(kWriter, 5, kOtherPipe);
    EXPECT_EQ(request_of(kWriter), request);
  }
  EXPECT_EQ(all.size(), 3);
}

TEST_F(PipesTest, WithinAProcessCarryNothing) {
  const uint64_t own = begin(kWriters);
  sockets_.leave(kWriters);
  const uint64_t request = begin(kWriter);
  EXPECT_NE(own, request);
  write(kWriter, 1);
  write(kWriter, 1);
  read(kWriters, 2);
  EXPECT_EQ(request_of(kWriters), std::nullopt);
  EXPECT_EQ(request_of(kWriter), request);
  EXPECT_EQ(sockets_.counts().ambiguous, 0) << "no message";
}

// A proxy's pipe between two sockets.
TEST_F(PipesTest, WhatIsMovedThroughAPipeOfOnesOwnChangesNothing) {
  const uint64_t request = begin(kWriter);
  write(kWriter, 10);
  read(kReader, 10);
  Passage into = passage(kReader, kOtherPipe, 7);
  into.is_moved = true;
  in_pipe_[kOtherPipe] += 7;
  sockets_.send(into);
  read(kReader, 7, kOtherPipe, true);
  EXPECT_EQ(request_of(kReader), request);
}

TEST_F(PipesTest, WhatIsMovedIntoAPipeIsNobodys) {
  begin(kWriter);
  Passage moved = passage(kWriter, kPipe, 7);
  moved.is_moved = true;
  in_pipe_[kPipe] += 7;
  sockets_.send(moved);
  read(kReader, 7);
  EXPECT_EQ(request_of(kReader), std::nullopt);
}

TEST_F(PipesTest, AProgramThatIsNotSaidToFollowThemIsLeftAlone) {
  const uint64_t request = begin(kReader);
  profiles_.known[2].follows_pipes = false;
  begin(kWriter);
  write(kWriter, 10);
  read(kReader, 10);
  EXPECT_EQ(request_of(kReader), request);
}

// Three writers and two readers in processes of their own, four pipes, and a stranger who writes:
// whoever is in a request behind a read is in that of all its bytes.
TEST_F(PipesTest, RandomBytesNeverGetAWrongRequest) {
  std::mt19937 random(4711);
  const auto chance = [&random](uint32_t n) { return static_cast<uint32_t>(random() % n); };
  std::map<uint64_t, std::vector<uint64_t>> bytes;  // By pipe: of each, its request, or 0.
  uint64_t right = 0;
  for (int step = 0; step < 200'000; ++step) {
    const uint64_t pipe = 16 * (1 + chance(4));
    std::vector<uint64_t>& inside = bytes[pipe];
    if (chance(2) == 0 && inside.size() < 100) {
      const Thread writer{100 + chance(3), 100 + chance(3)};
      const bool is_known = writer.tid == writer.pid;
      uint64_t request = 0;
      if (is_known && chance(4) != 0) request = begin(writer);
      if (request == 0) sockets_.leave(writer);
      const uint32_t length = 1 + chance(5);
      inside.insert(inside.end(), length, request);
      if (request == 0 && chance(2) == 0) {
        in_pipe_[pipe] += length;  // Nobody sees it.
      } else {
        write(writer, length, pipe);
      }
    } else if (!inside.empty()) {
      const Thread reader{1 + static_cast<int64_t>(pipe / 32), 1 + static_cast<int64_t>(pipe / 32)};
      profiles_.known[reader.pid] = profiles_.known[2];
      const uint32_t length = 1 + chance(static_cast<uint32_t>(std::min<size_t>(inside.size(), 6)));
      read(reader, length, pipe);
      const auto found = request_of(reader);
      for (uint32_t i = 0; found && i < length; ++i)
        ASSERT_EQ(inside[i], *found) << step;
      right += found ? 1 : 0;
      inside.erase(inside.begin(), inside.begin() + length);
    }
  }
  EXPECT_GT(right, 2'000);
}

}  // namespace
}  // namespace clew::causal

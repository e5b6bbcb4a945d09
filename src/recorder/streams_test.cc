// SPDX-License-Identifier: Apache-2.0
#include "recorder/streams.h"

#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "recorder/across.h"

namespace clew::recorder {
namespace {

using abi::Transfer;

Snap with_streams(uint64_t sent, uint64_t received) {
  Snap snap;
  snap.network = "one";
  snap.streams = {{.descriptor = 5,
                   .sent = sent,
                   .received = received,
                   .own = "127.0.0.1:1",
                   .peer = "127.0.0.1:2"}};
  return snap;
}

StreamCall call(uint64_t began, Transfer transfer, std::optional<int32_t> result,
                uint32_t descriptor = 5) {
  StreamCall made;
  made.call = {.transfer = transfer, .descriptor = descriptor, .result = result, .began = began};
  if (result) made.call.ended = began + 1;
  return made;
}

std::vector<std::optional<StreamBytes>> bytes_of(const Snap& snap, std::vector<StreamCall> calls,
                                                 uint64_t known_from = 0) {
  for (StreamCall& one : calls) {
    one.bytes.reset();
    one.is_sure = false;
  }
  find_bytes(snap, known_from, calls);
  std::vector<std::optional<StreamBytes>> bytes;
  for (const StreamCall& one : calls)
    bytes.push_back(one.bytes);
  return bytes;
}

using Ranges = std::vector<std::optional<StreamBytes>>;
constexpr auto kNowhere = std::nullopt;

TEST(Streams, PlacesAreCountedBackInEachDirection) {
  const auto bytes = bytes_of(with_streams(100, 30),
                              {call(10, Transfer::Sends, 60), call(20, Transfer::Receives, 30),
                               call(30, Transfer::Sends, 40)});
  EXPECT_EQ(bytes, (Ranges{{{0, 60}}, {{0, 30}}, {{60, 100}}}));
}

TEST(Streams, WhatMovesNothingTakesNoPlace) {
  StreamCall waiting = call(60, Transfer::Receives, kNowhere);
  waiting.waits = true;
  const auto bytes = bytes_of(with_streams(0, 30),
                              {call(10, Transfer::Receives, 20), call(20, Transfer::Receives, -1),
                               call(30, Transfer::Peeks, 10), call(40, Transfer::Receives, 10),
                               call(50, Transfer::Receives, 0), waiting});
  EXPECT_EQ(bytes, (Ranges{{{0, 20}}, kNowhere, kNowhere, {{20, 30}}, kNowhere, kNowhere}));
}

TEST(Streams, InFrontOfWhatIsNotSureNothingHasAPlace) {
  for (const StreamCall& unsure :
       {call(20, Transfer::Sends, kNowhere), call(20, Transfer::SendsSome, 2),
        call(20, Transfer::Sends, -4096), call(20, Transfer::Sends, 91)}) {
    const auto bytes = bytes_of(with_streams(100, 0), {call(10, Transfer::Sends, 5), unsure,
                                                       call(30, Transfer::Sends, 10)});
    EXPECT_EQ(bytes, (Ranges{kNowhere, kNowhere, {{90, 100}}}));
  }
}

TEST(Streams, CallsThatRanAtOnceHaveNoOrder) {
  StreamCall first = call(10, Transfer::Sends, 5);
  first.call.ended = 25;
  const auto bytes = bytes_of(with_streams(100, 0), {first, call(20, Transfer::Sends, 10)});
  EXPECT_EQ(bytes, (Ranges{kNowhere, {{90, 100}}}));
}

TEST(Streams, ADescriptorThatHadBeenClosedWasAnotherOne) {
  std::vector<StreamCall> calls = {call(10, Transfer::Sends, 5),
                                   call(20, Transfer::Closes, kNowhere),
                                   call(30, Transfer::Sends, 7), call(40, Transfer::Sends, 9, 6)};
  find_bytes(with_streams(7, 0), 0, calls);
  EXPECT_FALSE(calls[0].stream || calls[0].bytes);
  EXPECT_EQ(calls[2].stream, 0U);
  EXPECT_EQ(calls[2].bytes, (StreamBytes{0, 7}));
  EXPECT_FALSE(calls[3].stream);
}

TEST(Streams, WhatWasOpenWhenTheProcessForkedMayHaveTwo) {
  Snap snap = with_streams(12, 0);
  snap.forked = 15;
  const std::vector<StreamCall> sends = {call(10, Transfer::Sends, 5),
                                         call(20, Transfer::Sends, 7)};
  EXPECT_EQ(bytes_of(snap, sends), (Ranges{kNowhere, kNowhere}));
  snap.streams[0].sent = 7;
  std::vector<StreamCall> later = {call(10, Transfer::Sends, 5), call(17, Transfer::Connects, 0),
                                   call(20, Transfer::Sends, 7)};
  EXPECT_EQ(bytes_of(snap, later), (Ranges{kNowhere, kNowhere, {{0, 7}}}));
  later[1] = call(17, Transfer::Accepts, 5, 3);
  EXPECT_EQ(bytes_of(snap, later), (Ranges{kNowhere, kNowhere, {{0, 7}}}));
  later[1] = call(17, Transfer::Accepts, 6, 3);
  EXPECT_EQ(bytes_of(snap, later), (Ranges{kNowhere, kNowhere, kNowhere}));
}

TEST(Streams, DuplicatesAreOne) {
  Snap snap = with_streams(100, 0);
  snap.streams.push_back(snap.streams[0]);
  snap.streams[1].descriptor = 6;
  const auto bytes = bytes_of(snap, {call(10, Transfer::Sends, 5), call(20, Transfer::Sends, 7, 6),
                                     call(30, Transfer::Sends, 1)});
  EXPECT_EQ(bytes, (Ranges{{{87, 92}}, {{92, 99}}, {{99, 100}}}));
}

TEST(Streams, AreSureWhenTheCountEndsAtTheBeginning) {
  std::vector<StreamCall> calls = {call(5, Transfer::Accepts, 5, 3), call(10, Transfer::Sends, 60),
                                   call(20, Transfer::Sends, 40)};
  find_bytes(with_streams(100, 0), 0, calls);
  EXPECT_TRUE(calls[1].is_sure && calls[2].is_sure);
  EXPECT_EQ(calls[1].bytes, (StreamBytes{0, 60}));
  // A byte that no call has sent: which one is missing is not known.
  EXPECT_EQ(bytes_of(with_streams(101, 0), calls), (Ranges{kNowhere, kNowhere, kNowhere}));
  std::vector<StreamCall> later = {call(10, Transfer::Sends, 60), call(20, Transfer::Sends, 40)};
  find_bytes(with_streams(100, 0), 0, later);
  EXPECT_FALSE(later[0].is_sure || later[1].is_sure);
}

TEST(Streams, BehindALostRecordNothingIsCounted) {
  const auto bytes = bytes_of(with_streams(100, 0),
                              {call(10, Transfer::Sends, 5), call(30, Transfer::Sends, 10)}, 20);
  EXPECT_EQ(bytes, (Ranges{kNowhere, {{90, 100}}}));
}

ShownTransfer shown(Transfer transfer, uint64_t begin, uint64_t end) {
  return {.transfer = transfer,
          .descriptor = 5,
          .stream = 0,
          .bytes = StreamBytes{begin, end},
          .is_sure = true};
}

// Each line has at most one transfer.
ShownSnap process(const std::vector<std::optional<ShownTransfer>>& lines, bool is_client) {
  ShownSnap snap{.snap = with_streams(100, 100), .shown = {}};
  SnapStream& stream = snap.snap.streams[0];
  if (!is_client) std::swap(stream.own, stream.peer);
  snap.shown.threads.emplace_back();
  for (const auto& one : lines) {
    snap.shown.threads[0].lines.emplace_back();
    if (one) snap.shown.threads[0].lines.back().transfers = {*one};
  }
  return snap;
}

std::vector<std::vector<size_t>> numbers(const std::vector<Leg>& legs) {
  std::vector<std::vector<size_t>> all;
  for (const Leg& leg : legs)
    all.push_back({leg.snap, leg.begin, leg.end});
  return all;
}

TEST(Across, GoesFromWhoReceivesToWhoHasSent) {
  const std::vector<ShownSnap> snaps = {
      process({kNowhere, shown(Transfer::Sends, 0, 10), kNowhere, shown(Transfer::Receives, 0, 4),
               kNowhere},
              true),
      process({shown(Transfer::Receives, 0, 10), kNowhere, shown(Transfer::Sends, 0, 4), kNowhere},
              false)};
  using Legs = std::vector<std::vector<size_t>>;
  EXPECT_EQ(numbers(across(snaps, 0, 100)), (Legs{{0, 0, 2}, {1, 0, 3}, {0, 3, 5}}));
  EXPECT_EQ(numbers(across(snaps, 0, 3)), (Legs{{1, 2, 3}, {0, 3, 5}}));
  EXPECT_EQ(numbers(across(snaps, 0, 1)), (Legs{{0, 4, 5}}));
}

TEST(Across, StaysWhereNobodyIsKnownToHaveSent) {
  std::vector<ShownSnap> snaps = {process({kNowhere, shown(Transfer::Receives, 0, 4)}, true),
                                  process({shown(Transfer::Sends, 0, 4)}, false)};
  using Legs = std::vector<std::vector<size_t>>;
  EXPECT_EQ(numbers(across(snaps, 0, 9)), (Legs{{1, 0, 1}, {0, 1, 2}}));
  snaps[1].snap.network = "another";  // Whose loopback has the same addresses.
  EXPECT_EQ(numbers(across(snaps, 0, 9)), (Legs{{0, 0, 2}}));
}

// What no process can have done.
TEST(Across, EndsWhereTwoHaveSentEachOtherTheSame) {
  const std::vector<ShownSnap> snaps = {
      process({shown(Transfer::Receives, 0, 4), shown(Transfer::Sends, 0, 4)}, true),
      process({shown(Transfer::Receives, 0, 4), shown(Transfer::Sends, 0, 4)}, false)};
  size_t lines = 0;
  for (const Leg& leg : across(snaps, 0, 1000))
    lines += leg.end - leg.begin;
  EXPECT_LE(lines, 1000U);
}

}  // namespace
}  // namespace clew::recorder

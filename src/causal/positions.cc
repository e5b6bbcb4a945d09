// SPDX-License-Identifier: Apache-2.0
#include "causal/positions.h"

#include <algorithm>

#include "base/assert.h"

namespace clew::causal {
namespace {

// Of the two ends.
size_t own_end(const StreamKey& out) {
  return out.from < out.to ? 0 : 1;
}

std::pair<uint64_t, uint64_t> sockets_of(const StreamKey& out) {
  return std::minmax({out.from, out.to});
}

bool differ(uint32_t known, uint32_t number) {
  return known != 0 && number != 0 && known != number;
}

ByteRange range(uint64_t begin, uint64_t end) {
  return {.begin = static_cast<uint32_t>(begin), .end = static_cast<uint32_t>(end)};
}

}  // namespace

// --- connections ---------------------------------------------------------------------------------

// A processor takes 1,024 numbers at a time, of which the last can be divided by that
// (get_next_ino(), Linux 2.6.37 to 6.18). One that others have taken was given at a time that
// nobody knows, unless all of them were taken before.
bool SocketNumbers::are_before(uint32_t number) const {
  constexpr uint32_t kAtATime = 1'024;
  // They begin again some time: one far ahead is of before.
  constexpr uint32_t kMost = UINT32_MAX - (UINT32_MAX >> 4);
  constexpr uint32_t kFar = UINT32_MAX >> 4;
  const auto taken = [](uint32_t each) { return (each - 1) / kAtATime; };
  bool is_behind_all = !last.empty();
  for (const uint32_t each : last) {
    if (each > kMost) return false;
    if (number > each && number - each > kFar) return false;
    if (taken(each) == taken(number)) return number > each;
    is_behind_all = is_behind_all && taken(number) > taken(each);
  }
  return is_behind_all;
}

// It is not older than the session, or another one was seen where it is.
bool Positions::is_new(uint64_t socket, uint32_t number) {
  if (number == 0) return false;
  uint32_t& known = numbers_[socket];
  const bool is_other = differ(known, number);
  known = number;
  return is_other || numbers_at_begin_.are_before(number);
}

// The kernel uses the memory of sockets again, soon and for either end.
Positions::Connection& Positions::connection_of(const Passage& passage) {
  if (connections_.size() >= limit_ || numbers_.size() >= limit_) lose();
  const Passage::Count& count = *passage.count;
  const bool own_is_new = is_new(passage.out.from, count.own);
  const bool peer_is_new = is_new(passage.out.to, count.peers);
  const size_t own = own_end(passage.out);
  Connection& connection = connections_[sockets_of(passage.out)];
  // Whoever comes first from this end has to know the other one, which may have been another's.
  const bool is_first = connection.generation == 0;
  const bool is_stranger = !is_first && connection.ends[own] == 0 && count.peers == 0;
  const bool is_other = is_stranger || differ(connection.ends[own], count.own) ||
                        differ(connection.ends[1 - own], count.peers);
  if (is_first || is_other) {
    StreamKey old = passage.out;
    old.space = connection.generation;
    streams_.end(old);
    connection = {.generation = ++generations_};
    // Nothing of it was missed.
    for (Direction& direction : connection.from)
      direction.is_known = (own_is_new || peer_is_new) && !is_stranger;
  }
  if (count.own != 0) connection.ends[own] = count.own;
  if (count.peers != 0) connection.ends[1 - own] = count.peers;
  return connection;
}

void Positions::lose() {
  for (const auto& [sockets, connection] : connections_)
    streams_.end({.from = sockets.first, .to = sockets.second, .space = connection.generation});
  connections_.clear();
  numbers_.clear();
  numbers_at_begin_ = {};
}

void Positions::lose_count(Direction& direction, const StreamKey& stream) {
  direction.is_known = false;
  streams_.forget(stream);
}

// --- sending -------------------------------------------------------------------------------------

Passage Positions::place_sent(const Passage& passage) {
  CLEW_ASSERT(passage.count);
  const Passage::Count& count = *passage.count;
  Connection& connection = connection_of(passage);
  Direction& direction = connection.from[own_end(passage.out)];
  Passage placed = passage;
  placed.out.space = connection.generation;
  placed.bytes = {};
  const bool is_in_turn = direction.sender == passage.thread ||
                          count.before >= direction.last_sent ||
                          direction.settled > direction.last_sent;
  if (direction.is_known && (!is_in_turn || count.before < direction.since))
    lose_count(direction, placed.out);
  if (direction.is_known) {
    // What is not counted is nobody's: this began behind it, and others may have been in between.
    if (count.before >= direction.said && direction.sent < direction.sent_then) {
      streams_.forget(placed.out);
      direction.sent = direction.sent_then;
      direction.since = direction.said;
    }
    const uint64_t begin = direction.sent;
    direction.sent += passage.bytes.end;
    placed.bytes = range(begin, direction.sent);
  }
  direction.has_many_senders |= direction.last_sent != kNever && direction.sender != passage.thread;
  direction.sender = passage.thread;
  direction.last_sent = count.time;
  return placed;
}

// --- receiving -----------------------------------------------------------------------------------

// True: all that had been sent by now is counted, so what is counted is where it is said to be.
// Else what is not may be in front of it.
bool Positions::note_unread(Direction& direction, const Passage& received) {
  const Passage::Count& count = *received.count;
  if (!count.unread) return false;
  const uint64_t sent = direction.received + *count.unread;
  const bool is_right = direction.is_known && direction.sent <= sent;
  if (!is_right) {
    lose_count(direction, received.out.reversed());
    direction.is_known = true;
    direction.sent = sent;
    direction.since = count.time;
  }
  direction.said = count.time;
  direction.sent_then = sent;
  if (direction.sent != sent) return false;
  direction.settled = count.time;
  return is_right;
}

Passage Positions::place_received(const Passage& passage) {
  CLEW_ASSERT(passage.count);
  const Passage::Count& count = *passage.count;
  Connection& connection = connection_of(passage);
  Direction& direction = connection.from[1 - own_end(passage.out)];
  Passage placed = passage;
  placed.out.space = connection.generation;
  direction.is_shared = direction.is_shared || (direction.receiver != passage.thread &&
                                                count.before < direction.last_received);
  placed.bytes = range(direction.received, direction.received + passage.bytes.end);
  direction.received += passage.bytes.end;
  if (!note_unread(direction, placed) || direction.is_shared) {
    streams_.drop(placed.out.reversed(), placed.bytes);
    placed.bytes = {};
    if (direction.last_sent != kNever) ++unplaced_;
  }
  direction.receiver = passage.thread;
  direction.last_received = count.time;
  return placed;
}

bool Positions::sends_alone(const Passage& sent) {
  const Direction& direction = connection_of(sent).from[own_end(sent.out)];
  const bool is_first = direction.last_sent == kNever;
  return (is_first || direction.sender == sent.thread) && !direction.has_many_senders;
}

bool Positions::lacks(const Passage& received, const Passage& sent) {
  const size_t own = own_end(received.out);
  const Connection& connection = connection_of(received);
  const Direction& direction = connection.from[1 - own];
  if (differ(connection.ends[1 - own], sent.count->own) || !direction.is_known) return false;
  const uint64_t all = direction.received + received.bytes.end + received.count->unread.value_or(0);
  return direction.sent < all;
}

}  // namespace clew::causal

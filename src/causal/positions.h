// SPDX-License-Identifier: Apache-2.0
// Numbers of bytes on connections that have none, as those of UNIX sockets: what calls send and
// receive is counted, from where it is known that nothing is on its way. That is so
//   - when a connection begins, as its sockets tell; or
//   - where a call that receives says what its socket has yet to read: all else was read.
// A call is seen when it returns, some time behind what it did, and by then others may have gone
// on. So what is said at a moment counts for calls that are known to have begun behind it, as their
// threads were seen outside of them; one that may have been inside ends what was known, and what
// follows is unknown until the next such moment. And where less is counted than was sent, a call is
// still to be seen, and may have sent before those that were.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "causal/streams.h"

namespace clew::causal {

// The kernel gives sockets numbers, processor by processor, of which each takes some at a time.
struct SocketNumbers {
  // Of some processors: one that each has given at that time. One of them is behind all that any
  // had taken.
  std::vector<uint32_t> last{};
  // Whether the socket was surely made behind that time.
  [[nodiscard]] bool are_before(uint32_t number) const;
};

class Positions {
 public:
  // Borrows the streams, in which it forgets what it does not know any more.
  explicit Positions(Streams& streams, size_t limit = 100'000) : streams_(streams), limit_(limit) {}

  // No passage of a socket that is made from now on is missed.
  void begin(SocketNumbers numbers) { numbers_at_begin_ = std::move(numbers); }
  // The passage, which has a count, with the numbers of its bytes, and the generation of its
  // sockets. It is_placed(), if they are known.
  Passage place_sent(const Passage& passage);
  Passage place_received(const Passage& passage);
  // Whether what was received lacks bytes that a call may have sent that is seen later.
  bool lacks(const Passage& received, const Passage& sent);
  // Whether no other thread was ever seen to send there.
  bool sends_alone(const Passage& sent);
  // Received ones of which nobody knows which bytes they are, from ends that are seen to send.
  [[nodiscard]] uint64_t unplaced() const { return unplaced_; }
  void lose();

 private:
  static constexpr int64_t kNever = Passage::Count::kNever;
  struct Direction {
    bool is_known = false;
    // Several threads wait in calls to receive: who was first cannot be told.
    bool is_shared = false;
    bool has_many_senders = false;
    uint64_t sent = 0;
    uint64_t received = 0;
    // All that was sent up to here is counted, or had been read.
    int64_t since = kNever;
    // The last time when it was known how much had been sent in all, if that is more than what is
    // counted: some call has not returned, or nobody has seen it.
    int64_t said = kNever;
    uint64_t sent_then = 0;
    // The last time when that was what is counted.
    int64_t settled = kNever;
    Thread sender;
    Thread receiver;
    int64_t last_sent = kNever;
    int64_t last_received = kNever;
  };
  struct Connection {
    uint32_t generation = 0;
    std::array<uint32_t, 2> ends{};   // Of the sockets, the lower one first.
    std::array<Direction, 2> from{};  // It.
  };
  using Sockets = std::pair<uint64_t, uint64_t>;  // The lower one first.

  Connection& connection_of(const Passage& passage);
  bool is_new(uint64_t socket, uint32_t number);
  void lose_count(Direction& direction, const StreamKey& stream);
  bool note_unread(Direction& direction, const Passage& received);

  Streams& streams_;
  size_t limit_;
  uint32_t generations_ = 0;
  uint64_t unplaced_ = 0;
  std::map<Sockets, Connection> connections_;
  SocketNumbers numbers_at_begin_;
  std::unordered_map<uint64_t, uint32_t> numbers_;  // By socket: who has it.
};

}  // namespace clew::causal

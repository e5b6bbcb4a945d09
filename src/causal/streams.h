// SPDX-License-Identifier: Apache-2.0
// Bytes on their way through a connection, and the context that each brings: by number. TCP's are
// its own (RFC 9293, section 3.4), which are the same at both ends, whatever was sent before anyone
// looked, and however it was sent; those of UNIX sockets and pipes are counted (positions.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <vector>

#include "causal/graph.h"

namespace clew::causal {

// One direction of a connection.
struct StreamKey {
  uint64_t from = 0;  // Addresses: one of IPv4, or what 64 bits say of one of IPv6; or sockets.
  uint64_t to = 0;
  uint16_t from_port = 0;  // UNIX sockets have none, and TCP's are not 0.
  uint16_t to_port = 0;
  uint32_t space = 0;  // Of a loopback address: its network namespace. Or who has the sockets now.
  auto operator<=>(const StreamKey&) const = default;
  [[nodiscard]] StreamKey reversed() const {
    return {.from = to, .to = from, .from_port = to_port, .to_port = from_port, .space = space};
  }
};

// Bytes of it: from `begin`, up to but not with `end`, modulo 2^32.
struct ByteRange {
  uint32_t begin = 0;
  uint32_t end = 0;
};

// Modulo 2^32: less than half of all numbers apart.
inline bool is_before(uint32_t a, uint32_t b) {
  return static_cast<int32_t>(a - b) < 0;
}

// What stands in for numbers where bytes have none.
struct PassageCount {
  int64_t time = 0;         // Behind the call.
  int64_t before = kNever;  // The call began behind this.
  // Each tells the socket from others, also from one that was there before; 0: not known.
  uint32_t own = 0;
  uint32_t peers = 0;
  std::optional<uint32_t> unread{};  // What the one that reads had then.
  static constexpr int64_t kNever = INT64_MIN;
};

// What one call has sent or received.
struct Passage {
  using Count = PassageCount;
  Thread thread;
  uint64_t socket = 0;  // Tells it from others of the machine, as long as it is there.
  StreamKey out;        // From here to the peer.
  ByteRange bytes;      // Of `out` when sent, else of its reverse. With a count: from 0.
  bool accepted = false;
  bool is_of_pair = false;  // Neither end has accepted it.
  bool is_of_pipe = false;
  bool is_moved = false;  // Between a pipe and another file, and the thread has not seen them.
  std::optional<Count> count = std::nullopt;
  // Whether anybody knows which bytes they are.
  [[nodiscard]] bool is_placed() const { return bytes.begin != bytes.end; }
};

struct StreamLimits {
  size_t streams = 100'000;
  size_t ranges = 4'096;  // Of one stream that somebody reads,
  size_t unread = 64;     // and of one that nobody was seen to read.
};

// The contexts are keys of a graph (ContextKey::Kind::Bytes), which are forgotten when nobody can
// come for them any more.
class Streams {
 public:
  // Borrows the graph.
  explicit Streams(Graph& graph, StreamLimits limits = {}) : graph_(graph), limits_(limits) {}

  // Bytes are sent. Returns the key that brings their context, which the caller puts there: or not,
  // where it has none. None: others were said to have these numbers, so nobody knows whose they
  // are. Two threads have written at a moment; or a new connection has the ends of an old one.
  // The key has the `pid`.
  std::optional<ContextKey> send(const StreamKey& stream, ByteRange bytes, int64_t pid = 0);
  // What brings them, in order. Empty: nobody was seen to send any of them.
  std::vector<ContextKey> receive(const StreamKey& stream, ByteRange bytes);
  // Whether somebody was seen to send each of them, and it is so for all of these.
  [[nodiscard]] bool are_all(const StreamKey& stream, ByteRange bytes,
                             const std::function<bool(const ContextKey&)>& is_so) const;
  // They have been read: whoever reads again reads others.
  void drop(const StreamKey& stream, ByteRange bytes);
  // A new connection has these ends: both directions begin anew.
  void renew(const StreamKey& stream);
  // Nobody knows any more which bytes were sent.
  void forget(const StreamKey& stream);
  // Its connection has ended.
  void end(const StreamKey& stream);
  // Whoever reads what is sent has done so. Nobody was seen to, so that is somebody who is not
  // looked at.
  void drop_unread(const StreamKey& stream);
  // Whether somebody was seen to send the last of them.
  [[nodiscard]] bool has(const StreamKey& stream, ByteRange bytes) const;
  void lose();

 private:
  struct Sent {
    ByteRange bytes;
    ContextKey key;
  };
  struct Stream {
    std::deque<Sent> sent;  // In order of their bytes.
    // Until a reader is seen there need not be one: its own machine or process is not looked at.
    bool has_reader = false;
    std::list<StreamKey>::iterator age;
  };
  Stream& stream_of(const StreamKey& key);

  Graph& graph_;
  StreamLimits limits_;
  uint64_t last_key_ = 0;
  std::map<StreamKey, Stream> streams_;
  std::list<StreamKey> ages_;  // Least recently used first.
};

}  // namespace clew::causal

// SPDX-License-Identifier: Apache-2.0
// Bytes on their way through TCP, and the context that each brings: by sequence number (RFC 9293,
// section 3.4), which is the same at both ends, whatever was sent before anyone looked, and
// however it was sent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <optional>
#include <vector>

#include "causal/graph.h"

namespace clew::causal {

// One direction of a connection.
struct StreamKey {
  uint64_t from = 0;  // Addresses: one of IPv4, or what 64 bits say of one of IPv6.
  uint64_t to = 0;
  uint16_t from_port = 0;
  uint16_t to_port = 0;
  uint32_t space = 0;  // Of a loopback address: its network namespace.
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
  std::optional<ContextKey> send(const StreamKey& stream, ByteRange bytes);
  // What brings them, in order. Empty: nobody was seen to send any of them.
  std::vector<ContextKey> receive(const StreamKey& stream, ByteRange bytes);
  // They have been read: whoever reads again reads others.
  void drop(const StreamKey& stream, ByteRange bytes);
  // A new connection has these ends: both directions begin anew.
  void renew(const StreamKey& stream);
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

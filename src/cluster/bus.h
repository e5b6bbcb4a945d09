// SPDX-License-Identifier: Apache-2.0
// What the members of a cluster talk over: nodes, relays, the root, and whoever asks. One interface
// for a bus inside the process (bus_local.h), for NATS (bus_nats.h), and for a faulty one of tests
// (bus_faulty.h). A `Bus` is one member's end of it.
//
//   publish, subscribe, next    messages by subject: at most once, to who listens at that moment
//   append, read, forget        logs: kept until they are forgotten, at least once
//   get, put                    keys with revisions: of several writers one wins
//
// Subjects are words of [A-Za-z0-9_-] with dots between them; in a pattern `*` is any one word, and
// `>` at the end is one or more. Bytes are at most kMessageMax. All functions of one end are called
// by one thread, which waits for descriptor().
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace clew::cluster {

using Bytes = std::vector<std::byte>;

inline constexpr size_t kMessageMax = 1 << 20;  // As NATS' max_payload is, if nobody changes it.

struct Message {
  std::string subject;
  std::string reply;  // Where an answer is wanted, or empty.
  Bytes bytes;
};

// What a log has kept.
struct Entry {
  uint64_t sequence = 0;  // Ascending within the log, from 1 on.
  std::string subject;
  Bytes bytes;
};

struct Revised {
  uint64_t revision = 0;
  Bytes bytes;
};

class Bus {
 public:
  Bus() = default;
  Bus(const Bus&) = delete;
  Bus& operator=(const Bus&) = delete;
  virtual ~Bus() = default;

  // Readable when next() has something, or the connection has changed.
  [[nodiscard]] virtual int descriptor() const = 0;
  // False: nobody is reached at present. What is published meanwhile may be gone.
  [[nodiscard]] virtual bool is_connected() const = 0;

  // --- messages
  virtual Expected<void> publish(std::string_view subject, std::span<const std::byte> bytes,
                                 std::string_view reply = {}) = 0;
  // Messages whose subjects match come from next(). Of all with one `group` one gets each.
  virtual Expected<void> subscribe(std::string_view pattern, std::string_view group = {}) = 0;
  virtual Expected<void> unsubscribe(std::string_view pattern) = 0;
  virtual std::optional<Message> next() = 0;
  // A subject of this end alone, to which answers come.
  [[nodiscard]] virtual std::string inbox() const = 0;

  // --- logs. Refused: nobody may, Io: nobody is reached, Limit: it is full.
  // Makes it, if it is not there: it keeps what is appended with subjects that match `pattern`, up
  // to `most_bytes`.
  virtual Expected<void> make_log(std::string_view log, std::string_view pattern,
                                  uint64_t most_bytes) = 0;
  // Two with the same `id` within a while are one.
  virtual Expected<uint64_t> append(std::string_view subject, std::string_view id,
                                    std::span<const std::byte> bytes) = 0;
  // At most `most` entries behind `after`, at once: none, if there are none.
  virtual Expected<std::vector<Entry>> read(std::string_view log, uint64_t after, size_t most) = 0;
  // All up to this one.
  virtual Expected<void> forget(std::string_view log, uint64_t up_to) = 0;

  // --- keys, in a bucket that the first put() makes
  virtual Expected<std::optional<Revised>> get(std::string_view bucket, std::string_view key) = 0;
  // Only if that is its revision still (0: it is not there); gives the new one. Refused: it is not.
  virtual Expected<uint64_t> put(std::string_view bucket, std::string_view key,
                                 std::span<const std::byte> bytes, uint64_t revision) = 0;
};

}  // namespace clew::cluster

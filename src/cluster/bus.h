// SPDX-License-Identifier: Apache-2.0
// What the members of a cluster talk over: nodes, relays, the root, and whoever asks. One interface
// for a bus inside the process (bus_local.h), for NATS (bus_nats.h), and for a faulty one of tests
// (bus_faulty.h). A `Bus` is one member's end of it.
//
//   publish, subscribe, next    messages by subject: at most once, to who listens at that moment
//   append, read, forget        logs: kept until they are forgotten, at least once
//   get, put                    keys with revisions: of several writers one wins
//
// Subjects are words of [A-Za-z0-9_-] with dots between them, at most kSubjectMax characters; in a
// pattern `*` is any one word, and `>` at the end is one or more. Logs and buckets are named by one
// word, keys as subjects are; ids are printable ASCII of at most that length. Bytes are at most
// kMessageMax. What breaks these rules is InvalidQuery, too many bytes are Limit. All functions of
// one end are called by one thread, which waits for descriptor(); each returns within a time that
// its implementation says.
#pragma once

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

// NATS' max_payload, if nobody changes it, less room for headers, which count in it.
inline constexpr size_t kMessageMax = (1 << 20) - 4096;
inline constexpr size_t kSubjectMax = 256;
inline constexpr size_t kReadBytesMax = 8 << 20;  // Of entries, but for the last one, at once.

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

// Of a log: 1 and 0 at first. Sequences go on when all is forgotten; of a log that was made anew,
// as its server had lost it, they begin anew.
struct LogEnds {
  uint64_t log = 0;    // Which one it is: another number when it was made anew, and never 0.
  uint64_t first = 1;  // That is kept, or the one behind `last`.
  uint64_t last = 0;
  bool operator==(const LogEnds&) const = default;
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
  // False: nobody is reached at present. What is published meanwhile may be gone; subscriptions
  // hold when it is true again.
  [[nodiscard]] virtual bool is_connected() const = 0;
  // What went wrong with no call to tell it, in words, since the last time: a subject that may not
  // be published to, a server that went away. Of very many only the first are kept.
  virtual std::vector<std::string> take_complaints() = 0;
  // Messages for this end that were given up, since next() was not called often enough.
  [[nodiscard]] virtual uint64_t dropped() const = 0;

  // --- messages. A failure of publish() says that it cannot have reached anybody; success says
  // little.
  virtual Expected<void> publish(std::string_view subject, std::span<const std::byte> bytes,
                                 std::string_view reply = {}) = 0;
  // Messages whose subjects match come from next(), once for each pattern that matches. Of all with
  // one `group` one gets each. Refused: this end may not. A pattern that this end has already stays
  // as it is.
  virtual Expected<void> subscribe(std::string_view pattern, std::string_view group = {}) = 0;
  virtual Expected<void> unsubscribe(std::string_view pattern) = 0;
  virtual std::optional<Message> next() = 0;
  // A subject of this end alone, to which answers come. It is always subscribed.
  [[nodiscard]] virtual std::string inbox() const = 0;

  // --- logs. Refused: this end may not. Limit: it is full. Io: nobody is reached, no log is there
  // (as it seems also while one's servers elect), or no answer came, and it may have happened
  // nevertheless.
  // Makes it, if it is not there: it keeps what is appended or published with subjects that match
  // `pattern`, up to `most_bytes`. Refused: it is there with another pattern, or another log keeps
  // some of these. Whoever subscribes to such a subject gets what is appended as a message, too.
  virtual Expected<void> make_log(std::string_view log, std::string_view pattern,
                                  uint64_t most_bytes) = 0;
  // Gives its sequence. Two with the same `id` within a while are one, and get the same; an empty
  // one is none.
  virtual Expected<uint64_t> append(std::string_view subject, std::string_view id,
                                    std::span<const std::byte> bytes) = 0;
  // Entries behind `after`, in order, and the first of these: only forgotten ones are skipped. At
  // once: none if there are none, else up to `most`, or fewer if they are large. Where a log is
  // kept several times the newest may be missing for a while.
  virtual Expected<std::vector<Entry>> read(std::string_view log, uint64_t after, size_t most) = 0;
  // Of all that is appended. NotFound: the log is not there.
  virtual Expected<LogEnds> ends(std::string_view log) = 0;
  // All up to this one, which read() or append() gave.
  virtual Expected<void> forget(std::string_view log, uint64_t up_to) = 0;

  // --- keys, in a bucket that the first put() makes. Errors as with logs.
  virtual Expected<std::optional<Revised>> get(std::string_view bucket, std::string_view key) = 0;
  // Only if that is its revision still (0: it is not there); gives the new one, which is larger.
  // Refused: it is not. After an Io, get() shows whether it happened.
  virtual Expected<uint64_t> put(std::string_view bucket, std::string_view key,
                                 std::span<const std::byte> bytes, uint64_t revision) = 0;
};

}  // namespace clew::cluster

// SPDX-License-Identifier: Apache-2.0
// What caused what, from events and edges in the order of their times: the evaluator of joins that
// needs nothing in the traced programs but their events (the "emit-only" plan).
//
// A request is a graph of segments. A segment is a stretch of events, each of which happened before
// the next; where a context is taken over a new one begins, behind what it was taken from. What
// happened before an event is then a step in each of some segments (Lamport, "Time, clocks, and the
// ordering of events in a distributed system", 1978, over the edges of one request alone).
//
// A request is over when no thread is in it and nothing that could be taken carries it. Messages
// could for ever, so a request that nothing else carries is kept as long as there is room. Memory
// is bounded: where there is too much of something, the least recently used request is forgotten,
// first of those that only messages carry.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "causal/edge.h"

namespace clew::causal {

struct Thread {
  int64_t pid = 0;
  int64_t tid = 0;
  auto operator<=>(const Thread&) const = default;
};

// What carries a context from one thread to another: an object of a process, by its address. Or
// bytes on their way, or what a process has done for a request, by numbers (causal/sockets.h). Or a
// message, by a token of 128 bits or by a text (causal/message_keys.h), which no other one has:
// several may receive it.
struct ContextKey {
  enum class Kind : uint8_t { Object, Bytes, Home, Token, Text };
  int64_t pid = 0;  // 0: of all processes.
  uint64_t object = 0;
  Kind kind = Kind::Object;
  uint64_t high = 0;  // Of a token.
  [[nodiscard]] bool is_message() const { return kind == Kind::Token || kind == Kind::Text; }
  auto operator<=>(const ContextKey&) const = default;
};

// A place in a request: of an event, or behind it.
struct Moment {
  uint64_t request = 0;
  uint32_t segment = 0;
  uint64_t step = 0;  // In its segment: 1, 2, …; 0: before its first event.
  // Lamport's: one more than the largest of the counted events that happened before.
  uint64_t number = 0;
};

// The first steps of a segment, up to and with the last one.
struct Reach {
  uint32_t segment = 0;
  uint64_t step = 0;
};

// What becomes of requests, for whoever draws them. Moments are places: behind their steps.
class GraphObserver {
 public:
  // What a segment goes on from besides what its thread did itself.
  struct From {
    Moment place{};
    std::optional<ContextKey> key = std::nullopt;  // None: no object carried it, as at a fork.
  };
  struct Crossing {
    EdgeClass how = EdgeClass::Explicit;
    std::optional<Moment> own = std::nullopt;  // What its thread did is before it, too.
    std::vector<From> from{};
  };

  GraphObserver() = default;
  GraphObserver(const GraphObserver&) = delete;
  GraphObserver& operator=(const GraphObserver&) = delete;
  virtual ~GraphObserver() = default;
  virtual void begins(Thread thread, const Moment& at) = 0;
  virtual void puts(const ContextKey& key, const Moment& at) = 0;
  // A segment of the thread begins, in the same request as all that it goes on from.
  virtual void goes_on(Thread thread, const Moment& at, const Crossing& crossing) = 0;
  virtual void leaves(const Moment& at) = 0;
  // The thread of this segment has left it, and goes on in it.
  virtual void comes_back(const Moment& at) = 0;
  // A segment begins that no thread is in, behind two others.
  virtual void comes_together(const Moment& at) = 0;
  // Nothing more comes of it: it is over, or it was forgotten before.
  virtual void is_gone(uint64_t request, bool is_over) = 0;
};

struct GraphCounts {
  std::array<uint64_t, kEdgeClasses> edges{};
  uint64_t requests = 0;
  uint64_t orphans = 0;  // Events without a request.
  uint64_t missing = 0;  // Takes of something that nobody had handed over.
  uint64_t weak = 0;     // Edges, and begins, that are not known well enough.
  uint64_t mixed = 0;    // Joins of two requests, which stay two.
  // Of messages. Those that nobody had sent; that two requests had, so that nobody knows whose they
  // are; that had been received too often. And those that were received again, which is no loss.
  uint64_t not_sent = 0;
  uint64_t sent_twice = 0;
  uint64_t worn = 0;
  uint64_t again = 0;
  uint64_t forgotten = 0;  // Requests that were not over: there was too much.
};

struct GraphLimits {
  size_t requests = 100'000;
  size_t segments = 4'096;      // Of one request.
  size_t reaches = 10'000'000;  // All that segments know of others.
  size_t contexts = 1'000'000;  // That are put.
  size_t threads = 100'000;
  uint32_t receivers = 1'000;  // Of one message.
};

class Graph {
 public:
  // What is known less well than `least` is unknown. Borrows the observer, which may be null.
  explicit Graph(GraphLimits limits = {}, EdgeClass least = EdgeClass::Heuristic,
                 GraphObserver* observer = nullptr)
      : limits_(limits), least_(least), observer_(observer) {}

  // --- edges. All are of the thread's context: the place in a request where it is. Behind one that
  // is not known well enough the thread is in no request: what it did before is over for it.
  // A new request begins.
  void begin(Thread thread, EdgeClass how = EdgeClass::Explicit);
  // What the thread does next belongs to none.
  void end(Thread thread);
  // Whoever takes `key` goes on behind this. The last one to put a key is the one that counts. An
  // edge is known as well as the worse of its two ends.
  void put(Thread thread, ContextKey key, EdgeClass how = EdgeClass::Explicit);
  // Whether a message leads to a request, for who is about to take it; counts it.
  bool admit(ContextKey message);
  // The thread goes on behind what was put, and with nothing else. A key that nobody has put leaves
  // it with no request: unknown is better than wrong.
  void take(Thread thread, ContextKey key, EdgeClass how);
  // The thread goes on behind what was put, and behind what it did itself.
  void join(Thread thread, ContextKey key, EdgeClass how);
  // `child` goes on behind what its parent did; behind nothing, where that is in no request.
  void fork(Thread parent, Thread child, EdgeClass how);
  // The thread goes on behind all of the keys that are of the first one's request, which is not
  // over, and behind what it did itself, if that is of the same.
  void enter(Thread thread, std::span<const ContextKey> keys, EdgeClass how);
  // Whoever takes `key` goes on behind this, too, and behind what it had of the same request.
  void gather(Thread thread, ContextKey key);
  // `to` is where `from` is.
  void copy(ContextKey from, ContextKey to);
  void forget(ContextKey key) { leave(keys_, key); }
  // None: it is in no request, or in one that was forgotten.
  std::optional<uint64_t> request_of(Thread thread);
  std::optional<uint64_t> request_of(ContextKey key);
  // Something was lost: nothing is known of any thread or key until it begins anew.
  void lose();

  // --- events
  // Of a thread; none: it is in no request.
  std::optional<Moment> event(Thread thread);
  // The thread's last event, which was in a request, raises the numbers of those behind it.
  void count(Thread thread);
  // All that happened before it, itself left out, in order of segments.
  [[nodiscard]] std::vector<Reach> before(const Moment& moment) const;

  // Makes room: the least recently used request is forgotten. False: there is none.
  bool forget_one();
  [[nodiscard]] bool knows(uint64_t request) const { return requests_.contains(request); }
  // Requests that are over or forgotten since the last call.
  std::vector<uint64_t> take_gone() { return std::exchange(gone_, {}); }
  [[nodiscard]] const GraphCounts& counts() const { return counts_; }

 private:
  using Reaches = std::vector<Reach>;
  struct Segment {
    std::shared_ptr<const Reaches> before;  // Sorted; what happened before its first step.
    uint64_t steps = 0;
    // Whose stretch it is, and whether it is there and may add more.
    std::optional<Thread> thread = std::nullopt;
    bool has_thread = false;
  };
  struct Request {
    std::vector<Segment> segments;
    size_t references = 0;  // Threads and keys that are in it,
    size_t messages = 0;    // and those of messages among them.
    size_t reaches = 0;     // That its segments hold, shared ones once.
    std::list<uint64_t>::iterator age;
    bool is_idle = false;  // Only messages carry it: its age is in idle_.
  };
  // Where somebody is: behind this step. One adds steps to a segment: the thread in which it began.
  using Place = Moment;
  // Places by who is there, the least recently set first.
  template <typename Who>
  struct Places {
    struct At {
      Place place;
      typename std::list<Who>::iterator age;
      EdgeClass how = EdgeClass::Explicit;  // Of a key: as it was put.
      uint32_t receivers = 0;               // Of a message.
      bool is_doubtful = false;             // Of a message: another request has sent the same.
    };
    std::map<Who, At> all;
    std::list<Who> ages;
  };

  Request* find(uint64_t request);
  std::list<uint64_t>& ages_of(const Request& request) { return request.is_idle ? idle_ : ages_; }
  void settle(Request& request);
  template <typename Who>
  Place* place_of(Places<Who>& places, const Who& who);
  template <typename Who>
  void set(Places<Who>& places, const Who& who, const Place& place, size_t limit);
  template <typename Who>
  void leave(Places<Who>& places, const Who& who);
  void release(uint64_t request);
  bool is_weak(EdgeClass how);
  [[nodiscard]] EdgeClass class_of(ContextKey key, EdgeClass how) const;
  void go_on(Thread thread, const std::vector<Place>& behind);
  std::optional<Place> add_segment(const std::vector<Place>& behind);
  bool resume(Thread thread, const std::vector<Place>& behind);
  [[nodiscard]] bool is_behind(const Place& place, const Place& other) const;
  std::shared_ptr<const Reaches> reaches_behind(Request& request, const std::vector<Place>& behind);
  void drop(uint64_t request, bool is_over);
  void tell(Thread thread, const GraphObserver::Crossing& crossing) const;

  GraphLimits limits_;
  EdgeClass least_;
  GraphObserver* observer_;
  GraphCounts counts_;
  uint64_t last_request_ = 0;
  size_t reaches_ = 0;
  std::unordered_map<uint64_t, Request> requests_;
  std::list<uint64_t> ages_;  // Least recently used first.
  std::list<uint64_t> idle_;  // The same, of those that only messages carry.
  Places<Thread> threads_;
  Places<ContextKey> keys_;
  std::vector<uint64_t> gone_;
};

}  // namespace clew::causal

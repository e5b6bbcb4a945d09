// SPDX-License-Identifier: Apache-2.0
// What caused what, from events and edges in the order of their times: the evaluator of joins that
// needs nothing in the traced programs but their events (the "emit-only" plan).
//
// A request is a graph of segments. A segment is a stretch of events, each of which happened before
// the next; where a context is taken over a new one begins, behind what it was taken from. What
// happened before an event is then a step in each of some segments (Lamport, "Time, clocks, and the
// ordering of events in a distributed system", 1978, over the edges of one request alone).
//
// Memory is bounded: the oldest of too many requests is forgotten, and so is the oldest of too many
// contexts that were handed over and not taken. Both are counted.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

namespace clew::causal {

// How an edge is known, from the best to the least (docs/decisions/joins.md).
enum class EdgeClass : uint8_t {
  Explicit,   // The program says so itself.
  Sound,      // It cannot be otherwise: a thread that a thread has begun.
  Recipe,     // A profile of the program says so, and was measured.
  Heuristic,  // The same rules without such a profile.
};
inline constexpr size_t kEdgeClasses = 4;

struct Thread {
  int64_t pid = 0;
  int64_t tid = 0;
  auto operator<=>(const Thread&) const = default;
};

// What carries a context from one thread to another: an object of a process, by its address.
struct Key {
  int64_t pid = 0;  // 0: of all processes.
  uint64_t object = 0;
  auto operator<=>(const Key&) const = default;
};

// A place in a request: of an event, or behind it.
struct Moment {
  uint64_t request = 0;
  uint32_t segment = 0;
  uint32_t step = 0;    // In its segment: 1, 2, …; 0: before its first event.
  uint64_t number = 0;  // Lamport's: one more than the largest of what happened before.
};

// The first steps of a segment, up to and with the last one.
struct Reach {
  uint32_t segment = 0;
  uint32_t step = 0;
};

struct GraphCounts {
  uint64_t edges[kEdgeClasses] = {};
  uint64_t requests = 0;
  uint64_t orphans = 0;    // Events without a request.
  uint64_t untaken = 0;    // Contexts that were handed over, and forgotten before one came.
  uint64_t missing = 0;    // Takes of something that nobody had handed over.
  uint64_t mixed = 0;      // Joins of two requests, which stay two.
  uint64_t forgotten = 0;  // Requests, as there were too many.
};

struct GraphLimits {
  size_t requests = 100'000;
  size_t segments = 4'096;  // Of one request; behind that it takes over no more, and is forgotten.
  size_t contexts = 1'000'000;
  size_t threads = 100'000;
};

class Graph {
 public:
  explicit Graph(GraphLimits limits = {}) : limits_(limits) {}

  // --- edges. All are of the thread's context: the place in a request where it is.
  // A new request begins.
  void begin(Thread thread);
  // What the thread does next belongs to none.
  void end(Thread thread);
  // Whoever takes `key` goes on behind this. The last one to put a key is the one that counts.
  void put(Thread thread, Key key);
  // The thread goes on behind what was put, and with nothing else. A key that nobody has put leaves
  // it with no request: unknown is better than wrong.
  void take(Thread thread, Key key, EdgeClass how);
  // The thread goes on behind what was put, and behind what it did itself.
  void join(Thread thread, Key key, EdgeClass how);
  // `child` goes on where its parent is.
  void fork(Thread parent, Thread child, EdgeClass how);

  // Something was lost: nothing is known of any thread or key until it begins anew.
  void lose();

  // --- events
  // Of a thread; none: it is in no request.
  std::optional<Moment> event(Thread thread);
  // All that happened before it, itself left out, in order of segments.
  [[nodiscard]] std::vector<Reach> before(const Moment& moment) const;

  // Requests that were forgotten since the last call: nothing refers to them any more.
  std::vector<uint64_t> take_forgotten() { return std::exchange(gone_, {}); }
  [[nodiscard]] const GraphCounts& counts() const { return counts_; }

 private:
  struct Segment {
    std::vector<Reach> before;  // Sorted; what happened before its first step.
    uint32_t steps = 0;
  };
  struct Request {
    std::vector<Segment> segments;
    std::list<uint64_t>::iterator age;
  };
  // Where somebody is: behind this step. One adds steps to a segment: the thread in which it began.
  using Place = Moment;

  Request* find(uint64_t request);
  Place* place_of(Thread thread);
  void set_place(Thread thread, Place place);
  void go_on(Thread thread, const std::vector<Place>& behind);
  void forget(uint64_t request);

  GraphLimits limits_;
  GraphCounts counts_;
  uint64_t last_request_ = 0;
  std::unordered_map<uint64_t, Request> requests_;
  std::list<uint64_t> ages_;  // Least recently used first.
  std::map<Thread, Place> threads_;
  std::map<Key, std::pair<Place, uint64_t>> contexts_;  // And the place in `order_`.
  std::map<uint64_t, Key> order_;
  uint64_t last_put_ = 0;
  std::vector<uint64_t> gone_;
};

}  // namespace clew::causal

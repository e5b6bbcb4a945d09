// SPDX-License-Identifier: Apache-2.0
// Writes down what joins by cause say of requests, and keeps the one that is to be drawn.
//
// Memory is bounded: of a request so many events and segments are kept, and of all that are not
// over so many together; where there are more, the least recently used one is decided about as it
// is. What is left out is counted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "answer/join_observer.h"
#include "output/request_graph.h"
#include "plan/joined.h"

namespace clew::session {

struct RecorderLimits {
  size_t events = 2'000;  // Of one request.
  size_t segments = 1'000;
  size_t hand_overs = 10'000;  // That nobody has taken yet.
  size_t items = 500'000;  // Of all requests that are not over: events, their values, edges, ….
};

class RequestRecorder final : public answer::JoinObserver {
 public:
  // Borrows `joined`.
  RequestRecorder(const plan::Joined& joined, output::GraphChoice choice,
                  RecorderLimits limits = {});
  // What pictures ask of each event besides what the query does.
  static std::vector<query::Field> fields();

  void comes(std::span<const aggregate::Value> event, causal::Thread thread) override;
  void happens(const causal::Moment& moment) override;
  void gives(const causal::Moment& moment, uint64_t rows) override;
  void begins(causal::Thread thread, const causal::Moment& at) override;
  void puts(const causal::ContextKey& key, const causal::Moment& at) override;
  void goes_on(causal::Thread thread, const causal::Moment& at, const Crossing& crossing) override;
  void leaves(const causal::Moment& at) override;
  void comes_back(const causal::Moment& at) override;
  void comes_together(const causal::Moment& at) override;
  void is_gone(uint64_t request, bool is_over) override;

  // Once, behind the last event. `epoch_ns`: CLOCK_REALTIME - CLOCK_MONOTONIC, of the events.
  output::RequestGraph finish(int64_t epoch_ns);

 private:
  // Wraps: a recording can say any time.
  static int64_t minus(int64_t a, int64_t b) {
    return static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
  }
  struct Lane {
    std::string process;
    std::string thread;
  };
  struct Segment {
    causal::Thread thread{};
    int64_t begin = 0;
    int64_t end = 0;
    std::optional<int64_t> left = std::nullopt;
    bool is_empty = true;  // Nothing happened in it, and nothing went on from it.
  };
  struct Event {
    uint32_t segment = 0;
    int64_t time = 0;
    uint32_t source = 0;
    std::string function{};
    std::vector<aggregate::Value> row{};  // Of Joined::events.
    uint64_t rows = 0;
  };
  struct HandOver {
    uint32_t segment = 0;
    int64_t time = 0;
    uint32_t source = 0;
    bool is_taken = false;
  };
  // Whether an object is left that nobody has taken. Bytes of an answer are read by those who are
  // not looked at, and what a process has done for a request need not be gone on with.
  static bool is_left(const std::pair<const causal::ContextKey, HandOver>& one) {
    const bool is_object = one.first.kind == causal::ContextKey::Kind::Object;
    return (is_object || one.first.is_message()) && !one.second.is_taken;
  }
  struct Edge {
    HandOver from{};
    bool has_place = false;  // The place that handed over is known.
    uint32_t to = 0;
    int64_t time = 0;
    std::optional<causal::EdgeClass> how = std::nullopt;
    uint32_t source = 0;
  };
  struct Request {
    uint64_t number = 0;
    int64_t begin = 0;
    int64_t last = 0;  // Event.
    uint32_t begun_by = 0;
    uint64_t rows = 0;
    size_t inside = 0;  // Threads.
    size_t items = 0;
    std::map<causal::Thread, Lane> lanes;
    std::vector<Segment> segments;  // By their numbers in the graph, as many as are kept.
    std::vector<Event> events;
    std::vector<Edge> edges;
    std::map<causal::ContextKey, HandOver> hand_overs;
    uint64_t not_taken = 0;
    uint64_t events_left_out = 0;
    uint64_t segments_left_out = 0;
    std::list<uint64_t>::iterator age;
    [[nodiscard]] int64_t duration() const { return minus(last, begin); }
  };

  Request* find(uint64_t request);
  Segment* segment_of(Request& request, uint32_t segment);
  void touch(Request& request, uint32_t segment);
  void add_segment(Request& request, causal::Thread thread);
  void add_items(Request& request, size_t items);
  void make_room(uint64_t but);
  Request take_out(uint64_t request);
  void decide(Request request, bool is_over);
  [[nodiscard]] bool is_better(const Request& request, bool is_over) const;
  // request_drawing.cc
  class Drawing;

  const plan::Joined& joined_;
  output::GraphChoice choice_;
  RecorderLimits limits_;
  std::optional<size_t> time_column_;
  std::optional<size_t> process_column_;
  std::optional<size_t> thread_column_;
  std::optional<size_t> function_column_;
  // The event that came last.
  std::span<const aggregate::Value> event_;
  causal::Thread thread_{};
  int64_t now_ = 0;
  uint32_t source_ = 0;

  std::unordered_map<uint64_t, Request> open_;
  std::list<uint64_t> ages_;  // Least recently used first.
  size_t items_ = 0;
  std::optional<Request> best_;
  bool best_is_over_ = false;
  uint64_t requests_ = 0;
  uint64_t with_rows_ = 0;
  uint64_t over_ = 0;
  uint64_t given_up_ = 0;
};

}  // namespace clew::session

// SPDX-License-Identifier: Apache-2.0
// The picture of one request of a query with joins by cause: which threads it went through, what
// happened there, and what carried it from one to the next.
//
// Three forms, by the extension of a file: JSON, whose fields docs/query-language.md lists, a graph
// for Graphviz, and a drawing that needs nothing else. All text in it may be anything.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "aggregate/value.h"
#include "base/error.h"

namespace clew::output {

// Of the requests that have given the answer a row.
enum class GraphChoice : uint8_t {
  Slowest,  // The longest time from its begin to its last event.
  First,    // To begin.
  Last,
};

struct GraphValue {
  aggregate::Column column{};
  aggregate::Value value{};
};

// Times are ns since the request began. Lanes and segments are places in the lists below.
struct GraphLane {
  int64_t pid = 0;
  int64_t tid = 0;
  std::string process{};  // Empty: not known.
  std::string thread{};
};

// A stretch of one thread between two hand-overs.
struct GraphSegment {
  size_t lane = 0;
  int64_t begin_ns = 0;
  int64_t end_ns = 0;                             // The last thing that is known of it.
  std::optional<int64_t> left_ns = std::nullopt;  // When the thread left the request, or went on.
};

struct GraphEvent {
  size_t segment = 0;
  int64_t ns = 0;
  std::string source{};    // As the query names it.
  bool is_named = false;   // By a tracepoint's name, which says more than the function's.
  std::string function{};  // Empty: not known.
  std::vector<GraphValue> values{};
  uint64_t rows = 0;  // That it gave to the answer.
};

struct GraphEdge {
  size_t from = 0;
  size_t to = 0;
  int64_t from_ns = 0;  // Of the hand-over.
  int64_t to_ns = 0;    // Of the taking.
  std::string how{};    // explicit, sound, recipe, heuristic; empty: the thread itself goes on.
  std::string put{};    // The place that handed over, and the one that took. Without the first,
  std::string take{};   // as at a fork, the two times are one.
};

struct RequestGraph {
  std::string query{};
  std::string host{};
  // How it was chosen: requests in all, those that gave the answer a row, and those of them that
  // were over when the session was.
  GraphChoice choice = GraphChoice::Slowest;
  uint64_t requests = 0;
  uint64_t with_rows = 0;
  uint64_t over = 0;
  // The request; 0: none gave a row, and what follows is empty.
  uint64_t number = 0;  // 1, 2, … in the order in which they began.
  bool is_over = false;
  int64_t begin_ns = 0;  // Of the time of day.
  int64_t duration_ns = 0;
  std::string begun_by{};
  uint64_t rows = 0;
  std::vector<GraphLane> lanes{};  // Those of a process side by side.
  std::vector<GraphSegment> segments{};
  std::vector<GraphEvent> events{};
  std::vector<GraphEdge> edges{};
  // Not in it: there was too much, and hand-overs that nobody took.
  uint64_t events_left_out = 0;
  uint64_t segments_left_out = 0;
  uint64_t requests_left_out = 0;  // That could not be looked at to their end.
  uint64_t not_taken = 0;
};

[[nodiscard]] std::string_view name_of(GraphChoice choice);
// "slowest, first, last" is what name_of() gives.
[[nodiscard]] std::optional<GraphChoice> choice_named(std::string_view name);
// From the hand-over to the taking; none without the former. Wraps: a recording can say any time.
[[nodiscard]] std::optional<int64_t> latency_of(const GraphEdge& edge);
// One sentence: which request it is, of how many.
[[nodiscard]] std::string describe(const RequestGraph& graph);
// What is not in it, a sentence each.
[[nodiscard]] std::vector<std::string> left_out(const RequestGraph& graph);

[[nodiscard]] std::string graph_json(const RequestGraph& graph);
[[nodiscard]] std::string graph_dot(const RequestGraph& graph);
[[nodiscard]] std::string graph_svg(const RequestGraph& graph);

using GraphWriter = std::string (*)(const RequestGraph& graph);
// By the extension of the last part of `path`. Errors: InvalidQuery, when it asks for none.
Expected<GraphWriter> graph_writer_of(std::string_view path);

}  // namespace clew::output

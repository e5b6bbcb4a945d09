// SPDX-License-Identifier: Apache-2.0
#include "output/request_graph.h"

#include <array>

#include <fmt/format.h>

#include "output/format.h"

namespace clew::output {
namespace {

struct ChoiceName {
  GraphChoice choice;
  std::string_view name;
};
constexpr std::array<ChoiceName, 3> kChoices = {{{GraphChoice::Slowest, "slowest"},
                                                 {GraphChoice::First, "first"},
                                                 {GraphChoice::Last, "last"}}};

struct WriterRow {
  std::string_view extension;
  GraphWriter writer;
};
constexpr std::array<WriterRow, 3> kWriters = {
    {{".json", graph_json}, {".dot", graph_dot}, {".svg", graph_svg}}};

std::string counted(uint64_t count, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

}  // namespace

std::string_view name_of(GraphChoice choice) {
  return kChoices.at(static_cast<size_t>(choice)).name;
}

std::optional<GraphChoice> choice_named(std::string_view name) {
  for (const ChoiceName& each : kChoices) {
    if (each.name == name) return each.choice;
  }
  return std::nullopt;
}

std::optional<int64_t> latency_of(const GraphEdge& edge) {
  if (edge.put.empty()) return std::nullopt;
  return static_cast<int64_t>(static_cast<uint64_t>(edge.to_ns) -
                              static_cast<uint64_t>(edge.from_ns));
}

std::string describe(const RequestGraph& graph) {
  const std::string requests = counted(graph.requests, "request", "requests");
  if (graph.number == 0) return fmt::format("none of {} gave the answer a row", requests);
  const std::string time = format_value(graph.duration_ns, {.type = aggregate::ColumnType::Integer,
                                                            .unit = aggregate::Unit::Nanoseconds});
  return fmt::format("request {}, {}: the {} of {} that gave the answer a row and {} over, of {}",
                     graph.number, time, name_of(graph.choice),
                     graph.is_over ? graph.over : graph.with_rows,
                     graph.is_over ? "were" : "were not yet", requests);
}

std::vector<std::string> left_out(const RequestGraph& graph) {
  std::vector<std::string> all;
  const auto add = [&all](uint64_t count, std::string_view one, std::string_view many) {
    if (count != 0) all.push_back(counted(count, one, many));
  };
  add(graph.events_left_out, "event is left out: there were too many",
      "events are left out: there were too many");
  add(graph.segments_left_out, "stretch of a thread is left out: there were too many",
      "stretches of threads are left out: there were too many");
  add(graph.not_taken, "hand-over was taken by nobody", "hand-overs were taken by nobody");
  add(graph.requests_left_out, "request could not be looked at to its end",
      "requests could not be looked at to their ends");
  return all;
}

Expected<GraphWriter> graph_writer_of(std::string_view path) {
  for (const WriterRow& row : kWriters) {
    const bool is_whole_name =
        path.size() == row.extension.size() || path[path.size() - row.extension.size() - 1] == '/';
    if (path.ends_with(row.extension) && !is_whole_name) return row.writer;
  }
  return fail(ErrorCode::InvalidQuery,
              fmt::format("the picture of a request is written to .json, .dot or .svg, and '{}' "
                          "has none of these extensions",
                          path));
}

}  // namespace clew::output

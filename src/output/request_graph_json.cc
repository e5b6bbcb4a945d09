// SPDX-License-Identifier: Apache-2.0
// One object, whose fields docs/query-language.md lists.
#include "output/json_value.h"
#include "output/request_graph.h"

namespace clew::output {
namespace {

constexpr int kGraphVersion = 1;

Json request_json(const RequestGraph& graph) {
  if (graph.number == 0) return nullptr;
  return {{"number", graph.number},     {"is_over", graph.is_over},
          {"begin", graph.begin_ns},    {"duration_ns", graph.duration_ns},
          {"begun_by", graph.begun_by}, {"rows", graph.rows}};
}

Json lane_json(const GraphLane& lane) {
  Json object = {{"pid", lane.pid}, {"tid", lane.tid}};
  if (!lane.process.empty()) object["procName"] = exact_text(lane.process);
  if (!lane.thread.empty()) object["comm"] = exact_text(lane.thread);
  return object;
}

Json segment_json(const GraphSegment& segment) {
  Json object = {
      {"thread", segment.lane}, {"begin_ns", segment.begin_ns}, {"end_ns", segment.end_ns}};
  if (segment.left_ns) object["left_ns"] = *segment.left_ns;
  return object;
}

Json event_json(const GraphEvent& event) {
  Json object = {
      {"segment", event.segment}, {"ns", event.ns}, {"source", exact_text(event.source)}};
  if (!event.function.empty()) object["function"] = exact_text(event.function);
  Json values = Json::object();
  for (const GraphValue& each : event.values) {
    const auto* const text = std::get_if<std::string>(&each.value);
    values[each.column.name] =
        text != nullptr ? exact_text(*text) : to_json(each.value, each.column.type);
  }
  object["values"] = std::move(values);
  if (event.rows != 0) object["rows"] = event.rows;
  return object;
}

Json edge_json(const GraphEdge& edge) {
  Json object = {{"from", edge.from}, {"to", edge.to}};
  if (!edge.how.empty()) object["class"] = edge.how;
  if (!edge.put.empty()) object["put"] = exact_text(edge.put);
  if (!edge.take.empty()) object["take"] = exact_text(edge.take);
  object["from_ns"] = edge.from_ns;
  object["to_ns"] = edge.to_ns;
  if (const auto latency = latency_of(edge)) object["latency_ns"] = *latency;
  return object;
}

template <typename List, typename ToJson>
Json list_json(const List& list, ToJson to_json) {
  Json all = Json::array();
  for (const auto& each : list)
    all.push_back(to_json(each));
  return all;
}

}  // namespace

std::string graph_json(const RequestGraph& graph) {
  Json object = {{"version", kGraphVersion},
                 {"query", exact_text(graph.query)},
                 {"host", exact_text(graph.host)},
                 {"chosen",
                  {{"by", name_of(graph.choice)},
                   {"requests", graph.requests},
                   {"with_rows", graph.with_rows},
                   {"over", graph.over}}}};
  object["request"] = request_json(graph);
  object["threads"] = list_json(graph.lanes, lane_json);
  object["segments"] = list_json(graph.segments, segment_json);
  object["events"] = list_json(graph.events, event_json);
  object["edges"] = list_json(graph.edges, edge_json);
  object["left_out"] = {{"events", graph.events_left_out},
                        {"segments", graph.segments_left_out},
                        {"requests", graph.requests_left_out},
                        {"not_taken", graph.not_taken}};
  return object.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace clew::output

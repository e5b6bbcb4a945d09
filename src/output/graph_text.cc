// SPDX-License-Identifier: Apache-2.0
#include "output/graph_text.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "output/format.h"
#include "output/markup.h"

namespace clew::output {

std::string duration_text(int64_t ns) {
  return format_value(
      ns, {.type = aggregate::ColumnType::Integer, .unit = aggregate::Unit::Nanoseconds});
}

std::string process_text(const GraphLane& lane) {
  const std::string name = lane.process.empty() ? "process" : printable(lane.process);
  return fmt::format("{} {}", name, lane.pid);
}

std::string thread_text(const GraphLane& lane) {
  // What a thread is called that ended before its name was asked for.
  std::string unnamed = fmt::format("thread {}", lane.tid);
  if (lane.thread.empty() || lane.thread == unnamed) return unnamed;
  const std::string name = printable(lane.thread);
  return fmt::format("{} {}", name, lane.tid);
}

namespace {

constexpr size_t kShownMax = 32;  // Characters of a value, or of an expression for want of a name.

bool is_name(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.';
  });
}

}  // namespace

std::string event_name(const GraphEvent& event) {
  const bool is_source = event.is_named || event.function.empty();
  return printable(is_source ? event.source : event.function);
}

std::string event_text(const GraphEvent& event) {
  std::string text = event_name(event);
  for (const GraphValue& each : event.values) {
    text +=
        fmt::format(" {}={}", printable(each.column.name), format_value(each.value, each.column));
  }
  return text;
}

std::string event_label(const GraphEvent& event) {
  std::string text = event_name(event);
  for (const GraphValue& each : event.values) {
    const std::string name = printable(each.column.name);
    text += fmt::format(" {}={}", is_name(name) ? name : shortened(name, kShownMax),
                        shortened(format_value(each.value, each.column), kShownMax));
  }
  return text;
}

std::vector<std::string> edge_lines(const GraphEdge& edge) {
  if (edge.how.empty()) return {};
  const auto latency = latency_of(edge);
  std::vector<std::string> lines = {
      latency ? fmt::format("{}, {}", edge.how, duration_text(*latency)) : edge.how};
  const std::string put = printable(edge.put);
  const std::string take = printable(edge.take);
  if (put.empty() && take.empty()) return lines;
  lines.push_back(put.empty() || take.empty() ? put + take : put + " -> " + take);
  return lines;
}

std::string_view color_of_class(std::string_view how) {
  if (how == "explicit") return "#1f83e0";
  if (how == "sound") return "#1d9a5b";
  if (how == "recipe") return "#a860d8";
  if (how == "heuristic") return "#e0701a";
  return "#888888";
}

}  // namespace clew::output

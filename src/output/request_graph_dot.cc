// SPDX-License-Identifier: Apache-2.0
// For Graphviz: processes are boxes, segments are nodes with what happened in them.
#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "output/format.h"
#include "output/graph_text.h"
#include "output/markup.h"
#include "output/request_graph.h"

namespace clew::output {
namespace {

constexpr size_t kLinesMax = 30;  // Of a node.
constexpr size_t kLineMax = 120;  // Characters.

// In quotes: Graphviz has escapes of its own with a backslash, and entities of XML.
std::string in_label(std::string_view text) {
  std::string result;
  for (const char c : escaped(printable(text))) {
    if (c == '\\' || c == '"') result += '\\';
    result += c;
  }
  return result;
}

// One line of a label, at its left.
std::string line_of(std::string_view text) {
  return in_label(shortened(text, kLineMax)) + "\\l";
}

std::string node_of(const RequestGraph& graph, size_t segment) {
  const GraphSegment& of = graph.segments[segment];
  std::string label =
      line_of(thread_text(graph.lanes[of.lane]) + " +" + duration_text(of.begin_ns));
  size_t lines = 0;
  for (const GraphEvent& event : graph.events) {
    if (event.segment == segment && lines++ < kLinesMax)
      label += line_of(fmt::format("+{} {}", duration_text(event.ns), event_label(event)));
  }
  if (lines > kLinesMax) label += line_of(fmt::format("and {} more", lines - kLinesMax));
  return fmt::format("    s{} [label=\"{}\"];\n", segment, label);
}

std::string edge_of(const GraphEdge& edge) {
  std::string label;
  for (const std::string& line : edge_lines(edge))
    label += (label.empty() ? "" : "\\n") + in_label(shortened(line, kLineMax));
  const bool is_thread = edge.how.empty();
  const bool is_guess = edge.how == "heuristic";
  return fmt::format("  s{} -> s{} [label=\"{}\" color=\"{}\" fontcolor=\"{}\"{}];\n", edge.from,
                     edge.to, label, color_of_class(edge.how), color_of_class(edge.how),
                     is_thread  ? " style=bold"
                     : is_guess ? " style=dashed"
                                : "");
}

}  // namespace

std::string graph_dot(const RequestGraph& graph) {
  std::string title = in_label(shortened(in_one_line(graph.query), 2 * kLineMax)) + "\\n" +
                      in_label(describe(graph));
  for (const std::string& line : left_out(graph))
    title += "\\n" + in_label(line);
  std::string text = fmt::format(
      "digraph request {{\n  label=\"{}\";\n  labelloc=t;\n  rankdir=LR;\n  fontname=monospace;\n"
      "  node [shape=box fontname=monospace fontsize=10];\n"
      "  edge [fontname=monospace fontsize=9];\n",
      title);
  for (size_t lane = 0; lane < graph.lanes.size(); ++lane) {
    const bool is_first = lane == 0 || graph.lanes[lane].pid != graph.lanes[lane - 1].pid;
    if (is_first) {
      if (lane != 0) text += "  }\n";
      text += fmt::format("  subgraph cluster_{} {{\n    label=\"{}\";\n", lane,
                          in_label(process_text(graph.lanes[lane])));
    }
    for (size_t i = 0; i < graph.segments.size(); ++i) {
      if (graph.segments[i].lane == lane) text += node_of(graph, i);
    }
  }
  if (!graph.lanes.empty()) text += "  }\n";
  for (const GraphEdge& edge : graph.edges)
    text += edge_of(edge);
  return text + "}\n";
}

}  // namespace clew::output

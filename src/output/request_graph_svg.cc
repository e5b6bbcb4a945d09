// SPDX-License-Identifier: Apache-2.0
// One drawing that needs nothing else: a row for each thread, time from left to right, a bar for
// each stretch of the thread in the request, a dot for each event, an arrow for each hand-over.
// What has no room for its text says it where the mouse stands.
#include <algorithm>
#include <array>
#include <vector>

#include <fmt/format.h>

#include "output/format.h"
#include "output/graph_text.h"
#include "output/markup.h"
#include "output/request_graph.h"

namespace clew::output {
namespace {

// Pixels.
constexpr double kDrawingWidth = 1200;
constexpr double kLeft = 200;  // Of the time axis, …
constexpr double kRight = 1180;
constexpr double kMargin = 8;
constexpr double kLineHeight = 15;
constexpr double kBarHeight = 12;
constexpr double kBarMin = 3;
constexpr double kGlyphWidth = 6.6;  // Of 11 pixels of a monospaced font.
constexpr size_t kHeadingMax = 160;  // Characters.
constexpr size_t kLabelMax = 40;
constexpr size_t kLaneNameMax = 26;
constexpr size_t kLabelRowsMax = 4;
constexpr int kTicksMax = 8;
constexpr std::array<std::string_view, 4> kClasses = {"explicit", "sound", "recipe", "heuristic"};

constexpr std::string_view kStyle =
    "<style>text { fill: #222 } .back { fill: #fff } .dim { fill: #666 } .grid { stroke: #ddd } "
    ".left { stroke: #c4ccd6 } .bar { fill: #c4d2e4; stroke: #8fa3bc } .event { fill: #33475f; "
    "stroke: #fff } .row { fill: #d02050; stroke: #fff } .edge { fill: none; stroke-width: 1.5 } "
    ".edge:hover { stroke-width: 4 } .warn { fill: #b00 } .over { paint-order: stroke; stroke: "
    "#fff; stroke-width: 3 }\n"
    "@media (prefers-color-scheme: dark) { text { fill: #ddd } .back { fill: #16191d } .dim { "
    "fill: #999 } .grid { stroke: #333 } .left { stroke: #455 } .bar { fill: #3a4a5e; stroke: "
    "#62788f } .event { fill: #cfe0f5; stroke: #16191d } .row { fill: #ff6088; stroke: #16191d } "
    ".warn { fill: #f66 } .over { stroke: #16191d } }</style>\n";

struct Label {
  double x;
  size_t row;
  std::string text;
};

// Where text stands.
struct Place {
  double left;
  double right;
  double top;
  double bottom;
};

// Where a thread is drawn.
struct Row {
  double y = 0;  // The middle of its bars.
  double height = 0;
  std::vector<Label> labels{};
  bool begins_process = false;
};

class Drawing {
 public:
  explicit Drawing(const RequestGraph& graph) : graph_(graph) {
    for (const GraphSegment& segment : graph.segments)
      end_ns_ = std::max(end_ns_, segment.end_ns);
    for (const GraphEdge& edge : graph.edges)
      end_ns_ = std::max(end_ns_, edge.to_ns);
  }

  std::string draw() {
    const std::string head = draw_head();
    place_rows();
    std::string text = fmt::format(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:g}\" height=\"{1:g}\" "
        "viewBox=\"0 0 {0:g} {1:g}\" font-family=\"monospace\" font-size=\"11\">\n<title>{2}"
        "</title>\n{3}<defs>",
        kDrawingWidth, height_ + kMargin, escaped(in_one_line(graph_.query)), kStyle);
    for (const std::string_view how : kClasses)
      text += marker_of(how);
    text += "</defs>\n<rect class=\"back\" width=\"100%\" height=\"100%\"/>\n" + head;
    if (!rows_.empty()) text += draw_axis();
    for (size_t i = 0; i < rows_.size(); ++i)
      text += draw_lane(i);
    for (const GraphSegment& segment : graph_.segments)
      text += draw_segment(segment);
    for (const GraphEdge& edge : graph_.edges)
      text += draw_edge(edge);
    text += latencies_;
    for (const GraphEvent& event : graph_.events)
      text += draw_event(event);
    for (const Row& row : rows_)
      text += draw_labels(row);
    return text + "</svg>\n";
  }

 private:
  static std::string marker_of(std::string_view how) {
    return fmt::format(
        "<marker id=\"{0}\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" markerWidth=\"6\" "
        "markerHeight=\"6\" orient=\"auto\"><path d=\"M0 0L8 4L0 8z\" fill=\"{1}\"/></marker>",
        how, color_of_class(how));
  }
  static std::string text_at(double x, double y, std::string_view attributes,
                             std::string_view content) {
    return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\"{}>{}</text>\n", x, y, attributes,
                       escaped(content));
  }
  // A clock may say that something was taken before it was handed over.
  [[nodiscard]] double x_of(int64_t ns) const {
    if (end_ns_ <= 0) return kLeft;
    const double part = static_cast<double>(ns) / static_cast<double>(end_ns_);
    return kLeft + std::clamp(part, 0.0, 1.0) * (kRight - kLeft);
  }
  [[nodiscard]] double y_of(size_t segment) const { return rows_[graph_.segments[segment].lane].y; }

  std::string draw_head();
  void place_rows();
  void place_labels(Row& row, size_t lane);
  [[nodiscard]] std::string draw_axis() const;
  [[nodiscard]] std::string draw_lane(size_t lane) const;
  [[nodiscard]] std::string draw_segment(const GraphSegment& segment) const;
  [[nodiscard]] std::string draw_edge(const GraphEdge& edge);
  void add_latency(const GraphEdge& edge, double x, double y);
  [[nodiscard]] std::string draw_event(const GraphEvent& event) const;
  [[nodiscard]] static std::string draw_labels(const Row& row);

  const RequestGraph& graph_;
  int64_t end_ns_ = 0;
  double height_ = 0;  // So far.
  double axis_y_ = 0;
  std::vector<Row> rows_;  // By lane.
  std::vector<Place> texts_;
  std::string latencies_;  // Above all edges.
};

std::string Drawing::draw_head() {
  const auto line = [this] { return height_ += kLineHeight; };
  std::string text = text_at(kMargin, line() + 3, " font-size=\"13\" font-weight=\"bold\"",
                             shortened(in_one_line(graph_.query), kHeadingMax));
  line();
  text += text_at(kMargin, height_ + 3, "", describe(graph_));
  for (const std::string& missing : left_out(graph_))
    text += text_at(kMargin, line() + 3, " class=\"warn\"", missing);
  line();
  double x = kMargin;
  for (const std::string_view how : kClasses) {
    const bool is_there = std::any_of(graph_.edges.begin(), graph_.edges.end(),
                                      [how](const GraphEdge& edge) { return edge.how == how; });
    if (!is_there) continue;
    text += fmt::format(
        "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" "
        "stroke=\"{}\" stroke-width=\"2\"/>\n",
        x, height_, x + 20, height_, color_of_class(how));
    text += text_at(x + 25, height_ + 4, " class=\"dim\"", how);
    x += 25 + kGlyphWidth * static_cast<double>(how.size() + 3);
  }
  return text;
}

// Under the bars, each in the first row that has room where it stands.
void Drawing::place_labels(Row& row, size_t lane) {
  std::array<double, kLabelRowsMax> used{};
  for (const GraphEvent& event : graph_.events) {
    if (graph_.segments[event.segment].lane != lane) continue;
    const std::string text = shortened(event_label(event), kLabelMax);
    const double width = kGlyphWidth * static_cast<double>(display_width(text) + 1);
    const double x = std::max(kLeft, std::min(x_of(event.ns), kDrawingWidth - width));
    const auto* const free =
        std::find_if(used.begin(), used.end(), [x](double end) { return end <= x; });
    if (free == used.end()) continue;
    const auto index = static_cast<size_t>(free - used.begin());
    used.at(index) = x + width;
    row.labels.push_back({.x = x, .row = index, .text = text});
    const double y = row.y + kBarHeight + kLineHeight * static_cast<double>(index);
    texts_.push_back({.left = x, .right = x + width, .top = y, .bottom = y + kLineHeight});
  }
}

void Drawing::place_rows() {
  height_ += 2 * kLineHeight;
  axis_y_ = height_;
  for (size_t lane = 0; lane < graph_.lanes.size(); ++lane) {
    Row& row = rows_.emplace_back();
    row.begins_process = lane == 0 || graph_.lanes[lane].pid != graph_.lanes[lane - 1].pid;
    if (row.begins_process) height_ += kLineHeight + 4;
    row.y = height_ + kBarHeight;
    place_labels(row, lane);
    size_t lines = 0;
    for (const Label& label : row.labels)
      lines = std::max(lines, label.row + 1);
    row.height = 2 * kBarHeight + kLineHeight * static_cast<double>(lines) + 4;
    height_ += row.height;
  }
}

std::string Drawing::draw_axis() const {
  int64_t step = 1;
  for (int64_t ten = 1; end_ns_ / step > kTicksMax && ten <= INT64_MAX / 100; ten *= 10) {
    for (const int64_t part : {1, 2, 5}) {
      step = ten * part;
      if (end_ns_ / step <= kTicksMax) break;
    }
  }
  std::string text;
  for (int64_t tick = 0; tick <= kTicksMax && tick * step <= end_ns_; ++tick) {
    const double x = x_of(tick * step);
    text += fmt::format(
        "<line class=\"grid\" x1=\"{0:.1f}\" y1=\"{1:.1f}\" x2=\"{0:.1f}\" "
        "y2=\"{2:.1f}\"/>\n",
        x, axis_y_, height_);
    text += text_at(x + 2, axis_y_ - 3, " class=\"dim\"", duration_text(tick * step));
  }
  return text;
}

std::string Drawing::draw_lane(size_t lane) const {
  const Row& row = rows_[lane];
  std::string text;
  if (row.begins_process) {
    text += text_at(kMargin, row.y - kBarHeight - 3, " font-weight=\"bold\"",
                    shortened(process_text(graph_.lanes[lane]), kLaneNameMax));
  }
  return text + text_at(2 * kMargin, row.y + 4, "",
                        shortened(thread_text(graph_.lanes[lane]), kLaneNameMax));
}

std::string Drawing::draw_segment(const GraphSegment& segment) const {
  const double y = rows_[segment.lane].y;
  const double begin = x_of(segment.begin_ns);
  const double end = std::max(x_of(segment.end_ns), begin + kBarMin);
  std::string text;
  if (segment.left_ns && x_of(*segment.left_ns) > end) {
    text += fmt::format(
        "<line class=\"left\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" "
        "y2=\"{:.1f}\"/>\n",
        end, y, x_of(*segment.left_ns), y);
  }
  return text + fmt::format(
                    "<rect class=\"bar\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" "
                    "height=\"{:g}\"><title>+{} to +{}</title></rect>\n",
                    begin, y - kBarHeight / 2, end - begin, kBarHeight,
                    escaped(duration_text(segment.begin_ns)),
                    escaped(duration_text(segment.end_ns)));
}

// In the middle of its edge, where it stands on no other text.
void Drawing::add_latency(const GraphEdge& edge, double x, double y) {
  const auto latency = latency_of(edge);
  if (!latency) return;
  const std::string text = duration_text(*latency);
  const double half = kGlyphWidth * static_cast<double>(text.size()) / 2;
  const Place box{.left = x - half,
                  .right = x + half,
                  .top = y - kLineHeight / 2,
                  .bottom = y + kLineHeight / 2};
  const bool is_free = std::none_of(texts_.begin(), texts_.end(), [&box](const Place& other) {
    return box.left < other.right && other.left < box.right && box.top < other.bottom &&
           other.top < box.bottom;
  });
  if (!is_free || box.left < kLeft || box.right > kDrawingWidth) return;
  texts_.push_back(box);
  latencies_ += text_at(x, y + 3,
                        fmt::format(" class=\"over\" text-anchor=\"middle\" style=\"fill: {}\"",
                                    color_of_class(edge.how)),
                        text);
}

std::string Drawing::draw_edge(const GraphEdge& edge) {
  const double x1 = x_of(edge.from_ns);
  const double y1 = y_of(edge.from);
  const double x2 = x_of(edge.to_ns);
  const double y2 = y_of(edge.to);
  if (edge.how.empty()) {
    return fmt::format(
        "<line class=\"left\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" "
        "y2=\"{:.1f}\"/>\n",
        x1, y1, x2, y2);
  }
  // Between bars, or over them in one thread.
  const double bend = y1 == y2 ? -2 * kBarHeight : (y2 - y1) / 2;
  std::string title;
  for (const std::string& line : edge_lines(edge))
    title += (title.empty() ? "" : "\n") + line;
  add_latency(edge, (x1 + x2) / 2, (y1 + y2 + (y1 == y2 ? 1.5 * bend : 0)) / 2);
  return fmt::format(
      "<path class=\"edge\" d=\"M{:.1f} {:.1f}C{:.1f} {:.1f} {:.1f} {:.1f} {:.1f} "
      "{:.1f}\" stroke=\"{}\" marker-end=\"url(#{})\"{}><title>{}</title></path>\n",
      x1, y1, x1, y1 + bend, x2, y1 == y2 ? y1 + bend : y2 - bend, x2, y2, color_of_class(edge.how),
      escaped(edge.how), edge.how == "heuristic" ? " stroke-dasharray=\"4 3\"" : "",
      escaped(title));
}

std::string Drawing::draw_event(const GraphEvent& event) const {
  const bool is_known = !event.function.empty();
  const std::string rows = event.rows == 0   ? ""
                           : event.rows == 1 ? "\ngave a row"
                                             : fmt::format("\ngave {} rows", event.rows);
  return fmt::format(
      "<circle class=\"{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\"><title>+{} {}\n{}{}"
      "</title></circle>\n",
      event.rows == 0 ? "event" : "row", x_of(event.ns), y_of(event.segment),
      escaped(duration_text(event.ns)), escaped(event_text(event)),
      escaped(printable(event.is_named && is_known ? event.function : event.source)), rows);
}

std::string Drawing::draw_labels(const Row& row) {
  std::string text;
  for (const Label& label : row.labels) {
    text += text_at(label.x, row.y + kBarHeight + kLineHeight * static_cast<double>(label.row) + 8,
                    " class=\"dim over\"", label.text);
  }
  return text;
}

}  // namespace

std::string graph_svg(const RequestGraph& graph) {
  return Drawing(graph).draw();
}

}  // namespace clew::output

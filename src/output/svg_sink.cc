// SPDX-License-Identifier: Apache-2.0
// A flame graph: one SVG file that needs nothing else. A frame is as wide as its share of the
// number; callers stand below. A click on a frame makes it as wide as the picture, "search" marks
// frames by name and says their share. What an answer lacks stands under the title, and in the
// notes. Where rows are of clusters, it is a chart of these (cluster_map.h).
#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "output/cluster_map.h"
#include "output/folding.h"
#include "output/format.h"
#include "output/formats.h"
#include "output/markup.h"

namespace clew::output {
namespace {

// Pixels, but for the counts.
constexpr double kWidth = 1200;
constexpr double kFrameHeight = 17;
constexpr double kHeadHeight = 60;
constexpr double kLossHeight = 16;
constexpr double kFootHeight = 24;
constexpr double kCharacterWidth = 7.2;  // Of 12 pixels of a monospaced font.
constexpr double kTextMargin = 3;
constexpr double kWidthMin = 0.1;  // What is narrower is not drawn, and counted.
constexpr size_t kCharactersMin = 3;
constexpr size_t kTitleMax = 140;
constexpr size_t kLossLinesMax = 6;

// The script knows the widths above by the constants that are put in front of it.
constexpr std::string_view kScript = R"js(
const svg = document.documentElement, near = 0.01;
const found = document.getElementById("found");
const frames = [...document.querySelectorAll("g.frame")].map(g => {
  const rect = g.querySelector("rect"), number = name => Number(rect.getAttribute(name));
  return {g, rect, text: g.querySelector("text"),
          x: number("x"), y: number("y"), w: number("width"),
          name: g.querySelector("title").textContent.split("\n")[0]};
});
function fit(name, width) {
  const all = [...name], room = Math.floor((width - 2 * margin) / character);
  if (room >= all.length) return name;
  return room < least ? "" : all.slice(0, room - 2).join("") + "..";
}
function place(frame, x, width, shown) {
  frame.g.style.display = shown ? "" : "none";
  frame.rect.setAttribute("x", x);
  frame.rect.setAttribute("width", width);
  frame.text.setAttribute("x", x + margin);
  frame.text.setAttribute("y", frame.y + 13);
  frame.text.textContent = fit(frame.name, width);
}
function zoom(to) {
  for (const frame of frames) {
    const inside = frame.x >= to.x - near && frame.x + frame.w <= to.x + to.w + near;
    const around = frame.x <= to.x + near && frame.x + frame.w >= to.x + to.w - near;
    if (around && frame.y >= to.y) place(frame, 0, full, true);
    else if (inside && frame.y < to.y)
      place(frame, (frame.x - to.x) * full / to.w, frame.w * full / to.w, true);
    else place(frame, frame.x, frame.w, false);
  }
}
function search(words) {
  const wanted = words.toLowerCase();
  let end = 0, sum = 0;
  const hits = frames.filter(frame => {
    const hit = wanted !== "" && frame.name.toLowerCase().includes(wanted);
    frame.g.classList.toggle("hit", hit);
    return hit;
  });
  for (const hit of hits.sort((a, b) => a.x - b.x || b.w - a.w)) {
    sum += Math.max(0, hit.x + hit.w - Math.max(end, hit.x));
    end = Math.max(end, hit.x + hit.w);
  }
  found.textContent = wanted === "" ? "search" : "found: " + (100 * sum / full).toFixed(2) + " %";
}
svg.addEventListener("click", event => {
  const g = event.target.closest("g.frame");
  if (g) zoom(frames.find(frame => frame.g === g));
  else if (event.target === found) search(prompt("frames whose name has") ?? "");
});
svg.addEventListener("keydown", event => {
  if (event.key === "Escape" && frames.length > 0) zoom(frames[0]);
});
)js";

// One frame of the picture: the same call in stacks that stand side by side.
struct Box {
  std::string_view name;
  size_t depth = 0;
  uint64_t begin = 0;  // What is left of it.
  uint64_t weight = 0;
};

// The first is all of them.
std::vector<Box> boxes_of(const Folding& folding) {
  std::vector<Box> boxes = {{.name = "all", .weight = folding.total()}};
  std::vector<size_t> open;  // Of the last stack, by depth.
  uint64_t begin = 0;
  for (const auto& [frames, weight] : folding.stacks()) {
    size_t same = 0;
    while (same < open.size() && same < frames.size() && boxes[open[same]].name == frames[same])
      ++same;
    open.resize(same);
    for (size_t i = same; i < frames.size(); ++i) {
      open.push_back(boxes.size());
      boxes.push_back({.name = frames[i], .depth = i + 1, .begin = begin});
    }
    // The total saturates, and no part is more than it.
    const uint64_t part = std::min(weight, folding.total() - begin);
    for (const size_t index : open)
      boxes[index].weight += part;
    begin += part;
  }
  return boxes;
}

std::string fitting(std::string_view name, double width) {
  const double room = (width - 2 * kTextMargin) / kCharacterWidth;
  if (room < kCharactersMin && room < static_cast<double>(display_width(name))) return {};
  return room < 0 ? "" : shortened(name, static_cast<size_t>(room));
}

// The same name has the same colour in each picture, yellow to red (FNV-1a).
std::string color_of(std::string_view name) {
  uint32_t hash = 2166136261;
  for (const char c : name)
    hash = (hash ^ static_cast<uint8_t>(c)) * 16777619;
  return fmt::format("#{:02x}{:02x}{:02x}", 205 + hash % 50, 70 + (hash >> 8) % 150,
                     (hash >> 16) % 60);
}

class SvgSink final : public RowSink {
 public:
  SvgSink(std::string query, ByteSink& bytes, ByteSink& notes)
      : query_(std::move(query)), bytes_(bytes), notes_(notes) {}

  void begin(Columns columns, RowMode) override {
    if (ClusterMap::can_draw(columns)) {
      clusters_.emplace(columns);
    } else {
      folding_.begin(columns);
    }
  }
  void row(std::span<const aggregate::Value> values) override {
    if (clusters_) {
      clusters_->add(values);
    } else {
      folding_.add(values);
    }
  }
  void end_interval(const Interval&) override {}

  void finish(const collect::Losses& losses) override {
    const std::string notes =
        (clusters_ ? std::string() : folding_.left_out()) + format_losses(losses);
    if (clusters_) {
      draw_clusters(notes);
    } else {
      draw(notes);
    }
    notes_.write(notes);
  }

  [[nodiscard]] bool ready() const override { return bytes_.ready(); }
  void flush() override {
    bytes_.flush();
    notes_.flush();
  }

 private:
  void draw(std::string_view losses);
  void draw_clusters(std::string_view losses);
  void draw_head(const std::vector<std::string>& losses, double height, bool has_search);
  void draw_box(const Box& box, double foot);
  [[nodiscard]] double pixels(uint64_t weight) const {
    return static_cast<double>(weight) / static_cast<double>(folding_.total()) * kWidth;
  }
  [[nodiscard]] std::string amount_of(uint64_t weight) const {
    return format_value(weight, folding_.number()) + " " + printable(folding_.number().name);
  }
  void text(double x, double y, std::string_view attributes, std::string_view content) {
    bytes_.write(fmt::format("<text x=\"{:g}\" y=\"{:g}\"{}>{}</text>\n", x, y, attributes,
                             escaped(content)));
  }

  std::string query_;
  ByteSink& bytes_;
  ByteSink& notes_;
  Folding folding_;
  std::optional<ClusterMap> clusters_;
};

// At most kLossLinesMax lines.
std::vector<std::string> lines_of_losses(std::string_view text) {
  std::vector<std::string> lines;
  for (size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
    lines.push_back(shortened(text.substr(0, end), kTitleMax));
    text.remove_prefix(end + 1);
  }
  if (lines.size() > kLossLinesMax) {
    const size_t more = lines.size() - kLossLinesMax + 1;
    lines.resize(kLossLinesMax - 1);
    lines.push_back(fmt::format("and {} more lines", more));
  }
  return lines;
}

void SvgSink::draw(std::string_view losses) {
  std::vector<Box> boxes;
  if (folding_.total() != 0) boxes = boxes_of(folding_);
  const size_t all = boxes.size();
  std::erase_if(boxes, [this](const Box& box) { return pixels(box.weight) < kWidthMin; });
  size_t rows = 0;
  for (const Box& box : boxes)
    rows = std::max(rows, box.depth + 1);

  const std::vector<std::string> lines = lines_of_losses(losses);
  const double foot = kHeadHeight + kLossHeight * static_cast<double>(lines.size()) +
                      kFrameHeight * static_cast<double>(rows);
  draw_head(lines, foot + kFootHeight, true);
  for (const Box& box : boxes)
    draw_box(box, foot);
  const std::string narrow =
      boxes.size() == all
          ? ""
          : fmt::format("; {} frames are too narrow to be drawn", all - boxes.size());
  text(kTextMargin, foot + 16, " fill=\"#555\"",
       all == 0 ? "no stacks" : amount_of(folding_.total()) + narrow);
  bytes_.write(
      fmt::format("<script><![CDATA[\nconst full = {:g}, margin = {:g}, character = {:g}, "
                  "least = {};{}]]></script>\n</svg>\n",
                  kWidth, kTextMargin, kCharacterWidth, kCharactersMin, kScript));
}

void SvgSink::draw_clusters(std::string_view losses) {
  const std::vector<std::string> lines = lines_of_losses(losses);
  const double top = kHeadHeight + kLossHeight * static_cast<double>(lines.size());
  const ClusterMap::Picture picture = clusters_->svg(kWidth, top);
  draw_head(lines, top + picture.height + kFootHeight, false);
  bytes_.write(picture.content);
  bytes_.write("</svg>\n");
}

void SvgSink::draw_head(const std::vector<std::string>& losses, double height, bool has_search) {
  const std::string title = in_one_line(query_);
  bytes_.write(fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:g}\" height=\"{1:g}\" "
      "viewBox=\"0 0 {0:g} {1:g}\" font-family=\"monospace\" font-size=\"12\">\n"
      "<title>{2}</title>\n"
      "<style>.frame, #found {{ cursor: pointer }} .frame:hover rect {{ stroke: black }} "
      ".frame text {{ pointer-events: none }} .hit rect {{ fill: #c6f }}</style>\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
      kWidth, height, escaped(title)));
  text(kTextMargin, 20, " font-size=\"13\" font-weight=\"bold\"", shortened(title, kTitleMax));
  if (has_search) text(kWidth - kTextMargin, 40, " id=\"found\" text-anchor=\"end\"", "search");
  double y = 40;
  for (const std::string& line : losses) {
    text(kTextMargin, y, " fill=\"#b00\"", line);
    y += kLossHeight;
  }
}

void SvgSink::draw_box(const Box& box, double foot) {
  const double x = pixels(box.begin);
  const double width = pixels(box.weight);
  const double y = foot - kFrameHeight * static_cast<double>(box.depth + 1);
  const double share =
      100 * static_cast<double>(box.weight) / static_cast<double>(folding_.total());
  const std::string name = escaped(fitting(box.name, width));
  bytes_.write(
      fmt::format("<g class=\"frame\"><title>{}\n{} ({:.2f} %)</title>"
                  "<rect x=\"{:.3f}\" y=\"{:g}\" width=\"{:.3f}\" height=\"{:g}\" fill=\"{}\"/>",
                  escaped(box.name), escaped(amount_of(box.weight)), share, x, y, width,
                  kFrameHeight - 1, color_of(box.name)));
  bytes_.write(name.empty() ? "<text/></g>\n"
                            : fmt::format("<text x=\"{:.3f}\" y=\"{:g}\">{}</text></g>\n",
                                          x + kTextMargin, y + 13, name));
}

}  // namespace

std::unique_ptr<RowSink> make_svg_sink(const SinkOptions& options, ByteSink& bytes,
                                       ByteSink& notes) {
  return std::make_unique<SvgSink>(options.about.query, bytes, notes);
}

}  // namespace clew::output

// SPDX-License-Identifier: Apache-2.0
#include "output/cluster_map.h"

#include <algorithm>
#include <array>
#include <limits>

#include <fmt/format.h>

#include "base/assert.h"
#include "output/format.h"
#include "output/markup.h"

namespace clew::output {

using aggregate::Column;
using aggregate::ColumnRole;
using aggregate::ColumnType;
using aggregate::Value;

namespace {

constexpr size_t kSlotsMax = 2'000;
constexpr size_t kSlotsMin = 8;
constexpr size_t kMapLabelMax = 32;

// One for each cluster, and then again from the first one on.
struct Color {
  int terminal;  // Of 256.
  const char* svg;
};
constexpr std::array<Color, 10> kColors = {{{33, "#4c78a8"},
                                            {208, "#f58518"},
                                            {71, "#54a24b"},
                                            {160, "#e45756"},
                                            {79, "#72b7b2"},
                                            {220, "#eeca3b"},
                                            {133, "#b279a2"},
                                            {217, "#ff9da6"},
                                            {137, "#9d755d"},
                                            {246, "#bab0ac"}}};

constexpr std::string_view kSymbols =
    "123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ+*#";

size_t index_of(int64_t cluster) {
  return static_cast<size_t>(std::max<int64_t>(cluster, 1) - 1);
}

const Color& color_of_cluster(int64_t cluster) {
  return kColors[index_of(cluster) % kColors.size()];
}

char symbol_of(int64_t cluster) {
  return cluster <= 0 ? '.' : kSymbols[index_of(cluster) % kSymbols.size()];
}

std::string mark_of(int64_t cluster, bool has_colors) {
  if (!has_colors || cluster <= 0) return std::string(1, symbol_of(cluster));
  return fmt::format("\x1b[48;5;{}m\x1b[30m{}\x1b[0m", color_of_cluster(cluster).terminal,
                     symbol_of(cluster));
}

size_t find_column(std::span<const Column> columns, const auto& is_one) {
  return static_cast<size_t>(std::find_if(columns.begin(), columns.end(), is_one) -
                             columns.begin());
}

size_t cluster_of(std::span<const Column> columns) {
  return find_column(columns,
                     [](const Column& column) { return column.role == ColumnRole::Cluster; });
}

size_t time_of(std::span<const Column> columns) {
  return find_column(columns, [](const Column& column) {
    return column.role == ColumnRole::Key && column.type == ColumnType::Time;
  });
}

std::string padded(const std::string& text, size_t width) {
  const size_t has = display_width(text);
  return has >= width ? text : text + std::string(width - has, ' ');
}

// Of several; the lower one of two that are as frequent.
int64_t most_frequent(const std::map<int64_t, size_t>& counts) {
  int64_t best = 0;
  size_t most = 0;
  for (const auto& [cluster, count] : counts) {
    if (count > most) best = cluster;
    most = std::max(most, count);
  }
  return best;
}

}  // namespace

bool ClusterMap::can_draw(std::span<const Column> columns) {
  return cluster_of(columns) < columns.size() && time_of(columns) < columns.size();
}

ClusterMap::ClusterMap(std::span<const Column> columns)
    : columns_(columns.begin(), columns.end()),
      cluster_(cluster_of(columns)),
      time_(time_of(columns)) {
  CLEW_ASSERT(can_draw(columns));
}

void ClusterMap::add(std::span<const Value> row) {
  CLEW_ASSERT(row.size() == columns_.size());
  const auto* const cluster = std::get_if<int64_t>(&row[cluster_]);
  const auto* const time = std::get_if<int64_t>(&row[time_]);
  if (cluster == nullptr || time == nullptr) return;
  std::string label;
  Legend& legend = legend_[*cluster];
  for (size_t i = 0; i < row.size(); ++i) {
    if (columns_[i].role == ColumnRole::Centre) legend.centre = format_value(row[i], columns_[i]);
    if (columns_[i].role != ColumnRole::Key || i == time_) continue;
    label += (label.empty() ? "" : " ") + format_value(row[i], columns_[i]);
  }
  ++legend.periods;
  rows_[shortened(label, kMapLabelMax)][*time] = *cluster;
}

int64_t ClusterMap::begin_ns() const {
  int64_t begin = std::numeric_limits<int64_t>::max();
  for (const auto& [label, cells] : rows_)
    begin = std::min(begin, cells.begin()->first);
  return begin;
}

int64_t ClusterMap::end_ns() const {
  int64_t end = std::numeric_limits<int64_t>::min();
  for (const auto& [label, cells] : rows_)
    end = std::max(end, cells.rbegin()->first);
  return end;
}

// Between two periods that follow each other; of any line.
int64_t ClusterMap::step_ns() const {
  std::vector<int64_t> times;
  for (const auto& [label, cells] : rows_) {
    for (const auto& [time, cluster] : cells)
      times.push_back(time);
  }
  std::sort(times.begin(), times.end());
  int64_t step = std::numeric_limits<int64_t>::max();
  for (size_t i = 1; i < times.size(); ++i) {
    int64_t apart = 0;
    if (__builtin_sub_overflow(times[i], times[i - 1], &apart) || apart == 0) continue;
    step = std::min(step, apart);
  }
  return step;
}

std::vector<ClusterMap::Line> ClusterMap::lines(size_t slots_max) const {
  if (rows_.empty()) return {};
  const int64_t begin = begin_ns();
  // Times may be any: what is too far apart is drawn close.
  const auto length = static_cast<uint64_t>(end_ns()) - static_cast<uint64_t>(begin);
  uint64_t step = static_cast<uint64_t>(std::max<int64_t>(step_ns(), 1));
  const uint64_t together = length / step / slots_max + 1;
  step = together > UINT64_MAX / step ? UINT64_MAX : step * together;
  const auto slots = static_cast<size_t>(length / step + 1);
  std::vector<Line> made;
  for (const auto& [label, cells] : rows_) {
    std::vector<std::map<int64_t, size_t>> counts(slots);
    for (const auto& [time, cluster] : cells)
      ++counts[(static_cast<uint64_t>(time) - static_cast<uint64_t>(begin)) / step][cluster];
    Line& line = made.emplace_back(Line{.label = label, .clusters = {}});
    for (const auto& each : counts)
      line.clusters.push_back(most_frequent(each));
  }
  return made;
}

std::string ClusterMap::time_text(int64_t time_ns) const {
  return format_value(time_ns, columns_[time_]);
}

std::string ClusterMap::text(size_t columns, bool has_colors) const {
  size_t width = 0;
  for (const auto& [label, cells] : rows_)
    width = std::max(width, display_width(label));
  const size_t room = columns > width + 2 ? columns - width - 2 : 0;
  const std::vector<Line> all = lines(std::clamp(room, kSlotsMin, kSlotsMax));
  if (all.empty()) return "no clusters\n";
  const std::string begin = time_text(begin_ns());
  const std::string end = time_text(end_ns());
  const size_t slots = all[0].clusters.size();
  const size_t between = slots > begin.size() + end.size() ? slots - begin.size() - end.size() : 2;
  std::string text = fmt::format("{}  {}", std::string(width, ' '), begin);
  if (slots > 1) text += std::string(between, ' ') + end;
  text += '\n';
  for (const Line& line : all) {
    text += padded(line.label, width) + "  ";
    for (const int64_t cluster : line.clusters)
      text += mark_of(cluster, has_colors);
    text += '\n';
  }
  text += '\n';
  for (const auto& [cluster, legend] : legend_) {
    text +=
        fmt::format("{}  {:>6}  {}\n", mark_of(cluster, has_colors), legend.periods, legend.centre);
  }
  return text;
}

// --- SVG -----------------------------------------------------------------------------------------

namespace {

constexpr double kMapLineHeight = 18;
constexpr double kMapCharacter = 7.2;  // Of 12 pixels of a monospaced font.
constexpr double kMapMargin = 3;

std::string svg_text(double x, double y, std::string_view content) {
  return fmt::format("<text x=\"{:g}\" y=\"{:g}\">{}</text>\n", x, y, escaped(content));
}

std::string svg_box(double x, double y, double width, int64_t cluster) {
  return fmt::format("<rect x=\"{:.2f}\" y=\"{:g}\" width=\"{:.2f}\" height=\"{:g}\" fill=\"{}\"/>",
                     x, y, width, kMapLineHeight - 2, color_of_cluster(cluster).svg);
}

}  // namespace

ClusterMap::Picture ClusterMap::svg(double width, double top) const {
  const std::vector<Line> all = lines(kSlotsMax);
  if (all.empty()) return {.content = svg_text(kMapMargin, top + 13, "no clusters"), .height = 20};
  size_t label = 0;
  for (const Line& line : all)
    label = std::max(label, display_width(line.label));
  const double left = 2 * kMapMargin + kMapCharacter * static_cast<double>(label);
  const size_t slots = all[0].clusters.size();
  const double slot = (width - left - kMapMargin) / static_cast<double>(slots);
  const std::string end = time_text(end_ns());
  double y = top;
  std::string text = svg_text(left, y + 13, time_text(begin_ns()));
  if (slots > 1) {
    text +=
        svg_text(width - kMapMargin - kMapCharacter * static_cast<double>(end.size()), y + 13, end);
  }
  y += kMapLineHeight;
  for (const Line& line : all) {
    text += svg_text(kMapMargin, y + 13, line.label);
    for (size_t i = 0; i < slots; ++i) {
      if (line.clusters[i] <= 0) continue;
      text += svg_box(left + slot * static_cast<double>(i), y, slot, line.clusters[i]);
    }
    text += '\n';
    y += kMapLineHeight;
  }
  y += kMapLineHeight / 2;
  for (const auto& [cluster, legend] : legend_) {
    text += svg_box(kMapMargin, y, kMapLineHeight, cluster);
    text += svg_text(kMapMargin + kMapLineHeight + 6, y + 13,
                     fmt::format("{}: {} ({} periods)", cluster, legend.centre, legend.periods));
    y += kMapLineHeight;
  }
  return {.content = std::move(text), .height = y - top};
}

}  // namespace clew::output

// SPDX-License-Identifier: Apache-2.0
// Rows for people: tables and charts. On a terminal each interval replaces the last one; into a
// pipe they follow each other.
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/assert.h"
#include "output/chart.h"
#include "output/cluster_map.h"
#include "output/format.h"
#include "output/formats.h"
#include "output/screen.h"
#include "output/text_table.h"

namespace clew::output {
namespace {

using aggregate::Column;
using aggregate::Value;

class TextSink final : public RowSink {
 public:
  TextSink(const SinkOptions& options, ByteSink& bytes)
      : options_(options), bytes_(bytes), screen_(bytes), stream_({}) {}

  void begin(std::span<const Column> columns, RowMode mode) override;
  void row(std::span<const Value> values) override;
  void end_interval(const Interval& interval) override;
  void finish(const collect::Losses& losses) override;
  [[nodiscard]] bool ready() const override { return bytes_.ready(); }
  void flush() override { bytes_.flush(); }

 private:
  [[nodiscard]] std::string draw_table() const;
  [[nodiscard]] std::string draw_live() const;
  [[nodiscard]] std::string draw_clusters() const;
  void write_event(std::span<const Value> values);

  SinkOptions options_;
  ByteSink& bytes_;
  Screen screen_;
  RowMode mode_ = RowMode::Table;
  std::vector<Column> columns_;
  std::vector<std::vector<Value>> rows_;
  TextTable stream_;  // Widths of a stream grow with its rows.
  bool header_written_ = false;
  std::string drawn_;    // The last whole interval, in full.
  std::string partial_;  // What came after it.
  uint64_t intervals_ = 0;
};

void TextSink::begin(std::span<const Column> columns, RowMode mode) {
  mode_ = mode;
  columns_.assign(columns.begin(), columns.end());
  stream_ = TextTable(columns);
}

void TextSink::row(std::span<const Value> values) {
  CLEW_ASSERT(values.size() == columns_.size());
  if (mode_ == RowMode::Table) {
    rows_.emplace_back(values.begin(), values.end());
  } else {
    write_event(values);
  }
}

void TextSink::write_event(std::span<const Value> values) {
  const Cells cells = format_cells(columns_, values);
  stream_.fit(cells);
  if (!std::exchange(header_written_, true)) bytes_.write(stream_.header());
  bytes_.write(stream_.line(cells));
}

std::string TextSink::draw_table() const {
  if (options_.format == Format::Chart && ClusterMap::can_draw(columns_)) return draw_clusters();
  const bool chart = options_.format == Format::Chart && can_chart(columns_);
  if (chart) return format_chart(columns_, rows_);
  const bool has_width = options_.terminal >= 0;
  return format_table(columns_, rows_,
                      has_width ? size_of_terminal(options_.terminal).columns : SIZE_MAX);
}

// What will soon be another has no line that is folded and no row that is a block.
std::string TextSink::draw_live() const {
  if (options_.format == Format::Chart) return draw_table();
  return format_cut_table(columns_, rows_, size_of_terminal(options_.terminal).columns);
}

std::string TextSink::draw_clusters() const {
  constexpr size_t kColumns = 100;  // Where there is no terminal.
  const bool is_terminal = options_.terminal >= 0;
  ClusterMap map(columns_);
  for (const std::vector<Value>& row : rows_)
    map.add(row);
  return map.text(is_terminal ? size_of_terminal(options_.terminal).columns : kColumns,
                  is_terminal);
}

void TextSink::end_interval(const Interval& interval) {
  ++intervals_;
  if (mode_ == RowMode::Stream) return;
  const std::string title =
      fmt::format("interval {}{}\n", interval.number, interval.partial ? " (partial)" : "");
  const std::string text = title + draw_table();
  const std::string live = options_.redraw ? title + draw_live() : "";
  rows_.clear();
  if (!options_.redraw) {
    bytes_.write(text + "\n");
  } else if (interval.partial) {
    partial_ = text;  // Stands below the last whole one in the end.
  } else {
    drawn_ = text;
    screen_.draw(live, size_of_terminal(options_.terminal));
  }
}

void TextSink::finish(const collect::Losses& losses) {
  if (mode_ == RowMode::Table && intervals_ == 0) bytes_.write(draw_table());
  if (mode_ == RowMode::Table && intervals_ != 0 && options_.redraw) {
    screen_.erase(size_of_terminal(options_.terminal));
    bytes_.write(drawn_);
    if (!partial_.empty()) bytes_.write((drawn_.empty() ? "" : "\n") + partial_);
  }
  const std::string notes = format_losses(losses);
  if (!notes.empty()) bytes_.write("\n" + notes);
}

}  // namespace

std::unique_ptr<RowSink> make_text_sink(const SinkOptions& options, ByteSink& bytes, ByteSink&) {
  return std::make_unique<TextSink>(options, bytes);
}

}  // namespace clew::output

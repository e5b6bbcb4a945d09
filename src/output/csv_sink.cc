// SPDX-License-Identifier: Apache-2.0
// Comma-separated values (RFC 4180: CRLF, quotes doubled), with a header line. Numbers are exact
// and without units; null is an empty field. Losses, which columns are approximate and which
// intervals partial go to the notes.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/assert.h"
#include "output/format.h"
#include "output/formats.h"

namespace clew::output {
namespace {

using aggregate::Bucket;
using aggregate::Column;
using aggregate::Histogram;
using aggregate::TopItem;
using aggregate::TopList;
using aggregate::Value;

std::string as_field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"') result += '"';
    result += c;
  }
  return result + '"';
}

struct ToField {
  std::string operator()(std::monostate) const { return {}; }
  std::string operator()(int64_t number) const { return fmt::to_string(number); }
  std::string operator()(uint64_t number) const { return fmt::to_string(number); }
  std::string operator()(double number) const { return fmt::format("{}", number); }
  std::string operator()(const std::string& text) const { return as_field(text); }
  std::string operator()(const Histogram& histogram) const {
    std::string text;
    for (const Bucket& bucket : histogram.buckets) {
      if (bucket.count == 0) continue;
      text += fmt::format("{}{}:{}", text.empty() ? "" : ";", bucket_label(bucket), bucket.count);
    }
    return text;
  }
  std::string operator()(const TopList& list) const {
    std::string text;
    for (const TopItem& item : list.items) {
      text += fmt::format("{}{}:{}", text.empty() ? "" : ";", aggregate::text_of(item.value),
                          item.count);
    }
    return as_field(text);
  }
  std::string operator()(const aggregate::Stack& stack) const {
    return as_field(format_calls(stack));
  }
};

class CsvSink final : public RowSink {
 public:
  CsvSink(ByteSink& bytes, ByteSink& notes) : bytes_(bytes), notes_(notes) {}

  void begin(std::span<const Column> columns, RowMode mode) override {
    columns_.assign(columns.begin(), columns.end());
    mode_ = mode;
    if (mode_ == RowMode::Stream) write_header("");
  }

  // Whether there is an interval column is known when the first interval ends.
  void row(std::span<const Value> values) override {
    CLEW_ASSERT(values.size() == columns_.size());
    std::string line;
    for (size_t i = 0; i < values.size(); ++i) {
      if (i > 0) line += ',';
      line += std::visit(ToField{}, values[i]);
    }
    line += "\r\n";
    if (mode_ == RowMode::Stream) {
      bytes_.write(line);
    } else {
      rows_.push_back(std::move(line));
    }
  }

  void end_interval(const Interval& interval) override {
    if (mode_ == RowMode::Stream) return;
    write_header("interval,");
    if (interval.partial) partial_.push_back(interval.number);
    for (const std::string& row : std::exchange(rows_, {})) {
      bytes_.write(fmt::format("{},{}", interval.number, row));
    }
  }

  [[nodiscard]] bool ready() const override { return bytes_.ready(); }
  void flush() override {
    bytes_.flush();
    notes_.flush();
  }

  void finish(const collect::Losses& losses) override {
    write_header("");
    for (const std::string& row : std::exchange(rows_, {}))
      bytes_.write(row);
    if (!partial_.empty())
      notes_.write(fmt::format("partial intervals: {}\n", fmt::join(partial_, ", ")));
    notes_.write(format_approximate(columns_) + format_losses(losses));
  }

 private:
  void write_header(std::string_view first) {
    if (std::exchange(header_written_, true)) return;
    std::string line(first);
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (i > 0) line += ',';
      line += as_field(columns_[i].name);
    }
    bytes_.write(line + "\r\n");
  }

  ByteSink& bytes_;
  ByteSink& notes_;
  RowMode mode_ = RowMode::Table;
  std::vector<Column> columns_;
  std::vector<std::string> rows_;
  std::vector<uint64_t> partial_;  // Intervals.
  bool header_written_ = false;
};

}  // namespace

std::unique_ptr<RowSink> make_csv_sink(const SinkOptions&, ByteSink& bytes, ByteSink& notes) {
  return std::make_unique<CsvSink>(bytes, notes);
}

}  // namespace clew::output

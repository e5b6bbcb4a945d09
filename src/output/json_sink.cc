// SPDX-License-Identifier: Apache-2.0
// One JSON object a line (RFC 8259, UTF-8). Integers stay integers; what is no number in JSON (NaN,
// infinity) and null are null; bytes that are not UTF-8 become U+FFFD.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/assert.h"
#include "output/formats.h"
#include "output/json_value.h"

namespace clew::output {
namespace {

using aggregate::Column;
using aggregate::Value;

std::string line_of(const Json& json) {
  return json_text(json) + "\n";
}

// A value's text, at the end of a line: what a session of many events spends its time on.
class LineEnd {
 public:
  LineEnd(std::string& line, aggregate::ColumnType type) : line_(line), type_(type) {}

  void operator()(std::monostate) const { line_ += "null"; }
  void operator()(int64_t number) const { append(number); }
  void operator()(uint64_t number) const {
    if (type_ != aggregate::ColumnType::Boolean) return append(number);
    line_ += number != 0 ? "true" : "false";
  }
  void operator()(const std::string& text) const {
    if (type_ == aggregate::ColumnType::Record) return append_json(to_json(text, type_));
    if (!std::all_of(text.begin(), text.end(), is_plain)) return append_json(text);
    line_ += '"';
    line_ += text;
    line_ += '"';
  }
  template <typename Other>
  void operator()(const Other& other) const {
    append_json(to_json(other, type_));
  }

 private:
  static bool is_plain(char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; }
  template <typename Number>
  void append(Number number) const {
    const fmt::format_int digits(number);
    line_.append(digits.data(), digits.size());
  }
  void append_json(const Json& json) const { line_ += json_text(json); }

  std::string& line_;
  aggregate::ColumnType type_;
};

class JsonSink final : public RowSink {
 public:
  explicit JsonSink(ByteSink& bytes) : bytes_(bytes) {}

  void begin(std::span<const Column> columns, RowMode mode) override {
    mode_ = mode;
    for (const Column& column : columns) {
      std::string name = line_of(column.name);
      name.back() = ':';
      columns_.push_back({.type = column.type, .name = std::move(name)});
      if (column.approximate) approximate_.push_back(column.name);
    }
  }

  void disarmed(const collect::DisarmedProbe& disarmed) override {
    bytes_.write(line_of({{"disarmed", disarmed_json(disarmed)}}));
  }

  // The number of an interval is known at its end only.
  void row(std::span<const Value> values) override {
    CLEW_ASSERT(values.size() == columns_.size());
    line_.clear();
    for (size_t i = 0; i < columns_.size(); ++i) {
      line_ += i == 0 ? '{' : ',';
      line_ += columns_[i].name;
      std::visit(LineEnd(line_, columns_[i].type), values[i]);
    }
    line_ += "}\n";
    if (mode_ == RowMode::Stream) {
      bytes_.write(line_);
    } else {
      rows_.push_back(line_);
    }
  }

  // A column of one of these names stands for itself.
  void end_interval(const Interval& interval) override {
    std::string front = "{";
    const auto add = [&](const char* name, const std::string& value) {
      const std::string key = fmt::format("\"{}\":", name);
      const bool is_column = std::any_of(columns_.begin(), columns_.end(),
                                         [&](const auto& column) { return column.name == key; });
      if (!is_column) front += key + value + ",";
    };
    add("interval", fmt::to_string(interval.number));
    if (interval.end_ns != 0) {
      add("interval_begin", fmt::to_string(interval.begin_ns));
      add("interval_end", fmt::to_string(interval.end_ns));
    }
    if (interval.partial) add("partial", "true");
    for (const std::string& row : std::exchange(rows_, {}))
      bytes_.write(front + row.substr(1));
  }

  [[nodiscard]] bool ready() const override { return bytes_.ready(); }
  void flush() override { bytes_.flush(); }

  void finish(const collect::Losses& losses) override {
    for (const std::string& row : std::exchange(rows_, {}))
      bytes_.write(row);
    Json summary = losses_json(losses);
    if (!approximate_.empty()) summary["approximate"] = approximate_;
    bytes_.write(line_of({{"summary", std::move(summary)}}));
  }

 private:
  struct NamedColumn {
    aggregate::ColumnType type;
    std::string name;  // As it stands in a line, with the colon.
  };

  ByteSink& bytes_;
  RowMode mode_ = RowMode::Table;
  std::vector<NamedColumn> columns_;
  std::vector<std::string> approximate_;  // Names of columns.
  std::vector<std::string> rows_;
  std::string line_;
};

}  // namespace

std::unique_ptr<RowSink> make_json_sink(const SinkOptions&, ByteSink& bytes, ByteSink&) {
  return std::make_unique<JsonSink>(bytes);
}

}  // namespace clew::output

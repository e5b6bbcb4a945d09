// SPDX-License-Identifier: Apache-2.0
// The whole result stream, one JSON object a line, for programs that read while the session runs:
// docs/output-stream.md is the contract. What a JavaScript number cannot hold is a string, text
// that is no UTF-8 is {"hex": …}: nothing is rounded, nothing replaced.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/assert.h"
#include "output/format.h"
#include "output/formats.h"
#include "output/json_value.h"
#include "output/names.h"

namespace clew::output {
namespace {

using aggregate::Column;
using aggregate::ColumnType;
using aggregate::Unit;
using aggregate::Value;

constexpr int kVersion = 1;
// Rows in a line, so that a reader knows how long a line may get.
constexpr size_t kRowsInLineMax = 256;
constexpr int64_t kExactMax = (int64_t{1} << 53) - 1;  // Number.MAX_SAFE_INTEGER

Json exact(double number) {
  if (std::isfinite(number)) return number;
  return std::isnan(number) ? "nan" : (number < 0 ? "-inf" : "inf");
}

// The same value as any reader of JSON has it.
Json exact(Json json) {
  switch (json.type()) {
    case Json::value_t::number_unsigned:
      if (json.get<uint64_t>() > uint64_t{kExactMax}) return fmt::to_string(json.get<uint64_t>());
      return json;
    case Json::value_t::number_integer:
      if (json.get<int64_t>() >= -kExactMax && json.get<int64_t>() <= kExactMax) return json;
      return fmt::to_string(json.get<int64_t>());
    case Json::value_t::number_float:
      return exact(json.get<double>());
    case Json::value_t::string:
      return exact_text(json.get<std::string>());
    case Json::value_t::array:
    case Json::value_t::object:
      for (auto& part : json)
        part = exact(std::move(part));
      return json;
    case Json::value_t::null:
    case Json::value_t::boolean:
    case Json::value_t::binary:
    case Json::value_t::discarded:
      return json;
  }
  return json;
}

Json column_json(const Column& column) {
  Json json = {{"name", exact_text(column.name)}, {"type", name_of(column.type)}};
  if (column.unit != Unit::None) json["unit"] = name_of(column.unit);
  json["role"] = name_of(column.role);
  if (column.approximate) json["approximate"] = true;
  return json;
}

// A point in time, ns since 1970.
Json time_json(int64_t nanoseconds) {
  return fmt::to_string(nanoseconds);
}

Json counters_json(const collect::Losses& losses) {
  Json all = losses_json(losses);
  return {{"missed", all["missed"]}, {"dropped", all["dropped"]}, {"lost", all["lost"]}};
}

class StreamSink final : public RowSink {
 public:
  StreamSink(About about, ByteSink& bytes) : about_(std::move(about)), bytes_(bytes) {}

  void begin(std::span<const Column> columns, RowMode mode) override {
    write_session();
    write_table({}, columns, mode);
  }

  void begin_tables(std::span<const TableShape> tables) override {
    write_session();
    for (const TableShape& table : tables)
      write_table(table.name, table.columns, table.mode);
  }

  void choose(size_t table) override {
    CLEW_ASSERT(table < tables_.size());
    if (table != current_) write_rows();
    current_ = table;
  }

  void row(std::span<const Value> values) override {
    const std::vector<ColumnType>& types = tables_[current_].types;
    CLEW_ASSERT(values.size() == types.size());
    rows_ += rows_count_ == 0 ? "[" : ",[";
    for (size_t i = 0; i < values.size(); ++i) {
      if (i > 0) rows_ += ',';
      append(values[i], types[i]);
    }
    rows_ += ']';
    if (++rows_count_ == kRowsInLineMax) write_rows();
  }

  void disarmed(const collect::DisarmedProbe& disarmed) override {
    write({{"disarmed", disarmed_json(disarmed)}});
  }

  [[nodiscard]] bool wants_losses() const override { return true; }
  void losses_so_far(const collect::Losses& losses) override {
    Json counters = counters_json(losses);
    if (counters == counters_) return;
    counters_ = std::move(counters);
    write({{"losses", counters_}});
  }

  void end_interval(const Interval& interval) override {
    Json json = {{"number", interval.number}};
    if (interval.end_ns != 0) {
      json["begin"] = time_json(interval.begin_ns);
      json["end"] = time_json(interval.end_ns);
    }
    json["partial"] = interval.partial;
    write(of_table({{"interval", std::move(json)}}));
  }

  [[nodiscard]] bool ready() const override { return bytes_.ready(); }
  void flush() override {
    write_rows();
    bytes_.flush();
  }

  void finish(const collect::Losses& losses) override { losses_ = losses_json(losses); }

  Expected<void> close(const Error* error) override {
    if (number_ == 0) write_session();
    Json end = {{"losses", losses_}, {"error", nullptr}};
    if (error != nullptr) end["error"] = {{"message", error->message}};
    write({{"end", std::move(end)}});
    return {};
  }

 private:
  void write_session() {
    Json targets = Json::array();
    for (const auto& [kind, value] : about_.targets)
      targets.push_back({{kind, value}});
    write({{"session",
            {{"version", kVersion},
             {"clew", about_.version},
             {"query", about_.query},
             {"targets", std::move(targets)},
             {"host", about_.host},
             {"started", time_json(about_.started_ns)}}}});
  }

  // Without a name it is the only one.
  void write_table(std::string_view name, Columns columns, RowMode mode) {
    Json list = Json::array();
    current_ = tables_.size();
    Table& table = tables_.emplace_back(Table{.name = std::string(name), .types = {}});
    for (const Column& column : columns) {
      table.types.push_back(column.type);
      list.push_back(column_json(column));
    }
    write(of_table({{"columns", std::move(list)},  //
                    {"mode", mode == RowMode::Table ? "table" : "events"}}));
    current_ = 0;
  }

  [[nodiscard]] Json of_table(Json json) const {
    if (!tables_[current_].name.empty()) json["table"] = tables_[current_].name;
    return json;
  }

  // Rows come before what is said after them.
  void write(Json json) {
    write_rows();
    Json line = {{"seq", number_++}};
    line.update(exact(std::move(json)));
    bytes_.write(json_text(line) + "\n");
  }

  void write_rows() {
    if (rows_count_ == 0) return;
    const std::string& table = tables_[current_].name;
    const std::string of = table.empty() ? "" : fmt::format(",\"table\":\"{}\"", table);
    bytes_.write(fmt::format("{{\"seq\":{},\"rows\":[{}]{}}}\n", number_++, rows_, of));
    rows_.clear();
    rows_count_ = 0;
  }

  // What most events are made of needs no tree of JSON.
  void append(const Value& value, ColumnType type) {
    if (const auto* const number = std::get_if<int64_t>(&value)) {
      append_digits(*number, *number >= -kExactMax && *number <= kExactMax);
    } else if (const auto* const whole = std::get_if<uint64_t>(&value);
               whole != nullptr && type != ColumnType::Boolean) {
      append_digits(*whole, *whole <= uint64_t{kExactMax});
    } else if (const auto* const text = std::get_if<std::string>(&value);
               text != nullptr && std::all_of(text->begin(), text->end(), is_plain)) {
      rows_ += '"';
      rows_ += *text;
      rows_ += '"';
    } else {
      rows_ += json_text(exact(to_json(value, type)));
    }
  }
  template <typename Number>
  void append_digits(Number number, bool is_exact) {
    const fmt::format_int digits(number);
    if (!is_exact) rows_ += '"';
    rows_.append(digits.data(), digits.size());
    if (!is_exact) rows_ += '"';
  }
  static bool is_plain(char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; }

  struct Table {
    std::string name;
    std::vector<ColumnType> types;
  };

  About about_;
  ByteSink& bytes_;
  uint64_t number_ = 0;  // Of the next line.
  std::vector<Table> tables_;
  size_t current_ = 0;  // Of them, that of the rows.
  std::string rows_;    // Of the line that is being filled, with commas between them.
  size_t rows_count_ = 0;
  Json counters_ = counters_json({});
  Json losses_;
};

}  // namespace

std::unique_ptr<RowSink> make_stream_sink(const SinkOptions& options, ByteSink& bytes, ByteSink&) {
  return std::make_unique<StreamSink>(options.about, bytes);
}

}  // namespace clew::output

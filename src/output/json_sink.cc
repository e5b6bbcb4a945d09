// SPDX-License-Identifier: Apache-2.0
// One JSON object a line (RFC 8259, UTF-8). Integers stay integers; what is no number in JSON (NaN,
// infinity) and null are null; bytes that are not UTF-8 become U+FFFD.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "output/format.h"
#include "output/formats.h"

namespace clew::output {
namespace {

using Json = nlohmann::ordered_json;
using aggregate::Bucket;
using aggregate::BucketEdge;
using aggregate::Column;
using aggregate::Histogram;
using aggregate::TopItem;
using aggregate::TopList;
using aggregate::Value;

Json bucket_json(const Bucket& bucket) {
  switch (bucket.edge) {
    case BucketEdge::From:
      return {{"value", bucket.low}, {"count", bucket.count}};
    case BucketEdge::FromUnsigned:
      return {{"value", static_cast<uint64_t>(bucket.low)}, {"count", bucket.count}};
    case BucketEdge::Below:
      return {{"below", bucket.low}, {"count", bucket.count}};
    case BucketEdge::AtLeast:
      return {{"at_least", bucket.low}, {"count", bucket.count}};
    case BucketEdge::UpTo:
      return {{"at_most", bucket.low}, {"count", bucket.count}};
    case BucketEdge::Around:
      return {{"around", bucket.low}, {"count", bucket.count}};
  }
  return {};
}

// What is not known is left out.
Json frame_json(const aggregate::Frame& frame) {
  Json object = {{"address", frame.address}};
  if (!frame.symbol.empty()) {
    object["symbol"] = frame.symbol;
    object["offset"] = frame.offset;
  }
  if (!frame.module.empty()) object["module"] = frame.module;
  if (!frame.file.empty()) object["file"] = frame.file;
  if (frame.line != 0) object["line"] = frame.line;
  if (frame.inlined) object["inlined"] = true;
  return object;
}

struct ToJson {
  aggregate::ColumnType type;

  Json operator()(std::monostate) const { return nullptr; }
  Json operator()(int64_t number) const { return number; }
  Json operator()(uint64_t number) const {
    return type == aggregate::ColumnType::Boolean ? Json(number != 0) : Json(number);
  }
  Json operator()(double number) const { return number; }
  Json operator()(const std::string& text) const { return text; }
  // Empty buckets are left out.
  Json operator()(const Histogram& histogram) const {
    Json list = Json::array();
    for (const Bucket& bucket : histogram.buckets) {
      if (bucket.count != 0) list.push_back(bucket_json(bucket));
    }
    return list;
  }
  Json operator()(const TopList& top) const {
    Json list = Json::array();
    for (const TopItem& item : top.items) {
      list.push_back({{"value", std::visit(*this, item.value)}, {"count", item.count}});
    }
    return list;
  }
  Json operator()(const aggregate::Stack& stack) const {
    Json list = Json::array();
    for (const aggregate::Frame& frame : stack.frames)
      list.push_back(frame_json(frame));
    return list;
  }
};

std::string line_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Json causes_json(const collect::Causes& causes) {
  Json object = Json::object();
  for (const auto& [cause, count] : causes)
    object[cause] = count;
  return object;
}

Json disarmed_json(const collect::DisarmedProbe& disarmed) {
  return {{"probe", disarmed.probe},
          {"process", disarmed.process},
          {"out_of_fuel", disarmed.exhausted}};
}

Json sites_json(const std::vector<collect::RefusedSite>& sites) {
  Json list = Json::array();
  for (const collect::RefusedSite& site : sites) {
    list.push_back({{"function", site.function}, {"kind", site.kind}, {"reason", site.reason}});
  }
  return list;
}

Json summary_json(const collect::Losses& losses) {
  Json summary = Json::object();
  summary["missed"] = causes_json(losses.missed);
  summary["dropped"] = causes_json(losses.dropped);
  summary["lost"] = losses.lost;
  summary["refused"] = sites_json(losses.refused);
  if (!losses.uprobes.empty()) summary["uprobes"] = sites_json(losses.uprobes);
  for (const collect::DisarmedProbe& disarmed : losses.disarmed)
    summary["disarmed"].push_back(disarmed_json(disarmed));
  for (const collect::LeftOut& process : losses.left_out)
    summary["left_out"].push_back({{"process", process.process}, {"reason", process.reason}});
  if (losses.open.count != 0) {
    summary["open_calls"]["count"] = losses.open.count;
    if (losses.open.oldest_ns != 0) summary["open_calls"]["oldest_ns"] = losses.open.oldest_ns;
  }
  if (!losses.left_by_jump.empty()) summary["left_by_jump"] = losses.left_by_jump;
  summary["sites"] = losses.sites;
  summary["attach_ms"] = losses.attach_ms;
  summary["stopped_ms"] = losses.stopped_ms;
  if (losses.window_ms != 0) {
    summary["processes"] = losses.processes;
    summary["window_ms"] = losses.window_ms;
  }
  return {{"summary", std::move(summary)}};
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
    if (!std::all_of(text.begin(), text.end(), is_plain)) return append_json(text);
    line_ += '"';
    line_ += text;
    line_ += '"';
  }
  template <typename Other>
  void operator()(const Other& other) const {
    append_json(ToJson{type_}(other));
  }

 private:
  static bool is_plain(char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; }
  template <typename Number>
  void append(Number number) const {
    const fmt::format_int digits(number);
    line_.append(digits.data(), digits.size());
  }
  void append_json(const Json& json) const {
    line_ += json.dump(-1, ' ', false, Json::error_handler_t::replace);
  }

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
    }
  }

  void disarmed(const collect::DisarmedProbe& disarmed) override {
    bytes_.write(line_of({{"disarmed", disarmed_json(disarmed)}}));
  }

  // The number of an interval is known at its end only.
  void row(std::span<const Value> values) override {
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
    bytes_.write(line_of(summary_json(losses)));
  }

 private:
  struct NamedColumn {
    aggregate::ColumnType type;
    std::string name;  // As it stands in a line, with the colon.
  };

  ByteSink& bytes_;
  RowMode mode_ = RowMode::Table;
  std::vector<NamedColumn> columns_;
  std::vector<std::string> rows_;
  std::string line_;
};

}  // namespace

std::unique_ptr<RowSink> make_json_sink(const SinkOptions&, ByteSink& bytes, ByteSink&) {
  return std::make_unique<JsonSink>(bytes);
}

}  // namespace clew::output

// SPDX-License-Identifier: Apache-2.0
#include "output/otlp.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "base/clock_ns.h"
#include "output/format.h"
#include "output/formats.h"
#include "output/json_value.h"
#include "output/metric_buckets.h"

namespace clew::output {
namespace {

using aggregate::Column;
using aggregate::ColumnType;
using aggregate::Unit;
using aggregate::Value;

constexpr double kNsInSecond = 1e9;
constexpr int kDelta = 1;  // AggregationTemporality

std::string json_quoted(const std::string& text) {
  return json_text(Json(is_utf8(text) ? text : printable(text)));
}

// As protobuf's JSON has what is no number there.
std::string number_text(double number) {
  if (std::isnan(number)) return "\"NaN\"";
  if (std::isinf(number)) return number > 0 ? "\"Infinity\"" : "\"-Infinity\"";
  return fmt::format("{}", number);
}

std::string string_attribute(const std::string& key, const std::string& value) {
  return fmt::format(R"({{"key":{},"value":{{"stringValue":{}}}}})", json_quoted(key),
                     json_quoted(value));
}

// The conventions' names of what they know.
std::string attribute_name(const std::string& column) {
  static const std::map<std::string, std::string> kNames = {
      {"host", "host.name"},
      {"pid", "process.pid"},
      {"tid", "thread.id"},
      {"procName", "process.executable.name"}};
  const auto known = kNames.find(column);
  return known == kNames.end() ? column : known->second;
}

std::string attribute(const Column& column, const Value& value) {
  const std::string key = json_quoted(attribute_name(column.name));
  if (column.type == ColumnType::Boolean) {
    const auto* const flag = std::get_if<uint64_t>(&value);
    return fmt::format(R"({{"key":{},"value":{{"boolValue":{}}}}})", key,
                       flag != nullptr && *flag != 0);
  }
  const auto* const whole = std::get_if<uint64_t>(&value);
  const bool is_address = column.type == ColumnType::Address && whole != nullptr;
  const bool fits =
      whole != nullptr && !is_address && *whole <= uint64_t{std::numeric_limits<int64_t>::max()};
  if (fits || std::holds_alternative<int64_t>(value)) {
    return fmt::format(R"({{"key":{},"value":{{"intValue":"{}"}}}})", key, metric_text(value));
  }
  if (const auto* const real = std::get_if<double>(&value)) {
    return fmt::format(R"({{"key":{},"value":{{"doubleValue":{}}}}})", key, number_text(*real));
  }
  return string_attribute(attribute_name(column.name),
                          is_address ? fmt::format("0x{:x}", *whole) : metric_text(value));
}

std::string times_text(const MetricRow& row) {
  return fmt::format(R"("startTimeUnixNano":"{}","timeUnixNano":"{}")", row.begin_ns, row.end_ns);
}

// Empty: there is none. Durations are seconds, as the conventions want them.
std::string value_text(const Value& value, Unit unit) {
  const auto* const whole = std::get_if<int64_t>(&value);
  const auto* const natural = std::get_if<uint64_t>(&value);
  const auto* const real = std::get_if<double>(&value);
  if (whole == nullptr && natural == nullptr && real == nullptr) return "";
  const bool is_whole =
      unit == Unit::None &&
      (whole != nullptr ||
       (natural != nullptr && *natural <= uint64_t{std::numeric_limits<int64_t>::max()}));
  if (is_whole) return fmt::format(R"("asInt":"{}")", metric_text(value));
  double number = real != nullptr    ? *real
                  : whole != nullptr ? static_cast<double>(*whole)
                                     : static_cast<double>(*natural);
  if (unit == Unit::Nanoseconds) number /= kNsInSecond;
  return fmt::format(R"("asDouble":{})", number_text(number));
}

// Letters, digits, _, ., - and /; the first is a letter.
std::string instrument_name(const std::string& text) {
  std::string name;
  for (const char each : text) {
    const auto byte = static_cast<unsigned char>(each);
    const bool is_upper = std::isupper(byte) != 0;
    if (is_upper && !name.empty() && std::islower(static_cast<unsigned char>(name.back())) != 0)
      name += '_';
    const bool is_allowed = std::isalnum(byte) != 0 || each == '.' || each == '-';
    name += is_allowed ? static_cast<char>(std::tolower(byte)) : '_';
  }
  return name;
}

const char* kind_name(MetricKind kind) {
  switch (kind) {
    case MetricKind::Sum:
      return "sum";
    case MetricKind::Gauge:
      return "gauge";
    case MetricKind::Histogram:
      return "histogram";
  }
  return "";
}

// In front of the points.
std::string properties_of(MetricKind kind, const Column& column) {
  if (kind == MetricKind::Gauge) return "";
  std::string delta = fmt::format(R"("aggregationTemporality":{},)", kDelta);
  if (kind == MetricKind::Histogram) return delta;
  return delta + fmt::format(R"("isMonotonic":{},)", column.only_grows);
}

// A request a line.
class OtlpLines final : public RowSink, public OtlpPlace {
 public:
  OtlpLines(OtlpAbout about, ByteSink& bytes) : bytes_(bytes), sink_(std::move(about), *this) {}
  void begin(Columns columns, RowMode mode) override { sink_.begin(columns, mode); }
  void row(std::span<const Value> values) override { sink_.row(values); }
  void end_interval(const Interval& interval) override { sink_.end_interval(interval); }
  void finish(const collect::Losses& losses) override { sink_.finish(losses); }
  void flush() override { bytes_.flush(); }
  [[nodiscard]] bool ready() const override { return bytes_.ready(); }
  void post(OtlpRequest request) override { bytes_.write(request.body + "\n"); }

 private:
  ByteSink& bytes_;
  OtlpSink sink_;
};

}  // namespace

std::string service_name(const std::vector<std::string>& name_patterns) {
  const bool is_one =
      name_patterns.size() == 1 && name_patterns[0].find_first_of("*?[") == std::string::npos;
  return is_one ? name_patterns[0] : std::string();
}

OtlpAbout otlp_about(const About& about, std::string query) {
  OtlpAbout made{.query = std::move(query),
                 .version = about.version,
                 .resource = {{"host.name", about.host}},
                 .started_ns = about.started_ns};
  std::vector<std::string> names;
  for (const auto& [kind, value] : about.targets) {
    if (kind == "name") names.push_back(value);
    // The program's name.
    const std::string program = value.substr(0, value.find(' '));
    if (kind == "command") names.push_back(program.substr(program.rfind('/') + 1));
  }
  if (const std::string service = service_name(names); !service.empty())
    made.resource.emplace_back("service.name", service);
  return made;
}

std::unique_ptr<RowSink> make_otlp_sink(const SinkOptions& options, ByteSink& bytes, ByteSink&) {
  return std::make_unique<OtlpLines>(otlp_about(options.about, "query"), bytes);
}

void OtlpSink::begin(Columns columns, RowMode) {
  rows_.begin(columns);
  points_.resize(rows_.shape().metrics.size());
  has_negative_.resize(points_.size());
}

void OtlpSink::end_interval(const Interval& interval) {
  Interval known = interval;
  // Of the one interval of an answer without any.
  if (known.end_ns == 0) {
    known.begin_ns = about_.started_ns;
    known.end_ns = clock_ns(CLOCK_REALTIME);
  }
  post(rows_.end_interval(known));
  const uint64_t before = std::exchange(uncorrected_, rows_.uncorrected());
  if (uncorrected_ != before) place_.uncorrected(uncorrected_ - before);
}

void OtlpSink::finish(const collect::Losses&) {
  if (rows_.has_rows()) end_interval({.number = 1});
  post(rows_.finish());
}

void OtlpSink::post(const std::vector<MetricRow>& rows) {
  if (is_known_) return;
  for (const MetricRow& row : rows) {
    if (count_ >= kPointsMax || bytes_ >= kBytesMax) send(false);
    add(row);
  }
  if (count_ != 0) send(true);
}

void OtlpSink::add(const MetricRow& row) {
  const std::string attributes = attributes_of(row.values);
  for (size_t i = 0; i < points_.size(); ++i) {
    const MetricColumn& metric = rows_.shape().metrics[i];
    const std::string point = point_of(row, metric, attributes);
    if (point.empty()) continue;
    points_[i].text += points_[i].count == 0 ? point : "," + point;
    ++points_[i].count;
    ++count_;
    bytes_ += point.size();
  }
}

std::string OtlpSink::attributes_of(const std::vector<Value>& row) const {
  std::string text;
  for (const size_t label : rows_.shape().labels) {
    if (std::holds_alternative<std::monostate>(row[label])) continue;
    text +=
        fmt::format("{}{}", text.empty() ? "" : ",", attribute(rows_.columns()[label], row[label]));
  }
  return fmt::format("\"attributes\":[{}]", text);
}

std::string OtlpSink::point_of(const MetricRow& row, const MetricColumn& metric,
                               const std::string& attributes) {
  const std::string value =
      metric.kind == MetricKind::Histogram
          ? histogram_of(row, metric)
          : value_text(row.values[metric.column], rows_.columns()[metric.column].unit);
  if (value.empty()) return "";
  return fmt::format("{{{},{},{}}}", attributes, times_text(row), value);
}

std::string OtlpSink::histogram_of(const MetricRow& row, const MetricColumn& metric) {
  const auto* const histogram = std::get_if<aggregate::Histogram>(&row.values[metric.column]);
  if (histogram == nullptr) return "";
  const Column& column = rows_.columns()[metric.column];
  const auto index = static_cast<size_t>(&metric - rows_.shape().metrics.data());
  has_negative_[index] = has_negative_[index] || has_negative(*histogram);
  const MetricBuckets buckets = buckets_of(*histogram, has_negative_[index]);
  std::string bounds;
  for (const int64_t bound : buckets.bounds) {
    const auto number = static_cast<double>(bound);
    bounds +=
        fmt::format("{}{}", bounds.empty() ? "" : ",",
                    number_text(column.unit == Unit::Nanoseconds ? number / kNsInSecond : number));
  }
  std::string counts;
  for (const uint64_t count : buckets.counts)
    counts += fmt::format("{}\"{}\"", counts.empty() ? "" : ",", count);
  std::string sum;
  if (column.sum_column) {
    const std::string text =
        value_text(row.values[*column.sum_column], rows_.columns()[*column.sum_column].unit);
    // A double in histograms, which a number in quotes is, too.
    if (const size_t colon = text.find(':'); colon != std::string::npos)
      sum = fmt::format(",\"sum\":{}", text.substr(colon + 1));
  }
  return fmt::format(R"("count":"{}"{},"bucketCounts":[{}],"explicitBounds":[{}])", buckets.count(),
                     sum, counts, bounds);
}

void OtlpSink::send(bool is_last) {
  std::string metrics;
  for (size_t i = 0; i < points_.size(); ++i) {
    const Points points = std::exchange(points_[i], {});
    if (points.count == 0) continue;
    const MetricColumn& metric = rows_.shape().metrics[i];
    const Column& column = rows_.columns()[metric.column];
    const std::string name = instrument_name(fmt::format("clew.{}.{}", about_.query, column.name));
    metrics +=
        fmt::format(R"({}{{"name":{},"description":{},"unit":"{}","{}":{{{}"dataPoints":[{}]}}}})",
                    metrics.empty() ? "" : ",", json_quoted(name),
                    json_quoted(fmt::format("{} of query {}", column.name, about_.query)),
                    column.unit == Unit::Nanoseconds ? "s" : "", kind_name(metric.kind),
                    properties_of(metric.kind, column), points.text);
  }
  std::string resource;
  for (const auto& [key, value] : about_.resource)
    resource += (resource.empty() ? "" : ",") + string_attribute(key, value);
  OtlpRequest request{
      .body = fmt::format(
          R"({{"resourceMetrics":[{{"resource":{{"attributes":[{}]}},"scopeMetrics":[{{"scope":)"
          R"({{"name":"clew","version":{}}},"metrics":[{}]}}]}}]}})",
          resource, json_quoted(about_.version), metrics),
      .points = std::exchange(count_, 0),
      .query = about_.query,
      .revision = about_.revision,
      .mark = is_last ? mark_ : 0};
  bytes_ = 0;
  place_.post(std::move(request));
}

}  // namespace clew::output

// SPDX-License-Identifier: Apache-2.0
#include "output/prometheus.h"

#include <cctype>
#include <cmath>
#include <optional>

#include <fmt/format.h>

namespace clew::output {
namespace {

using aggregate::Column;
using aggregate::ColumnRole;
using aggregate::ColumnType;
using aggregate::Value;

constexpr double kNsOfSecond = 1e9;

std::optional<double> number_of(const Value& value, aggregate::Unit unit) {
  std::optional<double> number;
  if (const auto* whole = std::get_if<int64_t>(&value)) number = static_cast<double>(*whole);
  if (const auto* whole = std::get_if<uint64_t>(&value)) number = static_cast<double>(*whole);
  if (const auto* real = std::get_if<double>(&value)) number = *real;
  if (number && unit == aggregate::Unit::Nanoseconds) *number /= kNsOfSecond;
  return number;
}

std::string label_text(const Value& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* whole = std::get_if<int64_t>(&value)) return std::to_string(*whole);
  if (const auto* whole = std::get_if<uint64_t>(&value)) return std::to_string(*whole);
  if (const auto* real = std::get_if<double>(&value)) return fmt::format("{}", *real);
  return "";
}

std::string shown(double number) {
  if (std::isnan(number)) return "NaN";
  if (std::isinf(number)) return number > 0 ? "+Inf" : "-Inf";
  return fmt::format("{}", number);
}

}  // namespace

std::string metric_name(std::string_view text) {
  std::string name(text);
  for (char& each : name) {
    if (std::isalnum(static_cast<unsigned char>(each)) == 0) each = '_';
  }
  const bool begins_wrong =
      name.empty() || std::isdigit(static_cast<unsigned char>(name.front())) != 0;
  return begins_wrong ? "_" + name : name;
}

std::string metric_label(std::string_view text) {
  std::string label = "\"";
  for (const char each : text) {
    if (each == '\\' || each == '"') label += '\\';
    if (each == '\n') {
      label += "\\n";
    } else {
      label += each;
    }
  }
  return label + '"';
}

void PrometheusText::begin(std::span<const Column> columns, RowMode) {
  columns_.assign(columns.begin(), columns.end());
}

bool PrometheusText::is_metric(const Column& column) const {
  return column.role == ColumnRole::Aggregate &&
         column.adds_up == (metrics_ == Metrics::Counters) && column.type != ColumnType::Time;
}

void PrometheusText::row(std::span<const Value> values) {
  std::string labels;
  for (size_t i = 0; i < columns_.size(); ++i) {
    if (columns_[i].role == ColumnRole::Aggregate) continue;
    labels += fmt::format("{}{}={}", labels.empty() ? "" : ",", metric_name(columns_[i].name),
                          metric_label(label_text(values[i])));
  }
  for (size_t i = 0; i < columns_.size(); ++i) {
    const std::optional<double> number = number_of(values[i], columns_[i].unit);
    if (!is_metric(columns_[i]) || !number) continue;
    const std::string name =
        fmt::format("clew_{}_{}{}{}", metric_name(query_), metric_name(columns_[i].name),
                    columns_[i].unit == aggregate::Unit::Nanoseconds ? "_seconds" : "",
                    metrics_ == Metrics::Counters ? "_total" : "");
    Metric& metric = by_name_[name];
    metric.help = fmt::format("{} of query {}", columns_[i].name, query_);
    metric.lines += fmt::format("{}{{{}}} {}\n", name, labels, shown(*number));
  }
}

std::string PrometheusText::text() const {
  std::string text;
  for (const auto& [name, metric] : by_name_) {
    text += fmt::format("# HELP {} {}\n# TYPE {} {}\n{}", name, metric.help, name,
                        metrics_ == Metrics::Counters ? "counter" : "gauge", metric.lines);
  }
  return text;
}

}  // namespace clew::output

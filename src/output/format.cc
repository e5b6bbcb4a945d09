// SPDX-License-Identifier: Apache-2.0
#include "output/format.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <ctime>
#include <iterator>

#include <fmt/format.h>

#include "base/assert.h"

namespace clew::output {

using aggregate::Column;
using aggregate::ColumnType;
using aggregate::Histogram;
using aggregate::Stack;
using aggregate::TopList;
using aggregate::Unit;
using aggregate::Value;

namespace {

// Three significant digits of a number below 1000, or all digits of a larger one.
std::string three_digits(double number) {
  const double size = std::fabs(number);
  if (size >= 99.95) return fmt::format("{:.0f}", number);
  if (size >= 9.995) return fmt::format("{:.1f}", number);
  return fmt::format("{:.2f}", number);
}

std::string format_double(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number < 0 ? "-inf" : "inf";
  const double size = std::fabs(number);
  if (size >= 1e15) return fmt::format("{:.6e}", number);
  if (size >= 1 || size == 0) return fmt::format("{:.2f}", number);
  return fmt::format("{:.3g}", number);
}

struct Scale {
  double size;
  const char* unit;
};

constexpr std::array<Scale, 4> kTimeScales = {{{1, "ns"}, {1e3, "us"}, {1e6, "ms"}, {1e9, "s"}}};

// The first step whose scaled number is below 999.5 (which would print as 1000), or the last.
std::string format_scaled(double nanoseconds) {
  size_t i = 0;
  while (i + 1 < kTimeScales.size() && std::fabs(nanoseconds) / kTimeScales.at(i).size >= 999.5)
    ++i;
  const Scale& scale = kTimeScales.at(i);
  return fmt::format("{} {}", three_digits(nanoseconds / scale.size), scale.unit);
}

template <typename Integer>
std::string format_integer(Integer number, Unit unit) {
  const auto approximate = static_cast<double>(number);
  switch (unit) {
    case Unit::None:
      return fmt::to_string(number);
    case Unit::Nanoseconds:
      if (std::fabs(approximate) < 1000) return fmt::format("{} ns", number);
      return format_scaled(approximate);
  }
  CLEW_ASSERT(false);
  return {};
}

std::string format_float(double number, Unit unit) {
  if (!std::isfinite(number)) return format_double(number);
  switch (unit) {
    case Unit::None:
      return format_double(number);
    case Unit::Nanoseconds:
      return format_scaled(number);
  }
  CLEW_ASSERT(false);
  return {};
}

// Local time of day with microseconds.
std::string format_time(int64_t nanoseconds) {
  constexpr int64_t kSecond = 1'000'000'000;
  int64_t fraction = nanoseconds % kSecond;
  if (fraction < 0) fraction += kSecond;
  const auto seconds = static_cast<time_t>((nanoseconds - fraction) / kSecond);
  tm local{};
  if (localtime_r(&seconds, &local) == nullptr) return fmt::to_string(nanoseconds);
  return fmt::format("{:02}:{:02}:{:02}.{:06}", local.tm_hour, local.tm_min, local.tm_sec,
                     fraction / 1000);
}

// One line, for places without room for a drawing: "1024:3 2048:1".
std::string format_buckets(const Histogram& histogram) {
  std::string result;
  for (const aggregate::Bucket& bucket : histogram.buckets) {
    if (bucket.count == 0) continue;
    if (!result.empty()) result += ' ';
    result += fmt::format("{}:{}", bucket_label(bucket), bucket.count);
  }
  return result;
}

std::string format_list(const TopList& list) {
  std::string result;
  for (const aggregate::TopItem& item : list.items) {
    if (!result.empty()) result += ", ";
    result += fmt::format("{} ({})", printable(aggregate::text_of(item.value)), item.count);
  }
  return result;
}

// One frame a line.
std::string format_stack(const Stack& stack) {
  std::string result;
  for (const aggregate::Frame& frame : stack.frames) {
    if (&frame != stack.frames.data()) result += '\n';
    result += printable(aggregate::text_of(frame));
  }
  return result;
}

// {"id": 7, "name": "a"} as {id: 7, name: "a"}.
std::string without_quoted_keys(const std::string& json) {
  std::string result;
  for (size_t at = 0; at < json.size();) {
    size_t end = at + 1;
    if (json[at] == '"') {
      while (end < json.size() && json[end] != '"')
        end += json[end] == '\\' ? 2 : 1;
      end = std::min(end + 1, json.size());
    }
    const bool is_key = json[at] == '"' && end < json.size() && json[end] == ':';
    result += is_key ? json.substr(at + 1, end - at - 2) : json.substr(at, end - at);
    at = end;
  }
  return result;
}

struct Formatter {
  const Column& column;

  std::string operator()(std::monostate) const { return "-"; }
  std::string operator()(int64_t number) const {
    if (column.type == ColumnType::Time) return format_time(number);
    return format_integer(number, column.unit);
  }
  std::string operator()(uint64_t number) const {
    if (column.type == ColumnType::Address) return fmt::format("0x{:x}", number);
    if (column.type == ColumnType::Boolean) return number != 0 ? "true" : "false";
    return format_integer(number, column.unit);
  }
  std::string operator()(double number) const { return format_float(number, column.unit); }
  std::string operator()(const std::string& text) const {
    return printable(column.type == ColumnType::Record ? without_quoted_keys(text) : text);
  }
  std::string operator()(const Histogram& histogram) const { return format_buckets(histogram); }
  std::string operator()(const TopList& list) const { return format_list(list); }
  std::string operator()(const Stack& stack) const { return format_stack(stack); }
};

}  // namespace

std::string bucket_label(const aggregate::Bucket& bucket) {
  switch (bucket.edge) {
    case aggregate::BucketEdge::From:
      return fmt::to_string(bucket.low);
    case aggregate::BucketEdge::Below:
      return fmt::format("< {}", bucket.low);
    case aggregate::BucketEdge::AtLeast:
      return fmt::format(">= {}", bucket.low);
    case aggregate::BucketEdge::FromUnsigned:
      return fmt::to_string(static_cast<uint64_t>(bucket.low));
    case aggregate::BucketEdge::UpTo:
      return fmt::format("<= {}", bucket.low);
    case aggregate::BucketEdge::Around:
      return fmt::format("abs() < {}", bucket.low);
  }
  CLEW_ASSERT(false);
  return {};
}

std::string format_value(const Value& value, const Column& column) {
  const std::string text = std::visit(Formatter{column}, value);
  const bool marked = column.approximate && !std::holds_alternative<std::monostate>(value);
  return marked ? "~" + text : text;
}

std::string format_approximate(std::span<const Column> columns) {
  std::string names;
  for (const Column& column : columns) {
    if (!column.approximate) continue;
    names += fmt::format("{}{}", names.empty() ? "approximate: " : ", ", printable(column.name));
  }
  return names.empty() ? names : names + "\n";
}

std::string folded_text(std::string_view text) {
  std::string name = printable(text);
  for (size_t at = name.find(';'); at != std::string::npos; at = name.find(';', at))
    name.replace(at, 1, "\\x3b");
  return name;
}

std::string folded_name(const aggregate::Frame& frame) {
  return folded_text(frame.symbol.empty() ? aggregate::text_of(frame) : frame.symbol);
}

std::string format_calls(const Stack& stack) {
  std::string result;
  for (auto frame = stack.frames.rbegin(); frame != stack.frames.rend(); ++frame) {
    if (frame != stack.frames.rbegin()) result += ';';
    result += folded_text(aggregate::text_of(*frame));
  }
  return result;
}

std::string format_bar(double part, double whole, uint32_t width) {
  if (!(part > 0) || !(whole > 0)) return {};
  const double share = std::min(part / whole, 1.0);
  const auto eighths = static_cast<uint32_t>(std::lround(share * 8 * width));
  std::string bar;
  for (uint32_t i = 0; i < eighths / 8; ++i)
    bar += "\u2588";
  // U+258F is one eighth, U+2588 all eight: the third byte counts down.
  if (const uint32_t rest = eighths % 8; rest != 0) {
    bar += "\xE2\x96";
    bar += static_cast<char>(0x90 - rest);
  }
  return bar;
}

}  // namespace clew::output

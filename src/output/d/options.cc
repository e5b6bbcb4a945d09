// SPDX-License-Identifier: Apache-2.0
#include "output/d/options.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "output/d/table.h"

namespace clew::output::d {
namespace {

constexpr uint32_t kStackIndentMax = 1024;

struct Switch {
  std::string_view name;
  bool PrintOptions::*member;
};
constexpr std::array<Switch, 7> kSwitches = {{
    {"quiet", &PrintOptions::is_quiet},
    {"flowindent", &PrintOptions::has_flow_indent},
    {"rawbytes", &PrintOptions::has_raw_bytes},
    {"droptags", &PrintOptions::has_drop_tags},
    {"aggsortkey", &PrintOptions::sorts_by_key},
    {"aggsortrev", &PrintOptions::sorts_reversed},
    {"aggzoom", &PrintOptions::zooms},
}};

struct Number {
  std::string_view name;
  uint32_t PrintOptions::*member;
};
constexpr std::array<Number, 3> kNumbers = {{
    {"stackindent", &PrintOptions::stack_indent},
    {"aggsortkeypos", &PrintOptions::sort_key_position},
    {"aggsortpos", &PrintOptions::sort_position},
}};

}  // namespace

PrintOptions PrintOptions::from(const query::d::Options& options) {
  PrintOptions result;
  for (const auto& [name, value] : options.values)
    result.set(name, value);
  // Which names more than json does, and cannot change while tables are on their way.
  const auto wanted = options.values.find("format");
  if (wanted == options.values.end()) return result;
  if (const FormatRow* const row = format_named(wanted->second)) result.format = row->format;
  return result;
}

bool PrintOptions::set(std::string_view name, std::string_view value) {
  if (name == "json") {
    if (draws_aggregations()) return false;  // The output has begun in another form.
    const std::optional<bool> wanted = query::d::switch_word(value);
    if (wanted) format = *wanted ? Format::Json : Format::Text;
    return wanted.has_value();
  }
  for (const Switch& entry : kSwitches) {
    if (entry.name != name) continue;
    const std::optional<bool> wanted = query::d::switch_word(value);
    this->*entry.member = wanted.value_or(this->*entry.member);
    return wanted.has_value();
  }
  for (const Number& entry : kNumbers) {
    if (entry.name != name) continue;
    uint32_t number = 0;
    const auto read = std::from_chars(value.data(), value.data() + value.size(), number);
    if (read.ec != std::errc() || read.ptr != value.data() + value.size()) return false;
    this->*entry.member = entry.name == "stackindent" ? std::min(number, kStackIndentMax) : number;
    return true;
  }
  return false;
}

}  // namespace clew::output::d

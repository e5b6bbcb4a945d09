// SPDX-License-Identifier: Apache-2.0
#include "cmd/duration.h"

#include <array>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

namespace clew::cmd {
namespace {

struct DurationUnit {
  std::string_view name;
  double ns;
};
constexpr std::array<DurationUnit, 7> kUnits = {{{"ns", 1},
                                                 {"us", 1e3},
                                                 {"ms", 1e6},
                                                 {"s", 1e9},
                                                 {"m", 60e9},
                                                 {"h", 3600e9},
                                                 {"d", 24 * 3600e9}}};
constexpr double kDurationMaxNs = 366.0 * 24 * 3600e9;

}  // namespace

Expected<uint64_t> parse_duration(std::string_view text) {
  double number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
  for (const DurationUnit& known : kUnits) {
    const double ns = number * known.ns;
    if (problem == std::errc{} && unit == known.name && ns >= 1 && ns <= kDurationMaxNs) {
      return static_cast<uint64_t>(std::llround(ns));
    }
  }
  return fail(ErrorCode::InvalidQuery,
              fmt::format("'{}' is not a duration; expected a number and a unit, like 500ms, 10s, "
                          "2m (units: ns us ms s m h d)",
                          text));
}

}  // namespace clew::cmd

// SPDX-License-Identifier: Apache-2.0
#include "cmd/percent.h"

#include <charconv>

#include <fmt/format.h>

namespace clew::cmd {

Expected<double> parse_percent(std::string_view text) {
  constexpr double kWhole = 100;
  double number = 0;
  const std::string_view digits = text.substr(0, text.size() - (text.ends_with('%') ? 1 : 0));
  const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), number,
                                              std::chars_format::fixed);
  const bool is_number = problem == std::errc{} && end == digits.data() + digits.size();
  if (is_number && number > 0 && number <= kWhole) return number / kWhole;
  return fail(ErrorCode::InvalidQuery,
              fmt::format("'{}' is no percentage; expected a number above 0 and up to 100, like 3% "
                          "or 0.5%",
                          text));
}

}  // namespace clew::cmd

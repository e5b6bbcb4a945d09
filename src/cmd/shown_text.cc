// SPDX-License-Identifier: Apache-2.0
#include "cmd/shown_text.h"

#include <cmath>

#include <fmt/format.h>

#include "recorder/side_by_side.h"
#include "recorder/walk.h"

namespace clew::cmd {

std::string place_text(const recorder::ShownLine& line) {
  const size_t folder = line.file.rfind('/');
  if (line.file.empty()) return fmt::format("{}+{:#x}", line.module, line.address);
  return fmt::format(
      "{}:{}", folder == std::string::npos ? line.file : line.file.substr(folder + 1), line.line);
}

std::string place_text(const recorder::ShownScriptCall& call) {
  std::string text(recorder::file_of(call.file));
  if (call.line != 0) text += fmt::format(":{}", call.line);
  return text;
}

std::optional<int64_t> least_gap(std::span<const recorder::SpanNs> spans) {
  std::optional<int64_t> least;
  const auto add = [&least](int64_t gap) {
    if (gap > 0 && (!least || gap < *least)) least = gap;
  };
  for (size_t i = 0; i < spans.size(); ++i) {
    const recorder::SpanNs& one = spans[i];
    if (one.after && one.before) add(*one.before - *one.after);
    if (i + 1 < spans.size() && recorder::is_in_front(one, spans[i + 1]))
      add(*spans[i + 1].after - *one.before);
  }
  return least;
}

std::string time_text(int64_t ns, std::optional<int64_t> gap_ns) {
  struct Unit {
    std::string_view name;
    double ns;
  };
  constexpr Unit kMicroseconds{"µs", 1e3};
  constexpr Unit kMilliseconds{"ms", 1e6};
  constexpr Unit kSeconds{"s", 1e9};
  constexpr int kDigits = 3;  // Where nothing is closer.
  const auto exact = static_cast<double>(ns);
  const bool is_long = std::abs(exact) >= kMilliseconds.ns;
  const Unit unit = std::abs(exact) >= kSeconds.ns ? kSeconds
                    : is_long                      ? kMilliseconds
                                                   : kMicroseconds;
  double step = unit.ns;
  int digits = 0;
  for (; digits < kDigits || (gap_ns && step > static_cast<double>(*gap_ns)); ++digits)
    step /= 10;
  // A double has most of these fractions inexactly, and halves would go to either side.
  const double rounded = std::round(exact / step) * step;
  return fmt::format("{:+.{}f} {}", rounded / unit.ns, digits, unit.name);
}

std::string marks_text(uint8_t marks) {
  std::string text;
  if ((marks & recorder::kGap) != 0) text += " [gap]";
  if ((marks & recorder::kViolation) != 0) text += " [violation]";
  if ((marks & recorder::kUncertain) != 0) text += " [something may be missing before]";
  if ((marks & recorder::kUnwound) != 0) text += " [unwound]";
  if ((marks & recorder::kHandler) != 0) text += " [handler]";
  return text;
}

std::string_view role_of(const recorder::Snap& snap, bool is_reason) {
  if (!is_reason) return "";
  return snap.reason.signal != 0 ? " (the signal's)" : " (ends the process)";
}

}  // namespace clew::cmd

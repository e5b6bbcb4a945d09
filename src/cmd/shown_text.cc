// SPDX-License-Identifier: Apache-2.0
#include "cmd/shown_text.h"

#include <cmath>

#include <fmt/format.h>

#include "recorder/walk.h"

namespace clew::cmd {

std::string place_text(const recorder::ShownLine& line) {
  const size_t folder = line.file.rfind('/');
  if (line.file.empty()) return fmt::format("{}+{:#x}", line.module, line.address);
  return fmt::format(
      "{}:{}", folder == std::string::npos ? line.file : line.file.substr(folder + 1), line.line);
}

std::string time_text(int64_t ns) {
  constexpr double kMicrosecond = 1e3;
  constexpr double kMillisecond = 1e6;
  constexpr double kSecond = 1e9;
  const auto exact = static_cast<double>(ns);
  if (std::abs(exact) < kMillisecond) return fmt::format("{:+.3f} µs", exact / kMicrosecond);
  if (std::abs(exact) < kSecond) return fmt::format("{:+.3f} ms", exact / kMillisecond);
  return fmt::format("{:+.3f} s", exact / kSecond);
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

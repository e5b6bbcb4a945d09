// SPDX-License-Identifier: Apache-2.0
// The log ends with the reason and a line of statistics; in front of it are the instructions that
// were looked at, "12: (85) call …", and "Validating d_load() func#3…" for each function.
#include "kernel/verifier_message.h"

#include <cctype>

#include <fmt/format.h>

namespace clew::kernel {
namespace {

bool starts_with_digit(std::string_view line) {
  return !line.empty() && std::isdigit(static_cast<unsigned char>(line.front())) != 0;
}

bool is_reason(std::string_view line) {
  return !line.empty() && !line.starts_with("processed ") &&
         !line.starts_with("verification time") && !line.starts_with("stack depth") &&
         !line.starts_with("insns processed") && !line.starts_with("from ") &&
         !line.starts_with(";") && !starts_with_digit(line);
}

std::string_view function_of(std::string_view line) {
  constexpr std::string_view kBegin = "Validating ";
  if (!line.starts_with(kBegin)) return {};
  line.remove_prefix(kBegin.size());
  return line.substr(0, line.find('('));
}

}  // namespace

std::string verifier_message(std::string_view log) {
  std::string_view reason;
  std::string_view function;
  while (!log.empty()) {
    const size_t end = log.find('\n');
    const std::string_view line = log.substr(0, end);
    log.remove_prefix(end == std::string_view::npos ? log.size() : end + 1);
    const std::string_view named = function_of(line);
    if (!named.empty()) {
      function = named;
    } else if (is_reason(line)) {
      reason = line;
    }
  }
  if (reason.empty() || function.empty()) return std::string(reason);
  return fmt::format("{} (in {})", reason, function);
}

}  // namespace clew::kernel

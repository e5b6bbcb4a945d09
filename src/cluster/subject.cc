// SPDX-License-Identifier: Apache-2.0
#include "cluster/subject.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "cluster/bus.h"

namespace clew::cluster {
namespace {

bool is_word(std::string_view word) {
  const auto is_allowed = [](char one) {
    return (one >= 'a' && one <= 'z') || (one >= 'A' && one <= 'Z') || (one >= '0' && one <= '9') ||
           one == '_' || one == '-';
  };
  return !word.empty() && std::all_of(word.begin(), word.end(), is_allowed);
}

// Takes the first word off; `rest` is without a dot in front.
std::string_view take_word(std::string_view& rest) {
  const size_t dot = rest.find('.');
  const std::string_view word = rest.substr(0, dot);
  rest = dot == std::string_view::npos ? std::string_view() : rest.substr(dot + 1);
  return word;
}

bool is_subject(std::string_view subject, bool may_have_wildcards) {
  if (subject.empty() || subject.size() > kSubjectMax || subject.back() == '.') return false;
  for (std::string_view rest = subject; !rest.empty();) {
    const std::string_view word = take_word(rest);
    const bool is_wildcard = may_have_wildcards && (word == "*" || (word == ">" && rest.empty()));
    if (!is_wildcard && !is_word(word)) return false;
  }
  return true;
}

// Hostile text stays one line and short.
std::string shown(std::string_view text) {
  constexpr size_t kShownMax = 80;
  std::string result(text.substr(0, kShownMax));
  std::replace_if(
      result.begin(), result.end(), [](char one) { return one < ' ' || one > '~'; }, '?');
  return text.size() > kShownMax ? result + "…" : result;
}

}  // namespace

Expected<void> check_subject(std::string_view subject) {
  if (is_subject(subject, false)) return {};
  return fail(ErrorCode::InvalidQuery, fmt::format("'{}' is no subject of a bus", shown(subject)));
}

Expected<void> check_pattern(std::string_view pattern) {
  if (is_subject(pattern, true)) return {};
  return fail(ErrorCode::InvalidQuery,
              fmt::format("'{}' is no pattern of subjects of a bus", shown(pattern)));
}

Expected<void> check_name(std::string_view name) {
  if (is_word(name) && name.size() <= kSubjectMax) return {};
  return fail(ErrorCode::InvalidQuery,
              fmt::format("'{}' is no name of a log or bucket", shown(name)));
}

Expected<void> check_id(std::string_view id) {
  const bool is_printable =
      std::all_of(id.begin(), id.end(), [](char one) { return one >= ' ' && one <= '~'; });
  if (is_printable && id.size() <= kSubjectMax) return {};
  return fail(ErrorCode::InvalidQuery, fmt::format("'{}' is no id of an entry", shown(id)));
}

Expected<void> check_size(std::span<const std::byte> bytes) {
  if (bytes.size() <= kMessageMax) return {};
  return fail(ErrorCode::Limit, fmt::format("a message of {} bytes is too large for a bus; {} fit",
                                            bytes.size(), kMessageMax));
}

bool is_match(std::string_view pattern, std::string_view subject) {
  while (!pattern.empty() && !subject.empty()) {
    const std::string_view wanted = take_word(pattern);
    if (wanted == ">") return true;
    const std::string_view word = take_word(subject);
    if (word == ">" || (word != wanted && wanted != "*")) return false;
  }
  return pattern.empty() && subject.empty();
}

bool do_overlap(std::string_view pattern, std::string_view other) {
  while (!pattern.empty() && !other.empty()) {
    const std::string_view one = take_word(pattern);
    const std::string_view two = take_word(other);
    if (one == ">" || two == ">") return true;
    if (one != two && one != "*" && two != "*") return false;
  }
  return pattern.empty() && other.empty();
}

bool has_wildcards(std::string_view pattern) {
  return pattern.find_first_of("*>") != std::string_view::npos;
}

}  // namespace clew::cluster

// SPDX-License-Identifier: Apache-2.0
#include "base/nearest.h"

#include <algorithm>
#include <array>
#include <cctype>

#include <fmt/format.h>

namespace clew {
namespace {

constexpr size_t kNameMax = 200;

char lower(char c) {
  return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
}

constexpr std::string_view kScope = "::";

// Where the last part of a name begins, in front of `end`: behind a "::" that does not stand
// between brackets, as in "map<std::string>::find"; 0 without any.
size_t last_part(std::string_view name, size_t end) {
  size_t depth = 0;
  for (size_t i = end; i > 0; --i) {
    const char c = name[i - 1];
    if (c == '>' || c == ')') ++depth;
    if ((c == '<' || c == '(') && depth > 0) --depth;
    if (depth == 0 && i >= kScope.size() && name.substr(0, i).ends_with(kScope)) return i;
  }
  return 0;
}

size_t parts_of(std::string_view name) {
  size_t parts = 1;
  for (size_t at = last_part(name, name.size()); at != 0; at = last_part(name, at - kScope.size()))
    ++parts;
  return parts;
}

// The last `parts` parts; all of it when it has no more.
std::string_view tail_of(std::string_view name, size_t parts) {
  size_t at = last_part(name, name.size());
  for (; parts > 1 && at != 0; --parts)
    at = last_part(name, at - kScope.size());
  return name.substr(at);
}

}  // namespace

unsigned edit_distance(std::string_view a, std::string_view b, unsigned limit) {
  a = a.substr(0, kNameMax);
  b = b.substr(0, kNameMax);
  const size_t gap = a.size() > b.size() ? a.size() - b.size() : b.size() - a.size();
  if (gap > limit) return limit + 1;
  using Row = std::array<unsigned, kNameMax + 1>;
  Row before{};
  Row previous{};
  Row current{};
  for (size_t j = 0; j <= b.size(); ++j) {
    previous[j] = static_cast<unsigned>(j);
  }
  for (size_t i = 1; i <= a.size(); ++i) {
    current[0] = static_cast<unsigned>(i);
    unsigned row_min = current[0];
    for (size_t j = 1; j <= b.size(); ++j) {
      const unsigned change = lower(a[i - 1]) == lower(b[j - 1]) ? 0 : 1;
      unsigned cost = std::min({previous[j] + 1, current[j - 1] + 1, previous[j - 1] + change});
      const bool swapped = i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) &&
                           lower(a[i - 2]) == lower(b[j - 1]);
      if (swapped) cost = std::min(cost, before[j - 2] + 1);
      current[j] = cost;
      row_min = std::min(row_min, cost);
    }
    if (row_min > limit) return limit + 1;
    before = previous;
    previous = current;
  }
  return previous[b.size()];
}

std::string nearest_name(std::string_view name, std::span<const std::string_view> candidates) {
  unsigned best = static_cast<unsigned>(std::max<size_t>(1, std::min(name.size(), kNameMax) / 3));
  std::string_view found;
  const size_t parts = parts_of(name);
  for (const std::string_view candidate : candidates) {
    unsigned distance = edit_distance(name, candidate, best);
    const std::string_view tail = tail_of(candidate, parts);
    if (tail.size() != candidate.size()) {
      distance = std::min(distance, 1 + edit_distance(name, tail, best));
    }
    if (distance < best || (distance == best && found.empty())) {
      best = distance;
      found = candidate;
    }
  }
  return std::string(found);
}

std::string did_you_mean(std::string_view nearest) {
  return nearest.empty() ? std::string() : fmt::format("; did you mean '{}'?", nearest);
}

}  // namespace clew

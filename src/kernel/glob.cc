// SPDX-License-Identifier: Apache-2.0
#include "kernel/glob.h"

namespace clew::kernel {

namespace {

// What one element of a pattern (not `*`) says about a byte, and where the next one starts.
struct Step {
  bool matches = false;
  size_t next = 0;
};

// The position behind the `]` of the set that opens at `open`; npos when there is none. A `]` right
// after `[` or `[!` is a member.
size_t set_end(std::string_view pattern, size_t open) {
  size_t at = open + 1;
  if (at < pattern.size() && pattern[at] == '!') ++at;
  for (bool is_first = true; at < pattern.size(); ++at, is_first = false) {
    if (pattern[at] == ']' && !is_first) return at + 1;
    if (pattern[at] == '\\') ++at;
  }
  return std::string_view::npos;
}

// `set` is what stands between the brackets.
bool set_has(std::string_view set, unsigned char byte) {
  const bool is_negated = !set.empty() && set[0] == '!';
  if (is_negated) set.remove_prefix(1);
  const auto take = [&set]() {
    if (set[0] == '\\' && set.size() > 1) set.remove_prefix(1);
    const auto taken = static_cast<unsigned char>(set[0]);
    set.remove_prefix(1);
    return taken;
  };
  bool found = false;
  while (!set.empty()) {
    const unsigned char low = take();
    unsigned char high = low;
    if (set.size() > 1 && set[0] == '-') {
      set.remove_prefix(1);
      high = take();
    }
    found = found || (low <= byte && byte <= high);
  }
  return found != is_negated;
}

Step step(std::string_view pattern, size_t at, char byte) {
  const char element = pattern[at];
  if (element == '?') return {true, at + 1};
  if (element == '\\' && at + 1 < pattern.size()) return {pattern[at + 1] == byte, at + 2};
  const size_t end = element == '[' ? set_end(pattern, at) : std::string_view::npos;
  if (end == std::string_view::npos) return {element == byte, at + 1};
  return {set_has(pattern.substr(at + 1, end - at - 2), static_cast<unsigned char>(byte)), end};
}

}  // namespace

Glob::Glob(std::string_view text) : text_(text), is_literal_(!text.empty()) {
  for (size_t at = 0; at < text.size() && is_literal_; ++at) {
    const bool is_set = text[at] == '[' && set_end(text, at) != std::string_view::npos;
    if (text[at] == '\\' && at + 1 < text.size()) {
      ++at;
    } else if (text[at] == '*' || text[at] == '?' || is_set) {
      is_literal_ = false;
    }
    literal_ += text[at];
  }
  if (!is_literal_) literal_.clear();
}

// On a mismatch only the last `*` takes one byte more: earlier ones have what they need. So the
// time is at most the product of both lengths.
bool Glob::matches(std::string_view name) const {
  if (text_.empty()) return true;
  if (is_literal_) return name == literal_;
  size_t at = 0;
  size_t position = 0;
  size_t star = std::string_view::npos;
  size_t star_position = 0;
  while (position < name.size() || at < text_.size()) {
    if (at < text_.size() && text_[at] == '*') {
      star = ++at;
      star_position = position;
      continue;
    }
    if (at < text_.size() && position < name.size()) {
      const Step taken = step(text_, at, name[position]);
      if (taken.matches) {
        at = taken.next;
        ++position;
        continue;
      }
    }
    if (star == std::string_view::npos || star_position == name.size()) return false;
    at = star;
    position = ++star_position;
  }
  return true;
}

}  // namespace clew::kernel

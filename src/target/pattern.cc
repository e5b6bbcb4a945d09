// SPDX-License-Identifier: Apache-2.0
#include "target/pattern.h"

#include <fmt/format.h>

namespace clew::target {

Expected<Pattern> Pattern::compile(std::string_view text) {
  Pattern pattern;
  pattern.text_ = text;
  for (size_t at = 0; at < text.size();)
    at = CLEW_TRY(pattern.compile_element(text, at));
  return pattern;
}

// Appends the element that starts at `at`; where the next one starts.
Expected<size_t> Pattern::compile_element(std::string_view text, size_t at) {
  literal_ = literal_ && std::string_view("*?[").find(text[at]) == std::string_view::npos;
  switch (text[at]) {
    case '*':
      // Several in a row mean what one does.
      if (elements_.empty() || elements_.back().kind != ElementKind::AnyRun) {
        elements_.push_back({.kind = ElementKind::AnyRun});
      }
      return at + 1;
    case '?':
      elements_.push_back({.kind = ElementKind::AnyByte});
      return at + 1;
    case '[':
      return compile_set(text, at);
    default:
      elements_.push_back({.kind = ElementKind::Byte, .byte = text[at]});
      return at + 1;
  }
}

// Appends the set that opens at `open`; the index behind its closing bracket. A `]` right after the
// opening stands for itself, as in the shell.
Expected<size_t> Pattern::compile_set(std::string_view text, size_t open) {
  size_t at = open + 1;
  const bool negated = at < text.size() && (text[at] == '!' || text[at] == '^');
  if (negated) ++at;
  const size_t first = at;
  std::bitset<256> set;
  while (at < text.size() && (text[at] != ']' || at == first)) {
    const auto low = static_cast<uint8_t>(text[at]);
    const bool is_range = at + 2 < text.size() && text[at + 1] == '-' && text[at + 2] != ']';
    const auto high = is_range ? static_cast<uint8_t>(text[at + 2]) : low;
    for (unsigned byte = low; byte <= high; ++byte) {
      set.set(byte);
    }
    at += is_range ? 3 : 1;
  }
  if (at >= text.size()) {
    return fail(ErrorCode::InvalidQuery,
                fmt::format("the set that starts with '[' in the pattern '{}' has no ']'", text));
  }
  elements_.push_back({.kind = ElementKind::Set, .set = static_cast<uint32_t>(sets_.size())});
  sets_.push_back(negated ? ~set : set);
  return at + 1;
}

bool Pattern::matches_everything() const {
  return elements_.size() == 1 && elements_[0].kind == ElementKind::AnyRun;
}

bool Pattern::element_matches(const Element& element, char byte) const {
  switch (element.kind) {
    case ElementKind::Byte:
      return element.byte == byte;
    case ElementKind::AnyByte:
      return true;
    case ElementKind::AnyRun:
      return false;
    case ElementKind::Set:
      return sets_[element.set].test(static_cast<uint8_t>(byte));
  }
  return false;
}

// The last run is the only one that needs to be retried: an earlier one that takes more can only
// take names that the last one could have taken.
bool Pattern::matches(std::string_view name) const {
  if (literal_) return name == text_;
  size_t element = 0;
  size_t at = 0;
  size_t run_element = elements_.size();  // No run yet.
  size_t run_at = 0;
  while (at < name.size()) {
    if (element < elements_.size() && elements_[element].kind == ElementKind::AnyRun) {
      run_element = element++;
      run_at = at;
    } else if (element < elements_.size() && element_matches(elements_[element], name[at])) {
      ++element;
      ++at;
    } else if (run_element < elements_.size()) {
      element = run_element + 1;
      at = ++run_at;
    } else {
      return false;
    }
  }
  if (element < elements_.size() && elements_[element].kind == ElementKind::AnyRun) ++element;
  return element == elements_.size();
}

}  // namespace clew::target

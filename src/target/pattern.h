// SPDX-License-Identifier: Apache-2.0
// A name pattern as the shell writes it: `*` any run, `?` any one byte, `[a-z]` and `[!a-z]` one of
// a set. There is no escape: a set of one does that (`[*]`). Matches whole names.
#pragma once

#include <bitset>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace clew::target {

class Pattern {
 public:
  // InvalidQuery for an unclosed or empty set.
  static Expected<Pattern> compile(std::string_view text);

  // Linear in name times runs of `*`; never exponential.
  [[nodiscard]] bool matches(std::string_view name) const;
  [[nodiscard]] bool is_literal() const { return literal_; }
  [[nodiscard]] bool matches_everything() const;
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  enum class ElementKind : uint8_t { Byte, AnyByte, AnyRun, Set };
  struct Element {
    ElementKind kind = ElementKind::Byte;
    char byte = 0;
    uint32_t set = 0;  // Index in sets_.
  };

  [[nodiscard]] bool element_matches(const Element& element, char byte) const;
  Expected<size_t> compile_element(std::string_view text, size_t at);
  Expected<size_t> compile_set(std::string_view text, size_t open);

  std::string text_;
  std::vector<Element> elements_;
  std::vector<std::bitset<256>> sets_;
  bool literal_ = true;
};

}  // namespace clew::target

// SPDX-License-Identifier: Apache-2.0
#include "aggregate/value.h"

#include <fmt/format.h>

namespace clew::aggregate {
namespace {

struct ToText {
  std::string operator()(std::monostate) const { return "null"; }
  std::string operator()(const std::string& text) const { return text; }
  template <typename Number>
  std::string operator()(Number number) const {
    return fmt::to_string(number);
  }
};

}  // namespace

std::string text_of(const Scalar& value) {
  return std::visit(ToText{}, value);
}

}  // namespace clew::aggregate

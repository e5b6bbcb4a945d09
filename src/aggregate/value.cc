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

std::string text_of(const Frame& frame) {
  std::string text = frame.module.empty() ? "" : frame.module + "!";
  text += frame.symbol.empty() ? fmt::format("0x{:x}", frame.address) : frame.symbol;
  if (!frame.symbol.empty() && frame.offset != 0) text += fmt::format("+0x{:x}", frame.offset);
  if (!frame.file.empty() && frame.line != 0) {
    text += fmt::format(" ({}:{})", frame.file, frame.line);
  } else if (!frame.file.empty()) {
    text += fmt::format(" ({})", frame.file);
  }
  return frame.inlined ? text + " [inlined]" : text;
}

std::string text_of(const Stack& stack) {
  std::string text;
  for (const Frame& frame : stack.frames) {
    if (&frame != stack.frames.data()) text += '\n';
    text += text_of(frame);
  }
  return text;
}

}  // namespace clew::aggregate

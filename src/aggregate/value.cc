// SPDX-License-Identifier: Apache-2.0
#include "aggregate/value.h"

#include <charconv>
#include <optional>

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

// A function without a symbol is called after its place in the module ("bc+0xbb60"): what is in it
// has one offset, the module's.
std::optional<uint64_t> place_in_module(const Frame& frame) {
  const std::string beginning = frame.module + "+0x";
  if (frame.module.empty() || !frame.symbol.starts_with(beginning)) return std::nullopt;
  uint64_t place = 0;
  const char* const end = frame.symbol.data() + frame.symbol.size();
  const auto read = std::from_chars(frame.symbol.data() + beginning.size(), end, place, 16);
  if (read.ec != std::errc() || read.ptr != end) return std::nullopt;
  return place + frame.offset;
}

// "nginx!ngx_http_handler+0x1f"
std::string code_of(const Frame& frame) {
  if (const auto place = place_in_module(frame))
    return fmt::format("{}+0x{:x}", frame.module, *place);
  const std::string module = frame.module.empty() ? "" : frame.module + "!";
  if (frame.symbol.empty()) return fmt::format("{}0x{:x}", module, frame.address);
  if (frame.offset == 0) return module + frame.symbol;
  return fmt::format("{}{}+0x{:x}", module, frame.symbol, frame.offset);
}

}  // namespace

std::string text_of(const Scalar& value) {
  return std::visit(ToText{}, value);
}

std::string text_of(const Frame& frame) {
  std::string text = code_of(frame);
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

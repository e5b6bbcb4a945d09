// SPDX-License-Identifier: Apache-2.0
// Formats of printf and printa. A length may stand before any conversion that takes one; it is
// kept, though D adapts to the argument's size by itself.
#include "query/d/parse_format.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace clew::query::d {
namespace {

constexpr std::string_view kFlags = "#0-+' ";
constexpr std::array<std::string_view, 5> kLengths = {"hh", "h", "ll", "l", "L"};
constexpr std::string_view kConversions = "aAcCdeEfgGikopsSTuxXY";
constexpr std::string_view kSized = "cdeEfgGiosuxX";  // May have a length.
constexpr int32_t kWidthMax = 1 << 20;
constexpr size_t kPartsMax = 1024;

class FormatParser {
 public:
  FormatParser(std::string_view text, uint32_t line, Span span)
      : text_(text), line_(line), span_(span) {}

  Compiled<Format> run() {
    Format format;
    format.text = std::string(text_);
    FormatPart part;
    while (!rest().empty()) {
      const size_t percent = std::min(text_.find('%', at_), text_.size());
      part.literal += text_.substr(at_, percent - at_);
      at_ = percent;
      if (rest().empty()) break;
      ++at_;
      ++conversion_;
      if (accept('%')) {
        part.literal += '%';
        continue;
      }
      if (conversion_ > kPartsMax) return fail("format has too many conversions");
      CLEW_TRY(conversion(part));
      format.parts.push_back(std::move(part));
      part = {};
    }
    if (!part.literal.empty() || format.parts.empty()) format.parts.push_back(std::move(part));
    return format;
  }

 private:
  [[nodiscard]] std::string_view rest() const { return text_.substr(at_); }
  bool accept(char c) {
    if (rest().empty() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  [[nodiscard]] tl::unexpected<CompileError> fail(std::string message) const {
    return compile_error("D_SYNTAX", std::move(message), line_, span_);
  }

  Compiled<void> conversion(FormatPart& part) {
    part.has_conversion = true;
    flags(part);
    CLEW_TRY(width(part));
    if (accept('.')) CLEW_TRY(precision(part));
    while (mark(part))  // "%8@d" too.
      continue;
    length(part);
    return name(part);
  }

  // D's own two.
  bool mark(FormatPart& part) {
    if (accept('@')) return part.is_aggregation = true;
    if (accept('?')) return part.has_pointer_width = true;
    return false;
  }

  void flags(FormatPart& part) {
    while (!rest().empty()) {
      if (mark(part)) continue;
      const char c = text_[at_];
      if (kFlags.find(c) == std::string_view::npos) return;
      if (part.flags.find(c) == std::string::npos) part.flags += c;
      ++at_;
    }
  }

  Compiled<void> width(FormatPart& part) {
    part.has_dynamic_width = accept('*');
    if (!part.has_dynamic_width) part.width = CLEW_TRY(number());
    return {};
  }

  // A dot alone is precision 0.
  Compiled<void> precision(FormatPart& part) {
    part.has_dynamic_precision = accept('*');
    if (!part.has_dynamic_precision) part.precision = CLEW_TRY(number()).value_or(0);
    return {};
  }

  Compiled<std::optional<int32_t>> number() {
    std::optional<int32_t> value;
    for (; !rest().empty() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
      value = value.value_or(0) * 10 + (text_[at_] - '0');
      if (*value > kWidthMax) {
        return fail(
            fmt::format("format conversion #{} has too large a width or precision", conversion_));
      }
    }
    return value;
  }

  void length(FormatPart& part) {
    for (const std::string_view length : kLengths) {
      if (!rest().starts_with(length)) continue;
      part.length = std::string(length);
      at_ += length.size();
      return;
    }
  }

  Compiled<void> name(FormatPart& part) {
    if (rest().empty()) {
      return fail(fmt::format("format conversion #{} name expected before end of format string",
                              conversion_));
    }
    if (accept('$')) {
      return fail(fmt::format("format conversion #{} uses unsupported positional format (%n$)",
                              conversion_));
    }
    if (accept('%')) {
      return fail(
          fmt::format("format conversion #{} cannot be combined with other format flags: "
                      "%%",
                      conversion_));
    }
    if (accept('.')) {
      return fail(
          fmt::format("format conversion #{} has more than one '.' specified", conversion_));
    }
    const bool is_wide = rest().starts_with("wc") || rest().starts_with("ws");
    part.conversion = std::string(rest().substr(0, is_wide ? 2 : 1));
    at_ += part.conversion.size();
    const bool is_known = is_wide || kConversions.find(part.conversion) != std::string_view::npos;
    const bool may_have_length =
        part.length.empty() || (!is_wide && kSized.find(part.conversion) != std::string_view::npos);
    if (is_known && may_have_length) return {};
    return fail(fmt::format("format conversion #{} is undefined: %{}{}", conversion_, part.length,
                            part.conversion));
  }

  const std::string_view text_;
  const uint32_t line_;
  const Span span_;
  size_t at_ = 0;
  size_t conversion_ = 0;
};

}  // namespace

Compiled<Format> parse_format(std::string_view text, uint32_t line, Span span) {
  return FormatParser(text, line, span).run();
}

}  // namespace clew::query::d

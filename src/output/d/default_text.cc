// SPDX-License-Identifier: Apache-2.0
#include "output/d/default_text.h"

#include <algorithm>

#include <fmt/format.h>

#include "output/d/padding.h"
#include "output/d/text.h"

namespace clew::output::d {
namespace {

using query::d::FieldKind;

constexpr size_t kTracedStringWidth = 33;
constexpr size_t kKeyStringWidth = 50;

void append_traced_integer(const Datum& datum, bool is_quiet, std::string& out) {
  const std::string text =
      datum.is_signed ? fmt::format("{}", signed_of(datum)) : fmt::format("{}", unsigned_of(datum));
  if (is_quiet) {
    out += text;
    return;
  }
  // The digits of the largest value of each size, the sign of 8 bytes included.
  const size_t digits = datum.size_bytes >= 8   ? (datum.is_signed ? 19 : 20)
                        : datum.size_bytes == 4 ? 10
                        : datum.size_bytes == 2 ? 5
                                                : 3;
  out += ' ';
  append_right(out, text, digits);
}

// Keys of 4 and 8 bytes are shown signed, those of 1 and 2 bytes unsigned, whatever their type.
void append_key_integer(const Datum& datum, std::string& out) {
  Datum shown = datum;
  shown.is_signed = datum.size_bytes >= 4;
  const size_t digits = datum.size_bytes >= 8   ? 16
                        : datum.size_bytes == 4 ? 8
                        : datum.size_bytes == 2 ? 5
                                                : 3;
  out += ' ';
  append_right(out, fmt::format("{}", signed_of(shown)), digits);
}

// A text that ends with NULs, or fills all of the bytes.
bool is_text(std::span<const uint8_t> bytes) {
  const auto is_printable = [](uint8_t byte) {
    return (byte >= ' ' && byte <= '~') || (byte >= '\a' && byte <= '\r');
  };
  const auto end = std::find(bytes.begin(), bytes.end(), uint8_t{0});
  return end != bytes.begin() && std::all_of(bytes.begin(), end, is_printable) &&
         std::all_of(end, bytes.end(), [](uint8_t byte) { return byte == 0; });
}

void append_text(std::string_view text, size_t width, std::string& out) {
  out += "  ";
  append_left(out, text, width);
}

void append_place(const Datum& datum, const target::Symbolizer& symbols,
                  const PrintOptions& options, std::string& out) {
  if (datum.kind == FieldKind::KernelStack || datum.kind == FieldKind::UserStack) {
    append_stack(datum, symbols, {.indent = options.stack_indent}, out);
  } else {
    append_text(address_text(datum, symbols), kKeyStringWidth, out);
  }
}

}  // namespace

void append_traced(const Datum& datum, const target::Symbolizer& symbols,
                   const PrintOptions& options, std::string& out) {
  if (options.has_raw_bytes && (datum.kind == FieldKind::String || datum.kind == FieldKind::Bytes ||
                                datum.kind == FieldKind::Integer)) {
    append_byte_table(datum.bytes, out);
    return;
  }
  const bool is_string = datum.kind == FieldKind::String;
  if (datum.kind == FieldKind::Integer) {
    append_traced_integer(datum, options.is_quiet, out);
  } else if (datum.kind == FieldKind::Bytes && !is_text(datum.bytes)) {
    append_byte_table(datum.bytes, out);
  } else if (is_string || datum.kind == FieldKind::Bytes) {
    if (options.is_quiet) {
      out += string_of(datum);
    } else {
      append_text(string_of(datum), kTracedStringWidth, out);
    }
  } else {
    append_place(datum, symbols, options, out);
  }
}

void append_key_text(const Datum& datum, const target::Symbolizer& symbols,
                     const PrintOptions& options, std::string& out) {
  const bool is_bytes = datum.kind == FieldKind::Bytes;
  if (datum.kind == FieldKind::Integer) {
    append_key_integer(datum, out);
  } else if (is_bytes && (options.has_raw_bytes || !is_text(datum.bytes))) {
    append_byte_table(datum.bytes, out);
  } else if (is_bytes || datum.kind == FieldKind::String) {
    append_text(string_of(datum), kKeyStringWidth, out);
  } else {
    append_place(datum, symbols, options, out);
  }
}

}  // namespace clew::output::d

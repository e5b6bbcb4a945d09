// SPDX-License-Identifier: Apache-2.0
#include "output/d/printf.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <fmt/format.h>

#include "output/d/distribution.h"
#include "output/d/padding.h"
#include "output/d/text.h"
#include "output/stack_names.h"

namespace clew::output::d {
namespace {

using query::d::Action;
using query::d::FieldKind;
using query::d::FormatPart;

// Widths come from the traced system: `%*d` with a wild value must not fill the memory.
constexpr int64_t kWidthMax = 1 << 16;
constexpr int32_t kPointerWidth = 16;
constexpr size_t kFramesMax = 1024;
constexpr int64_t kNanosecondsPerSecond = 1'000'000'000;

// The look of one conversion, with its dynamic parts filled in. A precision of 0 means none.
struct Look {
  std::string flags;  // Of "#0+' "; '-' is in `is_left`.
  bool is_left = false;
  size_t width = 0;
  size_t precision = 0;

  [[nodiscard]] std::string text() const {
    std::string result = "%" + flags;
    if (is_left) result += '-';
    if (width != 0) result += fmt::format("{}", width);
    if (precision != 0) result += fmt::format(".{}", precision);
    return result;
  }
};

int64_t clamp_width(int64_t width) {
  return std::clamp(width, -kWidthMax, kWidthMax);
}

// C's own printf for numbers, whose flags have many rules.
template <typename T>
void append_c(std::string& out, const std::string& specification, T value) {
  const int size = std::snprintf(nullptr, 0, specification.c_str(), value);
  if (size <= 0) return;
  std::string text(static_cast<size_t>(size) + 1, '\0');
  std::snprintf(text.data(), text.size(), specification.c_str(), value);
  out.append(text, 0, static_cast<size_t>(size));
}

void append_string(std::string& out, std::string_view text, const Look& look) {
  if (look.precision != 0) text = text.substr(0, look.precision);
  if (look.is_left) {
    append_left(out, text, look.width);
  } else {
    append_right(out, text, look.width);
  }
}

double real_of(const Datum& datum) {
  if (datum.size_bytes == sizeof(float) && datum.bytes.size() >= sizeof(float)) {
    float value = 0;
    std::memcpy(&value, datum.bytes.data(), sizeof value);
    return static_cast<double>(value);
  }
  double value = 0;
  if (datum.bytes.size() >= sizeof value) std::memcpy(&value, datum.bytes.data(), sizeof value);
  return value;
}

void append_real(std::string& out, const Datum& datum, const Look& look, char conversion) {
  if (datum.size_bytes == sizeof(long double) && datum.bytes.size() >= sizeof(long double)) {
    long double value = 0;
    std::memcpy(&value, datum.bytes.data(), sizeof value);
    append_c(out, look.text() + 'L' + conversion, value);
    return;
  }
  append_c(out, look.text() + conversion, real_of(datum));
}

// %d and %i follow the sign of the argument's type; the others never do.
void append_integer(std::string& out, const Datum& datum, const Look& look, char conversion) {
  const bool is_decimal = conversion == 'd' || conversion == 'i';
  if (is_decimal && datum.is_signed) {
    append_c(out, look.text() + "ld", signed_of(datum));
    return;
  }
  if (is_decimal) conversion = 'u';
  if (conversion == 'p') conversion = 'x';
  append_c(out, look.text() + 'l' + conversion, unsigned_of(datum));
}

void append_time(std::string& out, const Datum& datum, const Look& look, bool is_rfc_822) {
  const std::string text = time_text(signed_of(datum) / kNanosecondsPerSecond, is_rfc_822);
  append_string(out, text, look);
}

std::string wide_text(const Datum& datum) {
  std::string text;
  for (size_t at = 0; at + 4 <= datum.bytes.size(); at += 4) {
    const uint32_t character =
        static_cast<uint32_t>(unsigned_of({.size_bytes = 4, .bytes = datum.bytes.subspan(at, 4)}));
    if (character == 0) break;
    append_utf8(text, character);
  }
  return text;
}

bool is_stack(FieldKind kind) {
  return kind == FieldKind::KernelStack || kind == FieldKind::UserStack;
}

std::string text_of(const Datum& datum, const target::Symbolizer& symbols) {
  switch (datum.kind) {
    case FieldKind::Integer:
      return datum.is_signed ? fmt::format("{}", signed_of(datum))
                             : fmt::format("{}", unsigned_of(datum));
    case FieldKind::String:
    case FieldKind::Bytes:
      return std::string(string_of(datum));
    case FieldKind::KernelAddress:
    case FieldKind::UserAddress:
      return address_text(datum, symbols);
    case FieldKind::KernelStack:
    case FieldKind::UserStack:
      return {};
  }
  return {};
}

// Runs one format: takes values from left to right.
class Runner {
 public:
  Runner(const FormatInput& input, std::string& out) : input_(input), out_(out) {}

  void run(const FormatPart& part) {
    out_ += part.literal;
    if (!part.has_conversion) return;
    if (part.conversion == "%") {
      out_ += '%';
      return;
    }
    const Look look = look_of(part);
    if (part.is_aggregation) {
      append_aggregate(part, look);
    } else if (const Datum* datum = take()) {
      append_value(*datum, part, look);
    }
  }

 private:
  const Datum* take() {
    return next_value_ < input_.values.size() ? &input_.values[next_value_++] : nullptr;
  }

  int64_t take_number() {
    const Datum* const datum = take();
    return datum == nullptr ? 0 : clamp_width(signed_of(*datum));
  }

  Look look_of(const FormatPart& part) {
    Look look;
    int64_t width = part.width.value_or(part.has_pointer_width ? kPointerWidth : 0);
    if (part.has_dynamic_width) width = take_number();
    int64_t precision = part.precision.value_or(0);
    if (part.has_dynamic_precision) precision = take_number();
    look.is_left = width < 0 || part.flags.find('-') != std::string::npos;
    look.width = static_cast<size_t>(std::abs(clamp_width(width)));
    look.precision = static_cast<size_t>(std::max<int64_t>(clamp_width(precision), 0));
    for (const char flag : part.flags) {
      if (flag != '-' && look.flags.find(flag) == std::string::npos) look.flags += flag;
    }
    return look;
  }

  void append_aggregate(const FormatPart& part, const Look& look) {
    if (input_.aggregates.empty()) return;
    const size_t index = std::min(next_aggregate_++, input_.aggregates.size() - 1);
    const aggregate::DValue& value = input_.aggregates[index];
    if (aggregate::is_distribution(value.function)) {
      append_distribution(value, input_.zooms, out_);
      return;
    }
    const auto number = static_cast<uint64_t>(number_of(value));
    uint8_t bytes[sizeof number];
    std::memcpy(bytes, &number, sizeof number);
    append_value({.is_signed = true, .bytes = bytes}, part, look);
  }

  void append_value(const Datum& datum, const FormatPart& part, const Look& look) {
    const std::string& conversion = part.conversion;
    if (is_stack(datum.kind)) {
      append_frames(datum, look);
    } else if (conversion == "wc" || conversion == "ws") {
      append_string(out_, wide_text(datum), look);
    } else if (!conversion.empty()) {
      append_by_letter(datum, conversion.back(), look);
    }
  }

  // One letter of the table in "Output Formatting" of the DTrace guide.
  void append_by_letter(const Datum& datum, char letter, const Look& look) {
    if (std::strchr("diouxXp", letter) != nullptr && datum.kind != FieldKind::String) {
      append_integer(out_, datum, look, letter);
    } else if (std::strchr("eEfFgG", letter) != nullptr) {
      append_real(out_, datum, look, letter);
    } else if (letter == 'T' || letter == 'Y') {
      append_time(out_, datum, look, letter == 'T');
    } else {
      append_string(out_, string_by_letter(datum, letter), look);
    }
  }

  [[nodiscard]] std::string string_by_letter(const Datum& datum, char letter) const {
    const auto character = static_cast<char>(unsigned_of(datum) & 0xff);
    if (letter == 'c') return std::string(1, character);
    if (letter == 'C') return escaped(std::string_view(&character, 1));
    if (letter == 'S') return escaped(string_of(datum));
    if (letter != 'a' && letter != 'A') return text_of(datum, input_.symbols);
    if (datum.kind != FieldKind::Integer) return address_text(datum, input_.symbols);
    Datum address = datum;
    address.kind = letter == 'a' ? FieldKind::KernelAddress : FieldKind::UserAddress;
    return address_text(address, input_.symbols);
  }

  // %k: a left-aligned width indents the frames, another one pads each.
  void append_frames(const Datum& datum, const Look& look) {
    StackLook stack{.indent = 0, .width = 0};
    if (look.is_left) {
      stack.indent = static_cast<uint32_t>(look.width);
    } else {
      stack.width = static_cast<int32_t>(look.width);
    }
    append_stack(datum, input_.symbols, stack, out_);
  }

  const FormatInput& input_;
  std::string& out_;
  size_t next_value_ = 0;
  size_t next_aggregate_ = 0;
};

uint64_t word_number(std::span<const uint8_t> bytes, size_t index) {
  if ((index + 1) * 8 > bytes.size()) return 0;
  uint64_t word = 0;
  std::memcpy(&word, bytes.data() + index * 8, sizeof word);
  return word;
}

}  // namespace

Datum datum_of(const query::d::RecordField& field, std::span<const uint8_t> record) {
  const size_t begin = std::min<size_t>(field.offset_bytes, record.size());
  const size_t size_bytes = std::min<size_t>(field.size_bytes, record.size() - begin);
  return {.kind = field.kind,
          .action = field.action,
          .size_bytes = field.size_bytes,
          .is_signed = field.is_signed,
          .bytes = record.subspan(begin, size_bytes)};
}

uint64_t unsigned_of(const Datum& datum) {
  uint64_t value = 0;
  std::memcpy(&value, datum.bytes.data(),
              std::min({sizeof value, size_t{datum.size_bytes}, datum.bytes.size()}));
  return value;
}

int64_t signed_of(const Datum& datum) {
  const uint64_t value = unsigned_of(datum);
  if (!datum.is_signed || datum.size_bytes >= 8) return static_cast<int64_t>(value);
  const uint32_t shift = 64 - 8 * datum.size_bytes;
  return static_cast<int64_t>(value << shift) >> shift;
}

std::string_view string_of(const Datum& datum) {
  if (datum.bytes.empty()) return {};
  const std::string_view bytes(reinterpret_cast<const char*>(datum.bytes.data()),
                               datum.bytes.size());
  return bytes.substr(0, bytes.find('\0'));
}

std::string address_text(const Datum& datum, const target::Symbolizer& symbols) {
  const PlaceDetail detail = detail_of(datum.action);
  if (datum.kind == FieldKind::UserAddress && datum.bytes.size() >= 16) {
    const uint64_t address = word_number(datum.bytes, 1);
    return place_text(symbols.user(word_number(datum.bytes, 0), address), address, detail);
  }
  const uint64_t address = unsigned_of(datum);
  const auto place = datum.kind == FieldKind::UserAddress
                         ? symbols.user(target::Symbolizer::kTarget, address)
                         : symbols.kernel(address);
  return place_text(place, address, detail);
}

namespace {

// As abi/query_window.h has a stack: a record has no process in front of the kernel's.
std::vector<uint64_t> words_of(const Datum& datum) {
  const bool is_user = datum.kind == FieldKind::UserStack;
  std::vector<uint64_t> words;
  if (!is_user) words.push_back(0);
  for (size_t i = 0; i < kFramesMax + (is_user ? 1 : 0); ++i)
    words.push_back(word_number(datum.bytes, i));
  return words;
}

}  // namespace

aggregate::Stack stack_of(const Datum& datum, const target::Symbolizer& symbols) {
  return StackNames(symbols).named(words_of(datum));
}

void append_stack(const Datum& datum, const target::Symbolizer& symbols, const StackLook& look,
                  std::string& out) {
  out += '\n';
  for (const StackAddress& at : stack_addresses(symbols, words_of(datum))) {
    const std::string text = place_text(place_of(symbols, at), at.address, PlaceDetail::Offset);
    out.append(look.indent, ' ');
    append_right(out, text, static_cast<size_t>(std::max(look.width, 0)));
    out += '\n';
  }
}

void append_formatted(const query::d::Format& format, const FormatInput& input, std::string& out) {
  Runner runner(input, out);
  for (const FormatPart& part : format.parts)
    runner.run(part);
}

}  // namespace clew::output::d

// SPDX-License-Identifier: Apache-2.0
#include "target/static_place.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>

namespace clew::target {
namespace {

// In the order of struct pt_regs (arch/x86/include/asm/ptrace.h). The four old registers have
// names of their own for each size.
constexpr std::array<std::string_view, 21> kRegisters = {
    "r15", "r14", "r13", "r12", "bp", "bx", "r11", "r10", "r9", "r8", "ax",
    "cx",  "dx",  "si",  "di",  "",   "ip", "",    "",    "sp", ""};

std::optional<uint8_t> find_register(std::string_view name) {
  const auto found = std::find(kRegisters.begin(), kRegisters.end(), name);
  if (name.empty() || found == kRegisters.end()) return std::nullopt;
  return static_cast<uint8_t>(found - kRegisters.begin());
}

// "rax", "eax", "ax", "al", "ah"; "r8", "r8d", "r8w", "r8b"; "rsi", "esi", "si", "sil".
std::optional<StaticPlace::Part> parse_register(std::string_view name) {
  if (!name.starts_with('%')) return std::nullopt;
  name.remove_prefix(1);
  const bool is_numbered = name.size() > 1 && name[0] == 'r' && name[1] >= '1' && name[1] <= '9';
  std::string plain(name);
  StaticPlace::Part part;
  if (is_numbered) {
    while (plain.ends_with('d') || plain.ends_with('w') || plain.ends_with('b'))
      plain.pop_back();
  } else if (plain.size() == 3 && (plain[0] == 'r' || plain[0] == 'e')) {
    plain.erase(0, 1);
  } else if (plain.size() == 3 && plain[2] == 'l') {
    plain.pop_back();
  } else if (plain.size() == 2 && (plain[1] == 'l' || plain[1] == 'h')) {
    part.shift = plain[1] == 'h' ? 8 : 0;
    plain[1] = 'x';
  }
  const std::optional<uint8_t> word = find_register(plain);
  if (!word) return std::nullopt;
  part.word = *word;
  return part;
}

std::optional<int64_t> parse_number(std::string_view text) {
  const bool is_negative = text.starts_with('-');
  if (is_negative || text.starts_with('+')) text.remove_prefix(1);
  const bool is_hex = text.starts_with("0x") || text.starts_with("0X");
  if (is_hex) text.remove_prefix(2);
  uint64_t value = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value, is_hex ? 16 : 10);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return static_cast<int64_t>(is_negative ? 0 - value : value);
}

std::string_view take_until(std::string_view& text, char end) {
  const size_t size = std::min(text.find(end), text.size());
  const std::string_view part = text.substr(0, size);
  text.remove_prefix(std::min(size + 1, text.size()));
  return part;
}

// "(%rax,%rbx,4)" without its brackets.
bool parse_address(std::string_view text, StaticPlace& place) {
  const std::string_view base = take_until(text, ',');
  const std::string_view index = take_until(text, ',');
  if (!base.empty()) {
    place.base = parse_register(base);
    if (!place.base) return false;
  }
  if (!index.empty()) {
    place.index = parse_register(index);
    if (!place.index) return false;
  }
  if (text.empty()) return place.base.has_value() || place.index.has_value();
  const std::optional<int64_t> scale = parse_number(text);
  if (!scale || *scale < 1 || *scale > 8) return false;
  place.scale = static_cast<uint8_t>(*scale);
  return true;
}

}  // namespace

std::optional<StaticPlace> parse_static_place(std::string_view text) {
  StaticPlace place;
  if (text.starts_with('%')) {
    place.base = parse_register(text);
    if (!place.base) return std::nullopt;
    return place;
  }
  const size_t bracket = text.find('(');
  const bool is_constant = text.starts_with('$');
  place.is_memory = !is_constant;
  if (is_constant) text.remove_prefix(1);
  const std::string_view number =
      is_constant ? text : text.substr(0, std::min(bracket, text.size()));
  if (!number.empty()) {
    const std::optional<int64_t> offset = parse_number(number);
    if (!offset) return std::nullopt;
    place.offset = *offset;
  }
  if (is_constant && number.empty()) return std::nullopt;
  if (is_constant) return place;
  if (bracket == std::string_view::npos || !text.ends_with(')')) return std::nullopt;
  const std::string_view address = text.substr(bracket + 1, text.size() - bracket - 2);
  if (!parse_address(address, place)) return std::nullopt;
  return place;
}

}  // namespace clew::target

// SPDX-License-Identifier: Apache-2.0
#include "kernel/static_arguments.h"

#include <algorithm>
#include <charconv>
#include <string>

#include "abi/d_window.h"
#include "base/assert.h"
#include "isa/builder.h"
#include "target/usdt.h"

namespace clew::kernel {
namespace {

using isa::Alu;
using isa::Builder;
using isa::Label;
using isa::Register;
using isa::Size;

constexpr uint32_t kProbeReadUser = 112;  // Of the kernel's helpers.
constexpr size_t kArgumentsMax = 10;

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

size_t count_words(std::string_view text) {
  size_t count = 0;
  for (size_t i = 0; i < text.size(); ++i)
    count += text[i] != ' ' && (i == 0 || text[i - 1] == ' ') ? 1 : 0;
  return count;
}

class Coder {
 public:
  Coder() { b_.move(Register::R6, Register::R1); }

  void add(size_t index, const target::StaticArgument& argument, const StaticPlace& place) {
    const auto to =
        static_cast<int32_t>(offsetof(abi::DWindowHeader, arguments) + sizeof(uint64_t) * index);
    if (place.is_memory) {
      load_memory(place, argument.size_bytes, to);
    } else if (place.base) {
      load_register(Register::R7, *place.base);
    } else {
      b_.load_constant(Register::R7, static_cast<uint64_t>(place.offset));
    }
    cut(argument);
    b_.store(Size::Double, Register::R6, to, Register::R7);
  }

  Function finish() {
    b_.move(Register::R0, 0).exit();
    const std::string name = "d_static_arguments";
    Expected<isa::Program> program = b_.finish(name);
    CLEW_ASSERT(program.has_value());
    return {name, std::move(program->code), {}, 1, false};
  }

 private:
  void load_register(Register to, const StaticPlace::Part& part) {
    b_.move(to, Register::R6)
        .alu(Alu::Add, to, static_cast<int32_t>(offsetof(abi::DWindow, scratch)))
        .load(Size::Double, to, to, 8 * part.word);
    if (part.shift != 0) b_.alu(Alu::ShiftRight, to, part.shift);
  }

  // To r7, by way of the argument's own word.
  void load_memory(const StaticPlace& place, uint8_t size_bytes, int32_t to) {
    b_.load_constant(Register::R3, static_cast<uint64_t>(place.offset));
    if (place.base) {
      load_register(Register::R4, *place.base);
      b_.alu(Alu::Add, Register::R3, Register::R4);
    }
    if (place.index) {
      load_register(Register::R4, *place.index);
      b_.alu(Alu::Multiply, Register::R4, place.scale).alu(Alu::Add, Register::R3, Register::R4);
    }
    b_.store(Size::Double, Register::R6, to, 0)
        .move(Register::R1, Register::R6)
        .alu(Alu::Add, Register::R1, to)
        .move(Register::R2, size_bytes)
        .call(static_cast<abi::Accessor>(kProbeReadUser))
        .load(Size::Double, Register::R7, Register::R6, to);
  }

  void cut(const target::StaticArgument& argument) {
    const int32_t bits = 64 - 8 * argument.size_bytes;
    if (bits <= 0) return;
    b_.alu(Alu::ShiftLeft, Register::R7, bits)
        .alu(argument.is_signed ? Alu::ShiftRightSigned : Alu::ShiftRight, Register::R7, bits);
  }

  Builder b_;
};

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

Function make_static_arguments(std::string_view text) {
  Coder coder;
  const auto arguments = target::parse_static_arguments(text);
  for (size_t i = 0; i < arguments.size() && i < kArgumentsMax; ++i) {
    const std::optional<StaticPlace> place = parse_static_place(arguments[i].place);
    if (place) coder.add(i, arguments[i], *place);
  }
  return coder.finish();
}

uint32_t unreadable_static_arguments(std::string_view text) {
  // An argument of no known form ends the list: what follows it is not known either.
  const auto arguments = target::parse_static_arguments(text);
  const size_t count = std::min(count_words(text), kArgumentsMax);
  uint32_t unreadable = 0;
  for (size_t i = 0; i < count; ++i) {
    const bool is_known = i < arguments.size() && parse_static_place(arguments[i].place);
    if (!is_known) unreadable |= 1U << i;
  }
  return unreadable;
}

}  // namespace clew::kernel

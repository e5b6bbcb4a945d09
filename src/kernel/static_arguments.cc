// SPDX-License-Identifier: Apache-2.0
#include "kernel/static_arguments.h"

#include <algorithm>
#include <string>

#include "abi/machine/window.h"
#include "base/assert.h"
#include "isa/builder.h"
#include "target/static_place.h"
#include "target/usdt.h"

namespace clew::kernel {
namespace {

using isa::Alu;
using isa::Builder;
using isa::Label;
using isa::Register;
using isa::Size;
using target::StaticPlace;

constexpr uint32_t kProbeReadUser = 112;  // Of the kernel's helpers.
constexpr size_t kArgumentsMax = 10;

class Coder {
 public:
  Coder() { b_.move(Register::R6, Register::R1); }

  void add(size_t index, const target::StaticArgument& argument, const StaticPlace& place) {
    const auto to = static_cast<int32_t>(offsetof(abi::MachineWindowHeader, arguments) +
                                         sizeof(uint64_t) * index);
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
    return {{std::move(program->code), {}}, name};
  }

 private:
  void load_register(Register to, const StaticPlace::Part& part) {
    b_.move(to, Register::R6)
        .alu(Alu::Add, to, static_cast<int32_t>(offsetof(abi::MachineWindow, scratch)))
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

Function make_static_arguments(std::string_view text) {
  Coder coder;
  const auto arguments = target::parse_static_arguments(text);
  for (size_t i = 0; i < arguments.size() && i < kArgumentsMax; ++i) {
    const std::optional<StaticPlace> place = target::parse_static_place(arguments[i].place);
    if (place) coder.add(i, arguments[i], *place);
  }
  return coder.finish();
}

uint32_t unreadable_static_arguments(std::string_view text) {
  // An argument of no known form ends the list: what follows it is not known either.
  const auto arguments = target::parse_static_arguments(text);
  const size_t count = std::min(target::count_static_arguments(text), kArgumentsMax);
  uint32_t unreadable = 0;
  for (size_t i = 0; i < count; ++i) {
    const bool is_known = i < arguments.size() && target::parse_static_place(arguments[i].place);
    if (!is_known) unreadable |= 1U << i;
  }
  return unreadable;
}

}  // namespace clew::kernel

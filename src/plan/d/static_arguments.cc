// SPDX-License-Identifier: Apache-2.0
#include "plan/d/static_arguments.h"

#include "abi/machine/accessor.h"
#include "abi/machine/window.h"
#include "plan/d/clause_uses.h"
#include "target/static_place.h"
#include "target/usdt.h"

namespace clew::plan::d {

using abi::MachineWindowHeader;
using isa::Alu;
using isa::Register;
using isa::Size;
using target::StaticArgument;
using target::StaticPlace;

namespace {

constexpr int32_t kOfProcess = 1;

// Calls leave nothing in r0 to r5 but their result, so that what is between them lies in the
// argument's own word.
class Putter {
 public:
  Putter(isa::Builder& b, uint32_t index)
      : b_(b),
        word_(static_cast<int32_t>(offsetof(MachineWindowHeader, arguments) + 8 * size_t{index})) {}

  void put(const StaticArgument& argument, const StaticPlace& place) {
    if (place.is_memory) {
      put_memory(place, argument.size_bytes);
    } else if (place.base) {
      call_register(*place.base);
    } else {
      b_.load_constant(Register::R0, static_cast<uint64_t>(place.offset));
    }
    cut(argument);
    store();
  }

 private:
  void store() {
    b_.load_window(Register::R5, 0).store(Size::Double, Register::R5, word_, Register::R0);
  }

  void call(abi::MachineAccessor accessor) { b_.call(static_cast<abi::Accessor>(accessor)); }

  void call_register(const StaticPlace::Part& part) {
    b_.move(Register::R2, part.word);
    call(abi::MachineAccessor::UserRegister);
    if (part.shift != 0) b_.alu(Alu::ShiftRight, Register::R0, part.shift);
  }

  // To what is in the word.
  void add_register(const StaticPlace::Part& part, int32_t scale) {
    call_register(part);
    if (scale != 1) b_.alu(Alu::Multiply, Register::R0, scale);
    b_.load_window(Register::R5, 0)
        .load(Size::Double, Register::R2, Register::R5, word_)
        .alu(Alu::Add, Register::R0, Register::R2)
        .store(Size::Double, Register::R5, word_, Register::R0);
  }

  void put_memory(const StaticPlace& place, uint8_t size_bytes) {
    b_.load_constant(Register::R0, static_cast<uint64_t>(place.offset));
    store();
    if (place.base) add_register(*place.base, 1);
    if (place.index) add_register(*place.index, place.scale);
    b_.load_window(Register::R5, 0)
        .load(Size::Double, Register::R2, Register::R5, word_)
        .move(Register::R3, size_bytes)
        .move(Register::R4, kOfProcess);
    call(abi::MachineAccessor::Load);  // Each clause begins without a fault.
  }

  void cut(const StaticArgument& argument) {
    const int32_t bits = 64 - 8 * argument.size_bytes;
    if (bits <= 0) return;
    b_.alu(Alu::ShiftLeft, Register::R0, bits)
        .alu(argument.is_signed ? Alu::ShiftRightSigned : Alu::ShiftRight, Register::R0, bits);
  }

  isa::Builder& b_;
  int32_t word_;
};

}  // namespace

bool put_static_arguments(isa::Builder& b, std::string_view text, uint32_t wanted) {
  const auto arguments = target::parse_static_arguments(text);
  if (arguments.size() != target::count_static_arguments(text)) return false;
  for (uint32_t i = 0; i < kProbeArguments; ++i) {
    if ((wanted >> i & 1U) == 0) continue;
    Putter putter(b, i);
    if (i >= arguments.size()) {
      putter.put({}, {});
      continue;
    }
    const auto place = target::parse_static_place(arguments[i].place);
    if (!place) return false;
    putter.put(arguments[i], *place);
  }
  return true;
}

}  // namespace clew::plan::d

// SPDX-License-Identifier: Apache-2.0
#include "plan/d/emitter.h"

#include <algorithm>

namespace clew::plan::d {

using abi::MachineWindowHeader;
using isa::Alu;
using isa::Jump;
using isa::Size;

namespace {

constexpr int32_t frame_offset(uint32_t slot) {
  return -8 * static_cast<int32_t>(slot + 1);
}

}  // namespace

Slot Emitter::push() {
  const Slot slot{slots_++};
  slots_max_ = std::max(slots_max_, slots_);
  store(slot, Register::R0);
  return slot;
}

void Emitter::store(Slot slot, Register source) {
  if (slot.index < kFrameSlots) {
    builder_.store(Size::Double, Register::R10, frame_offset(slot.index), source);
    return;
  }
  builder_.load_window(Register::R5, window_slots_begin_ + 8 * (slot.index - kFrameSlots))
      .store(Size::Double, Register::R5, 0, source);
}

void Emitter::load(Register destination, Slot slot) {
  if (slot.index < kFrameSlots) {
    builder_.load(Size::Double, destination, Register::R10, frame_offset(slot.index));
    return;
  }
  builder_.load_window(destination, window_slots_begin_ + 8 * (slot.index - kFrameSlots))
      .load(Size::Double, destination, destination, 0);
}

void Emitter::pop(Register destination) {
  load(destination, Slot{slots_ - 1});
  release();
}

void Emitter::call(abi::MachineAccessor accessor) {
  builder_.load_window(Register::R1, 0).call(static_cast<abi::Accessor>(accessor));
}

void Emitter::call_checked(abi::MachineAccessor accessor) {
  call(accessor);
  check_fault();
}

void Emitter::check_fault() {
  may_fault_ = true;
  const isa::Label fine = builder_.label();
  load_header(Register::R1, offsetof(MachineWindowHeader, fault));
  builder_.jump_if(Jump::Equal, Register::R1, 0, fine)
      .move(Register::R2, static_cast<int32_t>(builder_.size()))
      .jump(fault_)
      .bind(fine);
}

void Emitter::fail_with(abi::MachineFault fault, Register value) {
  store_header(offsetof(MachineWindowHeader, fault_value), value);
  may_fault_ = true;
  builder_.move(Register::R2, static_cast<int32_t>(fault));
  store_header(offsetof(MachineWindowHeader, fault), Register::R2);
  builder_.move(Register::R2, static_cast<int32_t>(builder_.size())).jump(fault_);
}

void Emitter::load_header(Register destination, uint32_t offset) {
  builder_.load_window(destination, 0)
      .load(Size::Double, destination, destination, static_cast<int32_t>(offset));
}

void Emitter::store_header(uint32_t offset, Register source) {
  builder_.load_window(Register::R5, 0)
      .store(Size::Double, Register::R5, static_cast<int32_t>(offset), source);
}

void Emitter::fit(Register value, query::d::TypeId type) {
  const uint32_t size_bytes = types_.is_integer(type) ? types_.size_of(type) : 8;
  if (size_bytes < 8 && size_bytes != 0) builder_.extend(value, size_bytes, types_.is_signed(type));
}

void Emitter::store_sized(Register base, uint32_t size_bytes, Register source) {
  builder_.store(isa::size_of(size_bytes), base, 0, source);
}

void Emitter::bind_fault() {
  if (!may_fault_) return;
  const isa::Label end = builder_.label();
  builder_.jump(end).bind(fault_);
  store_header(offsetof(MachineWindowHeader, fault_pc), Register::R2);
  builder_.bind(end);
}

}  // namespace clew::plan::d

// SPDX-License-Identifier: Apache-2.0
// The instructions that all parts of the generator share: temporaries, calls of accessors with
// their check for faults, and numbers brought to the form of their type.
#pragma once

#include <cstdint>
#include <string>

#include "abi/machine/accessor.h"
#include "abi/machine/window.h"
#include "isa/builder.h"
#include "query/d/types.h"

namespace clew::plan::d {

using isa::Register;

// A spilled value: a word of the program's frame, or of the window when the frame is full.
struct Slot {
  uint32_t index = 0;
};

inline constexpr uint32_t kFrameSlots = 16;  // The accessors need the rest of the kernel's stack.
inline constexpr uint32_t kWindowSlots = 64;

class Emitter {
 public:
  Emitter(const query::d::TypeTable& types, uint32_t window_slots_begin)
      : types_(types), window_slots_begin_(window_slots_begin), fault_(builder_.label()) {}

  [[nodiscard]] isa::Builder& code() { return builder_; }

  // r0 to a new slot, freed by release() in reverse order.
  Slot push();
  void load(Register destination, Slot slot);
  void store(Slot slot, Register source);
  void release() { --slots_; }
  [[nodiscard]] bool is_too_deep() const { return slots_max_ > kFrameSlots + kWindowSlots; }
  void pop(Register destination);

  // Calls with r2… set; r1 becomes the window. r0 is the result.
  void call(abi::MachineAccessor accessor);
  // The same, and ends the clause when it failed.
  void call_checked(abi::MachineAccessor accessor);
  // The clause ends if there was a fault. r0 stays.
  void check_fault();
  // Ends the clause with a fault; the register has what the message names.
  void fail_with(abi::MachineFault fault, Register value);

  // A word of the window's header.
  void load_header(Register destination, uint32_t offset);
  void store_header(uint32_t offset, Register source);

  // r2…r5 = an immediate.
  void argument(Register destination, uint32_t value) {
    builder_.move(destination, static_cast<int32_t>(value));
  }

  // Cuts `value` to the type's size and extends it by its sign.
  void fit(Register value, query::d::TypeId type);
  void store_sized(Register base, uint32_t size_bytes, Register source);

  // Binds the place to which faults jump, and stores where they came from; nothing when none does.
  void bind_fault();

 private:
  const query::d::TypeTable& types_;
  isa::Builder builder_;
  uint32_t window_slots_begin_;
  uint32_t slots_ = 0;
  uint32_t slots_max_ = 0;
  isa::Label fault_;
  bool may_fault_ = false;
};

}  // namespace clew::plan::d

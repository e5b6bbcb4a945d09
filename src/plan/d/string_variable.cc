// SPDX-License-Identifier: Apache-2.0
// Variables of type string: this-> and global ones are a flag word and the text; an element that is
// NULL does not exist.
#include "plan/d/clause_coder.h"

namespace clew::plan::d {

using abi::DAccessor;
using isa::Jump;
using isa::Label;
using Kind = Place::Kind;

// r0 = the flag of a variable in the window or the globals.
void ClauseCoder::load_string_flag(const Place& place) {
  if (place.kind == Kind::Window) {
    code().load_window(Register::R0, place.offset);
  } else {
    code().load_global(Register::R0, place.offset);
  }
  code().load(isa::Size::Double, Register::R0, Register::R0, 0);
}

void ClauseCoder::store_string_flag(const Place& place, Slot value) {
  emit_.load(Register::R2, value);
  if (place.kind == Kind::Window) {
    code().load_window(Register::R1, place.offset);
  } else {
    code().load_global(Register::R1, place.offset);
  }
  code().store(isa::Size::Double, Register::R1, 0, Register::R2);
}

// r0 = where the text is, 0 for NULL.
void ClauseCoder::load_string_variable(const Place& place) {
  const Label null = code().label();
  if (place.kind == Kind::Dynamic) {
    const uint32_t room = string_temporary();
    write_key(place);
    emit_.argument(Register::R2, storage_.home(place.variable).number);
    emit_.argument(Register::R3, room);
    emit_.call(DAccessor::VariableLoadBytes);
    code().jump_if(Jump::Equal, Register::R0, 0, null);
    emit_.argument(Register::R0, room);
    code().bind(null);
    return;
  }
  uint32_t text = place.offset + kStringFlagBytes;
  load_string_flag(place);
  code().jump_if(Jump::Equal, Register::R0, 0, null);
  if (place.kind == Kind::Global) {
    const uint32_t room = string_temporary();
    emit_.argument(Register::R2, room);
    emit_.argument(Register::R3, text);
    emit_.argument(Register::R4, storage_.string_bytes());
    emit_.call(DAccessor::GlobalLoadBytes);
    text = room;
  }
  emit_.argument(Register::R0, text);
  code().bind(null);
}

// The window's `room` = the string in `value`, padded.
void ClauseCoder::pad_string(uint32_t room, Slot value) {
  emit_.load(Register::R3, value);
  emit_.argument(Register::R2, room);
  emit_.argument(Register::R4, storage_.string_bytes());
  emit_.call(DAccessor::PadString);
}

void ClauseCoder::store_string_variable(const Place& place, Slot value) {
  if (place.kind == Kind::Dynamic) return store_string_element(place, value);
  const uint32_t text = place.offset + kStringFlagBytes;
  const uint32_t room = place.kind == Kind::Window ? text : string_temporary();
  pad_string(room, value);
  if (place.kind == Kind::Global) {
    emit_.argument(Register::R2, text);
    emit_.argument(Register::R3, room);
    emit_.argument(Register::R4, storage_.string_bytes());
    emit_.call(DAccessor::GlobalStoreBytes);
  }
  store_string_flag(place, value);
}

void ClauseCoder::store_string_element(const Place& place, Slot value) {
  const Label remove = code().label();
  const Label end = code().label();
  const uint32_t room = string_temporary();
  const uint32_t number = storage_.home(place.variable).number;
  write_key(place);
  emit_.load(Register::R3, value);
  code().jump_if(Jump::Equal, Register::R3, 0, remove);
  pad_string(room, value);
  emit_.argument(Register::R2, number);
  emit_.argument(Register::R3, room);
  emit_.call_checked(DAccessor::VariableStoreBytes);
  code().jump(end).bind(remove);
  emit_.argument(Register::R2, number);
  emit_.call(DAccessor::VariableDelete);
  code().bind(end);
}

}  // namespace clew::plan::d

// SPDX-License-Identifier: Apache-2.0
// Variables of type string: this-> and global ones are a flag word and the text; an element that is
// NULL does not exist.
#include "plan/d/clause_coder.h"

namespace clew::plan::d {

using abi::MachineAccessor;
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
    emit_.call(MachineAccessor::VariableLoadBytes);
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
    emit_.call(MachineAccessor::GlobalLoadBytes);
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
  emit_.call(MachineAccessor::PadString);
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
    emit_.call(MachineAccessor::GlobalStoreBytes);
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
  emit_.call_checked(MachineAccessor::VariableStoreBytes);
  code().jump(end).bind(remove);
  emit_.argument(Register::R2, number);
  emit_.call(MachineAccessor::VariableDelete);
  code().bind(end);
}

// --- strings that are members or elements: their bytes, without a flag ---------------------------

// r0 = where the text is; what was never stored is "".
void ClauseCoder::load_string_part(const Place& place) {
  const uint32_t size = types().size_of(place.type);
  switch (place.kind) {
    case Kind::Window:
      return emit_.argument(Register::R0, place.offset);
    case Kind::Dynamic:
      return load_dynamic(place);
    case Kind::Global:
    case Kind::GlobalIndexed: {
      const uint32_t room = string_temporary();
      global_offset(Register::R3, place);
      emit_.argument(Register::R2, room);
      emit_.argument(Register::R4, size);
      emit_.call(MachineAccessor::GlobalLoadBytes);
      return emit_.argument(Register::R0, room);
    }
    case Kind::Address:
      address_of(place);
      code().move(Register::R3, Register::R0);
      emit_.argument(Register::R2, string_temporary());
      emit_.argument(Register::R4, size);
      emit_.argument(Register::R5, place.is_userland ? 1 : 0);
      return emit_.call_checked(MachineAccessor::ReadString);
  }
}

// Where in the globals it is.
void ClauseCoder::global_offset(Register destination, const Place& place) {
  emit_.argument(destination, place.offset);
  if (place.kind != Kind::GlobalIndexed) return;
  emit_.load(Register::R1, place.slot);
  code().alu(isa::Alu::Add, destination, Register::R1);
}

void ClauseCoder::store_string_part(const Place& place, Slot value) {
  if (place.kind == Kind::Dynamic) return store_dynamic(place, value);
  const uint32_t size = types().size_of(place.type);
  const uint32_t room = place.kind == Kind::Window ? place.offset : string_temporary();
  emit_.load(Register::R3, value);
  emit_.argument(Register::R2, room);
  emit_.argument(Register::R4, size);
  emit_.call(MachineAccessor::PadString);
  if (place.kind == Kind::Window) return;
  if (place.kind == Kind::Address) return store_room(place, room, size);
  global_offset(Register::R2, place);
  emit_.argument(Register::R3, room);
  emit_.argument(Register::R4, size);
  emit_.call(MachineAccessor::GlobalStoreBytes);
}

}  // namespace clew::plan::d

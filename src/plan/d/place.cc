// SPDX-License-Identifier: Apache-2.0
// Places: variables, elements, members, and what pointers point to.
#include "base/assert.h"
#include "plan/d/clause_coder.h"
#include "plan/d/one_of.h"

namespace clew::plan::d {

using abi::MachineAccessor;
using isa::Alu;
using isa::Jump;
using isa::Label;
using query::d::NodeKind;
using query::d::Storage;
using query::d::TypeKind;
using query::d::UnaryOperator;
using Kind = Place::Kind;

void ClauseCoder::release(const Place& place) {
  for (uint32_t i = 0; i < place.slots_used; ++i) {
    emit_.release();
  }
}

Place ClauseCoder::place(const Node& node) {
  if (is_one_of(node.kind, NodeKind::Member, NodeKind::Arrow)) return member_place(node);
  if (node.kind == NodeKind::Index) {
    return is_associative_element(node) ? variable_place(node, node.index) : element_place(node);
  }
  if (node.kind == NodeKind::Unary && node.unary == UnaryOperator::Dereference) {
    return pointer_place(node.operands[0], node.type, node.is_userland);
  }
  const bool is_name = node.kind == NodeKind::Identifier;
  if (is_name && node.storage == Storage::Variable) return variable_place(node, node.index);
  if (is_name && node.storage == Storage::Memory) {
    code().load_constant(Register::R0, node.integer);
  } else {
    value(node);  // A struct or array that an expression yields: its value is its address.
  }
  Place at{.kind = Kind::Address, .type = node.type, .slots_used = 1};
  at.is_userland = node.is_userland;
  at.slot = emit_.push();
  return at;
}

// x[key], not an element of an array.
bool ClauseCoder::is_associative_element(const Node& node) const {
  return node.storage == Storage::Variable && node.operands[0].kind == NodeKind::Identifier &&
         script_.variables[node.index].is_associative;
}

Place ClauseCoder::variable_place(const Node& node, uint32_t variable) {
  CLEW_ASSERT(variable < script_.variables.size());
  const VariableHome& home = storage_.home(variable);
  Place at{.type = script_.variables[variable].type, .offset = home.offset};
  at.variable = variable;
  if (const auto word = private_word(variable)) {
    at.offset = *word;
    return at;
  }
  switch (home.place) {
    case VariableHome::Place::Window:
      at.kind = Kind::Window;
      return at;
    case VariableHome::Place::Global:
      at.kind = Kind::Global;
      return at;
    case VariableHome::Place::Dynamic:
      break;
  }
  at.kind = Kind::Dynamic;
  at.offset = 0;
  const std::vector<TypeId>& keys = script_.variables[variable].keys;
  const size_t first = 1;  // operands[0] is the array itself.
  for (size_t i = 0; i < keys.size() && first + i < node.operands.size(); ++i) {
    const Node& key = node.operands[first + i];
    if (class_of(types(), keys[i]) == ValueClass::String) {
      string_of(key);
    } else {
      object_or_value(key);
      convert(key.type, keys[i]);
    }
    at.keys.push_back(emit_.push());
    ++at.slots_used;
  }
  return at;
}

Place ClauseCoder::member_place(const Node& node) {
  const Node& record = node.operands[0];
  return member_place_at(node.kind == NodeKind::Arrow
                             ? pointer_place(record, node.type, node.is_userland)
                             : place(record),
                         node);
}

// The place of member `node` in the record that lies at `at`.
Place ClauseCoder::member_place_at(Place at, const Node& node) const {
  at.type = node.type;
  at.is_member = true;
  at.is_userland = at.is_userland || node.is_userland;
  const uint32_t unit = 8 * std::max(1U, types().size_of(node.type));
  const auto bits = static_cast<uint32_t>(node.member.offset_bits);
  if (node.member.bit_size == 0) {
    at.offset += bits / 8;
    return at;
  }
  at.offset += bits / unit * (unit / 8);
  at.bit_offset = static_cast<uint8_t>(bits % unit);
  at.bit_size = node.member.bit_size;
  return at;
}

Place ClauseCoder::pointer_place(const Node& pointer, TypeId type, bool is_userland) {
  value(pointer);
  convert(pointer.type, types().integer(8, false));
  Place at{.kind = Kind::Address, .type = type, .slots_used = 1};
  at.is_userland = is_userland || pointer.is_userland;
  at.slot = emit_.push();
  return at;
}

// r0 is an index of `array`: a fault when it is outside.
void ClauseCoder::check_index(const query::d::Type& array) {
  if (array.kind != TypeKind::Array || array.count == 0) return;
  const Label fine = code().label();
  code().load_constant(Register::R1, array.count);
  code().jump_if(Jump::Less, Register::R0, Register::R1, fine);
  emit_.fail_with(abi::MachineFault::BadIndex, Register::R0);
  code().bind(fine);
}

// array[index] or pointer[index].
Place ClauseCoder::element_place(const Node& node) {
  const Node& base = node.operands[0];
  const Node& index = node.operands[1];
  const query::d::Type& array = types().stripped(base.type);
  const uint32_t size = element_bytes(base.type);
  const bool is_array = array.kind == TypeKind::Array;
  Place at = is_array ? place(base) : pointer_place(base, node.type, node.is_userland);
  at.type = node.type;
  at.is_member = true;
  if (index.kind == NodeKind::Integer && (at.kind != Kind::Address || is_array)) {
    at.offset += static_cast<uint32_t>(index.integer) * size;
    return at;
  }
  value(index);
  check_index(array);
  code().alu(Alu::Multiply, Register::R0, static_cast<int32_t>(size));
  switch (at.kind) {
    case Kind::Window:
      code().load_constant(Register::R1, abi::kMachineWindowTag + at.offset);
      code().alu(Alu::Add, Register::R0, Register::R1);
      at.kind = Kind::Address;
      at.offset = 0;
      at.slot = emit_.push();
      ++at.slots_used;
      return at;
    case Kind::Global:
      at.kind = Kind::GlobalIndexed;
      at.slot = emit_.push();
      ++at.slots_used;
      return at;
    case Kind::GlobalIndexed:
    case Kind::Address:
      emit_.load(Register::R1, at.slot);
      code().alu(Alu::Add, Register::R0, Register::R1);
      emit_.store(at.slot, Register::R0);
      return at;
    case Kind::Dynamic:
      if (at.is_indexed) {
        emit_.load(Register::R1, at.slot);
        code().alu(Alu::Add, Register::R0, Register::R1);
        emit_.store(at.slot, Register::R0);
        return at;
      }
      at.is_indexed = true;
      at.slot = emit_.push();
      ++at.slots_used;
      return at;
  }
  return at;
}

void ClauseCoder::address_of(const Place& place) {
  switch (place.kind) {
    case Kind::Window:
      code().load_constant(Register::R0, abi::kMachineWindowTag + place.offset);
      return;
    case Kind::Address:
      emit_.load(Register::R0, place.slot);
      if (place.offset != 0) {
        code().alu(Alu::Add, Register::R0, static_cast<int32_t>(place.offset));
      }
      return;
    case Kind::Global:
      code().load_constant(Register::R0, abi::kMachineGlobalTag + place.offset);
      return;
    case Kind::GlobalIndexed:
      emit_.load(Register::R0, place.slot);
      code().load_constant(Register::R1, abi::kMachineGlobalTag + place.offset);
      code().alu(Alu::Add, Register::R0, Register::R1);
      return;
    case Kind::Dynamic:
      return address_of_copy(place);
  }
}

// Elements of tables have no address that stays: their copy does, until the clause ends.
void ClauseCoder::address_of_copy(const Place& place) {
  const uint32_t size = std::max(1U, types().size_of(place.type));
  const bool is_scalar = class_of(types(), place.type) == ValueClass::Scalar;
  load(place);
  const Slot loaded = emit_.push();
  emit_.argument(Register::R2, size);
  emit_.call_checked(MachineAccessor::Alloca);
  const Slot copy = emit_.push();
  code().move(Register::R2, Register::R0);
  if (is_scalar) {
    emit_.argument(Register::R3, size);
    emit_.load(Register::R4, loaded);
    emit_.call_checked(MachineAccessor::Store);
  } else {
    emit_.load(Register::R3, loaded);
    emit_.argument(Register::R4, size);
    emit_.argument(Register::R5, 0);
    emit_.call_checked(MachineAccessor::Copy);
  }
  emit_.load(Register::R0, copy);
  emit_.release();
  emit_.release();
}

// --- loads and stores ----------------------------------------------------------------------------

void ClauseCoder::load(const Place& place) {
  const ValueClass kind = class_of(types(), place.type);
  if (place.bit_size != 0) return load_bits(place);
  if (kind == ValueClass::String) {
    const bool is_part = place.is_member || place.kind == Kind::Address;
    return is_part ? load_string_part(place) : load_string_variable(place);
  }
  const uint32_t size = std::max(1U, types().size_of(place.type));
  const bool is_signed = types().is_integer(place.type) && types().is_signed(place.type);
  switch (place.kind) {
    case Kind::Window:
      if (kind != ValueClass::Scalar) return address_of(place);
      code().load_window(Register::R0, place.offset);
      code().load_number(Register::R0, Register::R0, 0, size, is_signed);
      return;
    case Kind::Global:
    case Kind::GlobalIndexed: {
      if (kind == ValueClass::Scalar && place.kind == Kind::Global) {
        code().load_global(Register::R0, place.offset);
        code().load_number(Register::R0, Register::R0, 0, size, is_signed);
        return;
      }
      const uint32_t room = temporary(copied(size));
      code().move(Register::R3, static_cast<int32_t>(place.offset));
      if (place.kind == Kind::GlobalIndexed) {
        emit_.load(Register::R1, place.slot);
        code().alu(Alu::Add, Register::R3, Register::R1);
      }
      code()
          .move(Register::R2, static_cast<int32_t>(room))
          .move(Register::R4, static_cast<int32_t>(size));
      emit_.call(MachineAccessor::GlobalLoadBytes);
      if (kind != ValueClass::Scalar) {
        code().load_constant(Register::R0, abi::kMachineWindowTag + room);
        return;
      }
      code().load_window(Register::R0, room);
      code().load_number(Register::R0, Register::R0, 0, size, is_signed);
      return;
    }
    case Kind::Address:
      address_of(place);
      if (kind != ValueClass::Scalar) return;
      code()
          .move(Register::R2, Register::R0)
          .move(Register::R3, static_cast<int32_t>(size))
          .move(Register::R4, place.is_userland ? 1 : 0);
      emit_.call_checked(MachineAccessor::Load);
      return emit_.fit(Register::R0, place.type);
    case Kind::Dynamic:
      return load_dynamic(place);
  }
}

void ClauseCoder::write_key(const Place& place) {
  CLEW_ASSERT(place.variable < script_.variables.size());
  const query::d::Variable& variable = script_.variables[place.variable];
  CLEW_ASSERT(place.keys.size() <= variable.keys.size());
  uint32_t offset = abi::kMachineKeyOffset;
  for (size_t i = 0; i < place.keys.size(); ++i) {
    const TypeId type = variable.keys[i];
    emit_.load(Register::R3, place.keys[i]);
    switch (class_of(types(), type)) {
      case ValueClass::Scalar:
        code()
            .load_window(Register::R1, offset)
            .store(isa::Size::Double, Register::R1, 0, Register::R3);
        offset += 8;
        break;
      case ValueClass::String:
        code()
            .move(Register::R2, static_cast<int32_t>(offset))
            .move(Register::R4, static_cast<int32_t>(storage_.string_bytes()));
        emit_.call(MachineAccessor::PadString);
        offset += storage_.string_bytes();
        break;
      case ValueClass::Bytes: {
        const uint32_t size = (types().size_of(type) + 7) & ~7U;
        code()
            .load_window(Register::R1, offset + size - 8)
            .store(isa::Size::Double, Register::R1, 0, 0);
        code()
            .move(Register::R2, static_cast<int32_t>(offset))
            .move(Register::R4, static_cast<int32_t>(copied(types().size_of(type))))
            .move(Register::R5, 0);
        emit_.call_checked(MachineAccessor::Copy);
        offset += size;
        break;
      }
    }
  }
}

// The same place in a copy of the element in the window, at `room`. One slot is to be released when
// the place is_indexed.
Place ClauseCoder::in_copy(const Place& place, uint32_t room) {
  Place copy{.kind = Kind::Window, .type = place.type, .offset = room + place.offset};
  copy.is_member = true;
  copy.bit_offset = place.bit_offset;
  copy.bit_size = place.bit_size;
  if (!place.is_indexed) return copy;
  emit_.load(Register::R0, place.slot);
  code().load_constant(Register::R1, abi::kMachineWindowTag + copy.offset);
  code().alu(Alu::Add, Register::R0, Register::R1);
  copy.kind = Kind::Address;
  copy.offset = 0;
  copy.slot = emit_.push();
  return copy;
}

void ClauseCoder::load_dynamic(const Place& place) {
  const VariableHome& home = storage_.home(place.variable);
  const ValueClass kind = class_of(types(), place.type);
  write_key(place);
  code().move(Register::R2, static_cast<int32_t>(home.number));
  if (kind == ValueClass::Scalar && !place.is_member) {
    emit_.call(MachineAccessor::VariableLoad);
    return emit_.fit(Register::R0, place.type);
  }
  const uint32_t room = temporary(home.size_bytes);
  code().move(Register::R3, static_cast<int32_t>(room));
  emit_.call(MachineAccessor::VariableLoadBytes);
  load(in_copy(place, room));
  if (place.is_indexed) emit_.release();
}

void ClauseCoder::store_dynamic(const Place& place, Slot value) {
  const VariableHome& home = storage_.home(place.variable);
  const ValueClass kind = class_of(types(), place.type);
  if (kind == ValueClass::Scalar && !place.is_member) {
    // A zero takes no room: the element ends to exist.
    const Label remove = code().label();
    const Label end = code().label();
    write_key(place);
    emit_.load(Register::R3, value);
    code().move(Register::R2, static_cast<int32_t>(home.number));
    code().jump_if(Jump::Equal, Register::R3, 0, remove);
    emit_.call_checked(MachineAccessor::VariableStore);
    code().jump(end).bind(remove);
    emit_.call(MachineAccessor::VariableDelete);
    code().bind(end);
    return;
  }
  // The element as a whole is read, changed and written.
  write_key(place);
  const uint32_t room = temporary(home.size_bytes);
  code()
      .move(Register::R2, static_cast<int32_t>(home.number))
      .move(Register::R3, static_cast<int32_t>(room));
  emit_.call(MachineAccessor::VariableLoadBytes);
  store(in_copy(place, room), value);
  if (place.is_indexed) emit_.release();
  write_key(place);
  code()
      .move(Register::R2, static_cast<int32_t>(home.number))
      .move(Register::R3, static_cast<int32_t>(room));
  emit_.call_checked(MachineAccessor::VariableStoreBytes);
}

void ClauseCoder::load_bits(const Place& place) {
  Place unit = place;
  unit.bit_size = 0;
  load(unit);
  const uint32_t size_bits = 8 * types().size_of(place.type);
  CLEW_ASSERT(place.bit_offset + place.bit_size <= size_bits);
  code().alu(Alu::ShiftLeft, Register::R0, 64 - place.bit_offset - place.bit_size);
  code().alu(types().is_signed(place.type) ? Alu::ShiftRightSigned : Alu::ShiftRight, Register::R0,
             64 - place.bit_size);
}

// What is stored in a bit-field is the value of the assignment, too.
void ClauseCoder::cut_to_bits(const Place& place) {
  if (place.bit_size == 0 || place.bit_size == 64) return;
  const auto shift = static_cast<int32_t>(64 - place.bit_size);
  code()
      .alu(Alu::ShiftLeft, Register::R0, shift)
      .alu(types().is_signed(place.type) ? Alu::ShiftRightSigned : Alu::ShiftRight, Register::R0,
           shift);
}

// Replaces `value` by the storage unit with the bits put in.
void ClauseCoder::insert_bits(const Place& place, Slot value) {
  Place unit = place;
  unit.bit_size = 0;
  load(unit);
  const uint64_t mask = (place.bit_size == 64 ? ~0ULL : (1ULL << place.bit_size) - 1)
                        << place.bit_offset;
  emit_.load(Register::R2, value);
  code().alu(Alu::ShiftLeft, Register::R2, place.bit_offset);
  code().load_constant(Register::R3, mask).alu(Alu::And, Register::R2, Register::R3);
  code().load_constant(Register::R3, ~mask).alu(Alu::And, Register::R0, Register::R3);
  code().alu(Alu::Or, Register::R0, Register::R2);
}

void ClauseCoder::store(const Place& place, Slot value) {
  const ValueClass kind = class_of(types(), place.type);
  const uint32_t size = std::max(1U, types().size_of(place.type));
  if (place.bit_size != 0) {
    insert_bits(place, value);
    const Slot merged = emit_.push();
    Place unit = place;
    unit.bit_size = 0;
    store(unit, merged);
    return emit_.release();
  }
  if (kind == ValueClass::String) {
    const bool is_part = place.is_member || place.kind == Kind::Address;
    return is_part ? store_string_part(place, value) : store_string_variable(place, value);
  }
  if (place.kind == Kind::Dynamic) return store_dynamic(place, value);
  if (kind == ValueClass::Scalar && place.kind != Kind::GlobalIndexed) {
    if (place.kind == Kind::Address) {
      address_of(place);
      code().move(Register::R2, Register::R0).move(Register::R3, static_cast<int32_t>(size));
      emit_.load(Register::R4, value);
      return emit_.call_checked(MachineAccessor::Store);
    }
    if (place.kind == Kind::Window) {
      code().load_window(Register::R1, place.offset);
    } else {
      code().load_global(Register::R1, place.offset);
    }
    emit_.load(Register::R2, value);
    return emit_.store_sized(Register::R1, size, Register::R2);
  }
  store_bytes(place, value);
}

// Bytes from the address in `value`, or a scalar to an element of a global array.
void ClauseCoder::store_bytes(const Place& place, Slot value) {
  const bool is_scalar = class_of(types(), place.type) == ValueClass::Scalar;
  const uint32_t size = copied(std::max(1U, types().size_of(place.type)));
  const uint32_t room = place.kind == Kind::Window ? place.offset : temporary(size);
  if (is_scalar) {
    code().load_window(Register::R1, room);
    emit_.load(Register::R2, value);
    emit_.store_sized(Register::R1, size, Register::R2);
  } else {
    emit_.load(Register::R3, value);
    code()
        .move(Register::R2, static_cast<int32_t>(room))
        .move(Register::R4, static_cast<int32_t>(size))
        .move(Register::R5, 0);
    emit_.call_checked(MachineAccessor::Copy);
  }
  if (place.kind == Kind::Window) return;
  if (place.kind == Kind::Address) return store_room(place, room, size);
  code().move(Register::R2, static_cast<int32_t>(place.offset));
  if (place.kind == Kind::GlobalIndexed) {
    emit_.load(Register::R1, place.slot);
    code().alu(Alu::Add, Register::R2, Register::R1);
  }
  code()
      .move(Register::R3, static_cast<int32_t>(room))
      .move(Register::R4, static_cast<int32_t>(size));
  emit_.call(MachineAccessor::GlobalStoreBytes);
}

// The bytes at `room` to an address.
void ClauseCoder::store_room(const Place& place, uint32_t room, uint32_t size) {
  for (uint32_t done = 0; done < size;) {
    const uint32_t left = size - done;
    const uint32_t step = left >= 8 ? 8 : left >= 4 ? 4 : left >= 2 ? 2 : 1;
    address_of(place);
    code().move(Register::R2, Register::R0);
    code().alu(Alu::Add, Register::R2, static_cast<int32_t>(done));
    emit_.argument(Register::R3, step);
    code().load_window(Register::R4, room + done);
    code().load_number(Register::R4, Register::R4, 0, step, false);
    emit_.call_checked(MachineAccessor::Store);
    done += step;
  }
}

}  // namespace clew::plan::d

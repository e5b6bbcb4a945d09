// SPDX-License-Identifier: Apache-2.0
// Actions: the layout of what a clause records, and the code that fills it.
#include <csignal>

#include "base/assert.h"
#include "plan/d/clause_coder.h"
#include "plan/d/fields.h"
#include "plan/d/one_of.h"
#include "query/d/check_options.h"
#include "query/d/print.h"

namespace clew::plan::d {

using abi::MachineAccessor;
using isa::Label;
using query::d::Action;
using query::d::FieldKind;
using query::d::NodeKind;
using query::d::RecordedAction;
using query::d::RecordField;
using query::d::StatementKind;

namespace {

// Actions that the programs perform themselves, and that leave nothing in the record. speculate()
// leaves that it was there: alone it speculates the default action.
bool is_performed_at_once(Action action) {
  return is_one_of(action, Action::Chill, Action::Commit, Action::Copyout, Action::Copyoutstr,
                   Action::Discard, Action::Raise, Action::Stop);
}

// What print() shows of memory at most: -xprintsize.
uint32_t print_bytes(const query::d::Script& script) {
  constexpr uint64_t kDefault = 1024;
  constexpr uint64_t kMost = 4096;  // Of one copy.
  const auto found = script.options.values.find("printsize");
  if (found == script.options.values.end()) return kDefault;
  const auto bytes = query::d::option_bytes(found->second).value_or(kDefault);
  return static_cast<uint32_t>(std::clamp<uint64_t>(bytes, 1, kMost));
}

}  // namespace

// --- layout --------------------------------------------------------------------------------------

// Flags of all actions lie in front, then their fields; offsets are final after the last one.
void ClauseCoder::lay_out(const std::vector<Statement>& body) {
  for (const Statement& statement : body) {
    if (statement.kind == StatementKind::If) {
      lay_out(statement.then_part);
      lay_out(statement.else_part);
    } else if (statement.kind == StatementKind::Action && !is_performed_at_once(statement.action)) {
      lay_out_action(statement);
    }
  }
}

void ClauseCoder::lay_out_action(const Statement& statement) {
  RecordedAction action;
  action.action = statement.action;
  action.format = statement.format;
  action.aggregations = statement.aggregations;
  const auto& operands = statement.expression.operands;
  const uint32_t string_bytes = storage_.string_bytes();
  if (statement.action == Action::Speculate) {
    layout().actions.push_back(std::move(action));
    return;
  }
  if (dynamic_action(statement.expression) != Action::None) {
    action.fields.push_back(field_of(script_, statement.expression, string_bytes));
  } else if (statement.action == Action::Tracemem) {
    RecordField field;
    field.kind = FieldKind::Bytes;
    field.size_bytes = copied(operands[1].integer);
    field.type = operands[0].type;
    field.text = print(operands[0], types());
    action.fields.push_back(field);
    if (operands.size() > 2) action.fields.push_back(field_of(script_, operands[2], string_bytes));
  } else if (statement.action == Action::Print) {
    lay_out_print(operands[0], action);
  } else if (!is_one_of(statement.action, Action::Printa, Action::Ftruncate)) {
    for (const Node& operand : operands) {
      action.fields.push_back(field_of(script_, operand, string_bytes));
    }
  }
  layout().actions.push_back(std::move(action));
}

// The address and, of a pointer to something with a size, what is there.
void ClauseCoder::lay_out_print(const Node& operand, RecordedAction& action) {
  RecordField field = field_of(script_, operand, storage_.string_bytes());
  if (!types().is_pointer(operand.type) && field.kind != FieldKind::Bytes) {
    action.fields.push_back(field);
    return;
  }
  RecordField address;
  address.type = operand.type;
  address.text = field.text;
  action.fields.push_back(address);
  TypeId target = operand.type;
  if (types().stripped(operand.type).kind == query::d::TypeKind::Pointer) {
    target = types().stripped(operand.type).target;
  }
  field.kind = FieldKind::Bytes;
  field.text.insert(0, "*");
  field.type = target;
  field.size_bytes = std::min(types().size_of(target), print_bytes(script_));
  if (field.size_bytes != 0) action.fields.push_back(field);
}

void ClauseCoder::place_fields() {
  query::d::RecordLayout& record = layout();
  uint32_t offset = sizeof(abi::MachineRecordHeader);
  for (RecordedAction& action : record.actions) {
    action.flag_offset_bytes = offset++;
  }
  for (RecordedAction& action : record.actions) {
    for (RecordField& field : action.fields) {
      offset = round_up(offset);
      field.offset_bytes = offset;
      offset += field.size_bytes;
    }
  }
  record.size_bytes = round_up(offset);
  if (record.size_bytes > abi::kMachineRecordBytesMax) is_too_large_ = true;
}

// --- code ----------------------------------------------------------------------------------------

void ClauseCoder::code_action(const Statement& statement) {
  const auto& operands = statement.expression.operands;
  const Action action = statement.action;
  if (is_one_of(action, Action::Commit, Action::Discard, Action::Speculate)) {
    return code_speculation(statement);
  }
  if (is_one_of(action, Action::Copyout, Action::Copyoutstr)) return code_copy_out(statement);
  if (action == Action::Stop) {
    emit_.argument(Register::R2, SIGSTOP);
    return emit_.call_checked(MachineAccessor::Raise);
  }
  if (is_one_of(action, Action::Raise, Action::Chill)) {
    value(operands[0]);
    code().move(Register::R2, Register::R0);
    return emit_.call_checked(action == Action::Raise ? MachineAccessor::Raise
                                                      : MachineAccessor::Chill);
  }
  if (!is_performed_at_once(action)) code_record(statement);
}

void ClauseCoder::code_speculation(const Statement& statement) {
  value(statement.expression.operands[0]);
  code().move(Register::R2, Register::R0);
  if (statement.action == Action::Speculate) {
    emit_.call_checked(MachineAccessor::Speculate);
    return code_flag(next_action());
  }
  emit_.call_checked(statement.action == Action::Commit ? MachineAccessor::SpeculateCommit
                                                        : MachineAccessor::SpeculateDiscard);
}

// It was executed.
void ClauseCoder::code_flag(const RecordedAction& action) {
  code().load_window(Register::R1, abi::kMachineRecordOffset + action.flag_offset_bytes);
  code().store(isa::Size::Byte, Register::R1, 0, 1);
}

// copyout(buffer, address, size), copyoutstr(string, address, size).
void ClauseCoder::code_copy_out(const Statement& statement) {
  const auto& operands = statement.expression.operands;
  const bool is_text = statement.action == Action::Copyoutstr;
  if (is_text) {
    string_of(operands[0]);
  } else {
    value(operands[0]);
  }
  const Slot source = emit_.push();
  value(operands[1]);
  const Slot address = emit_.push();
  if (is_text) {
    text_bytes(source, operands.size() > 2 ? &operands[2] : nullptr);
  } else {
    value(operands[2]);
  }
  code().move(Register::R4, Register::R0);
  emit_.load(Register::R2, address);
  emit_.load(Register::R3, source);
  emit_.release();
  emit_.release();
  emit_.call_checked(MachineAccessor::CopyOut);
}

// r0 = the bytes of a string with its end, `most` of them at most.
void ClauseCoder::text_bytes(Slot string, const Node* most) {
  emit_.load(Register::R2, string);
  emit_.call_checked(MachineAccessor::StringLength);
  code().alu(isa::Alu::Add, Register::R0, 1);
  if (most == nullptr) return;
  const Slot length = emit_.push();
  const Label fits = code().label();
  value(*most);
  emit_.load(Register::R1, length);
  code().jump_if(isa::Jump::Less, Register::R0, Register::R1, fits);
  code().move(Register::R0, Register::R1).bind(fits);
  emit_.release();
}

void ClauseCoder::code_record(const Statement& statement) {
  const RecordedAction action = next_action();
  const auto& operands = statement.expression.operands;
  const bool is_dynamic = dynamic_action(statement.expression) != Action::None;
  const bool has_memory = statement.action == Action::Print && action.fields.size() > 1;
  if (has_memory) record_printed(operands[0], action.fields);
  for (size_t i = 0; i < action.fields.size() && !has_memory; ++i) {
    const Node* argument = &statement.expression;
    if (statement.action == Action::Tracemem && i == 1) {
      argument = &operands[2];                       // tracemem(address, size, how much of it)
    } else if (statement.action == Action::Print) {  // Of something that has no address.
      argument = operands.data();
    } else if (!is_dynamic) {
      argument = &operands[i];
    }
    CLEW_ASSERT(argument == &statement.expression ||
                static_cast<size_t>(argument - operands.data()) < operands.size());
    record_at(*argument, action.fields[i],
              abi::kMachineRecordOffset + action.fields[i].offset_bytes);
  }
  code_flag(action);
  if (statement.action == Action::Exit) {
    value(operands[0]);
    code().move(Register::R2, Register::R0);
    emit_.call(MachineAccessor::Exit);
  }
}

// print(): where something is, and what is there.
void ClauseCoder::record_printed(const Node& operand, const std::vector<RecordField>& fields) {
  value(operand);
  convert(operand.type, types().integer(8, false));
  const Slot address = emit_.push();
  record_shown_address(abi::kMachineRecordOffset + fields[0].offset_bytes);
  emit_.load(Register::R3, address);
  emit_.argument(Register::R2, abi::kMachineRecordOffset + fields[1].offset_bytes);
  emit_.argument(Register::R4, fields[1].size_bytes);
  emit_.argument(Register::R5, operand.is_userland ? 1 : 0);
  emit_.call_checked(MachineAccessor::Copy);
  emit_.release();
}

// The address in r0, of the program's own memory the real one, to the window at `base`.
void ClauseCoder::record_shown_address(uint32_t base) {
  constexpr int kTagShift = 48;
  constexpr int32_t kGlobalsMask = 0x0FFF'FFFF;
  const Label global = code().label();
  const Label other = code().label();
  const Label end = code().label();
  const auto unless_tagged = [&](uint64_t tag, Label otherwise) {
    code().move(Register::R1, Register::R0).alu(isa::Alu::ShiftRight, Register::R1, kTagShift);
    code().jump_if(isa::Jump::NotEqual, Register::R1, static_cast<int32_t>(tag >> kTagShift),
                   otherwise);
  };
  code().load_window(Register::R2, base);
  unless_tagged(abi::kMachineWindowTag, global);
  code().alu(isa::Alu::And, Register::R0, static_cast<int32_t>(abi::kMachineWindowBytes - 1));
  code().load_window(Register::R1, 0).alu(isa::Alu::Add, Register::R1, Register::R0);
  code().store(isa::Size::Double, Register::R2, 0, Register::R1).jump(end).bind(global);
  if (!generated_.globals.empty()) {
    unless_tagged(abi::kMachineGlobalTag, other);
    code().alu(isa::Alu::And, Register::R0, kGlobalsMask);
    code().load_global(Register::R1, 0).alu(isa::Alu::Add, Register::R1, Register::R0);
    code().store(isa::Size::Double, Register::R2, 0, Register::R1).jump(end);
  }
  code().bind(other).store(isa::Size::Double, Register::R2, 0, Register::R0).bind(end);
}

// The string in r0; reading one that is NULL is a fault.
void ClauseCoder::text_of(const Node& argument) {
  string_of(argument);
  if (argument.kind == NodeKind::String || argument.storage == query::d::Storage::Builtin) return;
  const Label fine = code().label();
  code().jump_if(isa::Jump::NotEqual, Register::R0, 0, fine);
  emit_.fail_with(abi::MachineFault::BadAddress, Register::R0);
  code().bind(fine);
}

// The value of `argument` to the window at `base`, in the field's form.
void ClauseCoder::record_at(const Node& argument, const RecordField& field, uint32_t base) {
  switch (field.kind) {
    case FieldKind::KernelStack:
    case FieldKind::UserStack: {
      const bool is_user = field.kind == FieldKind::UserStack;
      emit_.argument(Register::R2, base);
      emit_.argument(Register::R3, field.size_bytes / 8 - (is_user ? 2 : 1));
      emit_.argument(Register::R4, is_user ? 1 : 0);
      return emit_.call(MachineAccessor::Stack);
    }
    case FieldKind::KernelAddress:
    case FieldKind::UserAddress:
      return record_address(argument, field, base);
    case FieldKind::String:
      text_of(argument);
      code().move(Register::R3, Register::R0);
      emit_.argument(Register::R2, base);
      emit_.argument(Register::R4, field.size_bytes);
      return emit_.call(MachineAccessor::PadString);
    case FieldKind::Bytes:
      value(argument);
      convert(argument.type, types().integer(8, false));
      code().move(Register::R3, Register::R0);
      emit_.argument(Register::R2, base);
      emit_.argument(Register::R4, copied(field.size_bytes));
      emit_.argument(Register::R5, argument.is_userland ? 1 : 0);
      return emit_.call_checked(MachineAccessor::Copy);
    case FieldKind::Integer:
      value(argument);
      if (class_of(types(), argument.type) == ValueClass::String) {
        convert(argument.type, types().integer(8, false));
      }
      code().load_window(Register::R1, base);
      return emit_.store_sized(Register::R1, field.size_bytes, Register::R0);
  }
}

void ClauseCoder::record_address(const Node& argument, const RecordField& field, uint32_t base) {
  value(argument.operands[0]);
  const uint32_t offset = field.kind == FieldKind::UserAddress ? 8 : 0;
  code().load_window(Register::R1, base + offset);
  code().store(isa::Size::Double, Register::R1, 0, Register::R0);
  if (offset == 0) return;
  emit_.argument(Register::R2, static_cast<uint32_t>(query::d::Builtin::Pid));
  emit_.call_checked(MachineAccessor::BuiltinInteger);
  code().load_window(Register::R1, base);
  code().store(isa::Size::Double, Register::R1, 0, Register::R0);
}

}  // namespace clew::plan::d

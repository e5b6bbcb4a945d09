// SPDX-License-Identifier: Apache-2.0
#include "query/fake_types.h"

#include <algorithm>

namespace clew::query {
namespace {

CType number(std::string name, uint32_t size_bytes, bool is_signed, bool is_character = false) {
  CType type;
  type.kind = CKind::Integer;
  type.size_bytes = size_bytes;
  type.is_signed = is_signed;
  type.is_character = is_character;
  type.name = std::move(name);
  return type;
}

CType of_kind(CKind kind, std::string name, uint32_t size_bytes) {
  CType type;
  type.kind = kind;
  type.size_bytes = size_bytes;
  type.name = std::move(name);
  return type;
}

CMember member(std::string name, TypeHandle type, uint64_t offset_bytes) {
  CMember result;
  result.name = std::move(name);
  result.type = type;
  result.offset_bytes = offset_bytes;
  return result;
}

Parameter parameter(std::string name, TypeHandle type, uint16_t index) {
  Parameter result;
  result.name = std::move(name);
  result.type = type;
  result.index = index;
  return result;
}

}  // namespace

FakeTypes::FakeTypes() {
  types_.emplace_back();  // void
  const TypeHandle character = add(number("char", 1, true, true));
  const TypeHandle byte = add(number("unsigned char", 1, false));
  const TypeHandle half = add(number("unsigned short", 2, false));
  const TypeHandle integer = add(number("int", 4, true));
  const TypeHandle word = add(number("unsigned int", 4, false));
  const TypeHandle wide = add(number("long", 8, true));
  const TypeHandle wider = add(number("__int128", 16, true));
  const TypeHandle single = add(of_kind(CKind::Float, "float", 4));
  const TypeHandle real = add(of_kind(CKind::Float, "double", 8));
  CType state_type = number("enum state", 4, true);
  state_type.kind = CKind::Enumeration;
  const TypeHandle state = add(state_type);
  enumerators_[state] = {{"OPEN", 0}, {"PAID", 1}, {"FAILED", -1}};
  CType mood_type = number("Mood", 4, true);  // As C++ writes an enumeration.
  mood_type.kind = CKind::Enumeration;
  const TypeHandle mood = add(mood_type);
  enumerators_[mood] = {{"GOOD", 0}, {"BAD", -1}};
  CType label_type = of_kind(CKind::Array, "char [16]", 16);
  label_type.target = character;
  label_type.count = 16;
  const TypeHandle label = add(label_type);
  CType limits_type = of_kind(CKind::Array, "int [4]", 16);
  limits_type.target = integer;
  limits_type.count = 4;
  const TypeHandle limits = add(limits_type);
  const TypeHandle owner = add(of_kind(CKind::Record, "struct owner", 24));
  const TypeHandle card = add(of_kind(CKind::Record, "struct card", 128));
  add(of_kind(CKind::Record, "struct hidden", 0));
  const TypeHandle text = pointer_to(character);
  members_[owner] = {member("name", text, 0), member("age", integer, 8),
                     member("next", pointer_to(owner), 16)};
  CMember flags = member("flags", word, 48);
  flags.bit_size = 3;
  CMember bias = member("bias", integer, 48);
  bias.bit_offset = 3;
  bias.bit_size = 5;
  members_[card] = {member("number", wide, 0),
                    member("owner", pointer_to(owner), 8),
                    member("label", label, 16),
                    member("limits", limits, 32),
                    flags,
                    bias,
                    member("score", single, 52),
                    member("weight", real, 56),
                    member("state", state, 64),
                    member("tag", byte, 68),
                    member("holder", owner, 72),
                    member("wide", wider, 96)};
  Parameter by_value = parameter("by_value", card, 0);
  by_value.refusal = "it is passed by value in memory";
  functions_["charge_card"] = {{parameter("card", pointer_to(card), 0), parameter("cents", wide, 1),
                                parameter("currency", half, 2), parameter("state", state, 3),
                                parameter("rate", real, kVectorArgument),
                                parameter("tip", single, kVectorArgument + 1), by_value},
                               integer};
  functions_["refund_card"] = {
      {parameter("cents", integer, 0), parameter("card", pointer_to(card), 1)}, integer};
  functions_["find_card"] = {{parameter("name", text, 0)}, pointer_to(card)};
  functions_["close_card"] = {{parameter("id", integer, 0)}, 0};
  functions_["copy_owner"] = {{parameter("id", integer, 0)}, owner};
  functions_["let_in"] = {{parameter("user", integer, 0)}, integer};
  functions_["set_mood"] = {{parameter("mood", mood, 0)}, mood};
  // Of the kernel: the arguments of a system call, the fields of a tracepoint.
  functions_["read"] = {
      {parameter("fd", word, 0), parameter("buf", text, 1), parameter("count", wide, 2)}, wide};
  functions_["vfs_read"] = {{parameter("file", pointer_to(owner), 0), parameter("count", wide, 2)},
                            wide};
  const auto field = [&](const char* name, TypeHandle type, uint64_t offset_bytes) {
    Parameter result = parameter(name, type, 0);
    result.place = ParameterPlace::Record;
    result.offset_bytes = offset_bytes;
    return result;
  };
  Parameter elsewhere = field("path", label, 24);
  elsewhere.place = ParameterPlace::Elsewhere;
  Parameter relative = field("note", label, 28);
  relative.place = ParameterPlace::Relative;
  functions_["sched:sched_switch"] = {
      {field("prev_comm", label, 8), field("prev_pid", integer, 32), elsewhere, relative,
       field("next_comm", label, 40), field("next_pid", integer, 56)},
      0};
  functions_["sched:sched_wakeup"] = {{field("comm", label, 8), field("pid", integer, 24)}, 0};
  functions_["rate_of"] = {{parameter("id", integer, 0)}, real};
}

TypeHandle FakeTypes::add(CType type) {
  types_.push_back(std::move(type));
  return types_.size() - 1;
}

TypeHandle FakeTypes::pointer_to(TypeHandle target) {
  CType type = of_kind(CKind::Pointer, "", 8);
  type.target = target;
  return add(type);
}

Expected<std::vector<Parameter>> FakeTypes::parameters(const Source& source) {
  const auto found = functions_.find(source.function);
  const bool is_of_program = source.module == "shopd" || is_kernel_source(source.kind);
  if (!is_of_program || found == functions_.end()) {
    return fail(ErrorCode::NotFound, "no debug information for '" + source.function +
                                         "'; install the program's debug symbols");
  }
  return found->second.parameters;
}

Expected<TypeHandle> FakeTypes::return_type(const Source& source) {
  const auto found = functions_.find(source.function);
  const bool is_of_program = source.module == "shopd" || is_kernel_source(source.kind);
  if (!is_of_program || found == functions_.end()) {
    return fail(ErrorCode::NotFound, "no debug information for '" + source.function + "'");
  }
  return found->second.result;
}

TypeHandle FakeTypes::find_type(std::string_view name) {
  for (TypeHandle handle = 1; handle < types_.size(); ++handle) {
    if (types_[handle].name == name) return handle;
    if (types_[handle].name == "struct " + std::string(name)) return handle;
  }
  return 0;
}

CType FakeTypes::describe(TypeHandle type) {
  return types_[type];
}

std::vector<CMember> FakeTypes::members(TypeHandle type) {
  return members_[type];
}

std::vector<Enumerator> FakeTypes::enumerators(TypeHandle type) {
  return enumerators_[type];
}

FakeExtensions::FakeExtensions() {
  const Type bit{.size_bytes = 1, .is_signed = false};
  const Type word{.size_bytes = 8, .is_signed = false};
  const Type number{.size_bytes = 8, .is_signed = true};
  const Type address{.size_bytes = 8, .is_signed = false, .unit = Unit::Address};
  const Type count{.size_bytes = 4, .is_signed = false};
  functions_ = {
      {.name = "sketch_sample", .result = bit, .parameters = {word}, .refusal = {}},
      {.name = "moving_average", .result = number, .parameters = {number}, .refusal = {}},
      {.name = "walk", .result = count, .parameters = {address, count}, .refusal = {}},
      {.name = "nothing", .result = word, .parameters = {}, .refusal = "it gives no integer"}};
}

const ExtensionFunction* FakeExtensions::find(std::string_view name) {
  const auto found = std::find_if(functions_.begin(), functions_.end(),
                                  [name](const auto& one) { return one.name == name; });
  return found == functions_.end() ? nullptr : &*found;
}

std::vector<std::string> FakeExtensions::names() {
  std::vector<std::string> result;
  for (const ExtensionFunction& function : functions_)
    result.push_back(function.name);
  return result;
}

}  // namespace clew::query

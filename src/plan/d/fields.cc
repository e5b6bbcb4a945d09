// SPDX-License-Identifier: Apache-2.0
#include "plan/d/fields.h"

#include <algorithm>

#include "base/assert.h"
#include "plan/d/one_of.h"
#include "plan/d/storage.h"
#include "query/d/check_options.h"
#include "query/d/print.h"

namespace clew::plan::d {

using query::d::Action;
using query::d::FieldKind;
using query::d::Node;
using query::d::NodeKind;
using query::d::RecordField;
using query::d::Script;

namespace {

constexpr uint64_t kFramesMax = 127;  // PERF_MAX_STACK_DEPTH, include/uapi/linux/perf_event.h

// The checker put the option's number there, where none was given. maxframes is the most of any.
uint32_t stack_frames(const Script& script, const Node& call) {
  CLEW_ASSERT(!call.operands.empty() && call.operands[0].kind == NodeKind::Integer);
  uint64_t most = kFramesMax;
  const auto option = script.options.values.find("maxframes");
  if (option != script.options.values.end())
    most = std::min(most, query::d::option_bytes(option->second).value_or(most));
  const uint64_t frames = std::min(call.operands[0].integer, most);
  return static_cast<uint32_t>(std::max<uint64_t>(frames, 1));
}

bool is_kernel_stack(Action action) {
  return action == Action::Stack;
}

bool is_user_stack(Action action) {
  return action == Action::Ustack || action == Action::Jstack;
}

}  // namespace

Action dynamic_action(const Node& node) {
  if (node.kind != NodeKind::Call || node.subroutine != query::d::Subroutine::None) {
    return Action::None;
  }
  const auto action = query::d::find_action(node.name).value_or(Action::None);
  const bool is_dynamic =
      is_one_of(action, Action::Stack, Action::Ustack, Action::Jstack, Action::Sym, Action::Mod,
                Action::Usym, Action::Ufunc, Action::Umod, Action::Uaddr);
  return is_dynamic ? action : Action::None;
}

RecordField field_of(const Script& script, const Node& node, uint32_t string_bytes) {
  RecordField field;
  field.type = node.type;
  field.action = dynamic_action(node);
  field.text = print(node, script.types);
  if (is_kernel_stack(field.action)) {
    field.kind = FieldKind::KernelStack;
    field.size_bytes = 8 * (stack_frames(script, node) + 1);
  } else if (is_user_stack(field.action)) {
    field.kind = FieldKind::UserStack;
    field.size_bytes = 8 * (stack_frames(script, node) + 2);
  } else if (field.action == Action::Sym || field.action == Action::Mod) {
    field.kind = FieldKind::KernelAddress;
  } else if (field.action != Action::None) {
    field.kind = FieldKind::UserAddress;
    field.size_bytes = 16;
  } else if (class_of(script.types, node.type) == ValueClass::String) {
    field.kind = FieldKind::String;
    field.size_bytes = string_bytes;
  } else if (class_of(script.types, node.type) == ValueClass::Bytes) {
    field.kind = FieldKind::Bytes;
    field.size_bytes = std::max(1U, script.types.size_of(node.type));
  } else {
    const bool is_integer = script.types.is_integer(node.type);
    field.size_bytes = is_integer ? std::max(1U, script.types.size_of(node.type)) : 8;
    field.is_signed = is_integer && script.types.is_signed(node.type);
  }
  return field;
}

}  // namespace clew::plan::d

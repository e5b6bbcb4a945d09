// SPDX-License-Identifier: Apache-2.0
#include "plan/d/storage.h"

#include <limits>

#include <fmt/format.h>

#include "plan/d/limits.h"
#include "plan/d/one_of.h"
#include "query/walk.h"

namespace clew::plan::d {

using query::d::Compiled;
using query::d::CompileError;
using query::d::Node;
using query::d::NodeKind;
using query::d::Script;
using query::d::Statement;
using query::d::TypeId;
using query::d::TypeTable;
using query::d::Variable;
using query::d::VariableScope;

namespace {

constexpr uint32_t kScratchMin = 4096;  // Of a window, left to temporaries and alloca().
constexpr uint64_t kGlobalBytesMax = uint64_t{64} << 20;

// Bytes of a key: integers take a word each, strings their room. One of more than the largest
// number is too large in any case.
uint32_t key_bytes(const Script& script, const std::vector<TypeId>& keys, uint32_t string_bytes) {
  uint64_t bytes = 0;
  for (const TypeId key : keys) {
    switch (class_of(script.types, key)) {
      case ValueClass::Scalar:
        bytes += 8;
        break;
      case ValueClass::String:
        bytes += string_bytes;
        break;
      case ValueClass::Bytes:
        bytes += round_up(script.types.size_of(key));
        break;
    }
  }
  return static_cast<uint32_t>(std::min<uint64_t>(bytes, std::numeric_limits<uint32_t>::max()));
}

}  // namespace

ValueClass class_of(const TypeTable& types, TypeId type) {
  using query::d::TypeKind;
  const TypeKind kind = types.stripped(type).kind;
  if (kind == TypeKind::String) return ValueClass::String;
  return is_one_of(kind, TypeKind::Struct, TypeKind::Union, TypeKind::Array) ? ValueClass::Bytes
                                                                             : ValueClass::Scalar;
}

void StoragePlan::add_variable(const Script& script, const Variable& variable,
                               Generated& generated) {
  const ValueClass kind = class_of(script.types, variable.type);
  VariableHome home;
  if (kind == ValueClass::String) home.size_bytes = string_bytes_;
  if (kind == ValueClass::Bytes) {
    home.size_bytes = round_up(std::max(1U, script.types.size_of(variable.type)));
  }
  const uint32_t room = home.size_bytes + (kind == ValueClass::String ? kStringFlagBytes : 0);
  if (variable.is_associative || variable.scope == VariableScope::Thread) {
    home.place = VariableHome::Place::Dynamic;
    home.number = static_cast<uint32_t>(generated.variables.size());
    generated.variables.push_back({.key_bytes = key_bytes(script, variable.keys, string_bytes_),
                                   .value_bytes = home.size_bytes,
                                   .is_thread = variable.scope == VariableScope::Thread ? 1U : 0U,
                                   .reserved = 0});
  } else if (variable.scope == VariableScope::Clause) {
    home.offset = static_cast<uint32_t>(
        local_bytes_);  // From local_begin, which is known when all literals are.
    local_bytes_ += room;
  } else {
    home.place = VariableHome::Place::Global;
    home.offset = static_cast<uint32_t>(global_bytes_);
    global_bytes_ += room;
  }
  homes_.push_back(home);
}

void StoragePlan::add_literal(const Node& node, Generated& generated) {
  if (node.kind != NodeKind::String || literals_.find(node.text) != literals_.end()) return;
  const auto offset = static_cast<uint32_t>(generated.literals.size());
  literals_[node.text] = abi::kMachineLocalOffset + offset;
  const auto size = std::min(static_cast<uint32_t>(node.text.size()), string_size_bytes_ - 1);
  generated.literals.resize(offset + round_up(size + 1));
  std::copy_n(node.text.begin(), size, generated.literals.begin() + offset);
}

void StoragePlan::add_literals(const Node& expression, Generated& generated) {
  query::visit(expression, [&](const Node& node) { add_literal(node, generated); });
}

Compiled<StoragePlan> StoragePlan::make(const Script& script,
                                        std::span<const extension::Extension> extensions,
                                        Generated& generated) {
  StoragePlan plan;
  if (script.string_size_bytes > abi::kMachineStringBytesMax) {
    return tl::unexpected(CompileError{
        "D_PRAGMA_OPTSET",
        fmt::format("failed to set option 'strsize' to '{}': strings have {} bytes at most",
                    script.options.values.at("strsize"), abi::kMachineStringBytesMax),
        0,
        {},
        {}});
  }
  plan.string_size_bytes_ = string_bytes_of(script);
  plan.string_bytes_ = round_up(plan.string_size_bytes_);
  for (const Variable& variable : script.variables)
    plan.add_variable(script, variable, generated);
  for (const query::d::Clause& clause : script.clauses) {
    if (clause.predicate) plan.add_literals(*clause.predicate, generated);
    query::d::visit_statements(clause.body, [&](const Statement& statement) {
      plan.add_literals(statement.expression, generated);
    });
  }
  CLEW_TRY(plan.check_room(generated));
  generated.globals.resize(plan.global_bytes_);
  generated.local_begin =
      abi::kMachineLocalOffset + static_cast<uint32_t>(generated.literals.size());
  generated.local_bytes = static_cast<uint32_t>(plan.local_bytes_);
  generated.private_area = {
      .begin = generated.local_begin + generated.local_bytes,
      .variables = static_cast<uint32_t>(generated.privates.words.size()),
  };
  generated.extensions = CLEW_TRY(place_extensions(
      script, extensions,
      {.begin = generated.private_area.end(), .end = abi::kMachineWindowBytes - kScratchMin}));
  plan.temporaries_begin_ = generated.extensions.end;
  for (VariableHome& home : plan.homes_) {
    if (home.place == VariableHome::Place::Window) home.offset += generated.local_begin;
  }
  return plan;
}

// Offsets are known, but none was used yet.
Compiled<void> StoragePlan::check_room(const Generated& generated) const {
  if (global_bytes_ > kGlobalBytesMax) {
    return too_large(fmt::format("global variables have {} bytes; {} is the most", global_bytes_,
                                 kGlobalBytesMax));
  }
  const uint64_t used = abi::kMachineLocalOffset + generated.literals.size() + local_bytes_ +
                        8 * (PrivateArea::kOwnWords + uint64_t{PrivateVariables::kWordsMax});
  if (used + kScratchMin <= abi::kMachineWindowBytes) return {};
  return too_large("this-> variables and string literals need more than a clause may have");
}

}  // namespace clew::plan::d

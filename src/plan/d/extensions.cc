// SPDX-License-Identifier: Apache-2.0
#include "plan/d/extensions.h"

#include <algorithm>

#include <fmt/format.h>

#include "abi/machine/process.h"
#include "isa/opcode.h"

namespace clew::plan::d {

using extension::Extension;
using extension::Function;
using isa::Instruction;
using query::d::Compiled;

namespace {

constexpr uint64_t kStateAlignment = 64;  // extension.h
constexpr uint64_t kOwnBytes = 8;         // The thread's id.
constexpr uint32_t kPlaceholder = 3;      // Instructions: the call, and the LDDW's two.

// No function of C's has such a name.
constexpr const char* kRead = "(read)";
constexpr const char* kReadString = "(read string)";

// The common accessors know the thread's region, in which the window of D is not the first byte:
//     r1 += kMachineRegionWindow ; call
isa::Body read_body(abi::Accessor accessor) {
  constexpr uint8_t kAddImmediate = 0x07;
  return {.code = {{kAddImmediate, 1, 0, int32_t{abi::kMachineRegionWindow}},
                   {isa::kCallOpcode, 0, 0, static_cast<int32_t>(accessor)},
                   {isa::kExitOpcode, 0, 0, 0}},
          .references = {}};
}

bool calls(const Instruction& i, abi::Accessor accessor) {
  return i.opcode == isa::kCallOpcode && i.immediate == static_cast<int32_t>(accessor);
}

ExtensionFunction placed(const Function& function, uint32_t state) {
  ExtensionFunction made{.body = {.code = function.code, .references = {}},
                         .parameters = static_cast<uint32_t>(function.parameters.size()),
                         .has_loops = function.has_loops};
  std::vector<Instruction>& code = made.body.code;
  for (uint32_t at = 0; at < code.size(); ++at) {
    if (calls(code[at], abi::Accessor::TryRead)) made.body.references.push_back({at, true, kRead});
    if (calls(code[at], abi::Accessor::TryReadString))
      made.body.references.push_back({at, true, kReadString});
    if (code[at].opcode != isa::kLoad64Opcode) continue;
    const bool is_state = code[at].source() == static_cast<uint8_t>(isa::Load64::Window);
    if (is_state) code[at].immediate += static_cast<int32_t>(state);
    ++at;
  }
  return made;
}

class Placer {
 public:
  Placer(const std::vector<std::string>& wanted, const WindowRoom& room)
      : wanted_(wanted), end_(room.end), next_(aligned(room.begin) + kOwnBytes) {
    state_.begin = static_cast<uint32_t>(aligned(room.begin));
  }

  void add(const Extension& extension) {
    const uint64_t at = aligned(next_);
    bool is_called = false;
    for (const Function& function : extension.functions) {
      const auto found = std::find(wanted_.begin(), wanted_.end(), function.name);
      if (found == wanted_.end()) continue;
      state_.functions.emplace(function.name, placed(function, static_cast<uint32_t>(at)));
      is_called = true;
    }
    if (!is_called) return;
    next_ = at + extension.state_bytes;
    for (const extension::InitialWord& word : extension.initial_words) {
      const auto offset = static_cast<uint32_t>(at + word.offset_bytes);
      state_.initial_words.push_back({offset, word.value});
    }
  }

  Compiled<ExtensionState> finish() {
    if (next_ > end_) {
      return query::d::compile_error(
          "D_NOMEM",
          fmt::format("the variables of extensions need {} bytes in each thread; there is room "
                      "for {}",
                      next_ - state_.begin, end_ - std::min<uint64_t>(end_, state_.begin)),
          0);
    }
    state_.end = static_cast<uint32_t>(next_ + 7) & ~7U;
    return std::move(state_);
  }

 private:
  static constexpr uint64_t aligned(uint64_t offset) {
    return (offset + kStateAlignment - 1) & ~(kStateAlignment - 1);
  }

  const std::vector<std::string>& wanted_;
  uint64_t end_;
  uint64_t next_;
  ExtensionState state_;
};

}  // namespace

bool ExtensionState::has_loops() const {
  return std::any_of(functions.begin(), functions.end(),
                     [](const auto& one) { return one.second.has_loops; });
}

const isa::Body* ExtensionState::find_body(const std::string& function) const {
  static const isa::Body kReads = read_body(abi::Accessor::TryRead);
  static const isa::Body kReadsString = read_body(abi::Accessor::TryReadString);
  if (function == kRead) return &kReads;
  if (function == kReadString) return &kReadsString;
  const auto found = functions.find(function);
  return found == functions.end() ? nullptr : &found->second.body;
}

Compiled<ExtensionState> place_extensions(const query::d::Script& script,
                                          std::span<const Extension> extensions,
                                          const WindowRoom& room) {
  const std::vector<std::string>& wanted = script.extension_functions;
  ExtensionState state;
  state.begin = room.begin;
  state.end = room.begin;
  if (wanted.empty()) return state;
  Placer placer(wanted, room);
  for (const Extension& extension : extensions)
    placer.add(extension);
  state = CLEW_TRY(placer.finish());
  for (const std::string& name : wanted) {
    if (state.functions.contains(name)) continue;
    return query::d::compile_error("D_FUNC_UNDEF", fmt::format("undefined function name: {}", name),
                                   0);
  }
  return state;
}

isa::Program without_calls(isa::Program program, std::span<const ExtensionCall> calls) {
  constexpr uint8_t kMoveImmediate = 0xB7;
  for (const ExtensionCall& call : calls) {
    for (uint32_t i = 0; i < kPlaceholder; ++i)
      program.code[call.instruction + i] = {kMoveImmediate, 0, 0, 0};
  }
  return program;
}

}  // namespace clew::plan::d

// SPDX-License-Identifier: Apache-2.0
#include "kernel/extensions.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <string_view>

#include <fmt/format.h>
#include <linux/bpf.h>

#include "abi/machine/extension.h"
#include "base/assert.h"
#include "isa/inline_calls.h"
#include "isa/opcode.h"
#include "kernel/opcodes.h"

namespace clew::kernel {
namespace {

constexpr std::string_view kPrefix = "extension_";
constexpr isa::InlineLimits kLimits = {.calls_max = 4096, .frame_bytes_max = isa::kFrameSizeBytes};

// More arguments than registers are left beside the window: all of them go by way of it.
//     [r6 + …] = r1 … ; r1 = r6 ; call
isa::Body calling_body(const MachineExtensionFunction& function) {
  isa::Body body;
  for (uint8_t i = 0; i < function.parameters; ++i) {
    const auto registers = static_cast<uint8_t>(kWindowRegister | (i + 1) << 4);
    body.code.push_back({kStoreDouble, registers,
                         static_cast<int16_t>(abi::kMachineExtensionArguments + 8 * i), 0});
  }
  body.code.push_back({kMove, 1 | kWindowRegister << 4, 0, 0});
  const auto call = static_cast<uint32_t>(body.code.size());
  body.references.push_back({call, true, extension_function_name(function.name)});
  body.code.push_back({isa::kCallOpcode, BPF_PSEUDO_CALL << 4, 0, -1});
  body.code.push_back({isa::kExitOpcode, 0, 0, 0});
  return body;
}

}  // namespace

uint32_t MachineExtensions::area_bytes() const {
  return std::bit_ceil(abi::kMachineExtensionVariables + variables_bytes +
                       abi::kMachineExtensionFrameBytes);
}

std::vector<uint8_t> MachineExtensions::first_state() const {
  std::vector<uint8_t> state(abi::extension_state_bytes(area_bytes()));
  const size_t variables = sizeof(abi::MachineExtensionHead) + abi::kMachineExtensionVariables;
  for (const MachineExtensionWord& word : initial_words) {
    const size_t at = variables + word.offset - begin;
    CLEW_ASSERT(word.offset >= begin && at + 8 <= state.size());
    std::memcpy(state.data() + at, &word.value, 8);
  }
  return state;
}

std::string extension_function_name(const std::string& function) {
  return fmt::format("{}{}", kPrefix, function);
}

// verifier_message(): "… (in extension_f)".
std::string extension_function_in(const std::string& message) {
  const std::string mark = fmt::format("(in {}", kPrefix);
  const size_t begin = message.rfind(mark);
  if (begin == std::string::npos) return {};
  const size_t name = begin + mark.size();
  return message.substr(name, message.find(')', name) - name);
}

Expected<void> put_extension_calls(Function& clause, const MachineExtensions& extensions) {
  std::map<std::string, isa::Body> bodies;
  for (const MachineExtensionFunction& one : extensions.functions)
    bodies.emplace(one.name, calling_body(one));
  isa::Body& body = clause;
  body = isa::with_inlined_calls(
      body,
      [&bodies](const std::string& callee) {
        const auto found = bodies.find(callee);
        return found == bodies.end() ? nullptr : &found->second;
      },
      [&bodies](std::string_view callee) { return bodies.contains(std::string(callee)); }, kLimits);
  for (const Reference& one : clause.references) {
    if (!bodies.contains(one.symbol)) continue;
    return fail(ErrorCode::Limit, fmt::format("no room for the call of {}()", one.symbol));
  }
  return {};
}

}  // namespace clew::kernel

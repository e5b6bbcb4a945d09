// SPDX-License-Identifier: Apache-2.0
#include "code/stack_check.h"

#include <algorithm>
#include <array>
#include <span>

namespace clew::code {
namespace {

constexpr unsigned kHeadMax = 6;   // Instructions up to the last jump.
constexpr unsigned kMoreMax = 40;  // Those of `more`.

using Bytes = std::span<const uint8_t>;

// The displacement follows: 16, or 24 for functions that run on a thread's own stack.
constexpr auto kCompareStack = std::to_array<uint8_t>({0x49, 0x3b, 0x66});
constexpr auto kCompareSum = std::to_array<uint8_t>({0x4d, 0x3b, 0x66});
// What computes rsp - size in r12.
constexpr auto kLoadShort = std::to_array<uint8_t>({0x4c, 0x8d, 0x64, 0x24});
constexpr auto kLoadLong = std::to_array<uint8_t>({0x4c, 0x8d, 0xa4, 0x24});
constexpr auto kMove = std::to_array<uint8_t>({0x49, 0x89, 0xe4});
constexpr auto kSubtract = std::to_array<uint8_t>({0x49, 0x81, 0xec});

bool begins_with(Bytes text, Bytes bytes) {
  return text.size() >= bytes.size() && std::equal(bytes.begin(), bytes.end(), text.begin());
}

bool is_compare(Bytes text) {
  return begins_with(text, kCompareStack) || begins_with(text, kCompareSum);
}

bool is_sum(Bytes text) {
  return begins_with(text, kLoadShort) || begins_with(text, kLoadLong) ||
         begins_with(text, kMove) || begins_with(text, kSubtract);
}

// The `jbe more` behind the comparison.
std::optional<Instruction> find_jump(const ModuleCode& code, uint64_t function) {
  bool is_compared = false;
  uint64_t address = function;
  for (unsigned i = 0; i < kHeadMax; ++i) {
    const std::optional<Instruction> instruction = code.at(address);
    if (!instruction) return std::nullopt;
    const Bytes text = code.text_from(address);
    const bool is_jump = instruction->flow == Flow::Conditional;
    if (is_jump && is_compared) return instruction;
    if (!is_jump && !is_compare(text) && !is_sum(text)) return std::nullopt;
    is_compared = is_compare(text);
    address = instruction->end();
  }
  return std::nullopt;
}

// The jump at the end of `more`; 0 when the code there is something else.
uint64_t last_of_more(const ModuleCode& code, uint64_t address) {
  bool is_called = false;
  for (unsigned i = 0; i < kMoreMax; ++i) {
    const std::optional<Instruction> instruction = code.at(address);
    if (!instruction) return 0;
    if (instruction->flow == Flow::Jump) return is_called ? address : 0;
    const bool is_call = instruction->flow == Flow::Call;
    const bool is_plain = instruction->flow == Flow::Next || instruction->flow == Flow::Nop;
    if (!is_plain && (!is_call || is_called)) return 0;
    is_called |= is_call;
    address = instruction->end();
  }
  return 0;
}

}  // namespace

std::optional<uint64_t> behind_stack_check(const ModuleCode& code, uint64_t function) {
  const std::optional<Instruction> jump = find_jump(code, function);
  const std::span<const LoopHead> loops = code.loop_heads_at(function);
  if (!jump || loops.size() != 1) return std::nullopt;
  if (last_of_more(code, branch_target(code, *jump)) != loops.front().branch) return std::nullopt;
  return jump->end();
}

}  // namespace clew::code

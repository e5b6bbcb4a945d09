// SPDX-License-Identifier: Apache-2.0
// Classification of displaced instructions, from their bytes.
#include "code/displace.h"

#include <algorithm>
#include <array>
#include <optional>

#include "code/decode.h"
#include "code/opcodes.h"

namespace clew::code {

namespace {

constexpr unsigned kRspField = 4;

// mov $15, %eax ; syscall
constexpr std::array<uint8_t, 7> kSignalReturn = {0xb8, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05};
// mov $15, %rax ; syscall
constexpr std::array<uint8_t, 9> kLongSignalReturn = {0x48, 0xc7, 0xc0, 0x0f, 0x00,
                                                      0x00, 0x00, 0x0f, 0x05};

using Refused = tl::unexpected<RefusalReason>;

bool has_prefix(std::span<const uint8_t> bytes, uint8_t wanted) {
  const auto prefixes = bytes.first(opcode_offset(bytes));
  return std::find(prefixes.begin(), prefixes.end(), wanted) != prefixes.end();
}

Form branch_form(const Instruction& instruction, std::span<const uint8_t> bytes) {
  if (instruction.flow == Flow::Call) return Form::Call;
  if (instruction.flow == Flow::Jump) return Form::Jump;
  const uint8_t opcode = bytes[opcode_offset(bytes)];
  return opcode >= 0xe0 && opcode <= 0xe3 ? Form::CountJump : Form::ConditionalJump;
}

// Is rsp the register or the base of the operand of `call r/m`? REX.B would make it r12.
bool uses_stack_pointer(std::span<const uint8_t> bytes) {
  const unsigned at = opcode_offset(bytes);
  const bool extended = at != 0 && (bytes[at - 1] & 0xf1) == 0x41;
  const uint8_t mod_rm = bytes[at + 1];
  if ((mod_rm & 7) != kRspField || extended) return false;
  return mod_rm >= 0xc0 || (bytes[at + 2] & 7) == kRspField;
}

std::optional<RefusalReason> refuse(const Instruction& instruction,
                                    std::span<const uint8_t> bytes) {
  switch (instruction.flow) {
    case Flow::System:
    case Flow::Trap:
    case Flow::Int3:
      return RefusalReason::SyscallInWindow;
    case Flow::Bad:
      return RefusalReason::Undecodable;
    case Flow::Jump:
    case Flow::Conditional:
    case Flow::Call:
      // Intel ignores the prefix, AMD truncates the target.
      if (has_prefix(bytes, 0x66)) return RefusalReason::UnsupportedInstruction;
      return std::nullopt;
    case Flow::IndirectCall:
      if (uses_stack_pointer(bytes)) return RefusalReason::UnsupportedInstruction;
      return std::nullopt;
    case Flow::Next:
    case Flow::Nop:
    case Flow::IndirectJump:
    case Flow::Return:
      break;
  }
  if (std::equal(bytes.begin(), bytes.end(), kEndbr64.begin(), kEndbr64.end())) {
    return RefusalReason::UnsupportedInstruction;
  }
  return std::nullopt;
}

Form other_form(Flow flow, bool rip_relative) {
  if (flow == Flow::IndirectCall) {
    return rip_relative ? Form::RipIndirectCall : Form::IndirectCall;
  }
  if (flow == Flow::IndirectJump) return Form::IndirectJump;
  if (flow == Flow::Return) return Form::Return;
  return rip_relative ? Form::RipRelative : Form::Plain;
}

bool starts_with(std::span<const uint8_t> text, std::span<const uint8_t> bytes) {
  return text.size() >= bytes.size() && std::equal(bytes.begin(), bytes.end(), text.begin());
}

// `text` begins with the instruction.
tl::expected<Displaced, RefusalReason> displace_bytes(std::span<const uint8_t> text,
                                                      const Instruction& instruction,
                                                      uint64_t window_address) {
  const std::optional<Decoded> decoded = decode(text);
  if (!decoded || decoded->length != instruction.length) return Refused(RefusalReason::Undecodable);
  const std::span<const uint8_t> bytes = text.first(instruction.length);
  if (const auto reason = refuse(instruction, bytes)) return Refused(*reason);
  Displaced displaced;
  displaced.offset = static_cast<uint8_t>(instruction.address - window_address);
  displaced.length = instruction.length;
  const auto from_here = [&](unsigned offset, unsigned size) {
    return instruction.end() + static_cast<uint64_t>(signed_field(bytes, offset, size));
  };
  const bool branch = instruction.flow == Flow::Jump || instruction.flow == Flow::Conditional ||
                      instruction.flow == Flow::Call;
  if (branch && decoded->immediate_size == 0) return Refused(RefusalReason::Undecodable);
  if (branch) {
    displaced.form = branch_form(instruction, bytes);
    displaced.target = from_here(decoded->immediate_offset, decoded->immediate_size);
    return displaced;
  }
  displaced.form = other_form(instruction.flow, decoded->rip_relative);
  if (!decoded->rip_relative) return displaced;
  // With an address-size prefix the sum is cut to 32 bits.
  if (has_prefix(bytes, 0x67)) return Refused(RefusalReason::UnsupportedInstruction);
  displaced.field_offset = decoded->displacement_offset;
  displaced.target = from_here(decoded->displacement_offset, 4);
  return displaced;
}

}  // namespace

bool is_signal_return(const ModuleCode& code, uint64_t address) {
  const std::span<const uint8_t> text = code.text_from(address);
  return starts_with(text, kSignalReturn) || starts_with(text, kLongSignalReturn);
}

tl::expected<Displaced, RefusalReason> displace(const ModuleCode& code,
                                                const Instruction& instruction,
                                                uint64_t window_address) {
  if (is_signal_return(code, instruction.address)) return Refused(RefusalReason::SyscallInWindow);
  return displace_bytes(code.text_from(instruction.address), instruction, window_address);
}

bool find_displaced(Window& window) {
  window.instructions.clear();
  if (window.size_bytes > kWindowSizeMax) return false;
  const std::span<const uint8_t> all = std::span(window.original).first(window.size_bytes);
  for (unsigned at = 0; at < window.size_bytes;) {
    const std::span<const uint8_t> text = all.subspan(at);
    const std::optional<Decoded> decoded = decode(text);
    if (!decoded) return false;
    const Instruction instruction = {
        .address = window.address + at, .length = decoded->length, .flow = decoded->flow};
    const auto displaced = displace_bytes(text, instruction, window.address);
    if (!displaced) return false;
    window.instructions.push_back(*displaced);
    at += decoded->length;
  }
  return !window.instructions.empty();
}

}  // namespace clew::code

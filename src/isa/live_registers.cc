// SPDX-License-Identifier: Apache-2.0
#include "isa/live_registers.h"

#include <cstddef>

#include "isa/opcode.h"

namespace clew::isa {
namespace {

constexpr uint32_t bit(uint8_t reg) {
  return 1U << reg;
}

bool is_move(const Instruction& i) {
  return static_cast<Alu>(i.opcode & kOperationMask) == Alu::Move;
}
bool has_source(const Instruction& i) {
  return (i.opcode & kSourceRegister) != 0;
}

struct Effect {
  uint32_t reads = 0;
  uint32_t writes = 0;  // Without having read it.
};

Effect effect_of(const Instruction& i) {
  const uint32_t destination = bit(i.destination());
  const uint32_t source = bit(i.source());
  switch (class_of(i)) {
    case Class::Ld:
      return {0, destination};  // LDDW: its source says what is loaded.
    case Class::Ldx:
      return {source, destination};
    case Class::St:
      return {destination, 0};
    case Class::Stx:
      return {destination | source, 0};
    case Class::Alu32:
    case Class::Alu64: {
      const uint32_t operand = has_source(i) ? source : 0;
      return is_move(i) ? Effect{operand, destination} : Effect{operand | destination, 0};
    }
    case Class::Jump64:
    case Class::Jump32:
      if (i.opcode == kJumpOpcode || i.opcode == kJumpFarOpcode || i.opcode == kCallOpcode ||
          i.opcode == kExitOpcode) {
        return {};
      }
      return {destination | (has_source(i) ? source : 0), 0};
  }
  return {};
}

// The instructions that may follow: none, one or two.
struct Next {
  size_t places[2] = {};
  size_t count = 0;
};

Next next_of(const std::vector<Instruction>& code, size_t at) {
  Next next;
  const Instruction& i = code[at];
  if (i.opcode == kExitOpcode) return next;
  const bool is_jump = class_of(i) == Class::Jump64 || class_of(i) == Class::Jump32;
  if (i.opcode != kJumpOpcode && i.opcode != kJumpFarOpcode) {
    next.places[next.count++] = at + (i.opcode == kLoad64Opcode ? 2 : 1);
  }
  if (is_jump && i.opcode != kCallOpcode) {
    const int64_t over = i.opcode == kJumpFarOpcode ? i.immediate : i.offset;
    next.places[next.count++] = static_cast<size_t>(static_cast<int64_t>(at) + 1 + over);
  }
  return next;
}

}  // namespace

// Backwards over and over, until nothing changes: once for most code, again for each loop around.
std::vector<uint32_t> live_behind(const std::vector<Instruction>& code) {
  std::vector<uint32_t> behind(code.size());
  std::vector<uint32_t> before(code.size() + 1);
  for (bool has_changed = true; has_changed;) {
    has_changed = false;
    for (size_t at = code.size(); at-- > 0;) {
      const Next next = next_of(code, at);
      uint32_t live = 0;
      for (size_t i = 0; i < next.count; ++i)
        live |= before[next.places[i]];
      const Effect effect = effect_of(code[at]);
      const uint32_t wanted = effect.reads | (live & ~effect.writes);
      has_changed = has_changed || wanted != before[at];
      behind[at] = live;
      before[at] = wanted;
    }
  }
  return behind;
}

}  // namespace clew::isa

// SPDX-License-Identifier: Apache-2.0
// The transfer function of one instruction, and the walk over a function.
#include "code/stack_depth.h"

#include <algorithm>

#include "code/decode.h"
#include "code/jump_tables.h"

namespace clew::code {

namespace {

constexpr unsigned kRsp = 4;
constexpr unsigned kRbp = 5;
constexpr unsigned kR11 = 11;
constexpr int64_t kWord = 8;

// An instruction's fields, with the REX bits in the register numbers.
struct Fields {
  unsigned opcode = 0;  // 0x0f00 | byte for the two-byte map; 0x1000: another encoding (VEX, …).
  bool wide = false;
  bool operand_size = false;
  unsigned mod = 0;
  unsigned reg = 0;
  unsigned rm = 0;    // Register when mod is 3.
  unsigned base = 0;  // Of a memory operand; 16 = rip, none, or with an index.
  int64_t displacement = 0;
  int64_t immediate = 0;
};

constexpr unsigned kOtherEncoding = 0x1000;
constexpr unsigned kAddWord = 0x81;  // Group 1, 4-byte immediate.
constexpr unsigned kAddByte = 0x83;  // Group 1, 1-byte immediate.
constexpr unsigned kLea = 0x8d;
constexpr unsigned kNoBase = 16;

void read_modrm(std::span<const uint8_t> bytes, unsigned at, uint8_t rex, Fields& fields) {
  const uint8_t mod_rm = bytes[at];
  fields.mod = mod_rm >> 6;
  fields.reg = ((mod_rm >> 3) & 7U) | ((rex & 4U) << 1);
  fields.rm = (mod_rm & 7U) | ((rex & 1U) << 3);
  fields.base = fields.rm;
  if (fields.mod == 3) return;
  if ((mod_rm & 7) == 5 && fields.mod == 0) fields.base = kNoBase;
  if ((mod_rm & 7) == 4 && at + 1 < bytes.size()) {
    const uint8_t sib = bytes[at + 1];
    const unsigned index = ((sib >> 3) & 7U) | ((rex & 2U) << 2);
    fields.base = (sib & 7U) | ((rex & 1U) << 3);
    if (index != 4 || ((sib & 7) == 5 && fields.mod == 0)) fields.base = kNoBase;
  }
}

// Opcodes of the one-byte map that concern us have ModRM, unless listed here; what is read for the
// others is not used.
bool has_modrm(unsigned opcode) {
  if (opcode >= 0x50 && opcode <= 0x5f) return false;
  if (opcode == 0x68 || opcode == 0x6a || (opcode >= 0x90 && opcode <= 0x9f)) return false;
  return opcode != 0xc9 && opcode != 0xc8;
}

bool is_prefix(uint8_t byte) {
  return byte == 0x66 || byte == 0xf2 || byte == 0xf3 || byte == 0x2e || byte == 0x3e ||
         byte == 0x64 || byte == 0x65 || byte == 0xf0;
}

// The displacement of lea and the immediate of add and sub are the instruction's last bytes.
void read_constant(std::span<const uint8_t> bytes, Fields& fields) {
  const auto size = static_cast<unsigned>(bytes.size());
  if (fields.opcode == kAddByte) fields.immediate = signed_field(bytes, size - 1, 1);
  if (fields.opcode == kAddWord && size > 4) fields.immediate = signed_field(bytes, size - 4, 4);
  if (fields.opcode != kLea) return;
  if (fields.mod == 1) fields.displacement = signed_field(bytes, size - 1, 1);
  if (fields.mod == 2 && size > 4) fields.displacement = signed_field(bytes, size - 4, 4);
}

Fields fields_of(std::span<const uint8_t> bytes) {
  Fields fields;
  unsigned at = 0;
  while (at + 1 < bytes.size() && is_prefix(bytes[at])) {
    if (bytes[at++] == 0x66) fields.operand_size = true;
  }
  uint8_t rex = 0;
  if (at + 1 < bytes.size() && (bytes[at] & 0xf0) == 0x40) rex = bytes[at++];
  fields.wide = (rex & 8) != 0;
  fields.opcode = bytes[at++];
  if (fields.opcode == 0x0f || fields.opcode == 0xc4 || fields.opcode == 0xc5 ||
      fields.opcode == 0x62) {
    return {.opcode = kOtherEncoding};
  }
  if (!has_modrm(fields.opcode)) {
    fields.rm = (fields.opcode & 7U) | ((rex & 1U) << 3);
  } else if (at < bytes.size()) {
    read_modrm(bytes, at, rex, fields);
    read_constant(bytes, fields);
  }
  return fields;
}

void add(std::optional<int64_t>& value, int64_t amount) {
  if (value) *value += amount;
}

void set_register(StackState& state, unsigned number, std::optional<int64_t> value) {
  if (number == kRsp) state.depth = value;
  if (number == kRbp) state.frame = value;
  if (number == kR11) state.probe = value;
}

std::optional<int64_t> register_value(const StackState& state, unsigned number) {
  if (number == kRsp) return state.depth;
  if (number == kRbp) return state.frame;
  if (number == kR11) return state.probe;
  return std::nullopt;
}

// lea destination, [base + displacement]
void apply_lea(const Fields& fields, StackState& state) {
  std::optional<int64_t> value = register_value(state, fields.base);
  add(value, -fields.displacement);
  // gcc realigns a stack with `lea r10,[rsp+8]` and ends with `lea rsp,[r10-8]`: nothing else ever
  // sets rsp to 8 below a general register.
  const bool realigned = fields.reg == kRsp && fields.base != kRsp && fields.base != kRbp &&
                         fields.base != kNoBase && fields.displacement == -kWord;
  if (realigned) value = 0;
  set_register(state, fields.reg, value);
}

// Group 1: add, or, adc, sbb, and, sub, xor, cmp with an immediate.
void apply_arithmetic(const Fields& fields, StackState& state) {
  if (fields.mod != 3 || fields.reg == 7) return;
  std::optional<int64_t> value = register_value(state, fields.rm);
  if (!fields.wide || (fields.reg != 0 && fields.reg != 5)) value.reset();
  add(value, fields.reg == 0 ? -fields.immediate : fields.immediate);
  set_register(state, fields.rm, value);
}

// op r/m, r (destination rm) and op r, r/m (destination reg), by opcode.
void apply_two_operands(const Fields& fields, StackState& state) {
  const bool to_rm = (fields.opcode & 2) == 0;
  if (to_rm && fields.mod != 3) return;
  const unsigned destination = to_rm ? fields.rm : fields.reg;
  const bool is_move = fields.opcode == 0x89 || fields.opcode == 0x8b;
  const bool from_register = fields.mod == 3 && is_move && fields.wide;
  const unsigned source = to_rm ? fields.reg : fields.rm;
  set_register(state, destination, from_register ? register_value(state, source) : std::nullopt);
}

void apply_push(const Fields& fields, StackState& state) {
  if (fields.operand_size) return state.depth.reset();
  add(state.depth, kWord);
}

void apply_pop(const Fields& fields, unsigned destination, StackState& state) {
  if (fields.operand_size) return state.depth.reset();
  add(state.depth, -kWord);
  set_register(state, destination, std::nullopt);
}

void apply_group5(const Fields& fields, StackState& state) {
  if (fields.reg == 6) return apply_push(fields, state);
  if (fields.mod == 3 && fields.reg < 2) set_register(state, fields.rm, std::nullopt);
}

void apply_compare(const Fields& fields, StackState& state) {
  const bool ends_probe_loop = fields.mod == 3 && ((fields.rm == kRsp && fields.reg == kR11) ||
                                                   (fields.rm == kR11 && fields.reg == kRsp));
  if (ends_probe_loop) state.depth = state.probe;
}

bool is_two_operand_write(unsigned opcode) {
  if (opcode < 0x40) return (opcode & 7) < 4 && (opcode & 1) == 1 && opcode < 0x38;
  return opcode == 0x89 || opcode == 0x8b;
}

}  // namespace

StackState apply(std::span<const uint8_t> bytes, StackState state) {
  const Fields fields = fields_of(bytes);
  const unsigned opcode = fields.opcode;
  if (opcode == kOtherEncoding) return state;
  const bool pushes = opcode == 0x68 || opcode == 0x6a || opcode == 0x9c;
  if (pushes || (opcode >= 0x50 && opcode <= 0x57)) {
    apply_push(fields, state);
  } else if (opcode >= 0x58 && opcode <= 0x5f) {
    apply_pop(fields, fields.rm, state);
  } else if (opcode == 0x8f || opcode == 0x9d) {
    apply_pop(fields, fields.mod == 3 ? fields.rm : kNoBase, state);
  } else if (opcode == kAddWord || opcode == kAddByte) {
    apply_arithmetic(fields, state);
  } else if (opcode == kLea) {
    apply_lea(fields, state);
  } else if (opcode == 0xc9) {
    state.depth = state.frame;
    apply_pop(fields, kRbp, state);
  } else if (opcode == 0xff) {
    apply_group5(fields, state);
  } else if (opcode == 0x39 || opcode == 0x3b) {
    apply_compare(fields, state);
  } else if (is_two_operand_write(opcode)) {
    apply_two_operands(fields, state);
  } else if (opcode == 0x87 || opcode == 0xc7 || opcode == 0x63) {
    if (fields.mod == 3) set_register(state, fields.rm, std::nullopt);
    if (opcode != 0xc7) set_register(state, fields.reg, std::nullopt);
  } else if (opcode == 0xc8) {
    state = {};
    state.depth.reset();
  }
  return state;
}

StackDepths::StackDepths(const ModuleCode& code, uint32_t function)
    : code_(code), parts_(code.parts_of(function)) {
  size_t size = 0;
  for (const AddressRange& part : parts_) {
    first_index_.push_back(size);
    size += part.end - part.begin;
  }
  seen_.resize(size);
  depths_.resize(size);
  branch_to(parts_.front().begin, {});
  while (!pending_.empty() || !behind_calls_.empty()) {
    // The oldest call first: the order, and so the answer, depends on the code alone.
    std::vector<Work>& from = pending_.empty() ? behind_calls_ : pending_;
    const Work work = pending_.empty() ? from.front() : from.back();
    from.erase(pending_.empty() ? from.begin() : from.end() - 1);
    follow(work);
  }
}

std::optional<size_t> StackDepths::index_of(uint64_t address) const {
  for (size_t i = 0; i < parts_.size(); ++i) {
    if (address >= parts_[i].begin && address < parts_[i].end) {
      return first_index_[i] + (address - parts_[i].begin);
    }
  }
  return std::nullopt;
}

void StackDepths::branch_to(uint64_t target, const StackState& state) {
  const std::optional<size_t> index = index_of(target);
  if (index && !seen_[*index]) pending_.push_back({target, state});
}

// Straight on until an instruction that was seen, or that control does not pass.
void StackDepths::follow(Work work) {
  while (true) {
    const std::optional<size_t> index = index_of(work.address);
    const std::optional<Instruction> instruction = code_.at(work.address);
    if (!index || !instruction || seen_[*index]) return;
    seen_[*index] = true;
    depths_[*index] = work.state.depth;
    switch (instruction->flow) {
      case Flow::Next:
        work.state = apply(code_.text_from(work.address).first(instruction->length), work.state);
        break;
      case Flow::Nop:
      case Flow::System:
        break;
      case Flow::Conditional:
        branch_to(branch_target(code_, *instruction), work.state);
        break;
      case Flow::Jump:
        branch_to(branch_target(code_, *instruction), work.state);
        return;
      case Flow::IndirectJump:
        for (const uint64_t target : code_.table_targets(work.address)) {
          branch_to(target, work.state);
        }
        return;
      case Flow::Call:
      case Flow::IndirectCall:
        if (code_.is_target(instruction->end())) {
          behind_calls_.push_back({instruction->end(), work.state});
          return;
        }
        break;
      case Flow::Int3:
      case Flow::Return:
      case Flow::Trap:
      case Flow::Bad:
        return;
    }
    work.address = instruction->end();
  }
}

std::optional<int64_t> StackDepths::at(uint64_t address) const {
  const std::optional<size_t> index = index_of(address);
  return index && seen_[*index] ? depths_[*index] : std::nullopt;
}

}  // namespace clew::code

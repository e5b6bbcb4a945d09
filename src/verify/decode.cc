// SPDX-License-Identifier: Apache-2.0
// Our own decoder: a table of the whitelisted encodings and of nothing else (SDM volume 2, 2.1 and
// appendix A). It takes the prefixes in one order, F0 65 66 REX, and no bit that has no effect, so
// that an instruction has one encoding per row.
#include <algorithm>
#include <array>

#include "verify/instruction.h"

namespace clew::verify {
namespace {

// Where the operands are.
enum class Form : uint8_t {
  RmReg,        // first = rm, second = reg
  RegRm,        // first = reg, second = rm
  RmImmediate,  // first = rm, immediate; reg is an opcode extension
  RmCount,      // first = rm, second = cl; extension
  Rm,           // first = rm; extension
  RmVector,     // first = rm, second = xmm reg; prefix 66 is part of the opcode
  RegRmImmediate,
  Opcode,           // first = low three bits of the opcode
  OpcodeImmediate,  // and an immediate of the operand's size
  None,
  Relative,
};

// Operand sizes in bytes; a row or-s those that it takes.
constexpr uint8_t kByte = 1;
constexpr uint8_t kWord = 2;
constexpr uint8_t kLong = 4;
constexpr uint8_t kQuad = 8;
enum class RmKind : uint8_t { Register, Memory, Either };

struct Row {
  uint16_t opcode;      // 0x0Fxx for the two-byte map.
  uint8_t opcode_mask;  // 0xFF; 0xF8 with a register, 0xF0 with a condition, in the low bits.
  uint8_t extension;    // ModRM.reg, for the forms with an extension.
  Operation operation;
  Form form;
  uint8_t sizes;  // Operand sizes, or-ed.
  RmKind rm;
  uint8_t immediate_size;  // Bytes; kBySize: 2 with prefix 66, 4 otherwise (8 for OpcodeImmediate).
  uint8_t source_size;     // Of the extending moves.
  bool lockable;           // May, and where `locked` must, have the prefix.
  bool locked;
};

constexpr uint8_t kBySize = 0xFF;
constexpr uint8_t kNoExtension = 0;
constexpr uint8_t kBoth = kLong | kQuad;

constexpr Row alu_store(uint16_t opcode, Operation operation, bool lockable) {
  return {opcode, 0xFF, 0, operation, Form::RmReg, kBoth, RmKind::Either, 0, 0, lockable, false};
}
constexpr Row alu_load(uint16_t opcode, Operation operation) {
  return {opcode, 0xFF, 0, operation, Form::RegRm, kBoth, RmKind::Memory, 0, 0, false, false};
}
constexpr Row immediate(uint16_t opcode, uint8_t extension, Operation operation, uint8_t size) {
  return {opcode, 0xFF, extension, operation, Form::RmImmediate, kBoth, RmKind::Either,
          size,   0,    false,     false};
}
constexpr Row shift(uint8_t extension, Operation operation) {
  return {0xC1, 0xFF, extension, operation, Form::RmImmediate, kBoth, RmKind::Register,
          1,    0,    false,     false};
}
constexpr Row shift_by_count(uint8_t extension, Operation operation) {
  return {0xD3, 0xFF, extension, operation, Form::RmCount, kBoth, RmKind::Register,
          0,    0,    false,     false};
}
constexpr Row extending(uint16_t opcode, Operation operation, uint8_t sizes, uint8_t source) {
  return {opcode, 0xFF, 0, operation, Form::RegRm, sizes, RmKind::Either, 0, source, false, false};
}
constexpr Row moving(uint16_t opcode, Form form, uint8_t sizes, RmKind rm, uint8_t immediate_size) {
  return {opcode, 0xFF,  kNoExtension, Operation::Move, form, sizes, rm, immediate_size,
          0,      false, false};
}
constexpr Row register_only(uint16_t opcode, Operation operation, Form form, uint8_t sizes,
                            uint8_t immediate_size = 0) {
  return {opcode,           0xFF,           0, operation, form, sizes,
          RmKind::Register, immediate_size, 0, false,     false};
}
constexpr Row locked(uint16_t opcode, Operation operation, bool prefixed) {
  return {opcode, 0xFF, 0, operation, Form::RmReg, kBoth, RmKind::Memory, 0, 0, prefixed, prefixed};
}
constexpr Row branch(uint16_t opcode, uint8_t mask, Operation operation, uint8_t size) {
  return {opcode, mask, 0, operation, Form::Relative, 0, RmKind::Register, size, 0, false, false};
}

constexpr auto kRows = std::to_array<Row>({
    alu_store(0x01, Operation::Add, true),
    alu_store(0x09, Operation::Or, true),
    alu_store(0x21, Operation::And, true),
    alu_store(0x29, Operation::Subtract, true),
    alu_store(0x31, Operation::Xor, true),
    alu_store(0x39, Operation::Compare, false),
    alu_load(0x03, Operation::Add),
    alu_load(0x0B, Operation::Or),
    alu_load(0x23, Operation::And),
    alu_load(0x2B, Operation::Subtract),
    alu_load(0x33, Operation::Xor),
    alu_load(0x3B, Operation::Compare),
    immediate(0x81, 0, Operation::Add, 4),
    immediate(0x81, 1, Operation::Or, 4),
    immediate(0x81, 4, Operation::And, 4),
    immediate(0x81, 5, Operation::Subtract, 4),
    immediate(0x81, 6, Operation::Xor, 4),
    immediate(0x81, 7, Operation::Compare, 4),
    immediate(0x83, 0, Operation::Add, 1),
    immediate(0x83, 1, Operation::Or, 1),
    immediate(0x83, 4, Operation::And, 1),
    immediate(0x83, 5, Operation::Subtract, 1),
    immediate(0x83, 6, Operation::Xor, 1),
    immediate(0x83, 7, Operation::Compare, 1),
    shift(0, Operation::RotateLeft),
    shift(1, Operation::RotateRight),
    shift(4, Operation::ShiftLeft),
    shift(5, Operation::ShiftRight),
    shift(7, Operation::ShiftRightSigned),
    shift_by_count(0, Operation::RotateLeft),
    shift_by_count(1, Operation::RotateRight),
    shift_by_count(4, Operation::ShiftLeft),
    shift_by_count(5, Operation::ShiftRight),
    shift_by_count(7, Operation::ShiftRightSigned),
    register_only(0x85, Operation::Test, Form::RmReg, kBoth),
    {0xF7, 0xFF, 0, Operation::Test, Form::RmImmediate, kBoth, RmKind::Register, 4, 0, false,
     false},
    {0xF7, 0xFF, 3, Operation::Negate, Form::Rm, kBoth, RmKind::Register, 0, 0, false, false},
    register_only(0x0FAF, Operation::Multiply, Form::RegRm, kBoth),
    register_only(0x69, Operation::Multiply, Form::RegRmImmediate, kBoth, 4),
    register_only(0x6B, Operation::Multiply, Form::RegRmImmediate, kBoth, 1),
    register_only(0x0FBD, Operation::BitScanReverse, Form::RegRm, kQuad),
    moving(0x88, Form::RmReg, kByte, RmKind::Memory, 0),
    moving(0x89, Form::RmReg, kBoth, RmKind::Either, 0),
    moving(0x89, Form::RmReg, kWord, RmKind::Memory, 0),
    moving(0x8B, Form::RegRm, kBoth, RmKind::Memory, 0),
    moving(0xC6, Form::RmImmediate, kByte, RmKind::Memory, 1),
    moving(0xC7, Form::RmImmediate, kWord | kLong, RmKind::Memory, kBySize),
    moving(0xC7, Form::RmImmediate, kQuad, RmKind::Either, kBySize),
    {0xB8, 0xF8, 0, Operation::Move, Form::OpcodeImmediate, kBoth, RmKind::Register, kBySize, 0,
     false, false},
    extending(0x0FB6, Operation::MoveZeroExtended, kLong, 1),
    extending(0x0FB7, Operation::MoveZeroExtended, kLong, 2),
    extending(0x0FBE, Operation::MoveSignExtended, kBoth, 1),
    extending(0x0FBF, Operation::MoveSignExtended, kBoth, 2),
    extending(0x63, Operation::MoveSignExtended, kQuad, 4),
    {0x8D, 0xFF, 0, Operation::AddressOf, Form::RegRm, kQuad, RmKind::Memory, 0, 0, false, false},
    {0x0FC8, 0xF8, 0, Operation::SwapBytes, Form::Opcode, kBoth, RmKind::Register, 0, 0, false,
     false},
    register_only(0x0F7E, Operation::MoveFromVector, Form::RmVector, kQuad),
    {0x0F40, 0xF0, 0, Operation::MoveIf, Form::RegRm, kBoth, RmKind::Register, 0, 0, false, false},
    {0x0F31, 0xFF, 0, Operation::ReadTime, Form::None, 0, RmKind::Register, 0, 0, false, false},
    branch(0xEB, 0xFF, Operation::Jump, 1),
    branch(0xE9, 0xFF, Operation::Jump, 4),
    branch(0x70, 0xF0, Operation::JumpIf, 1),
    branch(0x0F80, 0xF0, Operation::JumpIf, 4),
    branch(0xE8, 0xFF, Operation::Call, 4),
    locked(0x0FC1, Operation::ExchangeAdd, true),
    locked(0x0FB1, Operation::CompareExchange, true),
    locked(0x87, Operation::Exchange, false),
});

constexpr std::array<uint8_t, 3> kReadTimeAndCpu = {0x0F, 0x01, 0xF9};

class Reader {
 public:
  explicit Reader(std::span<const uint8_t> bytes) : bytes_(bytes) {}
  std::optional<Instruction> read();

 private:
  bool read_prefixes();
  bool read_opcode();
  bool try_row(const Row& row);
  bool fill(const Row& row);
  bool read_rm(const Row& row);
  bool read_memory(uint8_t mode, uint8_t low);
  bool read_sib(uint8_t mode);
  bool read_immediate(const Row& row);
  bool read_branch(const Row& row);
  bool number(uint32_t size, uint64_t& value);
  bool next(uint8_t& value);
  bool place(const Row& row);
  bool put_register(Operand& operand, uint32_t value, uint32_t size);
  [[nodiscard]] uint8_t size_of(const Row& row) const;
  [[nodiscard]] bool rex_is_minimal() const;

  std::span<const uint8_t> bytes_;
  size_t position_ = 0;
  bool lock_ = false;
  bool gs_ = false;
  bool word_ = false;
  uint8_t rex_ = 0;
  uint8_t rex_used_ = 0;  // Bits that had an effect; 0x40 when the presence had one.
  uint16_t opcode_ = 0;
  uint8_t reg_ = 0;
  Operand rm_;
  Instruction out_;
};

bool Reader::next(uint8_t& value) {
  if (position_ >= bytes_.size()) return false;
  value = bytes_[position_++];
  return true;
}

bool Reader::number(uint32_t size, uint64_t& value) {
  if (bytes_.size() - position_ < size) return false;
  value = 0;
  for (uint32_t i = 0; i < size; ++i)
    value |= uint64_t{bytes_[position_ + i]} << (8 * i);
  position_ += size;
  return true;
}

// `size` is 1 to 8 bytes.
uint64_t sign_extend(uint64_t value, uint32_t size) {
  const uint32_t shift = 64 - 8 * std::clamp(size, 1U, 8U);
  return static_cast<uint64_t>(static_cast<int64_t>(value << shift) >> shift);
}

uint64_t cut(uint64_t value, uint32_t size) {
  return size == 8 ? value : value & ((uint64_t{1} << (8 * size)) - 1);
}

bool Reader::read_prefixes() {
  const auto take = [&](uint8_t prefix) {
    const bool found = position_ < bytes_.size() && bytes_[position_] == prefix;
    if (found) ++position_;
    return found;
  };
  lock_ = take(0xF0);
  gs_ = take(0x65);
  word_ = take(0x66);
  if (position_ < bytes_.size() && (bytes_[position_] & 0xF0U) == 0x40) rex_ = bytes_[position_++];
  return read_opcode();
}

bool Reader::read_opcode() {
  uint8_t first = 0;
  if (!next(first)) return false;
  opcode_ = first;
  if (first != 0x0F) return true;
  uint8_t second = 0;
  if (!next(second)) return false;
  opcode_ = static_cast<uint16_t>(0x0F00U | second);
  return true;
}

uint8_t Reader::size_of(const Row& row) const {
  if ((rex_ & 8U) != 0) return 8;
  if (word_) return 2;
  return row.sizes == kByte ? uint8_t{1} : uint8_t{4};
}

// A byte register 4..7 is spl, bpl, sil, dil with any REX prefix, and ah..bh, which we do not take,
// without one.
bool Reader::put_register(Operand& operand, uint32_t value, uint32_t size) {
  operand = {.kind = Operand::Kind::Register, .in = static_cast<Register>(value)};
  if (size != 1 || value < 4 || value > 7) return true;
  rex_used_ |= 0x40;
  return rex_ != 0;
}

bool Reader::read_sib(uint8_t mode) {
  uint8_t sib = 0;
  if (!next(sib)) return false;
  const unsigned index = (sib >> 3 & 7U) | ((rex_ & 2U) << 2);
  const unsigned base = (sib & 7U) | ((rex_ & 1U) << 3);
  const bool no_base = mode == 0 && (sib & 7U) == 5;
  out_.memory.scale = 1;
  if (index != 4) {
    out_.memory.index = static_cast<Register>(index);
    out_.memory.scale = static_cast<uint8_t>(1U << (sib >> 6));
    rex_used_ = static_cast<uint8_t>(rex_used_ | 2U);
  } else if ((sib >> 6) != 0) {
    return false;  // A scale of nothing.
  }
  if (!no_base) {
    out_.memory.base = static_cast<Register>(base);
    rex_used_ = static_cast<uint8_t>(rex_used_ | 1U);
  }
  uint64_t displacement = 0;
  const uint32_t size = mode == 1 ? 1 : 4;
  if (mode == 0 && !no_base) return true;
  if (!number(size, displacement)) return false;
  out_.memory.displacement = static_cast<int32_t>(sign_extend(displacement, size));
  return true;
}

bool Reader::read_memory(uint8_t mode, uint8_t low) {
  out_.memory.gs = gs_;
  if (low == 4) return read_sib(mode);
  if (mode == 0 && low == 5) return false;  // Relative to rip.
  out_.memory.base = static_cast<Register>(low | (rex_ & 1U) << 3);
  rex_used_ = static_cast<uint8_t>(rex_used_ | 1U);
  if (mode == 0) return true;
  uint64_t displacement = 0;
  const uint32_t size = mode == 1 ? 1 : 4;
  if (!number(size, displacement)) return false;
  out_.memory.displacement = static_cast<int32_t>(sign_extend(displacement, size));
  return true;
}

bool Reader::read_rm(const Row& row) {
  uint8_t modrm = 0;
  if (!next(modrm)) return false;
  const auto mode = static_cast<uint8_t>(modrm >> 6);
  const auto low = static_cast<uint8_t>(modrm & 7U);
  reg_ = modrm >> 3 & 7U;
  if (mode != 3) {
    rm_ = {.kind = Operand::Kind::Memory};
    return row.rm != RmKind::Register && read_memory(mode, low);
  }
  if (row.rm == RmKind::Memory || gs_) return false;
  rex_used_ = static_cast<uint8_t>(rex_used_ | 1U);
  const uint32_t size = row.source_size != 0 ? row.source_size : out_.size_bytes;
  return put_register(rm_, low | (rex_ & 1U) << 3, size);
}

bool Reader::read_immediate(const Row& row) {
  if (row.immediate_size == 0) return true;
  uint32_t size = row.immediate_size;
  if (size == kBySize) {
    size = out_.size_bytes == 2 ? 2 : 4;
    if (row.form == Form::OpcodeImmediate) size = out_.size_bytes;
  }
  uint64_t value = 0;
  if (!number(size, value)) return false;
  out_.has_immediate = true;
  const bool counts =
      row.operation >= Operation::RotateLeft && row.operation <= Operation::ShiftRightSigned;
  out_.immediate = counts ? value : cut(sign_extend(value, size), out_.size_bytes);
  return true;
}

bool Reader::read_branch(const Row& row) {
  uint64_t distance = 0;
  if (!number(row.immediate_size, distance)) return false;
  out_.branch = static_cast<int64_t>(sign_extend(distance, row.immediate_size));
  if (row.opcode_mask == 0xF0) out_.condition = opcode_ & 0xFU;
  return rex_ == 0 && !word_ && !gs_ && !lock_;
}

// Puts rm and reg where the form says.
bool Reader::place(const Row& row) {
  if (row.form == Form::RmVector) {
    out_.first = rm_;
    out_.second = {.kind = Operand::Kind::Vector, .in = static_cast<Register>(reg_)};
    return true;  // REX.R would be xmm8 and up: it stays unused.
  }
  const bool has_reg =
      row.form == Form::RmReg || row.form == Form::RegRm || row.form == Form::RegRmImmediate;
  if (!has_reg) {
    if (reg_ != row.extension) return false;
    out_.first = rm_;
    if (row.form == Form::RmCount) out_.second.kind = Operand::Kind::CountRegister;
    return true;
  }
  rex_used_ = static_cast<uint8_t>(rex_used_ | 4U);
  Operand reg;
  if (!put_register(reg, reg_ | (rex_ & 4U) << 1, out_.size_bytes)) return false;
  out_.first = row.form == Form::RmReg ? rm_ : reg;
  out_.second = row.form == Form::RmReg ? reg : rm_;
  return true;
}

bool Reader::rex_is_minimal() const {
  if (rex_ == 0) return true;
  const unsigned set = rex_ & 0xFU;
  if (set == 0) return (rex_used_ & 0x40U) != 0;
  return (set & ~unsigned{rex_used_} & 7U) == 0;
}

bool Reader::fill(const Row& row) {
  out_.operation = row.operation;
  if (row.form == Form::Relative) return read_branch(row);
  if (row.form == Form::None) return rex_ == 0 && !word_ && !gs_ && !lock_;
  const uint8_t size = size_of(row);
  const bool with_word = size == 2 || row.form == Form::RmVector;
  const bool fits = (row.sizes & size) != 0 && word_ == with_word;
  if (!fits || lock_ != (row.locked || (lock_ && row.lockable))) return false;
  out_.size_bytes = size;
  out_.lock = lock_;
  out_.source_size_bytes = row.source_size;
  if (row.opcode_mask == 0xF0) out_.condition = opcode_ & 0xFU;
  if (row.form == Form::Opcode || row.form == Form::OpcodeImmediate) {
    rex_used_ = static_cast<uint8_t>(rex_used_ | 1U);
    if (gs_ || lock_) return false;
    out_.first = {.kind = Operand::Kind::Register,
                  .in = static_cast<Register>((opcode_ & 7U) | (rex_ & 1U) << 3)};
    return read_immediate(row) && rex_is_minimal();
  }
  if (!read_rm(row) || !place(row) || !read_immediate(row)) return false;
  if (lock_ && out_.first.kind != Operand::Kind::Memory) return false;
  if (gs_ && row.operation == Operation::AddressOf) return false;  // lea has no segment.
  return rex_is_minimal();
}

bool Reader::try_row(const Row& row) {
  const uint16_t mask = static_cast<uint16_t>(0xFF00U | row.opcode_mask);
  if ((opcode_ & mask) != row.opcode) return false;
  const size_t start = position_;
  if (fill(row)) return true;
  position_ = start;
  rex_used_ = 0;
  rm_ = {};
  out_ = {};
  return false;
}

std::optional<Instruction> Reader::read() {
  if (bytes_.size() >= 3 &&
      std::equal(kReadTimeAndCpu.begin(), kReadTimeAndCpu.end(), bytes_.begin())) {
    return Instruction{.operation = Operation::ReadTimeAndCpu, .length_bytes = 3};
  }
  if (!read_prefixes()) return std::nullopt;
  for (const Row& row : kRows) {
    if (!try_row(row)) continue;
    out_.length_bytes = static_cast<uint8_t>(position_);
    return out_;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Instruction> decode(std::span<const uint8_t> bytes) {
  return Reader(bytes).read();
}

}  // namespace clew::verify

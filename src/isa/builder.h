// SPDX-License-Identifier: Apache-2.0
// Builds a Program instruction by instruction. Mistakes (an offset out of range, a label that is
// never bound) are remembered and reported once, by finish(), so that callers chain freely:
//
//     Builder b;
//     const Label done = b.label();
//     b.load(Size::Double, Register::R2, Register::R1, offsetof(abi::Context, arguments))
//         .jump_if(Jump::Equal, Register::R2, 0, done)
//         .load_window(Register::R3, cell_offset)
//         .load(Size::Double, Register::R4, Register::R3, 0)
//         .alu(Alu::Add, Register::R4, 1)
//         .store(Size::Double, Register::R3, 0, Register::R4)
//         .bind(done)
//         .move(Register::R0, 0)
//         .exit();
//     Expected<Program> program = b.finish("count");
//
// It checks what one instruction needs to be encoded; isa/validator.h checks the program.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "abi/accessor.h"
#include "base/error.h"
#include "isa/opcode.h"
#include "isa/program.h"

namespace clew::isa {

// A place in the program under construction. Belongs to the builder that made it.
struct Label {
  uint32_t index = 0;
};

class Builder {
 public:
  // A new label; bind() says where it is, before or after its uses.
  Label label();
  Builder& bind(Label label);

  // dst = dst op src. Not for Move, Negate and Swap, which have their own functions. Divide and
  // Modulo are unsigned; alu_signed() has the signed ones. 32-bit results are zero-extended.
  Builder& alu(Alu op, Register dst, Register src, Width width = Width::Bits64);
  Builder& alu(Alu op, Register dst, int32_t immediate, Width width = Width::Bits64);
  Builder& alu_signed(Alu op, Register dst, Register src, Width width = Width::Bits64);
  Builder& alu_signed(Alu op, Register dst, int32_t immediate, Width width = Width::Bits64);
  Builder& negate(Register dst, Width width = Width::Bits64);

  Builder& move(Register dst, Register src, Width width = Width::Bits64);
  // The immediate is sign-extended to 64 bits, or zero-extended from 32 with Width::Bits32.
  Builder& move(Register dst, int32_t immediate, Width width = Width::Bits64);
  // dst = the low `from_bits` (8, 16, or 32 with Width::Bits64) of src, sign-extended.
  Builder& move_signed(Register dst, Register src, uint32_t from_bits, Width width = Width::Bits64);

  // The low `size_bytes` (1, 2, 4 or 8) of dst, extended to 64 bits.
  Builder& extend(Register dst, uint32_t size_bytes, bool is_signed);

  // Reverses the low `bits` (16, 32, 64) of dst and clears the others.
  Builder& swap_bytes(Register dst, uint32_t bits);
  // The low `bits` from this machine's byte order to the named one; clears the others.
  Builder& to_big_endian(Register dst, uint32_t bits);
  Builder& to_little_endian(Register dst, uint32_t bits);

  // dst = value, in the shortest form (mov, mov32 or lddw).
  Builder& load_constant(Register dst, uint64_t value);
  // dst = window pointer to byte `offset_bytes` of the window.
  Builder& load_window(Register dst, uint32_t offset_bytes);
  // dst = the address of byte `offset_bytes` of the globals (native/code.h).
  Builder& load_global(Register dst, uint32_t offset_bytes);
  // dst = the context again, where a call of a function may have changed the register that had it.
  Builder& load_context(Register dst);
  // dst = the constant that differs per site. finish() sets Program::site_constant_count.
  Builder& load_site_constant(Register dst, uint32_t index);

  // Loads zero-extend; load_signed() sign-extends Byte, Half and Word to 64 bits.
  Builder& load(Size size, Register dst, Register base, int32_t offset);
  Builder& load_signed(Size size, Register dst, Register base, int32_t offset);
  // dst = 1, 2, 4 or 8 bytes, extended to 64 bits.
  Builder& load_number(Register dst, Register base, int32_t offset, uint32_t size_bytes,
                       bool is_signed);
  Builder& store(Size size, Register base, int32_t offset, Register src);
  Builder& store(Size size, Register base, int32_t offset, int32_t immediate);
  // Word or Double. The address must be a multiple of the size.
  Builder& atomic(Atomic op, Size size, Register base, int32_t offset, Register src);

  Builder& jump(Label target);
  Builder& jump_if(Jump condition, Register left, Register right, Label target,
                   Width width = Width::Bits64);
  Builder& jump_if(Jump condition, Register left, int32_t right, Label target,
                   Width width = Width::Bits64);

  Builder& call(abi::Accessor accessor);
  Builder& call_local(Label function);
  Builder& exit();

  // How many instructions so far; LDDW counts as two.
  [[nodiscard]] uint32_t size() const { return static_cast<uint32_t>(code_.size()); }

  // The program, with branches resolved (an unconditional jump that is too far for 16 bits gets its
  // 32-bit form). Errors: Limit when it is too long or a conditional branch too far; InvalidQuery
  // for a misuse of the functions above, naming the instruction. The builder may be used on.
  [[nodiscard]] Expected<Program> finish(std::string name) const;

 private:
  struct Use {
    uint32_t instruction;
    Label target;
  };

  Builder& put(uint8_t opcode, uint8_t registers, int32_t offset, int32_t immediate);
  Builder& put_swap(uint8_t opcode, Register dst, uint32_t bits);
  Builder& put_load64(Register dst, Load64 kind, uint64_t value);
  Builder& put_branch(uint8_t opcode, uint8_t registers, int32_t immediate, Label target);
  void remember(const char* what);
  [[nodiscard]] Expected<void> resolve(const Use& use, std::vector<Instruction>& code) const;

  std::vector<Instruction> code_;
  std::vector<std::optional<uint32_t>> labels_;  // Where each label is bound.
  std::vector<Use> uses_;
  uint32_t site_constant_count_ = 0;
  std::string first_error_;
};

}  // namespace clew::isa

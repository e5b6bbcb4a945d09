// SPDX-License-Identifier: Apache-2.0
// Operations -> instructions, in order, one body. Three files: lower_alu.cc (values),
// lower_memory.cc (window and context) and lower_control.cc (branches, calls, atomics' guards,
// loops); fuse.cc finds runs of operations that one instruction does.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "native/allocation.h"
#include "native/analysis.h"
#include "native/assembler.h"
#include "native/code.h"
#include "native/layout.h"
#include "native/operation.h"

namespace clew::native {

// A second operand: a constant, or a register that holds it.
struct Operand {
  bool is_constant = false;
  uint64_t constant = 0;
  Register in = Register::Rax;
};

struct LoweringInput {
  std::span<const Operation> operations;
  std::span<const Facts> facts;
  std::span<const Block> blocks;
  const Allocation& allocation;
  abi::RegisterSet clobbers;  // What the stub will save: at least allocation.clobbers.
  const Environment& environment;
  std::vector<LabelFacts> expected = {};  // Of a pass before.
};

Alu alu_of(isa::Alu op);                 // Of those that are one instruction of both machines.
Condition condition_of(isa::Jump jump);  // After a `cmp`, or of BitsSet after a `test`.

class Lowering {
 public:
  explicit Lowering(const LoweringInput& input);
  void run();
  // Valid once run() is done.
  [[nodiscard]] bool guarded() const { return guarded_; }
  Assembler& assembler() { return out_; }

 private:
  // lower_control.cc
  void begin(uint32_t index);
  void lower_block(const Block& block);
  void lower(uint32_t index);
  void end();
  void count_spent();
  void branch(uint32_t index);
  void jump_if(Condition condition, uint32_t index);
  [[nodiscard]] bool falls_into_target(uint32_t index) const;
  void compare(const Operation& op, Register left, const Operand& right);
  void call(uint32_t index);
  void load_arguments(uint32_t index);
  void inline_call(uint32_t index);
  void bit_length(uint32_t index);

  // lower_alu.cc
  void move(uint32_t index);
  void binary(uint32_t index);
  void add_constant(uint32_t index, Register dst, int64_t value);
  void bit_constant(Alu op, Register dst, uint64_t value, bool wide);
  void multiply(uint32_t index, Register dst, const Operand& right);
  void shift(const Operation& op, Register dst, const Operand& right);
  void divide(uint32_t index);
  void divide_by_constant(uint32_t index, uint64_t divisor);
  void divide_by_call(uint32_t index);
  void swap(uint32_t index);
  void widen(Register dst, const Operand& value, const Operation& op);
  // Puts the known result of an operation into its register.
  void materialise(Register dst, const Value& value);
  // The register of BPF register r, holding its value before operation `index`.
  Register bring(uint32_t index, uint8_t r);

  // lower_memory.cc
  void load(uint32_t index);
  void load_context(uint32_t index);
  void load_argument(const Operation& op, Register argument);
  void load_tid(Register dst);
  void narrow(Register dst, const Operation& op);
  void store(uint32_t index);
  void store_constant(const Address& to, uint64_t value, uint32_t size_bytes);
  void atomic(uint32_t index);
  void atomic_update(const Operation& op, const Address& to, Register source);
  Address address(uint32_t index, uint8_t base, uint32_t alignment = 1);
  Address dynamic_address(Register base, const Operation& op, bool may_mask_base,
                          uint32_t alignment);
  [[nodiscard]] bool is_global(uint64_t address, uint32_t size_bytes) const;
  [[nodiscard]] std::optional<Address> scratch_address(Register base, const Operation& op) const;
  [[nodiscard]] std::optional<Address> compared_address(Register base, const Operation& op);
  [[nodiscard]] Address slot_word(uint32_t offset_bytes) const;
  [[nodiscard]] Address stack_word(uint32_t offset_bytes) const;

  // fuse.cc: each returns the index of the last operation that it did, or nothing.
  std::optional<uint32_t> fuse(uint32_t index);
  std::optional<uint32_t> fuse_update(uint32_t load, uint32_t change);
  std::optional<uint32_t> fuse_compare(uint32_t load, uint32_t branch);
  std::optional<uint32_t> fuse_operand(uint32_t load, uint32_t use);
  std::optional<uint32_t> fuse_rotate(uint32_t first);
  std::optional<uint32_t> fuse_add(uint32_t move, uint32_t add);
  // The next operation that is translated, when no branch leads to it or before it.
  [[nodiscard]] std::optional<uint32_t> next(uint32_t index) const;
  [[nodiscard]] bool is_dead_after(uint32_t index, uint8_t r) const;
  [[nodiscard]] bool same_place(uint32_t load, uint32_t store) const;

  [[nodiscard]] Register assigned(uint8_t r) const;
  [[nodiscard]] Label label_of(uint32_t index) const;
  [[nodiscard]] Operand operand(uint32_t index) const;
  [[nodiscard]] Operand operand_of(uint32_t index, uint8_t r) const;
  [[nodiscard]] uint64_t window_size() const {
    return uint64_t{1} << input_.environment.window_size_log2;
  }
  [[nodiscard]] uint64_t window_mask() const { return window_size() - 1; }

  // r10 holds (base + offset) masked, as long as neither register is written.
  struct ScratchAddress {
    bool valid = false;
    Register base = Register::Rax;
    uint32_t base_writes = 0;
    uint32_t scratch_writes = 0;
    int32_t offset_bytes = 0;
  };

  LoweringInput input_;
  Assembler out_;
  std::vector<std::optional<Label>> labels_;  // By operation.
  Label end_;
  Label exhausted_;
  Label stray_;  // Where an access outside the window goes.
  bool may_stray_ = false;
  ScratchAddress scratch_;
  uint32_t next_block_ = 0;  // The first operation of the block that is laid out next.
  bool guarded_ = false;
};

// Does `value`, sign-extended from 32 bits (or cut to 32), equal the operand?
[[nodiscard]] bool fits_immediate(uint64_t value, bool wide);

}  // namespace clew::native

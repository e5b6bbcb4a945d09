// SPDX-License-Identifier: Apache-2.0
// Writes the x86-64 instructions that the verifier's whitelist has (verify/decode.h), and no
// others; keeps the value intervals of the registers as it goes; and chooses the size of jumps at
// the end. It knows nothing of BPF.
//
//   memory operand            encoding                             allowed
//   gs:[displacement]         65, mod 00, rm 100, SIB 25, disp32   load, store, locked
//   gs:[index + displacement] 65, mod 10, rm index, disp32         load, store, locked
//   [rsp + displacement]      mod 00/01/10, rm 100, SIB 24         load
//   [displacement]            mod 00, rm 100, SIB 25, disp32       one 4-byte load; the globals of
//   D:
//                                                                  load, store, locked
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "abi/stub.h"
#include "native/code.h"
#include "native/interval.h"

namespace clew::native {

using abi::Register;

struct Address {
  enum class Space : uint8_t { Slot, Stack, Absolute };
  Space space = Space::Slot;
  std::optional<Register> index = std::nullopt;
  int32_t displacement = 0;
};

enum class Alu : uint8_t { Add = 0, Or = 1, And = 4, Subtract = 5, Xor = 6, Compare = 7 };
enum class Shift : uint8_t {
  RotateLeft = 0,
  RotateRight = 1,
  Left = 4,
  Right = 5,
  RightSigned = 7
};

// The low four bits of a jcc opcode (SDM volume 2, appendix B.1.4.7).
enum class Condition : uint8_t {
  Below = 2,
  AboveOrEqual = 3,
  Equal = 4,
  NotEqual = 5,
  BelowOrEqual = 6,
  Above = 7,
  Negative = 8,
  Less = 12,
  GreaterOrEqual = 13,
  LessOrEqual = 14,
  Greater = 15,
};

struct Label {
  uint32_t index = 0;
};

// The highest value of each register at a label, over all ways that lead there.
struct LabelFacts {
  std::array<uint64_t, 16> high{};  // 0 as long as no way is known.
  [[nodiscard]] bool implies(const LabelFacts& other) const;
};

// `wide` selects 64 bits, else 32, whose result is zero-extended. Sizes are in bytes.
class Assembler {
 public:
  [[nodiscard]] const Interval& interval(Register r) const { return intervals_[number(r)]; }
  // Counts writes; a copy of the count says later whether anything wrote `r` since.
  [[nodiscard]] uint32_t writes(Register r) const { return writes_[number(r)]; }

  void move(Register dst, Register src, bool wide);
  void move_constant(Register dst, uint64_t value);
  void extend(Register dst, Register src, uint32_t from_bytes, bool is_signed, bool wide);
  void alu(Alu op, Register dst, Register src, bool wide);
  void alu_constant(Alu op, Register dst, int32_t value, bool wide);
  void test(Register a, Register b, bool wide);
  void test_constant(Register a, int32_t value, bool wide);
  void multiply(Register dst, Register src, bool wide);
  void multiply_constant(Register dst, Register src, int32_t value, bool wide);
  void shift(Shift op, Register dst, uint8_t count, bool wide);
  void shift_by_cl(Shift op, Register dst, bool wide);
  void negate(Register dst, bool wide);
  void swap_bytes(Register dst, bool wide);
  void add_to(Register dst, Register base, int32_t displacement);  // lea; flags stay
  void frame_address(Register dst, int32_t displacement);          // lea of rsp + displacement
  void bit_scan_reverse(Register dst, Register src);
  void move_from_vector(Register dst, uint8_t vector);  // The low half of xmm0 to xmm7.
  void move_if(Condition condition, Register dst, Register src, bool wide);
  void read_time();          // rdx:rax = time stamp counter
  void read_time_and_cpu();  // and ecx = IA32_TSC_AUX

  void load(Register dst, const Address& from, uint32_t size, bool is_signed);
  void store(const Address& to, Register src, uint32_t size);
  void store_constant(const Address& to, int32_t value, uint32_t size);
  void alu_memory(Alu op, const Address& to, Register src, uint32_t size);
  void alu_memory_constant(Alu op, const Address& to, int32_t value, uint32_t size);
  void alu_from_memory(Alu op, Register dst, const Address& from, uint32_t size);
  void locked_alu(Alu op, const Address& to, Register src, uint32_t size);
  void locked_fetch_add(const Address& to, Register src, uint32_t size);
  void exchange(const Address& to, Register src, uint32_t size);
  void locked_compare_exchange(const Address& to, Register src, uint32_t size);  // rax

  Label label();
  void bind(Label label);  // Known is here only what expect() said.
  // Facts at labels, by their numbers, for a second pass: those that ways() gave after the first.
  void expect(std::vector<LabelFacts> facts) { expected_ = std::move(facts); }
  [[nodiscard]] const std::vector<LabelFacts>& ways() const { return ways_; }
  // Whether all ways to all labels have what was expected there.
  [[nodiscard]] bool expectations_hold() const;
  void jump(Label target);
  void jump_if(Condition condition, Label target);
  // Goes on only with r <= limit, else to `out`.
  void bound(Register r, int32_t limit, Label out);
  void call(uint32_t door);
  // Puts `sub r13d, cost ; js exhausted` at a label that was just bound; finish() sets the cost.
  void loop_head(Label head, Label exhausted);

  // Registers written so far.
  [[nodiscard]] abi::RegisterSet written() const { return written_; }

  // Chooses jump sizes and fills in bytes, call displacements and facts.
  void finish(Code& code);

 private:
  struct Encoding {
    uint16_t opcode = 0;  // 0x0Fxx for two-byte opcodes.
    uint8_t field = 0;    // ModRM.reg: register number or opcode extension.
    uint8_t size = 4;     // Operand size in bytes.
    bool lock = false;
    bool byte_register = false;  // `field` names a byte register.
    uint8_t immediate_size = 0;
    int32_t immediate = 0;
  };
  struct JumpSite {
    uint32_t position;  // In code_, which has no jumps in it.
    uint32_t target;    // Label.
    int32_t condition;  // -1 = always.
    uint32_t weight;    // Of everything before it.
    uint32_t size = 2;
  };
  struct LabelSite {
    uint32_t position = 0;
    uint32_t jumps_before = 0;
    uint32_t weight = 0;
    bool bound = false;
    std::optional<uint32_t> head_immediate;  // Position of the cost field.
  };

  static bool fits_byte(int32_t value);
  static constexpr unsigned number(Register r) { return static_cast<unsigned>(r); }
  void set(Register r, const Interval& value);
  void byte(unsigned value) { code_.push_back(static_cast<uint8_t>(value)); }
  void little_endian(uint64_t value, uint32_t size);
  void opcode(uint16_t value);
  void prefixes(const Encoding& e, unsigned base, bool byte_base);
  void put(const Encoding& e, Register rm, bool byte_rm = false);
  void put(const Encoding& e, const Address& rm);
  void put_operand(uint8_t field, const Address& rm);
  void add_way(Label to);
  [[nodiscard]] bool falls_through() const;
  [[nodiscard]] std::vector<DeclaredFact> declared(const std::vector<uint32_t>& jumps_before) const;
  void set_loop_costs();
  void choose_jump_sizes();
  [[nodiscard]] std::vector<uint32_t> jump_sizes_before() const;
  void put_jump(const JumpSite& site, int32_t distance, std::vector<uint8_t>& bytes) const;

  std::vector<uint8_t> code_;
  std::vector<JumpSite> jumps_;
  size_t jumps_before_label_ = 0;  // Of the last label that was bound.
  std::vector<LabelSite> labels_;
  std::vector<CallFixup> calls_;  // Offsets in code_.
  std::array<Interval, 16> intervals_ = {};
  std::vector<LabelFacts> ways_;      // By label.
  std::vector<LabelFacts> expected_;  // The same, or empty.
  std::array<uint32_t, 16> writes_ = {};
  abi::RegisterSet written_;
  uint32_t weight_ = 0;  // Instructions so far, a call counting as abi::kCallFuel.
};

}  // namespace clew::native

// SPDX-License-Identifier: Apache-2.0
// Registers are typed by number: r9 keeps the context, r8 points to data, r0 and r2 to r7 are
// numbers that are always written. So every choice is valid wherever it stands, and branches need
// no bookkeeping beyond binding their labels.
#include "isa/random_program.h"

#include <algorithm>
#include <array>
#include <random>
#include <vector>

#include "abi/context.h"
#include "base/assert.h"
#include "isa/builder.h"

namespace clew::isa {
namespace {

constexpr Register kContext = Register::R9;
constexpr Register kData = Register::R8;
constexpr Register kFrame = Register::R10;

constexpr auto kNumbers =
    std::to_array<Register>({Register::R0, Register::R2, Register::R3, Register::R4, Register::R5,
                             Register::R6, Register::R7});

constexpr auto kOperations = std::to_array<Alu>(
    {Alu::Add, Alu::Subtract, Alu::Multiply, Alu::Divide, Alu::Or, Alu::And, Alu::ShiftLeft,
     Alu::ShiftRight, Alu::Modulo, Alu::Xor, Alu::ShiftRightSigned});

constexpr auto kConditions =
    std::to_array<Jump>({Jump::Equal, Jump::Greater, Jump::GreaterOrEqual, Jump::BitsSet,
                         Jump::NotEqual, Jump::SignedGreater, Jump::SignedGreaterOrEqual,
                         Jump::Less, Jump::LessOrEqual, Jump::SignedLess, Jump::SignedLessOrEqual});

constexpr auto kSizes = std::to_array<Size>({Size::Byte, Size::Half, Size::Word, Size::Double});

constexpr auto kAtomics = std::to_array<Atomic>(
    {Atomic::Add, Atomic::Or, Atomic::And, Atomic::Xor, Atomic::FetchAdd, Atomic::FetchOr,
     Atomic::FetchAnd, Atomic::FetchXor, Atomic::Exchange, Atomic::CompareExchange});

constexpr auto kArithmetic = std::to_array<abi::Accessor>(
    {abi::Accessor::BitLength, abi::Accessor::DivideUnsigned, abi::Accessor::ModuloUnsigned,
     abi::Accessor::DivideSigned, abi::Accessor::ModuloSigned});

// Where an implementation is wrong first.
constexpr auto kEdges = std::to_array<uint64_t>({0,
                                                 1,
                                                 2,
                                                 7,
                                                 8,
                                                 31,
                                                 32,
                                                 63,
                                                 64,
                                                 0x7F,
                                                 0x80,
                                                 0xFF,
                                                 0x7FFF,
                                                 0x8000,
                                                 0xFFFF,
                                                 0x7FFF'FFFF,
                                                 0x8000'0000,
                                                 0xFFFF'FFFF,
                                                 0x1'0000'0000,
                                                 0x7FFF'FFFF'FFFF'FFFF,
                                                 0x8000'0000'0000'0000,
                                                 0xFFFF'FFFF'FFFF'FFFF,
                                                 0xFFFF'FFFF'8000'0000,
                                                 0xFFFF'FFFF'0000'0000});

constexpr int32_t kScratchBytes = 64;  // Of the frame, directly below r10; written at the start.

bool is_shift(Alu op) {
  return op == Alu::ShiftLeft || op == Alu::ShiftRight || op == Alu::ShiftRightSigned;
}

bool is_division(Alu op) {
  return op == Alu::Divide || op == Alu::Modulo;
}

class Generator {
 public:
  explicit Generator(const RandomProgramOptions& options)
      : options_(options), random_(options.seed) {
    CLEW_ASSERT(options.data_offset % 8 == 0 && options.data_size_bytes % 8 == 0);
    CLEW_ASSERT(options.data_size_bytes >= 8 && options.data_size_bytes <= 2048);
  }

  Program generate() {
    put_start();
    for (uint32_t step = 0; step < options_.steps; ++step) {
      put_step();
      bind_due_labels(step);
    }
    bind_due_labels(UINT32_MAX);
    put_end();
    Expected<Program> program = b_.finish("random");
    CLEW_ASSERT(program.has_value());
    return std::move(*program);
  }

 private:
  struct OpenLabel {
    Label label;
    uint32_t step;  // Bound after this step.
  };

  // Uniform in [0, bound). Not a std:: distribution: their results differ between libraries. For
  // the same reason no call below draws twice: compilers differ in the order of arguments.
  uint64_t below(uint64_t bound) { return random_() % bound; }
  bool coin() { return below(2) == 0; }

  template <typename T, size_t N>
  T any_of(const std::array<T, N>& choices) {
    return choices[below(N)];
  }

  uint64_t any_value() {
    if (coin()) return any_of(kEdges);
    return random_() >> below(64);
  }
  int32_t any_immediate() { return static_cast<int32_t>(any_value()); }
  Width any_width() { return coin() ? Width::Bits32 : Width::Bits64; }
  Register any_number() { return any_of(kNumbers); }

  void put_start() {
    if (options_.context) b_.move(kContext, Register::R1);
    if (options_.window_pointers) b_.load_window(kData, options_.data_offset);
    for (const Register number : kNumbers)
      b_.load_constant(number, any_value());
    for (int32_t at = 8; at <= kScratchBytes; at += 8) {
      b_.store(Size::Double, kFrame, -at, any_number());
    }
  }

  void put_step() {
    switch (below(16)) {
      case 0:
      case 1:
      case 2:
      case 3:
      case 4:
        return put_alu();
      case 5:
        return put_move();
      case 6:
        return put_unary();
      case 7:
      case 8:
        return put_load();
      case 9:
      case 10:
        return put_store();
      case 11:
        return put_atomic();
      case 12:
        return put_source();
      case 13:
        return put_accessor();
      default:
        return put_branch();
    }
  }

  void put_alu() {
    const Alu op = any_of(kOperations);
    const Width width = any_width();
    const Register dst = any_number();
    const bool is_signed = is_division(op) && coin();
    if (coin()) {
      const Register src = any_number();
      is_signed ? b_.alu_signed(op, dst, src, width) : b_.alu(op, dst, src, width);
      return;
    }
    const int32_t immediate = operand_for(op, width);
    is_signed ? b_.alu_signed(op, dst, immediate, width) : b_.alu(op, dst, immediate, width);
  }

  int32_t operand_for(Alu op, Width width) {
    const int32_t immediate = any_immediate();
    if (!options_.kernel_rules) return immediate;
    if (is_shift(op)) return immediate & (width == Width::Bits32 ? 31 : 63);
    if (is_division(op) && immediate == 0) return 3;
    return immediate;
  }

  void put_move() {
    const Register dst = any_number();
    const Register src = any_number();
    switch (below(4)) {
      case 0:
        b_.move(dst, src, any_width());
        return;
      case 1:
        put_move_immediate(dst);
        return;
      case 2:
        b_.load_constant(dst, any_value());
        return;
      default:
        break;
    }
    const Width width = any_width();
    const uint64_t choices = width == Width::Bits64 ? 3 : 2;
    b_.move_signed(dst, src, 8U << below(choices), width);
  }

  void put_move_immediate(Register dst) {
    const int32_t immediate = any_immediate();
    b_.move(dst, immediate, any_width());
  }

  void put_unary() {
    const Register dst = any_number();
    const uint32_t bits = 16U << below(3);
    switch (below(4)) {
      case 0:
        b_.negate(dst, any_width());
        return;
      case 1:
        b_.swap_bytes(dst, bits);
        return;
      case 2:
        b_.to_big_endian(dst, bits);
        return;
      default:
        b_.to_little_endian(dst, bits);
        return;
    }
  }

  // A place that may be accessed: frame scratch or data.
  struct Place {
    Register base;
    int32_t offset;
  };

  Place any_place(Size size, bool aligned) {
    const bool frame = !options_.window_pointers || (aligned && options_.kernel_rules) || coin();
    const uint32_t bytes = frame ? uint32_t{kScratchBytes} : options_.data_size_bytes;
    const uint32_t unit = aligned || options_.kernel_rules ? size_bytes(size) : 1;
    const uint64_t slots = (bytes - size_bytes(size)) / unit + 1;
    const auto offset = static_cast<int32_t>(below(slots) * unit);
    if (frame) return {kFrame, offset - kScratchBytes};
    return {kData, offset};
  }

  void put_load() {
    const Size size = any_of(kSizes);
    const Place place = any_place(size, false);
    const Register dst = any_number();
    if (size != Size::Double && coin()) {
      b_.load_signed(size, dst, place.base, place.offset);
    } else {
      b_.load(size, dst, place.base, place.offset);
    }
  }

  void put_store() {
    const Size size = any_of(kSizes);
    const Place place = any_place(size, false);
    if (coin()) {
      b_.store(size, place.base, place.offset, any_number());
    } else {
      b_.store(size, place.base, place.offset, any_immediate());
    }
  }

  void put_atomic() {
    const Size size = coin() ? Size::Word : Size::Double;
    const Place place = any_place(size, true);
    const Atomic op = any_of(kAtomics);
    const Register operand = any_number();
    if (options_.kernel_rules) veil(place, size);
    b_.atomic(op, size, place.base, place.offset, operand);
    // Linux 6.18 on x86 does not clear the upper half of r0, as RFC 9669 wants it, where its
    // verifier sees no use of it because it has pruned the path that has one.
    const bool repairs = options_.kernel_rules && op == Atomic::CompareExchange;
    if (repairs && size == Size::Word) b_.move(Register::R0, Register::R0, Width::Bits32);
  }

  // Behind an addition the kernel's verifier forgets what it knew of the word. Linux 6.18 concludes
  // from what an atomic instruction fetches from the frame, but prunes as if it did not.
  void veil(const Place& place, Size size) {
    b_.move(Register::R1, 0).atomic(Atomic::Add, size, place.base, place.offset, Register::R1);
  }

  // A load from the context, or a site constant.
  void put_source() {
    const Register dst = any_number();
    if (options_.site_constants > 0 && coin()) {
      b_.load_site_constant(dst, static_cast<uint32_t>(below(options_.site_constants)));
      return;
    }
    if (!options_.context) return put_alu();
    const Size size = any_of(kSizes);
    const uint64_t bytes = size_bytes(size);
    const auto offset = static_cast<int32_t>(below(sizeof(abi::Context) / bytes) * bytes);
    b_.load(size, dst, kContext, offset);
  }

  // r1 to r5 are lost at a call; the numbers among them get new values.
  void put_accessor() {
    if (!options_.accessors) return put_alu();
    b_.move(Register::R1, any_number());
    if (coin()) b_.load_constant(Register::R2, any_value());
    b_.call(any_of(kArithmetic));
    for (const Register lost : {Register::R2, Register::R3, Register::R4, Register::R5}) {
      const Register kept = any_of(kKept);
      b_.move(lost, kept, any_width());
    }
  }
  static constexpr auto kKept = std::to_array<Register>({Register::R0, Register::R6, Register::R7});

  void put_branch() {
    const Label label = b_.label();
    const Register left = any_number();
    const uint64_t kind = below(8);
    const Jump condition = any_of(kConditions);
    const Width width = any_width();
    if (kind < 4) {
      b_.jump_if(condition, left, any_number(), label, width);
    } else {
      b_.jump_if(condition, left, any_immediate(), label, width);
    }
    // Now and then an unconditional one, over an instruction that the branch above may reach.
    if (kind == 7) {
      const Label over = b_.label();
      b_.jump(over).bind(label);
      put_alu();
      b_.bind(over);
      return;
    }
    open_.push_back({label, current_step_ + 1 + static_cast<uint32_t>(below(6))});
  }

  void bind_due_labels(uint32_t step) {
    current_step_ = step;
    const auto due = std::stable_partition(open_.begin(), open_.end(),
                                           [&](const OpenLabel& open) { return open.step > step; });
    for (auto at = due; at != open_.end(); ++at)
      b_.bind(at->label);
    open_.erase(due, open_.end());
  }

  // r0 = r0 * 31 + each other number, then each word of the scratch area.
  void put_end() {
    for (const Register number : kNumbers)
      put_mix(number);
    for (int32_t at = 8; at <= kScratchBytes; at += 8) {
      b_.load(Size::Double, Register::R2, kFrame, -at);
      put_mix(Register::R2);
    }
    b_.move(Register::R2, Register::R0)
        .alu(Alu::ShiftRight, Register::R2, 32)
        .alu(Alu::Xor, Register::R0, Register::R2)
        .exit();
  }

  void put_mix(Register number) {
    b_.alu(Alu::Multiply, Register::R0, 31).alu(Alu::Add, Register::R0, number);
  }

  const RandomProgramOptions options_;
  std::mt19937_64 random_;
  Builder b_;
  std::vector<OpenLabel> open_;
  uint32_t current_step_ = 0;
};

}  // namespace

Program random_program(const RandomProgramOptions& options) {
  return Generator(options).generate();
}

}  // namespace clew::isa

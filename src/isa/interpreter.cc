// SPDX-License-Identifier: Apache-2.0
// One instruction at a time, by class.
#include "isa/interpreter.h"

#include <bit>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

#include <fmt/format.h>

#include "isa/validator.h"

namespace clew::isa {
namespace {

// RFC 9669, 4.1: division by 0 gives 0, the most negative number by -1 gives itself.
template <typename Word>
Word divide_signed(Word a, Word b) {
  using Signed = std::make_signed_t<Word>;
  if (b == 0) return 0;
  if (static_cast<Signed>(b) == -1) return Word{0} - a;
  return static_cast<Word>(static_cast<Signed>(a) / static_cast<Signed>(b));
}

// RFC 9669, 4.1: modulo 0 leaves the number, the sign is that of the dividend.
template <typename Word>
Word modulo_signed(Word a, Word b) {
  using Signed = std::make_signed_t<Word>;
  if (b == 0) return a;
  if (static_cast<Signed>(b) == -1) return 0;
  return static_cast<Word>(static_cast<Signed>(a) % static_cast<Signed>(b));
}

template <typename Word>
Word divide(Word a, Word b) {
  return b == 0 ? 0 : a / b;
}

template <typename Word>
Word modulo(Word a, Word b) {
  return b == 0 ? a : a % b;
}

uint64_t sign_extend(uint64_t value, uint32_t bits) {
  const uint32_t unused = 64 - bits;
  return static_cast<uint64_t>(static_cast<int64_t>(value << unused) >> unused);
}

uint64_t zero_extend(uint64_t value, uint32_t bits) {
  const uint32_t unused = 64 - bits;
  return value << unused >> unused;
}

template <typename Word>
Word move(int16_t from_bits, Word b) {
  return from_bits == 0 ? b : static_cast<Word>(sign_extend(b, static_cast<uint32_t>(from_bits)));
}

// `variant` is the offset field: 1 selects signed division, 8, 16 and 32 a sign-extending move.
template <typename Word>
Word compute(Alu op, int16_t variant, Word a, Word b) {
  using Signed = std::make_signed_t<Word>;
  const Word shift = b & (std::numeric_limits<Word>::digits - 1);
  switch (op) {
    case Alu::Add:
      return a + b;
    case Alu::Subtract:
      return a - b;
    case Alu::Multiply:
      return a * b;
    case Alu::Divide:
      return variant == 1 ? divide_signed(a, b) : divide(a, b);
    case Alu::Or:
      return a | b;
    case Alu::And:
      return a & b;
    case Alu::ShiftLeft:
      return a << shift;
    case Alu::ShiftRight:
      return a >> shift;
    case Alu::Negate:
      return Word{0} - a;
    case Alu::Modulo:
      return variant == 1 ? modulo_signed(a, b) : modulo(a, b);
    case Alu::Xor:
      return a ^ b;
    case Alu::Move:
      return move(variant, b);
    case Alu::ShiftRightSigned:
      return static_cast<Word>(static_cast<Signed>(a) >> shift);
    case Alu::Swap:
      break;  // Has a width of its own: swap().
  }
  return a;
}

uint64_t reverse_bytes(uint64_t value, uint32_t bits) {
  uint64_t reversed = 0;
  for (uint32_t at = 0; at < bits; at += 8)
    reversed = reversed << 8 | (value >> at & 0xFF);
  return reversed;
}

// RFC 9669, 4.2, on this little-endian machine: to little endian only truncates.
uint64_t swap(const Instruction& i, uint64_t value) {
  const auto bits = static_cast<uint32_t>(i.immediate);
  const bool to_little = class_of(i) == Class::Alu32 && !has_register_source(i);
  return to_little ? zero_extend(value, bits) : reverse_bytes(value, bits);
}

template <typename Word>
bool holds(Jump condition, Word a, Word b) {
  const auto signed_a = static_cast<std::make_signed_t<Word>>(a);
  const auto signed_b = static_cast<std::make_signed_t<Word>>(b);
  switch (condition) {
    case Jump::Always:
      return true;
    case Jump::Equal:
      return a == b;
    case Jump::Greater:
      return a > b;
    case Jump::GreaterOrEqual:
      return a >= b;
    case Jump::BitsSet:
      return (a & b) != 0;
    case Jump::NotEqual:
      return a != b;
    case Jump::SignedGreater:
      return signed_a > signed_b;
    case Jump::SignedGreaterOrEqual:
      return signed_a >= signed_b;
    case Jump::Less:
      return a < b;
    case Jump::LessOrEqual:
      return a <= b;
    case Jump::SignedLess:
      return signed_a < signed_b;
    case Jump::SignedLessOrEqual:
      return signed_a <= signed_b;
    case Jump::Call:
    case Jump::Exit:
      break;
  }
  return false;
}

// The new content of the memory word.
uint64_t update(Atomic op, uint64_t old, uint64_t operand) {
  switch (op) {
    case Atomic::Add:
    case Atomic::FetchAdd:
      return old + operand;
    case Atomic::Or:
    case Atomic::FetchOr:
      return old | operand;
    case Atomic::And:
    case Atomic::FetchAnd:
      return old & operand;
    case Atomic::Xor:
    case Atomic::FetchXor:
      return old ^ operand;
    case Atomic::Exchange:
      return operand;
    case Atomic::CompareExchange:
      break;  // Depends on r0: compare_exchange().
  }
  return old;
}

struct CallFrame {
  size_t return_to;
  std::array<uint64_t, 4> kept;  // r6 to r9.
};

class Machine {
 public:
  Machine(const Program& program, const Environment& environment)
      : code_(program.code), environment_(environment), window_(environment.window) {
    r_[1] = environment.r1;
    r_[2] = environment.r2;
    r_[10] = environment.frame_end;
  }

  Expected<Outcome> run() {
    while (!finished_) {
      if (executed_ == environment_.fuel) return stop(ErrorCode::Limit, "the fuel is used up");
      ++executed_;
      CLEW_TRY(step());
    }
    return Outcome{r_[0], executed_, r_};
  }

 private:
  Expected<void> step() {
    at_ = next_;
    const Instruction& i = code_[next_++];
    switch (class_of(i)) {
      case Class::Alu32:
        alu32(i);
        return {};
      case Class::Alu64:
        alu64(i);
        return {};
      case Class::Jump32:
        jump32(i);
        return {};
      case Class::Jump64:
        return jump64(i);
      case Class::Ld:
        return load64(i);
      case Class::Ldx:
        return load(i);
      case Class::St:
        return store(i, static_cast<uint64_t>(int64_t{i.immediate}));
      case Class::Stx:
        return mode_of(i) == Mode::Atomic ? atomic(i) : store(i, source(i));
    }
    return {};
  }

  uint64_t& destination(const Instruction& i) { return r_[i.destination()]; }
  [[nodiscard]] uint64_t source(const Instruction& i) const { return r_[i.source()]; }

  // The second operand: a register, or the immediate sign-extended.
  [[nodiscard]] uint64_t operand(const Instruction& i) const {
    return has_register_source(i) ? source(i) : static_cast<uint64_t>(int64_t{i.immediate});
  }

  void alu64(const Instruction& i) {
    const uint64_t a = destination(i);
    destination(i) =
        alu_of(i) == Alu::Swap ? swap(i, a) : compute(alu_of(i), i.offset, a, operand(i));
  }

  void alu32(const Instruction& i) {
    const uint64_t a = destination(i);
    destination(i) = alu_of(i) == Alu::Swap ? swap(i, a)
                                            : compute(alu_of(i), i.offset, static_cast<uint32_t>(a),
                                                      static_cast<uint32_t>(operand(i)));
  }

  void branch(int32_t distance) {
    next_ = static_cast<size_t>(static_cast<int64_t>(next_) + distance);
  }

  void jump32(const Instruction& i) {
    const auto a = static_cast<uint32_t>(destination(i));
    const auto b = static_cast<uint32_t>(operand(i));
    if (!holds(jump_of(i), a, b)) return;
    branch(jump_of(i) == Jump::Always ? i.immediate : i.offset);
  }

  Expected<void> jump64(const Instruction& i) {
    if (jump_of(i) == Jump::Exit) {
      leave();
      return {};
    }
    if (jump_of(i) == Jump::Call) {
      return i.source() == static_cast<uint8_t>(CallKind::Local) ? enter(i) : call(i);
    }
    if (holds(jump_of(i), destination(i), operand(i))) branch(i.offset);
    return {};
  }

  // The called function's frame lies below its caller's.
  Expected<void> enter(const Instruction& i) {
    if (frames_.size() + 1 == kCallDepthMax) {
      return stop(ErrorCode::Refused, fmt::format("more than {} calls deep", kCallDepthMax));
    }
    frames_.push_back({next_, {r_[6], r_[7], r_[8], r_[9]}});
    r_[10] -= kCalledFrameSizeBytes;
    branch(i.immediate);
    return {};
  }

  void leave() {
    if (frames_.empty()) {
      finished_ = true;
      return;
    }
    const CallFrame frame = frames_.back();
    frames_.pop_back();
    next_ = frame.return_to;
    for (size_t k = 0; k < frame.kept.size(); ++k)
      r_[6 + k] = frame.kept[k];
    r_[10] += kCalledFrameSizeBytes;
  }

  // r1 to r5 are undefined after a call; here they become a value that no program can want.
  Expected<void> call(const Instruction& i) {
    constexpr uint64_t kUndefined = 0xDEAD'BEEF'DEAD'BEEF;
    r_[0] = CLEW_TRY(accessor(static_cast<abi::Accessor>(i.immediate)));
    for (size_t k = 1; k <= 5; ++k)
      r_[k] = kUndefined;
    return {};
  }

  Expected<uint64_t> accessor(abi::Accessor which) {
    switch (which) {
      case abi::Accessor::BitLength:
        return static_cast<uint64_t>(std::bit_width(r_[1]));
      case abi::Accessor::DivideUnsigned:
        return divide(r_[1], r_[2]);
      case abi::Accessor::ModuloUnsigned:
        return modulo(r_[1], r_[2]);
      case abi::Accessor::DivideSigned:
        return divide_signed(r_[1], r_[2]);
      case abi::Accessor::ModuloSigned:
        return modulo_signed(r_[1], r_[2]);
      case abi::Accessor::Time:
      case abi::Accessor::Cpu:
      case abi::Accessor::TryRead:
      case abi::Accessor::TryReadString:
      case abi::Accessor::TableFind:
      case abi::Accessor::RecordPut:
      case abi::Accessor::RecordTake:
      case abi::Accessor::RecordDrop:
      case abi::Accessor::RecordTakeLeft:
      case abi::Accessor::WalkStack:
      case abi::Accessor::WalkWithin:
      case abi::Accessor::WalkLeft:
      case abi::Accessor::ContextOpen:
      case abi::Accessor::ContextAct:
        break;
    }
    if (!environment_.host) return stop(ErrorCode::Refused, "no host for this accessor");
    const Arguments arguments{r_[1], r_[2], r_[3], r_[4], r_[5]};
    Expected<uint64_t> result = environment_.host->call(which, arguments, window_);
    if (!result) return stop(result.error().code, result.error().message);
    return result;
  }

  Expected<void> load64(const Instruction& i) {
    const uint64_t high = static_cast<uint32_t>(code_[next_++].immediate);
    const uint64_t value = high << 32 | static_cast<uint32_t>(i.immediate);
    switch (static_cast<Load64>(i.source())) {
      case Load64::Immediate:
      case Load64::Window:
        destination(i) = value;
        return {};
      case Load64::SiteConstant:
        break;
      case Load64::Global:
        return stop(ErrorCode::Refused, "there are no globals here");
      case Load64::Context:
        if (!environment_.context) return stop(ErrorCode::Refused, "there is no context here");
        destination(i) = kContextAddress;
        return {};
    }
    if (value >= environment_.site_constants.size()) {
      return stop(ErrorCode::Refused, fmt::format("site constant {} was not given", value));
    }
    destination(i) = environment_.site_constants[value];
    return {};
  }

  [[nodiscard]] bool in_context(uint64_t address, uint64_t size) const {
    return environment_.context && address >= kContextAddress &&
           address - kContextAddress <= sizeof(abi::Context) - size;
  }

  static uint64_t address_of(uint64_t base, const Instruction& i) {
    return base + static_cast<uint64_t>(int64_t{i.offset});
  }

  Expected<void> load(const Instruction& i) {
    const uint64_t address = address_of(source(i), i);
    const uint32_t size = size_bytes(size_of(i));
    uint64_t value = 0;
    if (in_context(address, size)) {
      const auto* bytes = reinterpret_cast<const char*>(environment_.context);
      std::memcpy(&value, bytes + (address - kContextAddress), size);
    } else if (window_.holds(address, size)) {
      value = window_.load(address, size);
    } else {
      return outside("load", address, size);
    }
    destination(i) = mode_of(i) == Mode::MemorySigned ? sign_extend(value, 8 * size) : value;
    return {};
  }

  Expected<void> store(const Instruction& i, uint64_t value) {
    const uint64_t address = address_of(destination(i), i);
    const uint32_t size = size_bytes(size_of(i));
    if (!window_.holds(address, size)) return outside("store", address, size);
    window_.store(address, size, value);
    return {};
  }

  Expected<void> atomic(const Instruction& i) {
    const uint64_t address = address_of(destination(i), i);
    const uint32_t size = size_bytes(size_of(i));
    if (!window_.holds(address, size)) return outside("atomic access", address, size);
    if (address % size != 0) {
      return stop(ErrorCode::Refused, fmt::format("misaligned atomic access at {:#x}", address));
    }
    const uint64_t old = window_.load(address, size);
    const auto op = static_cast<Atomic>(i.immediate);
    if (op == Atomic::CompareExchange) {
      if (old == zero_extend(r_[0], 8 * size)) window_.store(address, size, source(i));
      r_[0] = old;
      return {};
    }
    window_.store(address, size, update(op, old, source(i)));
    if (is_fetch(i)) r_[i.source()] = old;
    return {};
  }

  [[nodiscard]] tl::unexpected<Error> outside(const char* what, uint64_t address,
                                              uint32_t size) const {
    return stop(ErrorCode::Refused,
                fmt::format("{} of {} bytes at {:#x}, outside the window", what, size, address));
  }

  [[nodiscard]] tl::unexpected<Error> stop(ErrorCode code, std::string_view what) const {
    return fail(code, fmt::format("instruction {}: {}", at_, what));
  }

  const std::vector<Instruction>& code_;
  const Environment& environment_;
  Window window_;
  std::array<uint64_t, kRegisterCount> r_{};
  std::vector<CallFrame> frames_;
  size_t at_ = 0;  // The instruction that runs now.
  size_t next_ = 0;
  uint64_t executed_ = 0;
  bool finished_ = false;
};

}  // namespace

Expected<Outcome> interpret(const Program& program, const Environment& environment) {
  CLEW_TRY(validate(program));
  return Machine(program, environment).run();
}

}  // namespace clew::isa

// SPDX-License-Identifier: Apache-2.0
// The interpreter of seccomp filters. Its contract is in seccomp_filter.h.
#include "inline/seccomp_filter.h"

#include <array>
#include <cstring>
#include <optional>

namespace clew::inline_ {
namespace {

// What the kernel lets in (Linux 6.18, seccomp_check_filter), by the instruction's code.
constexpr std::array<bool, 256> kLetIn = [] {
  std::array<bool, 256> codes{};
  for (const int code : {BPF_LD | BPF_W | BPF_ABS, BPF_LD | BPF_W | BPF_LEN, BPF_LD | BPF_IMM,
                         BPF_LD | BPF_MEM, BPF_LDX | BPF_W | BPF_LEN, BPF_LDX | BPF_IMM,
                         BPF_LDX | BPF_MEM, BPF_ST, BPF_STX, BPF_ALU | BPF_NEG, BPF_JMP | BPF_JA,
                         BPF_RET | BPF_K, BPF_RET | BPF_A, BPF_MISC | BPF_TAX, BPF_MISC | BPF_TXA})
    codes[static_cast<size_t>(code)] = true;
  for (const int source : {BPF_K, BPF_X}) {
    for (const int operation :
         {BPF_ADD, BPF_SUB, BPF_MUL, BPF_DIV, BPF_AND, BPF_OR, BPF_XOR, BPF_LSH, BPF_RSH})
      codes[static_cast<size_t>(BPF_ALU | operation | source)] = true;
    for (const int condition : {BPF_JEQ, BPF_JGE, BPF_JGT, BPF_JSET})
      codes[static_cast<size_t>(BPF_JMP | condition | source)] = true;
  }
  return codes;
}();

class Machine {
 public:
  Machine(std::span<const sock_filter> filter, const seccomp_data& call)
      : filter_(filter), call_(call) {}

  // Every step goes forward, so there are no more steps than instructions.
  uint32_t run() {
    while (next_ < filter_.size()) {
      const sock_filter& step = filter_[next_++];
      if (const std::optional<uint32_t> answer = execute(step)) return *answer;
    }
    return SECCOMP_RET_KILL_PROCESS;
  }

 private:
  // The answer, once there is one.
  std::optional<uint32_t> execute(const sock_filter& step) {
    if (step.code >= kLetIn.size() || !kLetIn[step.code]) return SECCOMP_RET_KILL_PROCESS;
    switch (BPF_CLASS(step.code)) {
      case BPF_LD:
        return load(step, a_);
      case BPF_LDX:
        return load(step, x_);
      case BPF_ST:
        return store(step, a_);
      case BPF_STX:
        return store(step, x_);
      case BPF_ALU:
        return compute(step);
      case BPF_JMP:
        return jump(step);
      case BPF_RET:
        return BPF_RVAL(step.code) == BPF_A ? a_ : step.k;
      default:
        return move(step);
    }
  }

  std::optional<uint32_t> load(const sock_filter& step, uint32_t& into) {
    switch (BPF_MODE(step.code)) {
      case BPF_IMM:
        into = step.k;
        return std::nullopt;
      case BPF_LEN:
        into = sizeof call_;
        return std::nullopt;
      case BPF_ABS:
        if (step.k % 4 != 0 || step.k >= sizeof call_) return SECCOMP_RET_KILL_PROCESS;
        std::memcpy(&into, reinterpret_cast<const uint8_t*>(&call_) + step.k, sizeof into);
        return std::nullopt;
      default:  // BPF_MEM
        if (step.k >= memory_.size()) return SECCOMP_RET_KILL_PROCESS;
        into = memory_[step.k];
        return std::nullopt;
    }
  }

  std::optional<uint32_t> store(const sock_filter& step, uint32_t value) {
    if (step.k >= memory_.size()) return SECCOMP_RET_KILL_PROCESS;
    memory_[step.k] = value;
    return std::nullopt;
  }

  std::optional<uint32_t> compute(const sock_filter& step) {
    const uint32_t operand = operand_of(step);
    // The kernel ends the filter with 0.
    if (BPF_OP(step.code) == BPF_DIV && operand == 0) return SECCOMP_RET_KILL_THREAD;
    a_ = computed(BPF_OP(step.code), a_, operand);
    return std::nullopt;
  }

  static uint32_t computed(int operation, uint32_t a, uint32_t operand) {
    constexpr uint32_t kShiftMask = 31;  // Of shifts by X, as the kernel's own machine has them.
    switch (operation) {
      case BPF_ADD:
        return a + operand;
      case BPF_SUB:
        return a - operand;
      case BPF_MUL:
        return a * operand;
      case BPF_DIV:
        return a / operand;
      case BPF_AND:
        return a & operand;
      case BPF_OR:
        return a | operand;
      case BPF_XOR:
        return a ^ operand;
      case BPF_LSH:
        return a << (operand & kShiftMask);
      case BPF_RSH:
        return a >> (operand & kShiftMask);
      default:
        return 0 - a;  // BPF_NEG
    }
  }

  // Places have 64 bits, so that no jump leads back.
  std::optional<uint32_t> jump(const sock_filter& step) {
    if (BPF_OP(step.code) == BPF_JA) {
      next_ += step.k;
    } else {
      next_ += holds(BPF_OP(step.code), a_, operand_of(step)) ? step.jt : step.jf;
    }
    return std::nullopt;
  }

  static bool holds(int condition, uint32_t a, uint32_t operand) {
    switch (condition) {
      case BPF_JEQ:
        return a == operand;
      case BPF_JGT:
        return a > operand;
      case BPF_JGE:
        return a >= operand;
      default:
        return (a & operand) != 0;  // BPF_JSET
    }
  }

  std::optional<uint32_t> move(const sock_filter& step) {
    const bool to_a = BPF_MISCOP(step.code) == BPF_TXA;
    (to_a ? a_ : x_) = to_a ? x_ : a_;
    return std::nullopt;
  }

  [[nodiscard]] uint32_t operand_of(const sock_filter& step) const {
    return BPF_SRC(step.code) == BPF_X ? x_ : step.k;
  }

  std::span<const sock_filter> filter_;
  const seccomp_data& call_;
  uint64_t next_ = 0;
  uint32_t a_ = 0;
  uint32_t x_ = 0;
  std::array<uint32_t, BPF_MEMWORDS> memory_{};
};

}  // namespace

uint32_t answer_of(std::span<const sock_filter> filter, const seccomp_data& call) {
  return Machine(filter, call).run();
}

uint32_t answer_of(std::span<const SeccompFilter> newest_first, const seccomp_data& call) {
  // The smaller the number, the more it restricts (Linux, seccomp_run_filters).
  const auto leniency = [](uint32_t answer) {
    return static_cast<int32_t>(answer & SECCOMP_RET_ACTION_FULL);
  };
  uint32_t strictest = SECCOMP_RET_ALLOW;
  for (const SeccompFilter& filter : newest_first) {
    const uint32_t answer = answer_of(std::span<const sock_filter>(filter), call);
    if (leniency(answer) < leniency(strictest)) strictest = answer;
  }
  return strictest;
}

}  // namespace clew::inline_

// SPDX-License-Identifier: Apache-2.0
// Test support: runs code from chosen registers and memory until it traps or faults, and says what
// it left. The signal handlers need global state, so there is one sandbox in a process, which is a
// child that may die of what it runs.
//
//     code  RWX, below 4 GiB             guard page | data | guard page
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include <sys/ucontext.h>

namespace clew::code {

inline constexpr uint64_t kSandboxCodeSize = uint64_t{16} * 4096;
inline constexpr uint64_t kSandboxDataSize = uint64_t{4} * 4096;

// Everything that an instruction may change, but for memory.
struct Registers {
  // As in gregset_t: r8..r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp
  std::array<int64_t, 16> general{};
  uint64_t flags = 0;
  // What XSAVE stores: x87, SSE, and as far as the CPU has them AVX, AVX-512, keys. Where the last
  // x87 instruction stood is left out: a copy stands elsewhere.
  std::vector<uint8_t> extended;
  bool operator==(const Registers&) const = default;
};

// Where hardware registers are in `general`: rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8..r15.
inline constexpr std::array<int, 16> kContextIndex = {
    REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
    REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};

struct Outcome {
  int signal = 0;
  uint64_t address = 0;  // Where it stopped.
  Registers registers;
};

class Sandbox {
 public:
  Sandbox(const Sandbox&) = delete;
  Sandbox& operator=(const Sandbox&) = delete;
  // The only one; ends the process when it cannot be made.
  static Sandbox& get();

  [[nodiscard]] uint8_t* code() const { return code_; }
  [[nodiscard]] uint8_t* data() const { return data_; }
  [[nodiscard]] uint64_t code_address() const { return reinterpret_cast<uint64_t>(code_); }
  [[nodiscard]] uint64_t data_address() const { return reinterpret_cast<uint64_t>(data_); }
  // The state of vector and x87 registers to begin with, and its parts that are registers and may
  // hold any bytes.
  [[nodiscard]] const std::vector<uint8_t>& extended() const { return extended_; }
  [[nodiscard]] static std::vector<std::span<uint8_t>> extended_registers(
      std::span<uint8_t> extended);

  // Of CF PF AF ZF SF OF.
  static constexpr uint64_t kFlagsMask = 0x8d5;
  Outcome run(uint64_t start, const Registers& registers);

 private:
  Sandbox();
  uint8_t* code_ = nullptr;
  uint8_t* data_ = nullptr;
  std::vector<uint8_t> extended_;
};

}  // namespace clew::code

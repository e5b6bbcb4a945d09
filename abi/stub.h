// SPDX-License-Identifier: Apache-2.0
// The contract between a trampoline's stub (src/inline) and the probe body inside it (src/native):
// which registers the stub saved where, and what the body may rely on.
//
// The stub pushes r10, then every register of `clobbers` except r10 in ascending hardware number.
// So while a body runs, with n = saved_count(clobbers):
//
//     rsp + 0            the register pushed last
//     …
//     rsp + 8*(n-1)      r10
//     rsp + 8*n          (entry and exit points) the return address = abi::Context::frame
//     rsp + 8*(n+1)      (entry points) the first stack argument
//
// At an offset point the stub first skips the red zone (128 bytes) and pushes the flags, so the
// words above r10 are not the frame of the function: `frame`, `caller` and stack arguments do not
// exist there. rsp never changes inside a body except by call and ret.
//
// Where a function takes or gives values in flags (src/inline/flag_use.h), its entry and exits keep
// them: rsp itself is never saved, so in `clobbers` it stands for the flags.
//
// A body begins with: the slot owned by this thread (gs-relative addresses reach it), busy set when
// the code is `guarded`, DF clear. It ends by falling off its last byte or jumping there. Flags are
// dead. Registers outside `clobbers` are as the program had them, and stay so.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace clew::abi {

// x86-64 hardware numbers.
enum class Register : uint8_t {
  Rax,
  Rcx,
  Rdx,
  Rbx,
  Rsp,
  Rbp,
  Rsi,
  Rdi,
  R8,
  R9,
  R10,
  R11,
  R12,
  R13,
  R14,
  R15
};

inline constexpr Register kSavedFlags = Register::Rsp;  // In a set of saved registers.

class RegisterSet {
 public:
  constexpr RegisterSet() = default;
  explicit constexpr RegisterSet(uint16_t bits) : bits_(bits) {}
  constexpr void add(Register r) { bits_ = static_cast<uint16_t>(bits_ | bit(r)); }
  [[nodiscard]] constexpr bool has(Register r) const { return (bits_ & bit(r)) != 0; }
  [[nodiscard]] constexpr uint16_t bits() const { return bits_; }
  constexpr bool operator==(const RegisterSet&) const = default;

 private:
  static constexpr uint16_t bit(Register r) {
    return static_cast<uint16_t>(1U << static_cast<unsigned>(r));
  }
  uint16_t bits_ = 0;
};

// How many words the stub has pushed; r10 always is one of them.
constexpr uint32_t saved_count(RegisterSet clobbers) {
  RegisterSet all = clobbers;
  all.add(Register::R10);
  return static_cast<uint32_t>(std::popcount(all.bits()));
}

// Offset from rsp, inside a body, of the saved value of `r`, which is r10 or in `clobbers`.
constexpr uint32_t saved_offset_bytes(RegisterSet clobbers, Register r) {
  if (r == Register::R10) return 8 * (saved_count(clobbers) - 1);
  uint32_t pushed_after = 0;
  for (auto n = static_cast<unsigned>(r) + 1; n < 16; ++n) {
    const auto other = static_cast<Register>(n);
    if (other != Register::R10 && clobbers.has(other)) ++pushed_after;
  }
  return 8 * pushed_after;
}

// All but rsp and rbp: what reads the program's registers wants this set, so that it knows where
// they are.
inline constexpr RegisterSet kAllSaved{0xFBCF};

// The words from rsp on, when the stub has saved exactly these.
struct AllSaved {
  uint64_t r15;
  uint64_t r14;
  uint64_t r13;
  uint64_t r12;
  uint64_t r11;
  uint64_t r9;
  uint64_t r8;
  uint64_t rdi;
  uint64_t rsi;
  uint64_t rbx;
  uint64_t rdx;
  uint64_t rcx;
  uint64_t rax;
  uint64_t r10;
  uint64_t above;  // The flags at an offset point, else the return address of the function.
};
inline constexpr uint64_t kRedZoneBytes = 128;  // Above the flags, at an offset point.
static_assert(offsetof(AllSaved, above) == 8 * uint64_t{saved_count(kAllSaved)});
static_assert(saved_offset_bytes(kAllSaved, Register::R15) == offsetof(AllSaved, r15));
static_assert(saved_offset_bytes(kAllSaved, Register::R11) == offsetof(AllSaved, r11));
static_assert(saved_offset_bytes(kAllSaved, Register::R9) == offsetof(AllSaved, r9));
static_assert(saved_offset_bytes(kAllSaved, Register::Rsi) == offsetof(AllSaved, rsi));
static_assert(saved_offset_bytes(kAllSaved, Register::Rbx) == offsetof(AllSaved, rbx));
static_assert(saved_offset_bytes(kAllSaved, Register::Rax) == offsetof(AllSaved, rax));
static_assert(saved_offset_bytes(kAllSaved, Register::R10) == offsetof(AllSaved, r10));

static_assert(saved_count(RegisterSet{}) == 1);
static_assert(saved_offset_bytes(RegisterSet{}, Register::R10) == 0);
static_assert(saved_offset_bytes(RegisterSet{0x0001}, Register::R10) == 8);  // rax pushed after r10
static_assert(saved_offset_bytes(RegisterSet{0x0001}, Register::Rax) == 0);
static_assert(saved_offset_bytes(RegisterSet{0x0005}, Register::Rax) == 8);  // rax, then rdx

}  // namespace clew::abi

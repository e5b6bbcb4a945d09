// SPDX-License-Identifier: Apache-2.0
// Code -> VerifiedCode: the independent machine-code verifier. It reads final bytes at their final
// address and a Policy, and trusts nobody above it: not the compiler, not the translator, not a
// peer. It may not see native/ or isa/. Rules R1..R15 are listed in check.cc.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "abi/stub.h"
#include "base/error.h"

namespace clew::verify {

// Claimed of a register at a label; check() makes sure that it holds on every way there (R8).
struct DeclaredFact {
  uint32_t offset_bytes = 0;  // Of the label in the bytes.
  abi::Register in = abi::Register::Rax;
  uint64_t high = 0;
};

// What may be called, exactly there, and the registers that it may change.
struct Callee {
  uint64_t address = 0;
  abi::RegisterSet changes;
  abi::RegisterSet saved = {};  // If any: it reads what the stub has saved, which must be these.
};

// What the bytes may do. Numbers come from the arena's layout, not from the code's producer.
struct Policy {
  uint64_t address = 0;               // Of the first byte, in the target.
  uint32_t window_address = 0;        // gs displacement of window byte 0.
  uint32_t window_size_log2 = 0;      // Window bytes = 2^n, then abi::kWindowSlackBytes.
  uint32_t slot_address = 0;          // gs displacement of SlotControl: loads only, 256 bytes.
  uint32_t generation_address = 0;    // Absolute: one 4-byte load.
  uint32_t globals_address = 0;       // Absolute, of a session: constant addresses inside, to load
  uint32_t globals_bytes = 0;         // and to store. 0 = none.
  uint32_t stack_readable_bytes = 0;  // [rsp + d] loads with d + size <= this. 0 = none.
  uint32_t stack_mapped_bytes = 0;  // Of these, what is there for sure; the rest needs R6's check.
  abi::RegisterSet clobbers;        // The registers that the stub saved: only these may be written.
  std::span<const Callee> callees = {};
  uint64_t fuel_max = 100'000;
  std::span<const DeclaredFact> facts = {};  // In the order of their offsets. Not trusted.
  bool time_is_readable = false;             // Every thread may use rdtsc: see PR_SET_TSC.
  bool cpu_is_readable = false;  // The processor has rdtscp, and every thread may use it.
  bool branch_guards = false;    // A compared bound is one: not for code of a fellow tenant's.
};

// Bytes that passed, bound to the address and policy they were checked for. Only check() makes one.
class VerifiedCode {
 public:
  [[nodiscard]] uint64_t address() const { return address_; }
  [[nodiscard]] std::span<const uint8_t> bytes() const { return bytes_; }
  [[nodiscard]] abi::RegisterSet clobbers() const { return clobbers_; }

 private:
  friend Expected<VerifiedCode> check(std::span<const uint8_t> bytes, const Policy& policy);
  VerifiedCode(uint64_t address, std::vector<uint8_t> bytes, abi::RegisterSet clobbers)
      : address_(address), bytes_(std::move(bytes)), clobbers_(clobbers) {}

  uint64_t address_;
  std::vector<uint8_t> bytes_;
  abi::RegisterSet clobbers_;
};

// Accepts, or says at which byte and by which rule it refuses:
// "verify: byte 0x12: R6: store outside the window".
Expected<VerifiedCode> check(std::span<const uint8_t> bytes, const Policy& policy);

}  // namespace clew::verify

// SPDX-License-Identifier: Apache-2.0
// Which x86 register each BPF register has in a body. r10 is never assigned: the stub saves it in
// any case, so it is the free scratch register. Registers that hold arguments of the traced
// function come last, since a context load is free while its register is untouched.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "abi/calling.h"
#include "abi/stub.h"
#include "base/error.h"
#include "native/analysis.h"

namespace clew::native {

inline constexpr Register kScratch = Register::R10;
inline constexpr Register kSecondScratch = Register::Rcx;  // Where `Needs::rcx` is set.
inline constexpr Register kThirdScratch = Register::Rdx;   // Where `Needs::rdx` is set.

struct Allocation {
  std::array<std::optional<Register>, kBpfRegisters> registers;
  abi::RegisterSet clobbers;  // All that the body may write, r10 included.
  bool has_loops = false;
  abi::Doors doors = abi::Doors::Keeping;  // By which accessors are called.
};

// The registers of both.
abi::RegisterSet joined(abi::RegisterSet a, abi::RegisterSet b);

// Error: Limit when the program needs more registers than there are.
Expected<Allocation> allocate(std::span<const Operation> operations, std::span<const Facts> facts,
                              const Environment& environment, abi::Doors doors);

// A division that is a shift or a mask, or has a known result, needs no call.
bool divides_by_call(const Operation& op, const Facts& facts);

}  // namespace clew::native

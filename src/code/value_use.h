// SPDX-License-Identifier: Apache-2.0
// Whether code reads what it finds in a register: at its entry, or behind a call. Liveness asks the
// same of all ways through a function's blocks; here blocks need not be known, and one kind of way
// is told from others:
//
//     test %ebx, %ebx          what comes in r11 is live at the start, though nobody passes
//     je 1f                    anything in it: only who has been at `mov` goes to `add`, as
//     mov (%rdi), %r11d        compilers know and blocks do not show.
// 1:  …
//     test %ebx, %ebx
//     je 2f
//     add %r11d, %eax
// 2:  ret
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <unordered_set>

#include "abi/stub.h"
#include "code/module_code.h"

namespace clew::code {

enum class CallUse : uint8_t { Keeps, Overwrites, Reads };
// What a call does with the value, and what a jump to another function's start does. One that reads
// it keeps it, too.
using UseOfCalls = std::function<CallUse(const Instruction&)>;

enum class ValueUse : uint8_t {
  None,     // Overwritten on every way, or only pushed, in a function that reads it elsewhere.
  Beside,   // Read, but only where what the function itself writes there is read, too.
  Read,     // Read where nothing but this value comes, or by a call.
  Unknown,  // Some way leads where nobody looks: by a jump that is not understood, out of the
            // function, or through more than kValueUseMax instructions. Not read on others.
};
inline constexpr unsigned kValueUseMax = 1U << 14;

enum class AtReturn : uint8_t { Dropped, Read };

// Of one register in one function of a module, which is borrowed. All ways are followed that are
// seen.
class ValueUses {
 public:
  ValueUses(const ModuleCode& code, uint32_t function, abi::Register r, UseOfCalls calls);
  // Of the value in front of the instruction at `address`, in the function.
  ValueUse of_value_at(uint64_t address, AtReturn at_return);

 private:
  const ModuleCode& code_;
  uint32_t function_;
  abi::Register register_;
  UseOfCalls calls_;
  std::optional<std::unordered_set<uint64_t>> own_reads_;  // Of what the function itself writes.
};

}  // namespace clew::code

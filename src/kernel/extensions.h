// SPDX-License-Identifier: Apache-2.0
// Functions of extensions that clauses of a session call, for the kernel (abi/machine/extension.h).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "isa/program.h"
#include "kernel/bpf_object.h"

namespace clew::kernel {

// r1 to r5 are its parameters, r0 is its result. It is whole: it calls accessors only. An LDDW of
// kind Window has an offset in the variables, which begin at MachineExtensions::begin.
struct MachineExtensionFunction {
  std::string name;
  uint32_t parameters = 0;
  std::vector<isa::Instruction> code;
};

// A call in a clause: this instruction, and behind it an LDDW of the context, which the kernel does
// not need.
struct MachineExtensionCall {
  uint32_t instruction = 0;
  std::string function;
  uint32_t line = 0;  // Of the script; 0 = nobody knows.
};

struct MachineExtensionWord {
  uint32_t offset = 0;  // As an LDDW has it; a multiple of 8.
  uint64_t value = 0;
};

struct MachineExtensions {
  std::vector<MachineExtensionFunction> functions;
  std::vector<std::vector<MachineExtensionCall>> calls;  // By clause.
  uint32_t begin = 0;
  uint32_t variables_bytes = 0;  // Of all extensions together.
  std::vector<MachineExtensionWord> initial_words;
  uint64_t fuel = 0;  // Instructions that one firing may spend.

  [[nodiscard]] std::span<const MachineExtensionCall> calls_of(uint32_t clause) const {
    return clause < calls.size() ? std::span<const MachineExtensionCall>(calls[clause])
                                 : std::span<const MachineExtensionCall>();
  }
  // Of a thread, without head and slack: a power of 2.
  [[nodiscard]] uint32_t area_bytes() const;
  // What a thread begins with, the head and the slack included.
  [[nodiscard]] std::vector<uint8_t> first_state() const;
};

// "extension_f", as the kernel's verifier names it.
std::string extension_function_name(const std::string& function);

// Which function a message of the verifier's is about, by the name above; empty when none.
std::string extension_function_in(const std::string& message);

// `clause` with each call as one of a function of the kernel's program. `clause` has the window in
// r6. Errors: Limit.
Expected<void> put_extension_calls(Function& clause, const MachineExtensions& extensions);

}  // namespace clew::kernel

// SPDX-License-Identifier: Apache-2.0
// Test support: bodies that a bad translator, or a bad man, might have made, and that the verifier
// accepts.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "machine.h"

namespace clew::native {

struct Mutant {
  std::vector<uint8_t> bytes;
  abi::RegisterSet clobbers;
};

// Bodies with every kind of operand: random programs, a loop, dynamic addresses, atomics, calls.
std::vector<Code> originals(const Machine& on);

// What is accepted of so many tries: bits, bytes and instructions changed, inserted and deleted.
// CLEW_SEED makes others.
std::vector<Mutant> accepted_mutants(Machine& on, const std::vector<Code>& codes, uint32_t tries);

RegisterFile random_registers(std::mt19937_64& random);

}  // namespace clew::native

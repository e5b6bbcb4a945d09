// SPDX-License-Identifier: Apache-2.0
#include "engine/probe_reads.h"

#include <array>
#include <cstddef>

#include "abi/context.h"
#include "isa/context_reads.h"

namespace clew::engine {
namespace {

using abi::Register;

constexpr bool has_any(uint64_t words, size_t begin_bytes, size_t end_bytes) {
  const uint64_t below_end = (uint64_t{1} << (end_bytes / 8)) - 1;
  const uint64_t below_begin = (uint64_t{1} << (begin_bytes / 8)) - 1;
  return (words & below_end & ~below_begin) != 0;
}

}  // namespace

code::ProbeReads probe_reads(const isa::Program& program) {
  const isa::ContextReads all = isa::context_reads(program);
  if (all.registers) return code::kReadsEverything;
  constexpr std::array<Register, 6> kArguments = {Register::Rdi, Register::Rsi, Register::Rdx,
                                                  Register::Rcx, Register::R8,  Register::R9};
  constexpr std::array<Register, 6> kOfCallers = {Register::Rbx, Register::Rbp, Register::R12,
                                                  Register::R13, Register::R14, Register::R15};
  code::ProbeReads reads;
  for (size_t i = 0; i < kArguments.size(); ++i) {
    if ((all.words >> i & 1) != 0) reads.registers.add(kArguments[i]);
  }
  // At other places than entries.
  constexpr size_t kResult = offsetof(abi::Context, return_value);
  if (has_any(all.words, kResult, kResult + 8)) reads.registers.add(Register::Rax);
  if (has_any(all.words, kResult + 8, kResult + 16)) reads.registers.add(Register::Rdx);
  for (size_t i = 0; all.unwinds && i < kOfCallers.size(); ++i)
    reads.registers.add(kOfCallers[i]);
  constexpr size_t kCaller = offsetof(abi::Context, caller);
  constexpr size_t kStack = offsetof(abi::Context, stack_arguments);
  constexpr size_t kVectors = offsetof(abi::Context, vectors);
  reads.stack = all.arguments || all.unwinds || has_any(all.words, kCaller, kCaller + 8) ||
                has_any(all.words, kStack, kVectors);
  constexpr size_t kBasePointer = offsetof(abi::Context, base_pointer);
  constexpr size_t kRbx = offsetof(abi::Context, rbx);
  if (has_any(all.words, kBasePointer, kBasePointer + 8)) reads.registers.add(Register::Rbp);
  if (has_any(all.words, kRbx, kRbx + 8)) reads.registers.add(Register::Rbx);
  constexpr uint64_t kAllVectors = (uint64_t{1} << abi::kVectorArgumentsMax) - 1;
  reads.vectors = static_cast<uint16_t>(all.words >> (kVectors / 8) & kAllVectors);
  reads.memory = all.memory;
  return reads;
}

}  // namespace clew::engine

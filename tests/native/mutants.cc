// SPDX-License-Identifier: Apache-2.0
#include "mutants.h"

#include <cstring>

#include <gtest/gtest.h>

#include "isa/assembler.h"
#include "isa/random_program.h"
#include "trial.h"
#include "verify/instruction.h"

namespace clew::native {
namespace {

using Bytes = std::vector<uint8_t>;

class Mutator {
 public:
  explicit Mutator(uint64_t seed) : random_(seed) {}

  Bytes mutate(const Bytes& from, const Bytes& other) {
    Bytes out = from;
    const uint64_t changes = 1 + below(3);
    for (uint64_t i = 0; i < changes && !out.empty(); ++i)
      change(out, other);
    return out;
  }

 private:
  uint64_t below(uint64_t limit) { return random_() % limit; }
  size_t place(const Bytes& bytes) { return static_cast<size_t>(below(bytes.size())); }

  // The offsets at which instructions start.
  static std::vector<size_t> starts(const Bytes& bytes) {
    std::vector<size_t> out;
    for (size_t at = 0; at < bytes.size();) {
      out.push_back(at);
      const auto read = verify::decode(std::span(bytes).subspan(at));
      if (!read) break;
      at += read->length_bytes;
    }
    return out;
  }

  void change(Bytes& bytes, const Bytes& other) {
    const auto begin = [&](size_t at) { return bytes.begin() + static_cast<ptrdiff_t>(at); };
    switch (below(6)) {
      case 0:
        bytes[place(bytes)] ^= static_cast<uint8_t>(1U << below(8));
        return;
      case 1:
        bytes[place(bytes)] = static_cast<uint8_t>(random_());
        return;
      case 2: {  // Delete an instruction.
        const auto at = starts(bytes);
        const size_t which = static_cast<size_t>(below(at.size()));
        const size_t end = which + 1 < at.size() ? at[which + 1] : bytes.size();
        bytes.erase(begin(at[which]), begin(end));
        return;
      }
      case 3: {  // Insert an instruction of another body.
        const auto from = starts(other);
        const size_t which = static_cast<size_t>(below(from.size()));
        const size_t end = which + 1 < from.size() ? from[which + 1] : other.size();
        const auto to = starts(bytes);
        const Bytes piece(other.begin() + static_cast<ptrdiff_t>(from[which]),
                          other.begin() + static_cast<ptrdiff_t>(end));
        bytes.insert(begin(to[static_cast<size_t>(below(to.size()))]), piece.begin(), piece.end());
        return;
      }
      case 4: {  // Another value for four bytes: a displacement, an immediate, a branch.
        if (bytes.size() < 4) return;
        const size_t at = static_cast<size_t>(below(bytes.size() - 3));
        uint32_t value = 0;
        std::memcpy(&value, &bytes[at], 4);
        value += static_cast<uint32_t>(1U << below(32));
        std::memcpy(&bytes[at], &value, 4);
        return;
      }
      default:
        bytes.insert(begin(place(bytes)), static_cast<uint8_t>(random_()));
        return;
    }
  }

  std::mt19937_64 random_;
};

}  // namespace

std::vector<Code> originals(const Machine& on) {
  std::vector<Code> all;
  const auto add = [&](const isa::Program& program) {
    const auto code = translate(program, on.environment(), {});
    if (code) all.push_back(*code);
  };
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    add(isa::random_program({.seed = seed, .steps = 12}));
  }
  const char* const texts[] = {
      "mov %r3, 40\nagain:\nlddw window %r4, 0x400\nldxdw %r2, [%r4]\nadd %r2, %r3\n"
      "stxdw [%r4], %r2\nsub %r3, 1\njne %r3, 0, again\nmov %r0, 0\nexit",
      "ldxdw %r2, [%r1]\nand %r2, 63\nlsh %r2, 3\nlddw window %r3, 0x400\nadd %r3, %r2\n"
      "ldxdw %r4, [%r3]\nadd %r4, 1\nstxdw [%r3], %r4\nmov %r0, 0\nexit",
      "ldxdw %r2, [%r1]\nstxw [%r2+4], %r2\nlock fetch add [%r2+16], %r2\nlock xchg [%r2], %r2\n"
      "mov %r0, 0\nexit",
      "ldxdw %r2, [%r1+8]\nldxdw %r1, [%r1]\ncall divide_unsigned\nlddw window %r3, 0x500\n"
      "stxdw [%r3], %r0\nmov %r0, 0\nexit",
      "ldxdw %r2, [%r1+80]\nldxdw %r3, [%r1+96]\nldxdw %r4, [%r1+104]\nadd %r2, %r3\nxor %r2, %r4\n"
      "lddw window %r3, 0x500\nlock cmpxchg [%r3], %r2\nmov %r0, 0\nexit",
  };
  for (const char* text : texts) {
    const auto program = isa::assemble(text);
    EXPECT_TRUE(program.has_value()) << program.error().message;
    if (program) add(*program);
  }
  return all;
}

std::vector<Mutant> accepted_mutants(Machine& on, const std::vector<Code>& codes, uint32_t tries) {
  const uint64_t seed = number_of("CLEW_SEED", 7);
  Mutator mutator(seed);
  std::mt19937_64 random(seed + 4);
  std::vector<Mutant> accepted;
  for (uint32_t i = 0; i < tries; ++i) {
    const Code& code = codes[random() % codes.size()];
    const Code& other = codes[random() % codes.size()];
    const verify::Policy policy = on.policy(code.clobbers);
    Bytes original = code.bytes;
    if (!relocate(code, policy.address, on.accessor_entries(), original)) continue;
    Bytes bytes = mutator.mutate(original, other.bytes);
    if (!verify::check(bytes, policy)) continue;
    accepted.push_back({std::move(bytes), code.clobbers});
  }
  return accepted;
}

RegisterFile random_registers(std::mt19937_64& random) {
  RegisterFile registers;
  for (uint64_t& value : registers)
    value = random() >> (random() % 64);
  registers[4] = 0;
  return registers;
}

}  // namespace clew::native

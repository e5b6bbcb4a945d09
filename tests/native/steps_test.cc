// SPDX-License-Identifier: Apache-2.0
// Accepted mutants of loops, one instruction at a time: control never leaves the instructions that
// the verifier has read, and what is executed weighs no more than the fuel and the body.
#include <csignal>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/ucontext.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "abi/calling.h"
#include "isa/assembler.h"
#include "machine.h"
#include "mutants.h"
#include "native/print.h"
#include "trial.h"
#include "verify/instruction.h"

namespace clew::native {
namespace {

constexpr uint64_t kFuel = 300;
constexpr uint32_t kSecondsMax = 240;

const char* const kLoops[] = {
    "mov %r3, 40\nagain:\nlddw window %r4, 0x400\nldxdw %r2, [%r4]\nadd %r2, %r3\n"
    "stxdw [%r4], %r2\nsub %r3, 1\njne %r3, 0, again\nmov %r0, 0\nexit",
    "mov %r6, 9\na:\nmov %r7, 9\nb:\nmov %r1, %r7\nmov %r2, 3\ncall modulo_unsigned\n"
    "lddw window %r4, 0x400\nldxdw %r2, [%r4]\nadd %r2, %r0\nstxdw [%r4], %r2\nsub %r7, 1\n"
    "jne %r7, 0, b\nsub %r6, 1\njne %r6, 0, a\nmov %r0, 0\nexit",
    "lddw window %r2, 0x400\nagain:\nldxdw %r3, [%r2+8]\nstxdw [%r2+16], %r3\n"
    "ldxdw %r2, [%r2]\njne %r2, 0, again\nmov %r0, 0\nexit",
    "ldxdw %r6, [%r1]\nagain:\nsub %r6, 1\njset %r6, 1, odd\nadd %r7, %r6\nja next\nodd:\n"
    "xor %r7, %r6\nnext:\njgt %r6, 5, again\nmov %r0, 0\nexit",
};

std::vector<Code> loops(const Machine& on) {
  std::vector<Code> codes;
  for (const char* text : kLoops) {
    const auto program = isa::assemble(text);
    EXPECT_TRUE(program.has_value()) << program.error().message;
    auto code = translate(*program, on.environment(), {});
    EXPECT_TRUE(code.has_value()) << code.error().message;
    codes.push_back(std::move(*code));
  }
  return codes;
}

// By offset in the body: the weight of the instruction that starts there, or 0.
std::vector<uint32_t> weights_of(const std::vector<uint8_t>& bytes) {
  std::vector<uint32_t> weights(bytes.size());
  for (size_t at = 0; at < bytes.size();) {
    const auto read = verify::decode(std::span(bytes).subspan(at));
    if (!read) break;
    weights[at] = read->operation == verify::Operation::Call ? abi::kCallFuel : 1;
    at += read->length_bytes;
  }
  return weights;
}

// Of the run that is being stepped through, for the handler.
struct Steps {
  uint64_t begin = 0;
  std::vector<uint32_t> weights;
  uint64_t weight = 0;
  bool strays = false;  // Into the middle of an instruction.
};
Steps steps;

void count_step(int, siginfo_t*, void* raw) {
  const auto& context = static_cast<ucontext_t*>(raw)->uc_mcontext;
  const uint64_t offset = static_cast<uint64_t>(context.gregs[REG_RIP]) - steps.begin;
  if (offset >= steps.weights.size()) return;  // Stub, accessor, test.
  steps.weight += steps.weights[offset];
  if (steps.weights[offset] == 0) steps.strays = true;
}

bool is_bounded(Machine& on, const Mutant& mutant, uint64_t seed) {
  std::mt19937_64 random(seed);
  on.install_bytes(mutant.bytes, mutant.clobbers);
  uint64_t body_weight = 0;
  for (const uint32_t weight : weights_of(mutant.bytes))
    body_weight += weight;
  for (uint32_t input = 0; input < 2; ++input) {
    for (uint8_t& byte : on.window())
      byte = static_cast<uint8_t>(random());
    steps = {.begin = reinterpret_cast<uint64_t>(on.body().data()),
             .weights = weights_of(mutant.bytes)};
    const RegisterFile before = random_registers(random);
    set_stepping(true);
    on.run(before);
    set_stepping(false);
    const bool ran = steps.weight != 0 || mutant.bytes.empty();
    if (!ran || steps.strays || steps.weight > kFuel + body_weight) return false;
  }
  return true;
}

TEST(Soundness, AcceptedLoopsEndWithinTheirFuelAndStayOnTheirInstructions) {
  const auto on = machine({.window_size_log2 = 12, .fuel = kFuel});
  const std::vector<Mutant> mutants = accepted_mutants(*on, loops(*on), 8'000);
  ASSERT_GT(mutants.size(), 400U);
  auto* const progress = static_cast<volatile uint32_t*>(
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(kSecondsMax);
    struct sigaction action {};
    action.sa_sigaction = count_step;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGTRAP, &action, nullptr);
    for (uint32_t i = 0; i < mutants.size(); ++i) {
      *progress = i;
      if (!is_bounded(*on, mutants[i], i)) _exit(1);
    }
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  const Mutant& last = mutants[*progress];
  EXPECT_EQ(status, 0)
      << "mutant " << *progress << " of " << mutants.size() << "\n"
      << print({.bytes = last.bytes, .calls = {}, .clobbers = last.clobbers, .guarded = false});
  munmap(const_cast<uint32_t*>(progress), 4096);
}

}  // namespace
}  // namespace clew::native

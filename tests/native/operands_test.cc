// SPDX-License-Identifier: Apache-2.0
// Accepted mutants, one instruction at a time: before each, the addresses of its memory operand as
// the CPU is about to make it, read by the other decoder. Reads and writes lie where the verifier
// said; with globals.
#include <array>
#include <csignal>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/ucontext.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "abi/region.h"
#include "abi/slot.h"
#include "machine.h"
#include "mutants.h"
#include "native/print.h"
#include "trial.h"
#include "verify/instruction.h"

namespace clew::native {
namespace {

constexpr uint32_t kGlobalsBytes = 512;
constexpr uint32_t kOperandSecondsMax = 240;
constexpr uint64_t kOperandFuel = 300;

// By hardware number.
constexpr std::array<int, 16> kPlaces = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
                                         REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                         REG_R12, REG_R13, REG_R14, REG_R15};

bool is_store(const verify::Instruction& i) {
  using verify::Operation;
  const bool changes = i.operation != Operation::Compare && i.operation != Operation::Test;
  const bool both = i.operation == Operation::Exchange || i.operation == Operation::ExchangeAdd;
  const bool is_first = i.first.kind == verify::Operand::Kind::Memory;
  return changes && (is_first || both);
}

// The body that is stepped through, for the handler.
struct Watched {
  verify::Policy policy;
  std::vector<std::optional<verify::Instruction>> accesses;  // By offset; those of memory.
  uint64_t reads = 0;
  uint64_t writes = 0;
  uint64_t globals = 0;
  bool strays = false;
};
Watched watched;

bool is_within(uint64_t address, uint64_t size, uint64_t begin, uint64_t bytes) {
  return size <= bytes && address >= begin && address - begin <= bytes - size;
}

bool is_allowed(const verify::Instruction& i, uint64_t address, uint64_t rsp) {
  const verify::Policy& p = watched.policy;
  const uint64_t size = i.source_size_bytes != 0 ? i.source_size_bytes : i.size_bytes;
  const uint64_t window = (uint64_t{1} << p.window_size_log2) + abi::kWindowSlackBytes;
  const bool stores = is_store(i);
  (stores ? watched.writes : watched.reads) += 1;
  if (i.memory.gs) {
    if (is_within(address, size, p.window_address, window)) return true;
    return !stores && is_within(address, size, p.slot_address, sizeof(abi::SlotControl));
  }
  if (i.memory.base) {
    return !stores && i.memory.base == abi::Register::Rsp &&
           is_within(address, size, rsp, p.stack_readable_bytes);
  }
  const bool is_global = is_within(address, size, p.globals_address, p.globals_bytes);
  watched.globals += is_global ? 1 : 0;
  return is_global || (!stores && is_within(address, size, p.generation_address, 4));
}

void look(int, siginfo_t*, void* raw) {
  const auto& context = static_cast<ucontext_t*>(raw)->uc_mcontext;
  const auto value = [&](abi::Register r) {
    return static_cast<uint64_t>(context.gregs[kPlaces[static_cast<size_t>(r)]]);
  };
  const uint64_t offset = static_cast<uint64_t>(context.gregs[REG_RIP]) - watched.policy.address;
  if (offset >= watched.accesses.size() || !watched.accesses[offset]) return;
  const verify::Instruction& i = *watched.accesses[offset];
  uint64_t address = static_cast<uint64_t>(int64_t{i.memory.displacement});
  if (i.memory.base) address += value(*i.memory.base);
  if (i.memory.index) address += value(*i.memory.index) * i.memory.scale;
  if (!is_allowed(i, address, value(abi::Register::Rsp))) watched.strays = true;
}

bool has_access(const verify::Instruction& i) {
  const auto is_memory = [](const verify::Operand& o) {
    return o.kind == verify::Operand::Kind::Memory;
  };
  return i.operation != verify::Operation::AddressOf && (is_memory(i.first) || is_memory(i.second));
}

void watch(const Machine& on, const Mutant& mutant) {
  watched.policy = on.policy(mutant.clobbers);
  watched.accesses.assign(mutant.bytes.size(), std::nullopt);
  watched.strays = false;
  for (size_t at = 0; at < mutant.bytes.size();) {
    const auto read = verify::decode_by_zydis(std::span(mutant.bytes).subspan(at));
    if (!read) break;
    if (has_access(*read)) watched.accesses[at] = *read;
    at += read->length_bytes;
  }
}

bool keeps_to_its_operands(Machine& on, const Mutant& mutant, uint64_t seed) {
  std::mt19937_64 random(seed);
  on.install_bytes(mutant.bytes, mutant.clobbers);
  for (const std::span<uint8_t> part : {on.window(), on.globals()}) {
    for (uint8_t& byte : part)
      byte = static_cast<uint8_t>(random());
  }
  watch(on, mutant);
  const RegisterFile before = random_registers(random);
  set_stepping(true);
  on.run(before);
  set_stepping(false);
  return !watched.strays;
}

// Loads and stores of globals, of 8, 4 and 1 bytes, and atomic ones, for the first and the last.
Code code_of_globals(const Machine& on) {
  Code code;
  code.clobbers = abi::RegisterSet(1U << static_cast<uint32_t>(abi::Register::Rax));
  const auto put = [&](std::initializer_list<uint8_t> bytes, uint32_t offset) {
    const uint32_t address = on.environment().globals_address + offset;
    code.bytes.insert(code.bytes.end(), bytes);
    for (uint32_t i = 0; i < 4; ++i)
      code.bytes.push_back(static_cast<uint8_t>(address >> (8 * i)));
  };
  put({0x48, 0x8B, 0x04, 0x25}, 0);                  // mov rax, [g]
  put({0x48, 0x01, 0x04, 0x25}, kGlobalsBytes - 8);  // add [g], rax
  put({0x89, 0x04, 0x25}, 64);                       // mov [g], eax
  put({0x88, 0x04, 0x25}, kGlobalsBytes - 1);        // mov [g], al
  put({0x0F, 0xB6, 0x04, 0x25}, 13);                 // movzx eax, byte [g]
  put({0xF0, 0x48, 0x0F, 0xC1, 0x04, 0x25}, 128);    // lock xadd [g], rax
  put({0x48, 0x87, 0x04, 0x25}, 8);                  // xchg [g], rax
  put({0x48, 0x39, 0x04, 0x25}, kGlobalsBytes / 2);  // cmp [g], rax
  return code;
}

// The child's figures, and where it is.
struct Progress {
  uint32_t mutant;
  uint64_t reads;
  uint64_t writes;
  uint64_t globals;
};

TEST(Soundness, EachMemoryOperandOfAcceptedMutantsLiesWhereItMay) {
  const auto on =
      machine({.window_size_log2 = 12, .fuel = kOperandFuel, .globals_bytes = kGlobalsBytes});
  std::vector<Code> codes = originals(*on);
  for (uint32_t i = 0; i < 6; ++i)
    codes.push_back(code_of_globals(*on));
  const std::vector<Mutant> mutants = accepted_mutants(*on, codes, 6'000);
  ASSERT_GT(mutants.size(), 300U);
  auto* const progress = static_cast<Progress*>(
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(kOperandSecondsMax);
    struct sigaction action {};
    action.sa_sigaction = look;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGTRAP, &action, nullptr);
    for (uint32_t i = 0; i < mutants.size(); ++i) {
      progress->mutant = i;
      if (!keeps_to_its_operands(*on, mutants[i], i)) _exit(1);
    }
    *progress = {progress->mutant, watched.reads, watched.writes, watched.globals};
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  const Mutant& last = mutants[progress->mutant];
  EXPECT_EQ(status, 0)
      << "mutant " << progress->mutant << " of " << mutants.size() << "\n"
      << print({.bytes = last.bytes, .calls = {}, .clobbers = last.clobbers, .guarded = false});
  EXPECT_GT(progress->reads, 1000U);
  EXPECT_GT(progress->writes, 1000U);
  EXPECT_GT(progress->globals, 500U);
  RecordProperty("operands", std::to_string(progress->reads + progress->writes));
  munmap(progress, 4096);
}

}  // namespace
}  // namespace clew::native

// SPDX-License-Identifier: Apache-2.0
// Entering and leaving by signals: a trap of our own loads the registers, the next signal of
// whatever kind stores them.
#include "code/sandbox.h"

#include <csignal>
#include <cstring>

#include <cpuid.h>
#include <sys/mman.h>
#include <sys/ucontext.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/page.h"

namespace clew::code {
namespace {

// A run, as the handlers see it.
struct Run {
  Registers wanted;
  uint64_t start = 0;
  Outcome outcome;
  mcontext_t home{};
  std::vector<uint8_t> home_extended;
  bool running = false;
};
Run current;

// Layout of the XSAVE area (SDM volume 1, 13.4) and what the kernel adds to it in a signal frame.
constexpr size_t kLegacySize = 512;
constexpr size_t kHeaderSize = 64;
constexpr size_t kLastInstruction = 6;  // FOP, FIP, FDP.
constexpr size_t kLastInstructionSize = 18;
constexpr size_t kStackRegisters = 32;  // st0 to st7, 16 bytes each, of which ten are used.
constexpr size_t kVectors = 160;        // xmm0 to xmm15
constexpr size_t kVectorsSize = 256;
constexpr size_t kSoftware = 464;  // struct _fpx_sw_bytes
constexpr uint64_t kStateX87 = 1;
constexpr uint64_t kStateSse = 2;

_fpx_sw_bytes software_of(const uint8_t* area) {
  _fpx_sw_bytes bytes{};
  std::memcpy(&bytes, area + kSoftware, sizeof(bytes));
  return bytes;
}

size_t size_of(const uint8_t* area) {
  const _fpx_sw_bytes software = software_of(area);
  return software.magic1 == FP_XSTATE_MAGIC1 ? software.xstate_size : kLegacySize;
}

struct Component {
  uint32_t number;
  size_t offset;
  size_t size;
};

// AVX, and the three of AVX-512.
std::vector<Component> components(uint64_t enabled) {
  std::vector<Component> result;
  for (const uint32_t number : {2U, 5U, 6U, 7U}) {
    if ((enabled >> number & 1) == 0) continue;
    uint32_t size = 0;
    uint32_t offset = 0;
    uint32_t c = 0;
    uint32_t d = 0;
    __cpuid_count(0xd, number, size, offset, c, d);
    result.push_back({number, offset, size});
  }
  return result;
}

void load(mcontext_t& context, const Registers& registers) {
  for (size_t i = 0; i < registers.general.size(); ++i)
    context.gregs[i] = registers.general[i];
  context.gregs[REG_EFL] = static_cast<int64_t>(registers.flags | 0x202);
  auto* area = reinterpret_cast<uint8_t*>(context.fpregs);
  std::memcpy(area, registers.extended.data(), registers.extended.size());
}

Registers store(const mcontext_t& context) {
  Registers registers;
  for (size_t i = 0; i < registers.general.size(); ++i)
    registers.general[i] = context.gregs[i];
  registers.flags = static_cast<uint64_t>(context.gregs[REG_EFL]) & Sandbox::kFlagsMask;
  const auto* area = reinterpret_cast<const uint8_t*>(context.fpregs);
  registers.extended.assign(area, area + size_of(area));
  std::memset(&registers.extended[kLastInstruction], 0, kLastInstructionSize);
  // Which components are in their initial state is not architectural.
  if (registers.extended.size() > kLegacySize) {
    std::memset(&registers.extended[kLegacySize], 0, kHeaderSize);
  }
  return registers;
}

void on_signal(int number, siginfo_t*, void* raw) {
  auto& context = static_cast<ucontext_t*>(raw)->uc_mcontext;
  auto* area = reinterpret_cast<uint8_t*>(context.fpregs);
  if (!current.running) {
    current.running = true;
    std::memcpy(&current.home, &context, sizeof(context));
    current.home_extended.assign(area, area + size_of(area));
    if (current.start == 0) return;
    load(context, current.wanted);
    context.gregs[REG_RIP] = static_cast<int64_t>(current.start);
    return;
  }
  current.running = false;
  current.outcome = {number, static_cast<uint64_t>(context.gregs[REG_RIP]), store(context)};
  auto* fp = context.fpregs;
  std::memcpy(&context, &current.home, sizeof(context));
  context.fpregs = fp;
  std::memcpy(area, current.home_extended.data(), current.home_extended.size());
}

void handle_signals() {
  static std::array<uint8_t, 131072> stack;
  const stack_t alternative = {.ss_sp = stack.data(), .ss_flags = 0, .ss_size = stack.size()};
  sigaltstack(&alternative, nullptr);
  struct sigaction action {};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  for (const int number : {SIGTRAP, SIGSEGV, SIGBUS, SIGILL, SIGFPE}) {
    sigaction(number, &action, nullptr);
  }
}

uint8_t* map_low(uint64_t size_bytes, int protection) {
  void* start =
      mmap(nullptr, size_bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
  if (start == MAP_FAILED) _exit(3);
  return static_cast<uint8_t*>(start);
}

}  // namespace

Sandbox& Sandbox::get() {
  static Sandbox only;
  return only;
}

Sandbox::Sandbox() {
  code_ = map_low(kSandboxCodeSize, PROT_READ | PROT_WRITE | PROT_EXEC);
  data_ = map_low(kSandboxDataSize + 2 * kPage, PROT_NONE) + kPage;
  if (mprotect(data_, kSandboxDataSize, PROT_READ | PROT_WRITE) != 0) _exit(3);
  handle_signals();
  current.start = 0;  // The first trap only shows what a signal frame is like.
  asm volatile("int3" ::: "memory");
  current.running = false;
  extended_ = current.home_extended;
  std::memset(&extended_[kLastInstruction], 0, kLastInstructionSize);
  extended_[4] = 0xff;  // All x87 registers are full: none makes a stack fault.
  if (extended_.size() == kLegacySize) return;
  uint64_t present = kStateX87 | kStateSse;
  for (const Component& component : components(software_of(extended_.data()).xstate_bv))
    present |= uint64_t{1} << component.number;
  uint64_t in_use = 0;
  std::memcpy(&in_use, &extended_[kLegacySize], sizeof(in_use));
  in_use |= present;
  std::memcpy(&extended_[kLegacySize], &in_use, sizeof(in_use));
}

std::vector<std::span<uint8_t>> Sandbox::extended_registers(std::span<uint8_t> extended) {
  std::vector<std::span<uint8_t>> result;
  for (size_t i = 0; i < 8; ++i)
    result.push_back(extended.subspan(kStackRegisters + 16 * i, 10));
  result.push_back(extended.subspan(kVectors, kVectorsSize));
  for (const Component& component : components(software_of(extended.data()).xstate_bv))
    result.push_back(extended.subspan(component.offset, component.size));
  return result;
}

Outcome Sandbox::run(uint64_t start, const Registers& registers) {
  current.wanted = registers;
  current.start = start;
  asm volatile("int3" ::: "memory");
  return current.outcome;
}

}  // namespace clew::code

// SPDX-License-Identifier: Apache-2.0
// Our decoder against the CPU: each instruction that it takes is as long for the CPU, and none is
// undefined. With its last byte at the end of a page and nothing behind it an instruction must not
// be fetched from there; with its last byte behind the end it must.
#include <array>
#include <csignal>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/ucontext.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "verify/instruction.h"

namespace clew::verify {
namespace {

using Text = std::array<uint8_t, 16>;

constexpr uint64_t kPage = 4096;
constexpr uint64_t kPlace = 0x1000'0000;  // Far from the child's own memory, for any displacement.
constexpr uint64_t kTrapFlag = 0x100;
constexpr uint64_t kFetch = 0x10;  // Bit of a page fault's error code.
constexpr int kSecondsMax = 240;

struct Stop {
  int signal = 0;
  bool fetches = false;  // The CPU wanted bytes behind the end of the page.
};

// One step, as the handler sees it.
uint64_t start;
bool stepping;
Stop stop;
mcontext_t home;

void on_signal(int number, siginfo_t*, void* raw) {
  auto& context = static_cast<ucontext_t*>(raw)->uc_mcontext;
  if (!stepping) {
    stepping = true;
    std::memcpy(&home, &context, sizeof(home));
    for (int r = 0; r < REG_RIP; ++r)
      context.gregs[r] = 0;
    context.gregs[REG_RSP] = static_cast<greg_t>(kPlace + 4 * kPage);
    context.gregs[REG_RIP] = static_cast<greg_t>(start);
    context.gregs[REG_EFL] |= kTrapFlag;
    return;
  }
  stepping = false;
  const bool is_fetch = number == SIGSEGV && context.gregs[REG_TRAPNO] == 14 &&
                        (static_cast<uint64_t>(context.gregs[REG_ERR]) & kFetch) != 0;
  const bool before = static_cast<uint64_t>(context.gregs[REG_RIP]) == start;
  stop = {number, is_fetch && before};
  auto* const vectors = context.fpregs;
  std::memcpy(&context, &home, sizeof(home));
  context.fpregs = vectors;
}

//     kPlace  code, ends with the page | nothing | stack, two pages
void set_up() {
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
  void* const code = reinterpret_cast<void*>(kPlace);
  void* const stack = reinterpret_cast<void*>(kPlace + 3 * kPage);
  const int all = PROT_READ | PROT_WRITE | PROT_EXEC;
  if (mmap(code, 5 * kPage, PROT_NONE, kFlags, -1, 0) != code || mprotect(code, kPage, all) != 0 ||
      mprotect(stack, 2 * kPage, PROT_READ | PROT_WRITE) != 0) {
    _exit(3);
  }
  static std::array<uint8_t, 131072> memory;
  const stack_t alternative = {.ss_sp = memory.data(), .ss_flags = 0, .ss_size = memory.size()};
  sigaltstack(&alternative, nullptr);
  struct sigaction action {};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  for (const int number : {SIGTRAP, SIGSEGV, SIGBUS, SIGILL, SIGFPE})
    sigaction(number, &action, nullptr);
}

// Executes what begins with `size` bytes, of which nothing more can be fetched.
Stop step(const uint8_t* bytes, size_t size) {
  start = kPlace + kPage - size;
  std::memcpy(reinterpret_cast<void*>(start), bytes, size);
  asm volatile("int3" ::: "memory");
  return stop;
}

std::string problem_of(const std::string& bytes) {
  const auto* const data = reinterpret_cast<const uint8_t*>(bytes.data());
  const Stop whole = step(data, bytes.size());
  if (whole.signal == SIGILL) return "undefined";
  if (whole.fetches) return "longer";
  if (bytes.size() > 1 && !step(data, bytes.size() - 1).fetches) return "shorter";
  return "";
}

// What the decoder takes, from its tables' point of view: all of prefixes in their order, opcodes,
// ModRM, some SIB, and one value for displacements and immediates.
class Accepted {
 public:
  std::set<std::string> take_all() {
    for (uint32_t opcode = 0; opcode < 512; ++opcode) {
      if (is_ever_taken(opcode)) take_opcode(opcode);
    }
    take({0x0F, 0x01, 0xF9});
    return std::move(taken_);
  }

 private:
  // Bits of `choice`: lock, gs, word, then REX, 0 for none.
  static Text text_of(uint32_t opcode, uint32_t choice, uint8_t modrm, uint8_t sib) {
    Text text = {};
    size_t at = 0;
    const auto put = [&](unsigned byte) { text[at++] = static_cast<uint8_t>(byte); };
    if ((choice & 1) != 0) put(0xF0);
    if ((choice & 2) != 0) put(0x65);
    if ((choice & 4) != 0) put(0x66);
    if (choice >> 3 != 0) put(0x40 + (choice >> 3) - 1);
    if (opcode >= 256) put(0x0F);
    put(opcode & 255);
    put(modrm);
    put(sib);
    for (uint8_t fill = 0x26; at < text.size(); ++fill)
      put(fill);
    return text;
  }

  static constexpr uint32_t kChoices = 8 * 17;

  static bool is_ever_taken(uint32_t opcode) {
    for (uint32_t choice = 0; choice < kChoices; ++choice) {
      for (uint32_t modrm = 0; modrm < 256; modrm += 1) {
        if (modrm % 64 > 7 && modrm % 8 != 4) continue;  // Each operand and each extension once.
        if (decode(text_of(opcode, choice, static_cast<uint8_t>(modrm), 0x25))) return true;
      }
    }
    return false;
  }

  void take_opcode(uint32_t opcode) {
    for (uint32_t choice = 0; choice < kChoices; ++choice) {
      for (uint32_t modrm = 0; modrm < 256; ++modrm) {
        for (const int sib : {0x25, 0x24, 0x8D, 0xC8})
          take(text_of(opcode, choice, static_cast<uint8_t>(modrm), static_cast<uint8_t>(sib)));
      }
    }
  }

  void take(const Text& text) {
    const auto read = decode(text);
    if (!read) return;
    taken_.emplace(text.begin(), text.begin() + read->length_bytes);
  }

  std::set<std::string> taken_;
};

int run_all(const std::set<std::string>& taken) {
  alarm(kSecondsMax);
  set_up();
  int problems = 0;
  for (const std::string& bytes : taken) {
    const std::string problem = problem_of(bytes);
    if (problem.empty()) continue;
    std::string text;
    for (const char byte : bytes)
      text += fmt::format("{:02x}", static_cast<uint8_t>(byte));
    dprintf(STDERR_FILENO, "%s: %s for the CPU\n", text.c_str(), problem.c_str());
    if (++problems == 20) break;
  }
  return problems;
}

TEST(DecoderAndCpu, TakeInstructionsOfTheSameLength) {
  const std::set<std::string> taken = Accepted().take_all();
  fmt::print("{} instructions\n", taken.size());
  EXPECT_GT(taken.size(), 100'000U);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) _exit(run_all(taken));
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace clew::verify

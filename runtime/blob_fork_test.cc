// SPDX-License-Identifier: Apache-2.0
// A signal handler may fork in the middle of an accessor, and its child goes on there: with pages
// of its own that are zero (MADV_WIPEONFORK).
#include <csignal>
#include <cstring>
#include <functional>
#include <iterator>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "runtime/blob_testing.h"

namespace clew::runtime {
namespace {

constexpr greg_t kTrapFlag = 0x100;

// Forks in front of one instruction of the blob, the `wanted`th that runs.
struct Stepper {
  uint64_t code = 0;
  uint64_t code_end = 0;
  int wanted = 0;
  int done = 0;
  bool is_on = false;
  bool is_child = false;
  int status = 0;
};
Stepper stepper;

void step(int, siginfo_t*, void* context) {
  greg_t* const registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  const auto rip = static_cast<uint64_t>(registers[REG_RIP]);
  const bool is_inside = rip >= stepper.code && rip < stepper.code_end;
  if (stepper.is_on && is_inside && ++stepper.done == stepper.wanted) {
    stepper.is_on = false;
    const pid_t child = fork();
    stepper.is_child = child == 0;
    if (child > 0) waitpid(child, &stepper.status, 0);
  }
  registers[REG_EFL] =
      stepper.is_on ? registers[REG_EFL] | kTrapFlag : registers[REG_EFL] & ~kTrapFlag;
}

class ForkedInside : public RuntimeBlob {
 protected:
  void SetUp() override {
    RuntimeBlob::SetUp();
    struct sigaction action = {};
    action.sa_sigaction = step;
    action.sa_flags = SA_SIGINFO;
    ASSERT_EQ(sigaction(SIGTRAP, &action, &before_), 0);
  }
  void TearDown() override {
    sigaction(SIGTRAP, &before_, nullptr);
    RuntimeBlob::TearDown();
  }
  // In front of each of the call's instructions.
  void expect_children_go_on(const std::function<void()>& call) {
    constexpr int kInstructionsMax = 3000;
    int instruction = 1;
    while (instruction < kInstructionsMax && fork_at(instruction, call)) {
      ASSERT_TRUE(WIFEXITED(stepper.status))
          << "instruction " << instruction << ", signal " << WTERMSIG(stepper.status);
      ++instruction;
    }
    EXPECT_GT(instruction, 10);
    EXPECT_LT(instruction, kInstructionsMax);
  }
  // False when the call has fewer instructions.
  template <typename Call>
  bool fork_at(int instruction, const Call& call) {
    stepper = {.code = reinterpret_cast<uint64_t>(code_),
               .code_end = reinterpret_cast<uint64_t>(code_) + 65536,
               .wanted = instruction,
               .is_on = true};
    raise(SIGTRAP);
    call();
    if (stepper.is_child) _exit(0);
    const bool was_there = !stepper.is_on;
    stepper.is_on = false;
    raise(SIGTRAP);
    return was_there;
  }

 private:
  struct sigaction before_ = {};
};

TEST_F(ForkedInside, AChildGoesOnFromEachInstructionOfAnAccessorOrAClaim) {
  ASSERT_TRUE(stub(StubCall::Claim));
  const auto claim_again = [&] {
    set_own_gs_base(0);
    (void)stub(StubCall::Claim);
  };
  static const char kText[] = "forked";
  const auto text = reinterpret_cast<uint64_t>(kText);
  const auto nowhere = uint64_t{8};
  const std::function<void()> calls[] = {
      [&] { access(Accessor::TryRead, 512, sizeof kText, text); },
      [&] { access(Accessor::TryRead, 512, 64, nowhere); },
      [&] { access(Accessor::TryReadString, 512, 64, text); },
      [&] { access(Accessor::TryReadString, 512, 64, nowhere); },
      [&] { access(Accessor::TableFind, 0, 512, 77); },
      [&] { access(Accessor::RecordPut, 0x7000); },
      [&] { access(Accessor::RecordTake, 0x7000); },
      claim_again,
      [&] { (void)stub(StubCall::Busy); }};
  for (size_t i = 0; i < std::size(calls); ++i) {
    SCOPED_TRACE(testing::Message() << "call " << i);
    expect_children_go_on(calls[i]);
  }
}

// The same where memory is read by loads (runtime/load.h).
TEST_F(ForkedInside, AChildGoesOnFromEachInstructionOfALoad) {
  ASSERT_TRUE(stub(StubCall::Claim));
  // `test %rdi, %rdi; jz 1f; mov (%rdi), %rax; clc; ret; 1: stc; ret`, and one that says no.
  const uint8_t load[] = {0x48, 0x85, 0xFF, 0x74, 5, 0x48, 0x8B, 0x07, 0xF8, 0xC3, 0xF9, 0xC3};
  const uint8_t refusal[] = {0xF9, 0xC3};
  uint8_t* const places = code_ + 65536 - 32;
  ASSERT_EQ(mprotect(code_, 65536, PROT_READ | PROT_WRITE), 0);
  std::memcpy(places, load, sizeof load);
  std::memcpy(places + 16, refusal, sizeof refusal);
  ASSERT_EQ(mprotect(code_, 65536, PROT_READ | PROT_EXEC), 0);
  alignas(8) static const char kText[] = "forked in the middle of a word";
  const auto text = reinterpret_cast<uint64_t>(kText) + 3;
  for (const uint8_t* place : {places, places + 16}) {
    header().load_address = reinterpret_cast<uint64_t>(place);
    expect_children_go_on([&] { access(Accessor::TryRead, 512, sizeof kText - 3, text); });
    expect_children_go_on([&] { access(Accessor::TryReadString, 512, 64, text); });
  }
}

}  // namespace
}  // namespace clew::runtime

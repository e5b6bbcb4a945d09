// SPDX-License-Identifier: Apache-2.0
// A signal handler may fork in the middle of an accessor, and its child goes on there: with pages
// of its own that are zero (MADV_WIPEONFORK).
#include <csignal>
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
    constexpr int kInstructionsMax = 3000;
    int instruction = 1;
    while (instruction < kInstructionsMax && fork_at(instruction, calls[i])) {
      ASSERT_TRUE(WIFEXITED(stepper.status)) << "call " << i << ", instruction " << instruction
                                             << ", signal " << WTERMSIG(stepper.status);
      ++instruction;
    }
    EXPECT_GT(instruction, 10);
    EXPECT_LT(instruction, kInstructionsMax);
  }
}

}  // namespace
}  // namespace clew::runtime

// SPDX-License-Identifier: Apache-2.0
// Seccomp filters: what the interpreter says, and what this machine's kernel does.
#include "inline/seccomp_filter.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <iterator>
#include <optional>
#include <random>

#include <gtest/gtest.h>
#include <linux/audit.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inline/seccomp_testing.h"

namespace clew::inline_ {
namespace {

constexpr uint32_t kNumberAt = offsetof(seccomp_data, nr);
constexpr int kProbed =
    SYS_getppid;  // The call that the kernel is asked about: looks at no argument.

sock_filter ret(uint32_t answer) {
  return step(BPF_RET | BPF_K, answer);
}

// `answer` to one call, and that all others may be made.
SeccompFilter only(int number, uint32_t answer) {
  return {step(BPF_LD | BPF_W | BPF_ABS, kNumberAt),
          step(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(number), 0, 1), ret(answer),
          ret(SECCOMP_RET_ALLOW)};
}

seccomp_data call_of(int number) {
  return {.nr = number,
          .arch = AUDIT_ARCH_X86_64,
          .instruction_pointer = 0x1122334455667788,
          .args = {1, 2, 3, 4, 5, 6}};
}

uint32_t answer_to(const SeccompFilter& filter, const seccomp_data& call = call_of(kProbed)) {
  return answer_of(std::span<const sock_filter>(filter), call);
}

TEST(SeccompFilters, AnswerByTheNumberOfTheCall) {
  const SeccompFilter filter = only(SYS_restart_syscall, SECCOMP_RET_KILL_PROCESS);
  EXPECT_EQ(answer_to(filter, call_of(SYS_restart_syscall)), SECCOMP_RET_KILL_PROCESS);
  EXPECT_EQ(answer_to(filter, call_of(SYS_poll)), SECCOMP_RET_ALLOW);
}

TEST(SeccompFilters, SeeArchitecturePlaceAndArguments) {
  const auto word = [](uint32_t offset) {
    return answer_to({step(BPF_LD | BPF_W | BPF_ABS, offset), step(BPF_RET | BPF_A, 0)});
  };
  EXPECT_EQ(word(4), uint32_t{AUDIT_ARCH_X86_64});
  EXPECT_EQ(word(8), 0x55667788U);
  EXPECT_EQ(word(12), 0x11223344U);
  EXPECT_EQ(word(56), 6U);
  EXPECT_EQ(answer_to({step(BPF_LDX | BPF_W | BPF_LEN, 0), step(BPF_MISC | BPF_TXA, 0),
                       step(BPF_RET | BPF_A, 0)}),
            sizeof(seccomp_data));
}

TEST(SeccompFilters, AreCombinedByTheActionThatRestrictsMost) {
  const SeccompFilter allows = {ret(SECCOMP_RET_ALLOW)};
  const SeccompFilter logs = {ret(SECCOMP_RET_LOG)};
  const SeccompFilter fails = {ret(SECCOMP_RET_ERRNO | 7)};
  const SeccompFilter fails_too = {ret(SECCOMP_RET_ERRNO | 5)};
  const SeccompFilter kills_thread = {ret(SECCOMP_RET_KILL_THREAD)};
  const SeccompFilter kills = {ret(SECCOMP_RET_KILL_PROCESS)};
  const auto together = [](const std::vector<SeccompFilter>& newest_first) {
    return answer_of(std::span<const SeccompFilter>(newest_first), call_of(kProbed));
  };
  EXPECT_EQ(together({}), SECCOMP_RET_ALLOW);
  EXPECT_EQ(together({allows, logs}), SECCOMP_RET_LOG);
  EXPECT_EQ(together({fails, fails_too, logs}), SECCOMP_RET_ERRNO | 7U);
  EXPECT_EQ(together({kills_thread, fails, kills}), SECCOMP_RET_KILL_PROCESS);
}

TEST(SeccompFilters, ThatTheKernelWouldNotTakeKill) {
  const sock_filter last = ret(SECCOMP_RET_ALLOW);
  const std::vector<SeccompFilter> wrong = {
      {},
      {step(BPF_LD | BPF_W | BPF_ABS, sizeof(seccomp_data)), last},
      {step(BPF_LD | BPF_W | BPF_ABS, 2), last},
      {step(BPF_LD | BPF_W | BPF_ABS, 0xfffffffc), last},
      {step(BPF_LD | BPF_W | BPF_IND, 0), last},
      {step(BPF_LD | BPF_B | BPF_ABS, 0), last},
      {step(BPF_LD | BPF_MEM, BPF_MEMWORDS), last},
      {step(BPF_ST, BPF_MEMWORDS), last},
      {step(BPF_STX, 0xffffffff), last},
      {step(BPF_JMP | BPF_JA, 0xffffffff), last},
      {step(BPF_JMP | BPF_JA, 1), last},
      {step(BPF_JMP | BPF_JEQ | BPF_K, 0, 255, 255), last},
      {step(BPF_ALU | BPF_MOD | BPF_K, 1), last},
      {step(0xffff, 0), last},
      {step(BPF_LD | BPF_IMM, 1)},
  };
  for (size_t i = 0; i < wrong.size(); ++i)
    EXPECT_EQ(answer_to(wrong[i]), SECCOMP_RET_KILL_PROCESS) << i;
}

// What became of a call.
struct Outcome {
  bool killed = false;
  int64_t result = 0;  // 1 = it was made.
  bool operator==(const Outcome&) const = default;
};

Outcome outcome_of(uint32_t answer) {
  constexpr int64_t kErrorMax = 4095;
  switch (answer & SECCOMP_RET_ACTION_FULL) {
    case SECCOMP_RET_ALLOW:
    case SECCOMP_RET_LOG:
      return {.result = 1};
    case SECCOMP_RET_TRACE:
    case SECCOMP_RET_USER_NOTIF:
      return {.result = -ENOSYS};  // Nobody is there to ask.
    case SECCOMP_RET_ERRNO:
      return {.result = -std::min<int64_t>(answer & SECCOMP_RET_DATA, kErrorMax)};
    default:
      return {.killed = true};
  }
}

int64_t make_call(const seccomp_data& call) {
  int64_t result = call.nr;
  register uint64_t r10 asm("r10") = call.args[3];
  register uint64_t r8 asm("r8") = call.args[4];
  register uint64_t r9 asm("r9") = call.args[5];
  asm volatile("syscall"
               : "+a"(result)
               : "D"(call.args[0]), "S"(call.args[1]), "d"(call.args[2]), "r"(r10), "r"(r8), "r"(r9)
               : "rcx", "r11", "memory");
  return result;
}

bool install(const SeccompFilter& filter) {
  SeccompFilter copy = filter;
  const sock_fprog program = {.len = static_cast<uint16_t>(copy.size()), .filter = copy.data()};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

// Nothing when the kernel does not take the filters.
std::optional<Outcome> kernel_outcome(std::span<const SeccompFilter> newest_first,
                                      const seccomp_data& call) {
  constexpr int kNotTaken = 3;
  void* const shared =
      mmap(nullptr, sizeof(int64_t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  EXPECT_NE(shared, MAP_FAILED);
  auto* const result = static_cast<int64_t*>(shared);
  const pid_t child = fork();
  if (child == 0) {
    for (size_t i = newest_first.size(); i-- > 0;) {
      if (!install(newest_first[i])) _exit(kNotTaken);
    }
    const int64_t made = make_call(call);
    *result = made > 0 ? 1 : made;
    _exit(0);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  const Outcome outcome = {.killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS,
                           .result = WIFSIGNALED(status) ? 0 : *result};
  munmap(shared, sizeof(int64_t));
  if (WIFEXITED(status) && WEXITSTATUS(status) == kNotTaken) return std::nullopt;
  return outcome;
}

class RandomFilters {
 public:
  // Lets all calls pass but kProbed.
  SeccompFilter make() {
    SeccompFilter filter = {step(BPF_LD | BPF_W | BPF_ABS, kNumberAt),
                            step(BPF_JMP | BPF_JEQ | BPF_K, kProbed, 1, 0), ret(SECCOMP_RET_ALLOW)};
    for (uint32_t word = 0; word < kWords; ++word)
      filter.push_back(step(BPF_ST, word));
    const uint32_t count = 1 + below(16);
    for (uint32_t left = count; left > 0; --left)
      filter.push_back(random_step(left));
    if (below(4) == 0) return with_end(std::move(filter), {ret(random_answer())});
    return with_end(std::move(filter),
                    {step(BPF_ALU | BPF_AND | BPF_K, 0xfff),
                     step(BPF_ALU | BPF_OR | BPF_K, SECCOMP_RET_ERRNO), step(BPF_RET | BPF_A, 0)});
  }

  seccomp_data make_arguments() {
    seccomp_data call = call_of(kProbed);
    for (auto& argument : call.args)
      argument = uint64_t{number()} << 32 | number();
    return call;
  }

 private:
  static constexpr uint32_t kWords = 3;

  static SeccompFilter with_end(SeccompFilter filter, const SeccompFilter& end) {
    filter.insert(filter.end(), end.begin(), end.end());
    return filter;
  }

  uint32_t below(uint32_t end) { return static_cast<uint32_t>(random_() % end); }
  // Small ones meet each other more often.
  uint32_t number() { return below(2) == 0 ? below(40) : static_cast<uint32_t>(random_()); }

  uint32_t random_answer() {
    constexpr std::array<uint32_t, 8> kActions = {
        SECCOMP_RET_ALLOW, SECCOMP_RET_LOG,   SECCOMP_RET_ERRNO,       SECCOMP_RET_USER_NOTIF,
        SECCOMP_RET_TRACE, SECCOMP_RET_ERRNO, SECCOMP_RET_KILL_THREAD, SECCOMP_RET_KILL_PROCESS};
    return kActions[below(kActions.size())] | below(0x10000);
  }

  // `left` steps are there before the end, this one included.
  sock_filter random_step(uint32_t left) {
    constexpr std::array<int, 10> kOperations = {BPF_ADD, BPF_SUB, BPF_MUL, BPF_DIV, BPF_AND,
                                                 BPF_OR,  BPF_XOR, BPF_LSH, BPF_RSH, BPF_NEG};
    constexpr std::array<int, 4> kConditions = {BPF_JEQ, BPF_JGT, BPF_JGE, BPF_JSET};
    const int source = below(2) == 0 ? BPF_K : BPF_X;
    const int target = below(2) == 0 ? BPF_LD : BPF_LDX;
    switch (below(9)) {
      case 0:
        return step(BPF_LD | BPF_W | BPF_ABS, kArguments[below(kArguments.size())]);
      case 1:
        return step(target | BPF_W | BPF_LEN, 0);
      case 2:
        return step(target | BPF_IMM, number());
      case 3:
        return step(target | BPF_MEM, below(kWords));
      case 4:
        return step(below(2) == 0 ? BPF_ST : BPF_STX, below(kWords));
      case 5: {
        const int operation = kOperations[below(kOperations.size())];
        if (operation == BPF_NEG) return step(BPF_ALU | BPF_NEG, 0);
        return step(BPF_ALU | operation | source, 1 + below(31));
      }
      case 6:
        if (below(3) == 0) return step(BPF_JMP | BPF_JA, below(left));
        return step(BPF_JMP | kConditions[below(kConditions.size())] | source, number(),
                    static_cast<uint8_t>(below(left)), static_cast<uint8_t>(below(left)));
      case 7:
        return step(BPF_MISC | (below(2) == 0 ? BPF_TAX : BPF_TXA), 0);
      default:
        return below(4) == 0 ? ret(random_answer()) : step(BPF_ALU | BPF_ADD | BPF_X, 0);
    }
  }

  static constexpr std::array<uint32_t, 14> kArguments = {0,  4,  16, 20, 24, 28, 32,
                                                          36, 40, 44, 48, 52, 56, 60};
  std::mt19937_64 random_{1};
};

TEST(SeccompFilters, AreAnsweredAsTheKernelDoes) {
  constexpr int kRounds = 400;
  RandomFilters random;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<SeccompFilter> newest_first = {random.make()};
    if (round % 2 == 0) newest_first.push_back(random.make());
    const seccomp_data call = random.make_arguments();
    const auto kernel = kernel_outcome(newest_first, call);
    ASSERT_TRUE(kernel.has_value()) << round;
    const Outcome ours = outcome_of(answer_of(std::span<const SeccompFilter>(newest_first), call));
    ASSERT_EQ(ours.killed, kernel->killed) << round;
    ASSERT_EQ(ours.result, kernel->result) << round;
  }
}

}  // namespace
}  // namespace clew::inline_

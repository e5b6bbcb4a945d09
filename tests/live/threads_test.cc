// SPDX-License-Identifier: Apache-2.0
// Threads in awkward places while sites are patched: inside a window, in a system call, in a traced
// function that does not return for a long time.
#include <array>
#include <chrono>
#include <csignal>

#include <gtest/gtest.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>

#include "live/process_state.h"
#include "live/tracer.h"
#include "live/victim.h"

namespace clew::live {
namespace {

constexpr uint64_t kThreadRounds = 1000;

// Attaches, lets `wake` end the wait, and checks that the thread went on as if nothing had been.
void expect_survives(const char* suspend, const char* wake, uint64_t result) {
  for (const bool wake_while_attached : {true, false}) {
    Victim victim("windows");
    victim.ask(suspend);
    Tracer tracer = Tracer::attach(victim.pid(), entries_of("windows!one_byte_first"));
    if (wake_while_attached) {
      EXPECT_EQ(victim.ask(wake).at("result"), result);
    }
    const Numbers before = victim.counts();
    victim.run(kThreadRounds);
    const Numbers calls = difference(before, victim.counts());
    const Report report = tracer.finish();
    EXPECT_EQ(report.status, 0) << report.error;
    // The suspended call was made before the attach: it is not counted, or it is the one more.
    const uint64_t counted = report.calls()["one_byte_first"];
    EXPECT_EQ(counted, calls.at("one_byte_first"));
    if (!wake_while_attached) {
      EXPECT_EQ(victim.ask(wake).at("result"), result);
    }
    EXPECT_EQ(victim.run(kThreadRounds), untraced_result("windows", kThreadRounds));
    expect_text_equals_file(victim.pid());
  }
}

TEST(Threads, AnAddressInAWindowInASignalFrameSurvives) {
  expect_survives("suspend_in_handler", "wake_handler", 503);
}

TEST(Threads, AnAddressInAWindowOfASuspendedCoroutineSurvives) {
  expect_survives("suspend_coroutine", "resume_coroutine", 1003);
}

// Stops the victim by SIGSTOP at entry + 1 of its traced function, as a debugger would get it
// there.
void stop_inside_window(Victim& victim) {
  const pid_t pid = victim.pid();
  const auto inside = static_cast<uintptr_t>(victim.ask("address").at("address")) + 1;
  int status = 0;
  ASSERT_EQ(ptrace(PTRACE_ATTACH, pid, nullptr, nullptr), 0);
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  void* const place = reinterpret_cast<void*>(inside);
  errno = 0;
  const long original = ptrace(PTRACE_PEEKTEXT, pid, place, nullptr);
  ASSERT_EQ(errno, 0);
  const long with_trap = (original & ~0xFFL) | 0xCC;
  ASSERT_EQ(ptrace(PTRACE_POKETEXT, pid, place, with_trap), 0);
  victim.tell("run " + std::to_string(kThreadRounds));
  ASSERT_EQ(ptrace(PTRACE_CONT, pid, nullptr, nullptr), 0);
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  ASSERT_TRUE(WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP);
  ASSERT_EQ(ptrace(PTRACE_POKETEXT, pid, place, original), 0);
  user_regs_struct registers = {};
  ASSERT_EQ(ptrace(PTRACE_GETREGS, pid, nullptr, &registers), 0);
  registers.rip = inside;
  ASSERT_EQ(ptrace(PTRACE_SETREGS, pid, nullptr, &registers), 0);
  ASSERT_EQ(ptrace(PTRACE_DETACH, pid, nullptr, SIGSTOP), 0);
}

char state_letter(pid_t pid) {
  std::array<char, 512> text{};
  FILE* file = fopen(("/proc/" + std::to_string(pid) + "/stat").c_str(), "re");
  if (file == nullptr) return '?';
  const size_t size = fread(text.data(), 1, text.size() - 1, file);
  (void)fclose(file);
  const std::string stat(text.data(), size);
  return stat[stat.rfind(')') + 2];
}

// Waits until the process sleeps or is stopped. One that a tracer has let go of in a stop wakes up
// and takes the way to its stop again, in the kernel alone (__ptrace_unlink(), Linux 6.18:
// JOBCTL_STOP_PENDING), and where others want the processor that takes a while.
char settled_state_letter(pid_t pid) {
  char letter = state_letter(pid);
  while (letter == 'R')
    letter = state_letter(pid);
  return letter;
}

TEST(Threads, AStoppedProcessInsideAWindowStaysStoppedAndGoesOnRightly) {
  Victim victim("windows");
  const uint64_t expected = untraced_result("windows", kThreadRounds);
  stop_inside_window(victim);
  while (state_letter(victim.pid()) != 'T') {
  }
  Tracer tracer = Tracer::attach(victim.pid(), entries_of("windows!one_byte_first"));
  // One that runs answers, and then sleeps until it is asked again.
  EXPECT_EQ(settled_state_letter(victim.pid()), 'T') << "attaching let a stopped process run";
  victim.child().signal(SIGCONT);
  const Numbers answer = victim.answer();
  EXPECT_EQ(answer.at("result"), expected);
  EXPECT_EQ(answer.at("errors"), 0U);
  const Report report = tracer.finish();
  EXPECT_EQ(report.status, 0) << report.error;
  // The first call had passed its entry before the attach.
  EXPECT_EQ(report.calls()["one_byte_first"], kThreadRounds - 1);
  expect_text_equals_file(victim.pid());
}

TEST(Threads, BlockedSystemCallsNeitherFailNorReturnEarly) {
  Victim victim("blocked");
  victim.ask("block");
  // A sleep that began anew would take one second more, at least.
  const auto begin = std::chrono::steady_clock::now();
  do {
    const Report report = Tracer::attach(victim.pid(), entries_of("blocked!*")).finish();
    EXPECT_EQ(report.status, 0) << report.error;
  } while (std::chrono::steady_clock::now() - begin < std::chrono::seconds(1));
  const Numbers woken = victim.ask("wake");
  EXPECT_EQ(woken.at("returned_early"), 0U);
  EXPECT_EQ(woken.at("failed"), 0U);
  EXPECT_GE(woken.at("slept_ns"), 2'000'000'000U);
  EXPECT_LT(woken.at("slept_ns"), 2'900'000'000U);
}

TEST(Threads, DetachDoesNotWaitForAThreadThatBlocksInATracedFunction) {
  Victim victim("blocked");
  const ProcessState before = ProcessState::of(victim.pid());
  Tracer tracer = Tracer::attach(victim.pid(),
                                 count_by_function("entry(\"blocked!*\"), return(\"blocked!*\")"));
  victim.ask("block");  // Its reader is now inside blocking_read, entered through the probe.
  const Report report = tracer.finish();
  EXPECT_EQ(report.status, 0) << report.error;
  EXPECT_EQ(report.calls()["blocking_read"], 1U);
  expect_text_equals_file(victim.pid());
  const Numbers woken = victim.ask("wake");
  EXPECT_EQ(woken.at("failed"), 0U);
  const uint64_t result = victim.run(kThreadRounds);
  EXPECT_EQ(result, untraced_result("blocked", kThreadRounds));
  expect_no_strange_residue(before, victim.pid());
}

}  // namespace
}  // namespace clew::live

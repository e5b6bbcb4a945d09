// SPDX-License-Identifier: Apache-2.0
// Threads at awkward places: inside windows, in signal handlers, in the loader; and users without
// privileges.
#include <algorithm>
#include <csignal>
#include <optional>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inline/attachment.h"
#include "inline/process_lock.h"
#include "inline/victim.h"

namespace clew::inline_ {
namespace {

using testing_::cell;
using testing_::changed_text;
using testing_::Footprint;
using testing_::footprint_of;
using testing_::install_counters;
using testing_::Module;
using testing_::module_of;
using testing_::plan_of;
using testing_::small_options;
using testing_::Victim;

const char* const kPlugin = CLEW_PLUGIN_VICTIM;

class AwkwardThreads : public testing::Test {
 protected:
  AwkwardThreads()
      : victim_(CLEW_COUNTER_VICTIM), module_(module_of(victim_.pid(), "counter_victim")) {}

  Attachment open(const OpenOptions& options = small_options()) {
    auto attachment = Attachment::open(victim_.pid(), options);
    EXPECT_TRUE(attachment.has_value()) << attachment.error().message;
    return std::move(*attachment);
  }

  // Lets the thread run the command until it has stood `times` times behind `begin` and before
  // `end`, then lets go of it with a signal.
  void stop_inside(pid_t thread, const std::string& command, uint64_t begin, uint64_t end,
                   int signal, int times = 1) {
    int status = 0;
    ASSERT_EQ(ptrace(PTRACE_ATTACH, thread, nullptr, nullptr), 0);
    ASSERT_EQ(waitpid(thread, &status, __WALL), thread);
    victim_.send(command);
    user_regs_struct registers = {};
    for (int step = 0; step < 20'000; ++step) {
      ASSERT_EQ(ptrace(PTRACE_SINGLESTEP, thread, nullptr, nullptr), 0);
      ASSERT_EQ(waitpid(thread, &status, __WALL), thread);
      ptrace(PTRACE_GETREGS, thread, nullptr, &registers);
      if (registers.rip > begin && registers.rip < end && --times == 0) break;
    }
    ASSERT_EQ(times, 0);
    ptrace(PTRACE_DETACH, thread, nullptr, reinterpret_cast<void*>(static_cast<intptr_t>(signal)));
  }
  void stop_inside_window(const std::string& command, uint64_t begin, uint64_t end, int signal) {
    stop_inside(victim_.pid(), command, begin, end, signal);
  }

  // Lets the thread run the command into a probe, where only running on leads out, and no further
  // without the signal.
  void stop_inside_probe(pid_t thread, const std::string& command, int signal) {
    const auto maps = target::read_memory_map(victim_.pid());
    ASSERT_TRUE(maps.has_value());
    const auto code = std::find_if(maps->begin(), maps->end(), [](const target::Mapping& map) {
      return map.executable && map.path.find("memfd:") != std::string::npos;
    });
    ASSERT_NE(code, maps->end());
    constexpr int kInsideTheBody = 3;
    stop_inside(thread, command, code->start, code->end, signal, kInsideTheBody);
  }

  // A handler of the thread interrupts a probe, and returns; what is left of its frame is memory.
  void leave_a_frame_of_a_probe(pid_t thread, const std::string& command) {
    stop_inside_probe(thread, command, SIGUSR1);
    ASSERT_EQ(victim_.read_line(), "handler");
    EXPECT_EQ(victim_.ask("go"), "5050");
  }

  Victim victim_;
  std::unique_ptr<Module> module_;
};

TEST_F(AwkwardThreads, AThreadStoppedInsideAWindowGoesOnInItsCopy) {
  const uint64_t begin = module_->address_of("short_work") + module_->load_bias;
  stop_inside_window("short 100", begin, begin + 8, SIGSTOP);
  Attachment attachment = open();
  const code::Plan plan = plan_of(*module_, {{code::RequestKind::Entry, "short_work"}}, attachment);
  const auto report = install_counters(attachment, *module_, plan);
  ASSERT_TRUE(report.has_value()) << report.error().message;
  EXPECT_EQ(report->windows, 1U);
  kill(victim_.pid(), SIGCONT);
  EXPECT_EQ(victim_.read_line(), "5050");
  EXPECT_EQ(cell(attachment, 0), 99U);  // One call was under way.
  ASSERT_TRUE(attachment.detach().has_value());
}

TEST_F(AwkwardThreads, ASignalHandlerReturnsIntoTheCopy) {
  const uint64_t begin = module_->address_of("short_work") + module_->load_bias;
  stop_inside_window("short 100", begin, begin + 8, SIGUSR1);
  ASSERT_EQ(victim_.read_line(), "handler");
  Attachment attachment = open();
  const code::Plan plan = plan_of(*module_, {{code::RequestKind::Entry, "short_work"}}, attachment);
  const auto report = install_counters(attachment, *module_, plan);
  ASSERT_TRUE(report.has_value()) << report.error().message;
  EXPECT_EQ(report->windows, 1U);
  victim_.send("go");
  EXPECT_EQ(victim_.read_line(), "5050");
  EXPECT_EQ(cell(attachment, 0), 99U);
  ASSERT_TRUE(attachment.detach().has_value());
  EXPECT_TRUE(changed_text(victim_.pid()).empty());
}

TEST_F(AwkwardThreads, ACoroutineThatRestsInsideAWindowGoesOnInItsCopy) {
  const uint64_t begin = module_->address_of("short_work") + module_->load_bias;
  stop_inside_window("coroutine 100", begin, begin + 8, SIGUSR2);
  ASSERT_EQ(victim_.read_line(), "suspended");
  Attachment attachment = open();
  const code::Plan plan = plan_of(*module_, {{code::RequestKind::Entry, "short_work"}}, attachment);
  const auto report = install_counters(attachment, *module_, plan);
  ASSERT_TRUE(report.has_value()) << report.error().message;
  EXPECT_EQ(report->windows, 1U);
  EXPECT_EQ(victim_.ask("resume"), "5050");
  EXPECT_EQ(cell(attachment, 0), 99U);
}

// The first instruction stays: a thread has done it, and stands in front of the jump.
TEST_F(AwkwardThreads, AThreadInFrontOfAJumpIsCountedWhoeverComesAndLeaves) {
  Attachment first = open();
  const code::Plan plan = plan_of(*module_, {{code::RequestKind::Entry, "short_work"}}, first);
  ASSERT_EQ(plan.windows[0].kept_bytes, 1U);
  ASSERT_TRUE(install_counters(first, *module_, plan).has_value());
  const uint64_t begin = module_->address_of("short_work") + module_->load_bias;
  for (const bool second_comes : {true, false}) {
    stop_inside(victim_.pid(), "short 100", begin, begin + 2, SIGSTOP);
    std::optional<Attachment> second;
    if (second_comes) {
      second.emplace(open());
      const code::Plan again =
          plan_of(*module_, {{code::RequestKind::Entry, "short_work"}}, *second);
      const auto report = install_counters(*second, *module_, again);
      ASSERT_TRUE(report.has_value()) << report.error().message;
      EXPECT_EQ(report->windows, 1U);
    } else {
      ASSERT_TRUE(first.detach().has_value());
    }
    kill(victim_.pid(), SIGCONT);
    EXPECT_EQ(victim_.read_line(), "5050");
    if (!second_comes) break;
    EXPECT_EQ(cell(first, 0), 100U);
    EXPECT_EQ(cell(*second, 0), 100U);
    ASSERT_TRUE(second->detach().has_value());
  }
  EXPECT_TRUE(changed_text(victim_.pid()).empty());
}

TEST_F(AwkwardThreads, ACoroutineThatRestsInsideAProbeKeepsItsCode) {
  Attachment attachment = open();
  const code::Plan plan = plan_of(*module_, {{code::RequestKind::Entry, "short_work"}}, attachment);
  ASSERT_TRUE(install_counters(attachment, *module_, plan).has_value());
  stop_inside_probe(victim_.pid(), "coroutine 100", SIGUSR2);
  ASSERT_EQ(victim_.read_line(), "suspended");
  const auto report = attachment.detach();
  ASSERT_TRUE(report.has_value());
  EXPECT_TRUE(report->residue);
  const uint64_t site = module_->address_of("short_work") + module_->load_bias;
  EXPECT_NE(report->residue_reason.find(fmt::format("the probe at {:#x}", site)), std::string::npos)
      << report->residue_reason;
  EXPECT_TRUE(changed_text(victim_.pid()).empty());
  EXPECT_EQ(victim_.ask("resume"), "5050");
}

// The stack of another thread lies above it, in the same mapping.
TEST_F(AwkwardThreads, AHandlerOnAPooledStackKeepsTheCodeItInterrupted) {
  const auto worker = static_cast<pid_t>(victim_.ask_number("neighbours"));
  ASSERT_GT(worker, 0);
  Attachment attachment = open();
  const code::Plan plan = plan_of(*module_, {{code::RequestKind::Entry, "short_work"}}, attachment);
  ASSERT_TRUE(install_counters(attachment, *module_, plan).has_value());
  stop_inside_probe(worker, "work 100", SIGUSR1);
  ASSERT_EQ(victim_.read_line(), "handler");
  const auto report = attachment.detach();
  ASSERT_TRUE(report.has_value());
  EXPECT_TRUE(report->residue);
  EXPECT_EQ(victim_.ask("go"), "5050");
}

// Another handler, or what the handler has switched to, runs on a stack in a variable of main().
TEST_F(AwkwardThreads, AHandlerBelowAStackOfItsThreadKeepsTheCodeItInterrupted) {
  for (const char* const way : {"nested", "switched"}) {
    EXPECT_EQ(victim_.ask_number(way), 0);
    Attachment attachment = open();
    const code::Plan plan =
        plan_of(*module_, {{code::RequestKind::Entry, "short_work"}}, attachment);
    ASSERT_TRUE(install_counters(attachment, *module_, plan).has_value());
    stop_inside_probe(victim_.pid(), "short 100", SIGUSR1);
    ASSERT_EQ(victim_.read_line(), "handler");
    const auto report = attachment.detach();
    ASSERT_TRUE(report.has_value());
    EXPECT_TRUE(report->residue) << way;
    EXPECT_EQ(victim_.ask("go"), "5050");
  }
}

TEST_F(AwkwardThreads, AHandlerThatRestsOnItsAlternateStackKeepsTheCodeItInterrupted) {
  EXPECT_EQ(victim_.ask_number("aside"), 0);
  Attachment attachment = open();
  const code::Plan plan = plan_of(*module_, {{code::RequestKind::Entry, "short_work"}}, attachment);
  ASSERT_TRUE(install_counters(attachment, *module_, plan).has_value());
  stop_inside_probe(victim_.pid(), "coroutine 100", SIGUSR2);
  ASSERT_EQ(victim_.read_line(), "suspended");
  const auto report = attachment.detach();
  ASSERT_TRUE(report.has_value());
  EXPECT_TRUE(report->residue);
  EXPECT_EQ(victim_.ask("resume"), "5050");
}

// The signal waits; its handler begins when the detach lets the thread run out of the probe.
TEST_F(AwkwardThreads, AHandlerThatSwitchesAwayFromADetachKeepsTheCodeItInterrupted) {
  Attachment attachment = open();
  const code::Plan plan = plan_of(*module_, {{code::RequestKind::Entry, "short_work"}}, attachment);
  ASSERT_TRUE(install_counters(attachment, *module_, plan).has_value());
  stop_inside_probe(victim_.pid(), "coroutine 100", SIGSTOP);
  kill(victim_.pid(), SIGUSR2);
  const auto report = attachment.detach();
  ASSERT_TRUE(report.has_value());
  EXPECT_TRUE(report->residue);
  kill(victim_.pid(), SIGCONT);
  ASSERT_EQ(victim_.read_line(), "suspended");
  EXPECT_EQ(victim_.ask("resume"), "5050");
}

TEST_F(AwkwardThreads, WhatAHandlerLeftOnItsStackHoldsNobodyUp) {
  EXPECT_EQ(victim_.ask_number("elsewhere"), 0);
  Attachment attachment = open();
  const code::Plan plan = plan_of(*module_, {{code::RequestKind::Entry, "short_work"}}, attachment);
  ASSERT_TRUE(install_counters(attachment, *module_, plan).has_value());
  leave_a_frame_of_a_probe(victim_.pid(), "short 100");
  EXPECT_EQ(cell(attachment, 0), 100U);
  const auto report = attachment.detach();
  ASSERT_TRUE(report.has_value());
  EXPECT_FALSE(report->residue) << report->residue_reason;
  EXPECT_TRUE(changed_text(victim_.pid()).empty());
}

TEST_F(AwkwardThreads, WhatAHandlerLeftBelowAThreadsStackHoldsNobodyUp) {
  const auto worker = static_cast<pid_t>(victim_.ask_number("worker"));
  ASSERT_GT(worker, 0);
  Attachment attachment = open();
  const code::Plan plan = plan_of(*module_, {{code::RequestKind::Entry, "short_work"}}, attachment);
  ASSERT_TRUE(install_counters(attachment, *module_, plan).has_value());
  leave_a_frame_of_a_probe(worker, "work 100");
  EXPECT_EQ(cell(attachment, 0), 100U);
  const auto report = attachment.detach();
  ASSERT_TRUE(report.has_value());
  EXPECT_FALSE(report->residue) << report->residue_reason;
  EXPECT_TRUE(changed_text(victim_.pid()).empty());
}

TEST_F(AwkwardThreads, SystemCallsThatBlockAreNotInterrupted) {
  EXPECT_EQ(victim_.ask("sleepers"), "asleep");
  victim_.send("nap 500");
  const auto begin = std::chrono::steady_clock::now();
  for (int round = 0; round < 5; ++round) {
    Attachment attachment = open();
    const code::Plan plan = plan_of(*module_, {{code::RequestKind::Entry, "work"}}, attachment);
    ASSERT_TRUE(install_counters(attachment, *module_, plan).has_value());
  }
  EXPECT_EQ(victim_.read_line(), "0");
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(450));
  EXPECT_EQ(victim_.ask_number("wake"), 0);
}

TEST(AStaticProgram, IsTracedFromItsEntryPointOn) {
  auto launched = Launched::start({.command = {CLEW_STATIC_VICTIM}});
  ASSERT_TRUE(launched.has_value()) << launched.error().message;
  auto attachment = Attachment::open(launched->pid(), small_options());
  ASSERT_TRUE(attachment.has_value()) << attachment.error().message;
  const auto module = module_of(launched->pid(), "static_victim");
  ASSERT_NE(module, nullptr);
  const code::Plan plan =
      plan_of(*module, {{code::RequestKind::Entry, "plugin_work"}}, *attachment);
  const auto report = install_counters(*attachment, *module, plan);
  ASSERT_TRUE(report.has_value()) << report.error().message;
  EXPECT_EQ(report->windows, 1U);
  ASSERT_TRUE(launched->resume().has_value());
  const auto status = launched->wait_for_exit();
  ASSERT_TRUE(status.has_value());
  EXPECT_EQ(WEXITSTATUS(*status), 12);
  EXPECT_EQ(cell(*attachment, 0), 12U);
}

TEST(AFilteredProcess, IsTracedByRootWithoutHarm) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can suspend a filter";
  Victim victim(CLEW_FILTERED_VICTIM);
  const auto module = module_of(victim.pid(), "filtered_victim");
  auto attachment = Attachment::open(victim.pid(), small_options());
  ASSERT_TRUE(attachment.has_value()) << attachment.error().message;
  const code::Plan plan =
      plan_of(*module, {{code::RequestKind::Entry, "plugin_work"}}, *attachment);
  ASSERT_TRUE(install_counters(*attachment, *module, plan).has_value());
  EXPECT_EQ(victim.ask("go"), "done");
  EXPECT_EQ(cell(*attachment, 0), 20U);
  ASSERT_TRUE(attachment->detach().has_value());
  EXPECT_TRUE(changed_text(victim.pid()).empty());
  EXPECT_EQ(victim.finish(), 0);
}

TEST_F(AwkwardThreads, AStoppedProcessStaysStopped) {
  kill(victim_.pid(), SIGSTOP);
  int status = 0;
  ASSERT_EQ(waitpid(victim_.pid(), &status, WUNTRACED), victim_.pid());
  Attachment attachment = open();
  const code::Plan plan = plan_of(*module_, {{code::RequestKind::Entry, "work"}}, attachment);
  ASSERT_TRUE(install_counters(attachment, *module_, plan).has_value());
  victim_.send("calls 10");
  // It is on its way back to sleep when we let go of it.
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (target::read_facts(victim_.pid())->state != 'T' &&
         std::chrono::steady_clock::now() < deadline) {
    sched_yield();
  }
  EXPECT_EQ(target::read_facts(victim_.pid())->state, 'T');
  EXPECT_EQ(cell(attachment, 0), 0U);
  kill(victim_.pid(), SIGCONT);
  EXPECT_EQ(victim_.read_line(), "10");
  EXPECT_EQ(cell(attachment, 0), 10U);
}

TEST_F(AwkwardThreads, AProbeAtAnOffsetKeepsFlagsAndRedZone) {
  Attachment attachment = open();
  const uint64_t start = module_->address_of("flags_work");
  for (const bool guarded : {false, true}) {
    Attachment session = open();
    // Behind `mov [rsp-8], rdi`, `std` and `cmp`.
    const code::Request request = {.kind = code::RequestKind::Offset, .address = start + 10};
    const code::Plan plan = plan_windows(module_->code, {&request, 1}, {});
    ASSERT_EQ(plan.points.size(), 1U);
    const auto report = install_counters(session, *module_, plan, {.guarded = guarded});
    ASSERT_TRUE(report.has_value()) << report.error().message;
    EXPECT_EQ(report->windows, 1U);
    EXPECT_EQ(victim_.ask_number("flags 2000"), 2000 / 20 * (190 + 20 + 10 * 100));
    EXPECT_EQ(cell(session, 0), 2000U);
  }
}

TEST_F(AwkwardThreads, ALibraryThatIsLoadedLaterIsSeenFromItsConstructorOn) {
  OpenOptions options = small_options();
  options.follow_modules = true;
  options.loader_timeout = std::chrono::seconds(20);
  const Footprint before = footprint_of(victim_.pid());
  Attachment attachment = open(options);
  uint64_t counted = 0;
  for (uint32_t round = 0; round < 3; ++round) {
    victim_.send(std::string("load ") + kPlugin);
    ASSERT_EQ(attachment.wait(std::chrono::seconds(20)), Event::ModulesChanged);
    {
      const auto plugin = module_of(victim_.pid(), "plugin_victim");
      ASSERT_NE(plugin, nullptr);
      const code::Plan plan =
          plan_of(*plugin, {{code::RequestKind::Entry, "plugin_work"}}, attachment);
      const auto report = install_counters(attachment, *plugin, plan);
      ASSERT_TRUE(report.has_value()) << report.error().message;
      EXPECT_EQ(report->windows, 1U);
    }
    attachment.modules_done();
    EXPECT_EQ(victim_.read_line(), "15");
    counted += 15;
    EXPECT_EQ(cell(attachment, 0), counted);
    victim_.send("unload");
    ASSERT_EQ(attachment.wait(std::chrono::seconds(20)), Event::ModulesChanged);
    attachment.modules_done();
    EXPECT_EQ(victim_.read_line(), "done");
  }
  const auto report = attachment.detach();
  ASSERT_TRUE(report.has_value()) << report.error().message;
  EXPECT_FALSE(report->residue) << report->residue_reason;
  EXPECT_TRUE(changed_text(victim_.pid()).empty());
  EXPECT_EQ(footprint_of(victim_.pid()).descriptors, before.descriptors);
}

// Another session stops it for a moment, and has let go of the lock: it is waited for.
TEST_F(AwkwardThreads, WhoTracesItForAMomentIsWaitedFor) {
  const pid_t pid = victim_.pid();
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  const pid_t other = fork();
  if (other == 0) {
    if (ptrace(PTRACE_SEIZE, pid, nullptr, nullptr) != 0) _exit(1);
    (void)!write(ends[1], "t", 1);
    ProcessLock lock(pid);
    const auto is_free = [&] {
      const auto held = lock.try_hold();
      return held && held->has_value();
    };
    while (is_free()) {
    }
    ptrace(PTRACE_INTERRUPT, pid, nullptr, nullptr);
    int status = 0;
    waitpid(pid, &status, 0);
    _exit(ptrace(PTRACE_DETACH, pid, nullptr, nullptr) == 0 ? 0 : 2);
  }
  char ready = 0;
  ASSERT_EQ(read(ends[0], &ready, 1), 1);
  const auto attachment = Attachment::open(pid, small_options());
  EXPECT_TRUE(attachment.has_value()) << attachment.error().message;
  int status = 0;
  ASSERT_EQ(waitpid(other, &status, 0), other);
  EXPECT_EQ(status, 0);
  close(ends[0]);
  close(ends[1]);
}

TEST_F(AwkwardThreads, AGdbBreakpointInTheWindowIsNotOverwritten) {
  const uint64_t begin = module_->address_of("work") + module_->load_bias;
  const pid_t pid = victim_.pid();
  ASSERT_EQ(ptrace(PTRACE_ATTACH, pid, nullptr, nullptr), 0);
  ASSERT_EQ(waitpid(pid, nullptr, 0), pid);
  const auto busy = Attachment::open(pid, small_options());
  ASSERT_FALSE(busy.has_value());
  EXPECT_NE(busy.error().message.find("[already-traced]"), std::string::npos);
  auto* const at = reinterpret_cast<void*>(begin);
  const long old = ptrace(PTRACE_PEEKTEXT, pid, at, nullptr);
  ptrace(PTRACE_POKETEXT, pid, at, reinterpret_cast<void*>((old & ~0xffL) | 0xcc));
  ptrace(PTRACE_DETACH, pid, nullptr, nullptr);
  Attachment attachment = open();
  const code::Plan plan = plan_of(*module_, {{code::RequestKind::Entry, "work"}}, attachment);
  const auto report = install_counters(attachment, *module_, plan);
  ASSERT_TRUE(report.has_value()) << report.error().message;
  EXPECT_EQ(report->windows, 0U);
  ASSERT_EQ(report->refusals.size(), 1U);
  EXPECT_EQ(report->refusals[0].reason, code::RefusalReason::ForeignPatch);
  EXPECT_EQ(changed_text(pid).size(), 1U);
}

// Everything in a process that has given up its privileges, victim included.
int trace_as_nobody() {
  if (setgid(65534) != 0 || setuid(65534) != 0) return 1;
  Victim victim(CLEW_COUNTER_VICTIM);
  const auto module = module_of(victim.pid(), "counter_victim");
  const Footprint before = footprint_of(victim.pid());
  const pid_t tracer = fork();
  if (tracer == 0) {
    auto attachment = Attachment::open(victim.pid(), small_options());
    if (!attachment) _exit(2);
    const code::Plan plan = plan_of(*module, {{code::RequestKind::Entry, "work"}}, *attachment);
    if (!install_counters(*attachment, *module, plan)) _exit(3);
    if (victim.ask_number("calls 50") != 50 || cell(*attachment, 0) != 50) _exit(4);
    kill(getpid(), SIGKILL);
  }
  int status = 0;
  waitpid(tracer, &status, 0);
  if (!WIFSIGNALED(status)) return 10 + WEXITSTATUS(status);
  if (changed_text(victim.pid()).empty()) return 20;
  const auto report = clean_up(victim.pid(), false);
  if (!report || report->residue) return 21;
  if (!changed_text(victim.pid()).empty()) return 22;
  return footprint_of(victim.pid()) == before ? 0 : 23;
}

TEST(AnOrdinaryUser, TracesTheirOwnProcessAndCleansUp) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to become somebody else";
  const pid_t child = fork();
  if (child == 0) _exit(trace_as_nobody());
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace clew::inline_

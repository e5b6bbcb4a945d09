// SPDX-License-Identifier: Apache-2.0
// What happens around a session: other sessions, dead tracers, forks, ends of the target, commands
// that Clew starts.
#include <algorithm>
#include <csignal>
#include <random>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inline/attachment.h"
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

using Wanted = std::vector<std::pair<code::RequestKind, std::string>>;

class Sessions : public testing::Test {
 protected:
  Sessions() : victim_(CLEW_COUNTER_VICTIM), module_(module_of(victim_.pid(), "counter_victim")) {}

  // A session with counters, or a failure of the test.
  Attachment trace(const Wanted& wanted, const OpenOptions& options = small_options()) {
    auto attachment = Attachment::open(victim_.pid(), options);
    EXPECT_TRUE(attachment.has_value()) << attachment.error().message;
    const auto report =
        install_counters(*attachment, *module_, plan_of(*module_, wanted, *attachment));
    EXPECT_TRUE(report.has_value()) << report.error().message;
    EXPECT_TRUE(report->refusals.empty());
    return std::move(*attachment);
  }

  static void leave(Attachment& attachment) {
    const auto report = attachment.detach();
    ASSERT_TRUE(report.has_value()) << report.error().message;
    EXPECT_FALSE(report->residue) << report->residue_reason;
    EXPECT_EQ(report->foreign_patches, 0U);
  }

  Victim victim_;
  std::unique_ptr<Module> module_;
};

TEST_F(Sessions, ShareASiteAndLeaveInAnyOrder) {
  const Footprint before = footprint_of(victim_.pid());
  const Wanted entry = {{code::RequestKind::Entry, "work"}};
  for (const bool first_leaves_first : {true, false}) {
    const long start = victim_.ask_number("calls 0");
    Attachment first = trace(entry);
    victim_.ask("calls 1000");
    Attachment second = trace(entry);
    Attachment third = trace(entry);
    EXPECT_EQ(victim_.ask_number("calls 100"), start + 1100);
    EXPECT_EQ(cell(first, 0), 1100U);
    EXPECT_EQ(cell(second, 0), 100U);
    EXPECT_EQ(cell(third, 0), 100U);
    leave(first_leaves_first ? first : second);
    EXPECT_EQ(victim_.ask_number("calls 10"), start + 1110);
    EXPECT_EQ(cell(first_leaves_first ? second : first, 0), first_leaves_first ? 110U : 1110U);
    EXPECT_EQ(cell(third, 0), 110U);
    leave(third);
    victim_.ask("calls 1");
    EXPECT_EQ(cell(third, 0), 110U);
    EXPECT_EQ(cell(first_leaves_first ? second : first, 0), first_leaves_first ? 111U : 1111U);
    leave(first_leaves_first ? second : first);
    EXPECT_TRUE(changed_text(victim_.pid()).empty());
    EXPECT_EQ(footprint_of(victim_.pid()), before);
  }
  EXPECT_EQ(victim_.finish(), 0);
}

TEST_F(Sessions, AnExitAndAnEntryOfDifferentSessionsBothCount) {
  Attachment exits = trace({{code::RequestKind::Exits, "work"}});
  Attachment entries = trace({{code::RequestKind::Entry, "work"}});
  victim_.ask("calls 500");
  EXPECT_EQ(cell(exits, 0), 500U);
  EXPECT_EQ(cell(entries, 0), 500U);
  leave(exits);
  victim_.ask("calls 500");
  EXPECT_EQ(cell(entries, 0), 1000U);
  leave(entries);
  EXPECT_TRUE(changed_text(victim_.pid()).empty());
}

// The copy of the return is one byte, and the jump of a layer above has five. The thread is new to
// both.
TEST_F(Sessions, ShareAWindowThatEndsWithAReturn) {
  const Wanted both = {{code::RequestKind::Entry, "short_work"},
                       {code::RequestKind::Exits, "short_work"}};
  Attachment first = trace(both);
  Attachment second = trace(both);
  EXPECT_EQ(victim_.ask("short 100"), "5050");
  for (const Attachment* attachment : {&first, &second}) {
    EXPECT_EQ(cell(*attachment, 0), 100U);
    EXPECT_EQ(cell(*attachment, 1), 100U);
  }
  leave(first);
  EXPECT_EQ(victim_.ask("short 100"), "5050");
  EXPECT_EQ(cell(second, 1), 200U);
  leave(second);
  EXPECT_TRUE(changed_text(victim_.pid()).empty());
}

// The second probe begins four bytes behind the first one, and the jump of a layer above has five.
TEST_F(Sessions, ShareASiteWithProbesThatAreCloserThanAJump) {
  const uint64_t start = module_->address_of("short_work");
  const std::vector<code::Request> requests = {{code::RequestKind::Entry, start},
                                               {code::RequestKind::Offset, start + 4}};
  std::vector<Attachment> layers;
  for (int i = 0; i < 3; ++i) {
    auto attachment = Attachment::open(victim_.pid(), small_options());
    ASSERT_TRUE(attachment.has_value()) << attachment.error().message;
    const code::Plan plan =
        plan_windows(module_->code, requests, attachment->installed(module_->load_bias));
    const auto report = install_counters(*attachment, *module_, plan);
    ASSERT_TRUE(report.has_value() && report->refusals.empty());
    layers.push_back(std::move(*attachment));
  }
  for (; !layers.empty(); layers.erase(layers.begin())) {
    EXPECT_EQ(victim_.ask_number("short 1000"), 500500);
    leave(layers.front());
  }
  EXPECT_EQ(victim_.ask_number("short 1000"), 500500);
  EXPECT_TRUE(changed_text(victim_.pid()).empty());
}

// Runs `work` in a child and kills it `delay` after it said that it began.
template <typename Work>
void kill_tracer(const Work& work, std::chrono::microseconds delay) {
  int ready[2] = {};
  ASSERT_EQ(pipe(ready), 0);
  const pid_t tracer = fork();
  if (tracer == 0) {
    work(ready[1]);
    pause();
    _exit(0);
  }
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  const auto until = std::chrono::steady_clock::now() + delay;
  while (std::chrono::steady_clock::now() < until) {
  }
  kill(tracer, SIGKILL);
  waitpid(tracer, nullptr, 0);
  close(ready[0]);
  close(ready[1]);
}

TEST_F(Sessions, ResidueOfAKilledTracerIsListedAndCleanedUp) {
  const Footprint before = footprint_of(victim_.pid());
  kill_tracer(
      [&](int ready) {
        Attachment attachment = trace({{code::RequestKind::Entry, "work"}});
        (void)!write(ready, "r", 1);
        pause();
      },
      std::chrono::microseconds(0));
  EXPECT_EQ(victim_.ask_number("calls 1000"), 1000);
  const std::vector<ArenaInfo> all = ps();
  const auto mine = std::find_if(all.begin(), all.end(),
                                 [&](const ArenaInfo& i) { return i.pid == victim_.pid(); });
  ASSERT_NE(mine, all.end());
  EXPECT_TRUE(mine->residue);
  EXPECT_EQ(mine->sites, 1U);
  ASSERT_EQ(mine->sessions.size(), 1U);
  EXPECT_FALSE(mine->sessions[0].tracer_alive);
  const auto report = clean_up(victim_.pid(), false);
  ASSERT_TRUE(report.has_value()) << report.error().message;
  EXPECT_FALSE(report->residue);
  EXPECT_TRUE(changed_text(victim_.pid()).empty());
  EXPECT_EQ(footprint_of(victim_.pid()), before);
}

TEST_F(Sessions, ANewSessionReplacesADeadOne) {
  const Footprint before = footprint_of(victim_.pid());
  kill_tracer(
      [&](int ready) {
        Attachment attachment = trace({{code::RequestKind::Entry, "work"}});
        (void)!write(ready, "r", 1);
        pause();
      },
      std::chrono::microseconds(0));
  Attachment attachment = trace({{code::RequestKind::Entry, "work"}});
  victim_.ask("calls 77");
  EXPECT_EQ(cell(attachment, 0), 77U);
  leave(attachment);
  EXPECT_EQ(footprint_of(victim_.pid()), before);
}

TEST_F(Sessions, ATracerKilledAtAnyMomentLeavesARunningProcess) {
  const Footprint before = footprint_of(victim_.pid());
  std::minstd_rand random(7);
  victim_.ask("storm 3");
  const size_t threads = footprint_of(victim_.pid()).threads;
  for (int round = 0; round < 40; ++round) {
    kill_tracer(
        [&](int ready) {
          (void)!write(ready, "r", 1);
          while (true) {
            Attachment attachment = trace({{code::RequestKind::Entry, "work"}});
            (void)attachment.detach();
          }
        },
        std::chrono::microseconds(random() % 6000));
    const auto report = clean_up(victim_.pid(), false);
    ASSERT_TRUE(report.has_value()) << round << ": " << report.error().message;
    ASSERT_FALSE(report->residue) << report->residue_reason;
    ASSERT_TRUE(changed_text(victim_.pid()).empty());
    ASSERT_EQ(footprint_of(victim_.pid()).threads, threads) << round;
    ASSERT_EQ(footprint_of(victim_.pid()).descriptors, before.descriptors) << round;
  }
  EXPECT_GT(victim_.ask_number("calm"), 0);
  EXPECT_EQ(victim_.finish(), 0);
}

TEST_F(Sessions, AForkedChildIsMutedUnharmedAndCleanedWithItsParent) {
  Attachment attachment = trace({{code::RequestKind::Entry, "work"}});
  victim_.ask("calls 10");
  EXPECT_EQ(victim_.ask_number("fork 1000"), 0);
  EXPECT_EQ(cell(attachment, 0), 10U);
  EXPECT_EQ(attachment.arena().target->forks_muted, 1U);
  const auto child = static_cast<pid_t>(victim_.ask_number("family 5"));
  EXPECT_FALSE(changed_text(child).empty());
  leave(attachment);
  EXPECT_TRUE(changed_text(child).empty());
  EXPECT_EQ(WEXITSTATUS(victim_.ask_number("bury")), 7);
}

// The child has fewer rights than the parent, which goes on to run what they share.
void expect_that_children_change_nothing(Victim& victim) {
  const auto before = footprint_of(victim.pid()).descriptors;
  const auto module = module_of(victim.pid(), "usurper_victim");
  auto attachment = Attachment::open(victim.pid(), small_options());
  ASSERT_TRUE(attachment.has_value()) << attachment.error().message;
  EXPECT_EQ(footprint_of(victim.pid()).descriptors, before);
  const code::Plan plan = plan_of(*module, {{code::RequestKind::Entry, "work"}}, *attachment);
  ASSERT_TRUE(install_counters(*attachment, *module, plan).has_value());
  EXPECT_EQ(victim.ask_number("calls 10"), 10);
  EXPECT_EQ(cell(*attachment, 0), 10U);
  const std::string changed = victim.ask("usurp");
  EXPECT_TRUE(changed.starts_with("0 of ")) << changed;
  EXPECT_FALSE(changed.ends_with(" 0")) << changed;
  // What the child wrote into the slots is wrong counts, and no more.
  EXPECT_EQ(victim.ask_number("calls 100"), 110);
  const auto report = attachment->detach();
  ASSERT_TRUE(report.has_value()) << report.error().message;
  EXPECT_FALSE(report->residue) << report->residue_reason;
  EXPECT_TRUE(changed_text(victim.pid()).empty());
  EXPECT_EQ(victim.finish(), 0);
}

TEST(ForkedChildren, CannotChangeWhatTheirParentRuns) {
  Victim victim(CLEW_USURPER_VICTIM);
  expect_that_children_change_nothing(victim);
}

// Without /proc, in which the program opens its code for reading only.
TEST(ForkedChildren, CannotChangeItInAnotherRootFolder) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to change the root folder";
  Victim victim(CLEW_USURPER_VICTIM);
  ASSERT_EQ(victim.ask_number("confine"), 0);
  expect_that_children_change_nothing(victim);
}

TEST_F(Sessions, ASecondSessionIsRefusedWhileForkedChildrenHaveTheProbesOfTheFirst) {
  Attachment first = trace({{code::RequestKind::Entry, "work"}});
  const auto child = static_cast<pid_t>(victim_.ask_number("family 5"));
  const auto second = Attachment::open(victim_.pid(), small_options());
  ASSERT_FALSE(second.has_value());
  EXPECT_NE(second.error().message.find("[forked-children]"), std::string::npos)
      << second.error().message;
  leave(first);
  EXPECT_TRUE(changed_text(child).empty());
  EXPECT_EQ(WEXITSTATUS(victim_.ask_number("bury")), 7);
}

TEST_F(Sessions, AChildCanBeCleanedAloneAndAfterItsParent) {
  Attachment first =
      trace({{code::RequestKind::Entry, "work"}, {code::RequestKind::Entry, "choose"}});
  const auto child = static_cast<pid_t>(victim_.ask_number("family 5"));
  const auto alone = clean_up(child, true);
  ASSERT_TRUE(alone.has_value()) << alone.error().message;
  EXPECT_FALSE(alone->residue) << alone->residue_reason;
  EXPECT_TRUE(changed_text(child).empty());
  victim_.ask("calls 9");
  EXPECT_EQ(cell(first, 0), 9U);  // The parent is traced as before.
  leave(first);
  EXPECT_TRUE(changed_text(victim_.pid()).empty());
  EXPECT_EQ(WEXITSTATUS(victim_.ask_number("bury")), 7);
}

TEST_F(Sessions, AProcessThatUsesGsIsRefusedAndUntouched) {
  EXPECT_EQ(victim_.ask("gs"), "set");
  const Footprint before = footprint_of(victim_.pid());
  const auto attachment = Attachment::open(victim_.pid(), small_options());
  ASSERT_FALSE(attachment.has_value());
  EXPECT_NE(attachment.error().message.find("[gs-in-use]"), std::string::npos);
  // An arena that could not be used is not left behind.
  EXPECT_EQ(footprint_of(victim_.pid()), before);
}

TEST_F(Sessions, AModuleWithoutMemoryNearItIsRefusedSiteBySite) {
  EXPECT_EQ(victim_.ask("reserve"), "full");
  auto attachment = Attachment::open(victim_.pid(), small_options());
  ASSERT_TRUE(attachment.has_value()) << attachment.error().message;
  const code::Plan plan = plan_of(*module_, {{code::RequestKind::Entry, "work"}}, *attachment);
  const auto report = install_counters(*attachment, *module_, plan);
  ASSERT_TRUE(report.has_value()) << report.error().message;
  EXPECT_EQ(report->windows, 0U);
  ASSERT_EQ(report->refusals.size(), 1U);
  EXPECT_EQ(report->refusals[0].reason, code::RefusalReason::NoNearMemory);
  EXPECT_TRUE(changed_text(victim_.pid()).empty());
  leave(*attachment);
}

TEST_F(Sessions, AFollowedChildIsCountedApart) {
  OpenOptions options = small_options();
  options.fork_policy = abi::ForkPolicy::Follow;
  Attachment attachment = trace({{code::RequestKind::Entry, "work"}}, options);
  victim_.ask("calls 10");
  EXPECT_EQ(victim_.ask_number("fork 1000"), 0);
  EXPECT_EQ(cell(attachment, 0), 1010U);
  EXPECT_EQ(attachment.arena().target->process_count, 2U);
  EXPECT_NE(attachment.arena().target->processes[1].pid, 0U);
  leave(attachment);
}

TEST_F(Sessions, CountsOutliveTheTarget) {
  Attachment attachment = trace({{code::RequestKind::Entry, "work"}});
  victim_.ask("calls 123");
  EXPECT_EQ(attachment.state(), TargetState::Running);
  victim_.send("crash");
  EXPECT_EQ(attachment.wait(std::chrono::seconds(10)), Event::TargetGone);
  EXPECT_EQ(attachment.state(), TargetState::Exited);
  EXPECT_EQ(cell(attachment, 0), 123U);
  leave(attachment);
}

TEST_F(Sessions, AnExecEndsTheSessionAndIsNoticed) {
  Attachment attachment = trace({{code::RequestKind::Entry, "work"}});
  victim_.ask("calls 5");
  EXPECT_EQ(victim_.ask("exec"), "ready");
  EXPECT_EQ(attachment.wait(std::chrono::seconds(10)), Event::TargetGone);
  EXPECT_EQ(attachment.state(), TargetState::Execed);
  EXPECT_EQ(cell(attachment, 0), 5U);
  leave(attachment);
  EXPECT_EQ(victim_.ask_number("calls 3"), 3);
}

TEST_F(Sessions, WhatCannotBeTracedIsRefusedWithAReason) {
  const auto nobody = Attachment::open(999'999'999, small_options());
  ASSERT_FALSE(nobody.has_value());
  EXPECT_EQ(nobody.error().code, ErrorCode::NotFound);
  const auto self = Attachment::open(getpid(), small_options());
  ASSERT_FALSE(self.has_value());
  EXPECT_EQ(self.error().code, ErrorCode::Refused);
}

TEST(Launch, StopsBeforeConstructorsAndRunsToTheEnd) {
  auto launched = Launched::start({.command = {CLEW_COUNTER_VICTIM}});
  ASSERT_TRUE(launched.has_value()) << launched.error().message;
  auto attachment = Attachment::open(launched->pid(), small_options());
  ASSERT_TRUE(attachment.has_value()) << attachment.error().message;
  const auto module = module_of(launched->pid(), "counter_victim");
  ASSERT_NE(module, nullptr);
  const code::Plan plan = plan_of(*module, {{code::RequestKind::Entry, "main"}}, *attachment);
  ASSERT_TRUE(install_counters(*attachment, *module, plan).has_value());
  ASSERT_TRUE(launched->resume().has_value());
  const auto status = launched->wait_for_exit();  // Its stdin is ours: at its end, or "quit".
  ASSERT_TRUE(status.has_value());
  EXPECT_EQ(cell(*attachment, 0), 1U);
}

TEST(Launch, AnUnknownCommandIsNamed) {
  const auto launched = Launched::start({.command = {"/nonexistent/command"}});
  ASSERT_FALSE(launched.has_value());
  EXPECT_NE(launched.error().message.find("/nonexistent/command"), std::string::npos);
}

}  // namespace
}  // namespace clew::inline_

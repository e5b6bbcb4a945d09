// SPDX-License-Identifier: Apache-2.0
// What a session's target has forked is rid of the session's jumps with it, wherever it is then.
#include "inline/forked_children.h"

#include <chrono>
#include <csignal>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "inline/attachment.h"
#include "inline/victim.h"

namespace clew::inline_ {
namespace {

using testing_::changed_text;
using testing_::install_counters;
using testing_::module_of;
using testing_::plan_of;
using testing_::small_options;
using testing_::Victim;

// Orphans become the test's children.
class Family : public testing::Test {
 protected:
  Family() : victim_(CLEW_COUNTER_VICTIM) {
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
    const auto module = module_of(victim_.pid(), "counter_victim");
    auto opened = Attachment::open(victim_.pid(), small_options());
    EXPECT_TRUE(opened.has_value()) << opened.error().message;
    attachment_.emplace(std::move(*opened));
    const code::Plan plan = plan_of(*module, {{code::RequestKind::Entry, "work"}}, *attachment_);
    EXPECT_TRUE(install_counters(*attachment_, *module, plan).has_value());
    victim_.ask("calls 10");
  }

  ~Family() override { (void)prctl(PR_SET_CHILD_SUBREAPER, 0); }

  DetachReport leave() {
    auto report = attachment_->detach();
    EXPECT_TRUE(report.has_value()) << report.error().message;
    EXPECT_FALSE(report->residue) << report->residue_reason;
    return report ? *report : DetachReport{};
  }

  // Nothing of the session, and it works as before.
  static void expect_clean_and_well(pid_t pid) {
    EXPECT_TRUE(changed_text(pid).empty()) << pid;
    EXPECT_FALSE(look_at(pid).has_value()) << pid;
    kill(pid, SIGTERM);
    int status = -1;
    EXPECT_EQ(waitpid(pid, &status, 0), pid);
    EXPECT_EQ(status, 7 << 8);
  }

  static std::vector<pid_t> children_of(pid_t pid) {
    std::vector<pid_t> found;
    for (const pid_t tid : target::list_threads(pid).value_or(std::vector<pid_t>{})) {
      std::ifstream file(fmt::format("/proc/{}/task/{}/children", pid, tid));
      for (pid_t child = 0; file >> child;)
        found.push_back(child);
    }
    return found;
  }

  void wait_until_gone() {
    while (attachment_->wait(std::chrono::seconds(10)) != Event::TargetGone) {
    }
  }

  Victim victim_;
  std::optional<Attachment> attachment_;
};

TEST_F(Family, AChildIsCleanWhenItsParentHasEndedBefore) {
  const auto child = static_cast<pid_t>(victim_.ask_number("orphan 0"));
  ASSERT_FALSE(changed_text(child).empty());
  victim_.send("crash");
  wait_until_gone();
  EXPECT_TRUE(leave().children.empty());
  expect_clean_and_well(child);
}

TEST_F(Family, AChildIsCleanWhenItsParentRunsAnotherProgram) {
  const auto child = static_cast<pid_t>(victim_.ask_number("orphan 1"));
  EXPECT_EQ(victim_.ask("exec"), "ready");
  wait_until_gone();
  EXPECT_EQ(attachment_->state(), TargetState::Execed);
  EXPECT_TRUE(leave().children.empty());
  expect_clean_and_well(child);
}

TEST_F(Family, AChildsChildIsCleanThoughItsParentIsInit) {
  const auto orphan = static_cast<pid_t>(victim_.ask_number("orphan 1"));
  ASSERT_FALSE(changed_text(orphan).empty());
  EXPECT_TRUE(leave().children.empty());
  EXPECT_TRUE(changed_text(victim_.pid()).empty());
  expect_clean_and_well(orphan);
}

TEST_F(Family, AnOrphanKeepsOtherSessionsAway) {
  const auto orphan = static_cast<pid_t>(victim_.ask_number("orphan 1"));
  const auto second = Attachment::open(victim_.pid(), small_options());
  ASSERT_FALSE(second.has_value());
  EXPECT_NE(second.error().message.find("[forked-children]"), std::string::npos)
      << second.error().message;
  leave();
  expect_clean_and_well(orphan);
}

TEST_F(Family, ChildrenThatAreMadeWhileTheSessionLeavesAreClean) {
  constexpr long kChildren = 80;
  ASSERT_EQ(victim_.ask("breed " + std::to_string(kChildren)), "done");
  while (victim_.ask_number("bred") < 10) {
  }
  EXPECT_TRUE(leave().children.empty());
  EXPECT_EQ(victim_.ask_number("weaned"), kChildren);
  const std::vector<pid_t> children = children_of(victim_.pid());
  EXPECT_EQ(children.size(), static_cast<size_t>(kChildren));
  EXPECT_EQ(victim_.finish(), 0);
  for (const pid_t child : children)
    expect_clean_and_well(child);
}

TEST_F(Family, AChildThatCannotBeStoppedIsNamed) {
  const auto child = static_cast<pid_t>(victim_.ask_number("orphan 1"));
  ASSERT_EQ(ptrace(PTRACE_SEIZE, child, 0, 0), 0);
  const DetachReport report = leave();
  EXPECT_TRUE(changed_text(victim_.pid()).empty());
  ASSERT_EQ(report.children.size(), 1U);
  EXPECT_EQ(report.children[0].pid, child);
  EXPECT_NE(report.children[0].reason.find("[already-traced]"), std::string::npos)
      << report.children[0].reason;
  // Until now it runs well with what it keeps.
  ASSERT_EQ(ptrace(PTRACE_INTERRUPT, child, 0, 0), 0);
  ASSERT_EQ(waitpid(child, nullptr, __WALL), child);
  ASSERT_EQ(ptrace(PTRACE_DETACH, child, 0, 0), 0);
  const auto cleaned = clean_up(child, false);
  ASSERT_TRUE(cleaned.has_value()) << cleaned.error().message;
  expect_clean_and_well(child);
}

}  // namespace
}  // namespace clew::inline_

// SPDX-License-Identifier: Apache-2.0
// Programs that are over before anybody looks.
#include "engine/begun_programs.h"

#include <csignal>
#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock_ns.h"

namespace clew::engine {
namespace {

using testing::ElementsAre;
using testing::StartsWith;

// The kernel's first thread has no memory, as a process whose end has begun, and stays.
constexpr pid_t kWithoutMemory = 2;

class BegunProgramsTest : public testing::Test {
 protected:
  BegunProgramsTest() {
    plan_.query.sources.emplace_back();
    plan_.query.sources[0].module = "libc.so.6";
    begun_.emplace(BegunPrograms::Session{.plan = plan_,
                                          .lowered = lowered_,
                                          .grouping = grouping_,
                                          .shared = {},
                                          .checks_memory = false});
  }

  void add(pid_t pid) {
    const auto now_ns = static_cast<uint64_t>(clock_ns(CLOCK_MONOTONIC));
    begun_->add({{.pid = pid, .time_ns = now_ns, .name = "some"}});
  }

  plan::Plan plan_;
  plan::Lowered lowered_;
  plan::Grouping grouping_;
  std::optional<BegunPrograms> begun_;
};

TEST_F(BegunProgramsTest, WhatHasNoMemoryAnyMoreHasEnded) {
  add(kWithoutMemory);
  begun_->arm_ready({}, {.is_traced = [](pid_t) { return false; },
                         .room = [] { return size_t{1}; },
                         .take = [](const std::unique_ptr<Tracee>&) { FAIL(); }});
  EXPECT_TRUE(begun_->empty());
  EXPECT_THAT(begun_->told(), ElementsAre(StartsWith("1 program that processes began by exec "
                                                     "ended before anybody could look")));
}

TEST_F(BegunProgramsTest, WhatStillWaitsAtTheEndIsTold) {
  add(kWithoutMemory);
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  add(child);
  begun_->end();
  EXPECT_TRUE(begun_->empty());
  EXPECT_THAT(begun_->told(),
              ElementsAre(StartsWith("1 program that processes began by exec ended before"),
                          StartsWith("1 program that processes began by exec had no probes yet")));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

}  // namespace
}  // namespace clew::engine

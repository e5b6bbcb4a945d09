// SPDX-License-Identifier: Apache-2.0
// A tracer that is killed while the kernel sets its uprobes, or takes them out, leaves none.
#include <chrono>
#include <csignal>
#include <stdexcept>

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include "kernel/features.h"
#include "killed_tracer/target.h"
#include "live/child.h"
#include "live/process_state.h"

namespace clew::killed_tracer {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kRounds = 3;
constexpr std::chrono::seconds kPatience{20};

// Of thousands of places; first of a process group of its own.
live::Child start_tracer(pid_t pid) {
  return live::Child({.arguments = {"setsid", CLEW_COMMAND, "dtrace", "-q", "-x", "useruprobes",
                                    "-p", std::to_string(pid), "-n",
                                    "pid$target:libc*::entry { @ = count(); } "
                                    "BEGIN { printf(\"armed\\n\"); }"}});
}

class KilledUprobes : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "needs root";
    // Before, the tracer's own threads set them (docs/limits.md).
    if (!kernel::features().has_user_probe_multi) GTEST_SKIP() << "needs Linux 6.6";
  }

  // As `timeout -s KILL` does, and a shell. Whether that was its end.
  static bool kill_group_of(live::Child& tracer) {
    (void)kill(-tracer.pid(), SIGKILL);
    return tracer.wait_for_end().status == 128 + SIGKILL;
  }

  // Waits until that many bytes of the text are not those of its file.
  template <typename Condition>
  size_t await(const Condition& holds) {
    const auto deadline = Clock::now() + kPatience;
    size_t changed = live::changed_text_bytes(target_.pid());
    while (!holds(changed) && Clock::now() < deadline) {
      sched_yield();
      changed = live::changed_text_bytes(target_.pid());
    }
    return changed;
  }

  void expect_clean_text() {
    EXPECT_EQ(await([](size_t changed) { return changed == 0; }), 0U);
    target_.expect_unharmed({});
  }

  Target target_{0};
};

TEST_F(KilledUprobes, ThatAreBeingSetAreAllTakenOut) {
  for (int i = 0; i < kRounds; ++i) {
    live::Child tracer = start_tracer(target_.pid());
    const size_t seen = await([](size_t changed) { return changed != 0; });
    EXPECT_GT(seen, 0U);
    EXPECT_TRUE(kill_group_of(tracer));
    expect_clean_text();
  }
}

TEST_F(KilledUprobes, ThatAreBeingTakenOutAllGo) {
  constexpr int kTries = 20;
  int in_the_middle = 0;
  for (int i = 0; i < kTries && in_the_middle < kRounds; ++i) {
    live::Child tracer = start_tracer(target_.pid());
    ASSERT_EQ(tracer.read_line(), "armed");
    const size_t all = live::changed_text_bytes(target_.pid());
    EXPECT_GT(all, 1000U);
    tracer.signal(SIGINT);
    const size_t left = await([all](size_t changed) { return changed < all; });
    if (kill_group_of(tracer) && left != 0) ++in_the_middle;
    expect_clean_text();
  }
  EXPECT_EQ(in_the_middle, kRounds);
}

}  // namespace
}  // namespace clew::killed_tracer

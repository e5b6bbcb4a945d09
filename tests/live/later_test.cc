// SPDX-License-Identifier: Apache-2.0
// What an attach refuses, done after it: a thread that takes gs for itself, drops its thread
// pointer, or forbids itself the time. What is not harmless is shown as it is (docs/limits.md).
#include <csignal>

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <x86intrin.h>

#include "live/tracer.h"
#include "live/victim.h"

namespace clew::live {
namespace {

constexpr int kSegmentationFault = 128 + SIGSEGV;

// The end of a victim that this command should end.
int status_after(Victim& victim, const std::string& command) {
  victim.tell(command);
  return victim.child().wait_for_end().status;
}

TEST(Later, AThreadThatTakesGsKeepsItAndItsHitsAreCountedAsMissed) {
  Victim victim("uses_gs");
  Tracer tracer = Tracer::attach(victim.pid(), entries_of("uses_gs!read_gs"));
  victim.ask("use_wide_gs");
  EXPECT_EQ(victim.run(1000), victim.run(1000));
  const Report report = tracer.finish();
  EXPECT_EQ(report.status, 0) << report.error;
  EXPECT_EQ(report.lost(), 2000U) << report.summary;
  EXPECT_EQ(victim.run(1000), victim.run(1000));
}

TEST(Later, AThreadThatTakesGsWhereNothingIsBehindItEndsItsProcess) {
  Victim victim("uses_gs");
  Tracer tracer = Tracer::attach(victim.pid(), entries_of("uses_gs!read_gs"));
  victim.ask("use_gs");
  EXPECT_EQ(status_after(victim, "run 1"), kSegmentationFault);
  EXPECT_EQ(tracer.wait().status, 0);
}

TEST(Later, AThreadWithoutAThreadPointerEndsItsProcess) {
  Victim victim("uses_gs");
  EXPECT_EQ(victim.ask("without_fs").at("result"), 42U);
  Tracer tracer = Tracer::attach(victim.pid(), entries_of("uses_gs!plain"));
  EXPECT_EQ(status_after(victim, "without_fs"), kSegmentationFault);
  EXPECT_EQ(tracer.wait().status, 0);
}

// Some hypervisors take the prctl's bit, and rdtsc goes on.
bool can_forbid_time() {
  const pid_t child = fork();
  if (child == 0) {
    (void)prctl(PR_SET_TSC, PR_TSC_SIGSEGV);
    (void)__rdtsc();
    _exit(0);
  }
  int status = 0;
  return waitpid(child, &status, 0) == child && WIFSIGNALED(status);
}

TEST(Later, AThreadThatForbidsItselfTheTimeIsCountedAndEndsWhereTheTimeIsAsked) {
  if (!can_forbid_time()) GTEST_SKIP() << "NOT TESTED: this machine tells the time in any case";
  Victim victim("uses_gs");
  {
    Tracer tracer = Tracer::attach(victim.pid(), entries_of("uses_gs!plain"));
    victim.ask("plain 10");
    EXPECT_EQ(tracer.finish().calls().at("plain"), 10U);
  }
  Tracer tracer =
      Tracer::attach(victim.pid(), "from e in return(\"uses_gs!plain\") select avg(e.elapsed)");
  victim.ask("forbid_time");
  EXPECT_EQ(status_after(victim, "plain 1"), kSegmentationFault);
  EXPECT_EQ(tracer.wait().status, 0);
}

}  // namespace
}  // namespace clew::live

// SPDX-License-Identifier: Apache-2.0
// Sessions on a machine that does not let programs set their gs base: the kernel is asked for it,
// by the threads or by the tracer. CLEW_NO_FSGSBASE makes any machine one of these.
#include <cstdlib>

#include <gtest/gtest.h>
#include <unistd.h>

#include "live/process_state.h"
#include "live/tracer.h"
#include "live/victim.h"

namespace clew::live {
namespace {

class Bases : public testing::Test {
 protected:
  // NOLINTBEGIN(concurrency-mt-unsafe): the test has one thread.
  void SetUp() override { setenv("CLEW_NO_FSGSBASE", "1", 0); }
  void TearDown() override {
    if (!was_set_) unsetenv("CLEW_NO_FSGSBASE");
  }
  bool was_set_ = std::getenv("CLEW_NO_FSGSBASE") != nullptr;
  // NOLINTEND(concurrency-mt-unsafe)
};

uint64_t missed(const Report& report) {
  return report.summary.at("missed").value("no_slot", uint64_t{0});
}

TEST_F(Bases, ThreadsThatAreThereAndThoseThatComeAreCountedExactly) {
  Victim victim("walled");
  victim.ask("help 1");  // The thread has begun.
  const ProcessState before = ProcessState::of(victim.pid());
  Tracer tracer = Tracer::attach(victim.pid(), entries_of("walled!walled_work"));
  victim.run(1000);
  victim.ask("help 1000");
  victim.ask("threads 300");
  const Numbers gs = victim.ask("gs");
  EXPECT_NE(gs.at("own"), 0U);
  EXPECT_NE(gs.at("helper"), 0U);
  EXPECT_NE(gs.at("helper"), gs.at("own"));
  const Report report = tracer.finish();
  EXPECT_EQ(report.calls().at("walled_work"), 2300U) << report.summary;
  EXPECT_EQ(report.lost(), 0U) << report.summary;
  EXPECT_EQ(victim.ask("gs"), (Numbers{{"own", 0}, {"helper", 0}}));
  expect_text_equals_file(victim.pid());
  expect_no_residue(before, victim.pid());
}

TEST_F(Bases, SessionsShareWhatOneOfThemHasGiven) {
  Victim victim("walled");
  Tracer first = Tracer::attach(victim.pid(), entries_of("walled!walled_work"));
  victim.ask("help 10");
  unsetenv("CLEW_NO_FSGSBASE");  // NOLINT(concurrency-mt-unsafe)
  Tracer second = Tracer::attach(victim.pid(), entries_of("walled!walled_work"));
  victim.run(10);
  victim.ask("threads 5");
  EXPECT_EQ(first.finish().calls().at("walled_work"), 25U);
  victim.run(10);
  EXPECT_EQ(second.finish().calls().at("walled_work"), 25U);
  EXPECT_EQ(victim.ask("gs"), (Numbers{{"own", 0}, {"helper", 0}}));
  SetUp();
}

TEST_F(Bases, AProcessThatForbidsTheCallIsServedInTheThreadsThatItHas) {
  if (geteuid() != 0) GTEST_SKIP() << "NOT TESTED: filters of system calls need root";
  Victim victim("walled");
  victim.ask("lock");
  Tracer tracer = Tracer::attach(victim.pid(), entries_of("walled!walled_work"));
  victim.run(100);
  victim.ask("help 100");
  victim.ask("threads 7");
  const Report report = tracer.finish();
  ASSERT_EQ(report.status, 0) << report.error;
  EXPECT_EQ(report.calls().at("walled_work"), 200U) << report.summary;
  EXPECT_EQ(missed(report), 7U) << report.summary;
  const auto& lost = report.summary.at("lost");
  ASSERT_EQ(lost.size(), 1U) << report.summary;
  EXPECT_NE(lost[0].get<std::string>().find("arch_prctl"), std::string::npos) << lost;
  EXPECT_EQ(victim.counts().at("walled_work"), 207U);
  expect_text_equals_file(victim.pid());
}

TEST_F(Bases, ThreadsThatWereThereLiveWhenTheProcessForbidsTheCallLater) {
  Victim victim("walled");
  Tracer tracer = Tracer::attach(victim.pid(), entries_of("walled!walled_work"));
  victim.ask("lock");
  victim.ask("help 100");
  victim.run(100);
  const Report report = tracer.finish();
  EXPECT_EQ(report.calls().at("walled_work"), 200U) << report.summary;
  EXPECT_EQ(report.lost(), 0U) << report.summary;
}

TEST_F(Bases, AProgramWithoutASelfPointerIsCountedExactly) {
  Victim victim("bare");
  Tracer tracer = Tracer::attach(victim.pid(), entries_of("bare!bare_work"));
  victim.run(500);
  victim.ask("threads 20");
  const Report report = tracer.finish();
  ASSERT_EQ(report.status, 0) << report.error;
  EXPECT_EQ(report.calls().at("bare_work"), 2500U) << report.summary;
  EXPECT_EQ(report.lost(), 0U) << report.summary;
  EXPECT_EQ(victim.counts().at("bare_work"), 2500U);
  expect_text_equals_file(victim.pid());
}

TEST_F(Bases, AProgramWithoutASelfPointerThatForbidsTheCallIsRefusedAndLives) {
  if (geteuid() != 0) GTEST_SKIP() << "NOT TESTED: filters of system calls need root";
  Victim victim("bare");
  victim.ask("lock");
  const Report report = run_clew({"run", entries_of("bare!bare_work"), "-p",
                                  std::to_string(victim.pid()), "--json", "--for", "1s"});
  EXPECT_NE(report.status, 0);
  EXPECT_NE(report.error.find("[fsgsbase]"), std::string::npos) << report.error;
  victim.run(10);
  EXPECT_EQ(victim.counts().at("bare_work"), 10U);
}

TEST_F(Bases, TheDoctorSaysWhichWayIsTaken) {
  if (geteuid() != 0) GTEST_SKIP() << "NOT TESTED: filters of system calls need root";
  Victim victim("walled");
  const std::string pid = std::to_string(victim.pid());
  const auto said = [&] {
    Child doctor({.arguments = {CLEW_COMMAND, "doctor", "-p", pid, "--stop"}});
    return doctor.wait_for_end().output;
  };
  EXPECT_NE(said().find("take their slots by a system call (arch_prctl)"), std::string::npos)
      << said();
  victim.ask("lock");
  EXPECT_NE(said().find("its filter forbids arch_prctl"), std::string::npos) << said();
}

}  // namespace
}  // namespace clew::live

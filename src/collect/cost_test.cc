// SPDX-License-Identifier: Apache-2.0
#include "collect/cost.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace clew::collect {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Cost, TheIntervalIsWilsons) {
  // R, binom::binom.wilson(8, 100): 0.0411 to 0.1500, of 95 %.
  const ShareSamples samples{.probes = 8, .all = 100};
  EXPECT_NEAR(samples.at_least(1.96), 0.0411, 0.0002);
  EXPECT_NEAR(samples.at_most(1.96), 0.1500, 0.0002);
}

TEST(Cost, NothingIsKnownWithoutSamples) {
  const ShareSamples none;
  EXPECT_EQ(none.share(), 0);
  EXPECT_EQ(none.at_least(3), 0);
  EXPECT_EQ(none.at_most(3), 1);
}

Cost cost_of(uint64_t in_probes, uint64_t all) {
  Cost cost{.samples_a_second = 97, .own_cpu_ms = 20, .own_ms = 2000, .stops = 2, .stopped_ms = 3};
  cost.processes.push_back({.process = 17, .samples = {.probes = in_probes, .all = all}});
  return cost;
}

TEST(Cost, OfWhatTakesLittleThereIsNoLine) {
  EXPECT_EQ(describe(cost_of(5, 1000)), "");
  EXPECT_EQ(describe(cost_of(2, 4)), "") << "It is not sure.";
  EXPECT_EQ(describe(Cost{}), "");
}

TEST(Cost, ALineSaysHowItWasMeasured) {
  EXPECT_EQ(
      describe(cost_of(100, 1000)),
      "probes took 10.0 % of the CPU time of process 17 (8.3 to 12.0 %: 100 of 1000 samples), "
      "not counting the kernel's for them; Clew took 1.0 % of a CPU; stopped 2 times, 3.0 ms "
      "in all");
}

TEST(Cost, ABoundAlwaysHasALine) {
  Cost cost = cost_of(5, 1000);
  cost.bound = 0.03;
  EXPECT_THAT(describe(cost), HasSubstr("probes took 0.5 %"));
  EXPECT_THAT(describe(cost), HasSubstr("of 3 % at most"));
  cost.processes[0].samples = {};
  EXPECT_THAT(describe(cost), HasSubstr("process 17 took no CPU time"));
}

TEST(Cost, OfSeveralProcessesTheMostExpensiveIsNamed) {
  Cost cost = cost_of(100, 1000);
  Cost other = cost_of(0, 1000);
  other.processes[0].process = 18;
  cost.merge(other);
  EXPECT_EQ(cost.whole(), (ShareSamples{.probes = 100, .all = 2000}));
  EXPECT_EQ(cost.stops, 4U);
  EXPECT_EQ(cost.own_cpu_ms, 20);
  EXPECT_THAT(describe(cost), HasSubstr("probes took 5.0 % of the CPU time of 2 processes"));
  EXPECT_THAT(describe(cost), HasSubstr("10.0 % of process 17"));
  EXPECT_THAT(describe(cost), Not(HasSubstr("18")));
}

TEST(Cost, OfManyProcessesThatHaveEndedTheHottestAreKept) {
  Cost cost = cost_of(9, 90);
  for (int32_t pid = 18; pid < 30; ++pid)
    cost.processes.push_back(
        {.process = pid, .samples = {.probes = pid < 20 ? 1U : 0U, .all = 10}});
  const ShareSamples whole = cost.whole();
  cost.keep_hottest(2);
  ASSERT_EQ(cost.processes.size(), 2U);
  EXPECT_EQ(cost.processes[0].process, 17);
  EXPECT_EQ(cost.processes[1].process, 18);
  EXPECT_EQ(cost.other_processes, 11U);
  EXPECT_EQ(cost.whole(), whole);
  Cost all;
  all.merge(cost);
  EXPECT_EQ(all.whole(), whole);
}

}  // namespace
}  // namespace clew::collect

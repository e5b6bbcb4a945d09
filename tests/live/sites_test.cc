// SPDX-License-Identifier: Apache-2.0
// Sites that are hard to take: short and packed functions, branches into windows, operands relative
// to the instruction pointer, several names at one address, no room in reach.
#include <csignal>
#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "live/child.h"
#include "live/process_state.h"
#include "live/tracer.h"
#include "live/victim.h"

namespace clew::live {
namespace {

using testing::HasSubstr;

constexpr uint64_t kSiteRounds = 2000;

Traced trace(const std::string& name, const std::string& query) {
  Victim victim(name);
  // Every instruction is to be displaced, also where nobody may come later.
  return trace_rounds(victim, name, query, kSiteRounds, {"--allow-late-uprobe-danger"});
}

// Functions of one to three bytes without padding between them: when there is nowhere to put a
// jump, the refusal says so.
const std::vector<std::string> kMayLackRoom = {"packed_ret_a",  "packed_ret_b",  "packed_ret_c",
                                               "packed_zero_a", "packed_zero_b", "packed_load_a",
                                               "packed_load_b"};
// A branch of the function itself, or of another, ends inside the window or at the entry.
const std::vector<std::string> kMayBeBranchTargets = {
    "loop_at_0", "loop_at_1",   "loop_at_2",        "loop_at_3",
    "loop_at_4", "jumped_into", "table_into_window"};

std::vector<std::string> joined(std::vector<std::string> a, const std::vector<std::string>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

TEST(Sites, EntriesAreCountedExactlyOrRefusedWithAReason) {
  const Traced traced = trace("sites", entries_of("sites!*"));
  expect_exact(traced, "entry", joined(kMayLackRoom, kMayBeBranchTargets));
}

TEST(Sites, ExitsAreCountedExactlyOrRefusedWithAReason) {
  const Traced traced = trace("sites", returns_of("sites!*"));
  // Another function leaves through its exit as well.
  expect_exact(traced, "exit", joined(kMayLackRoom, {"jumped_into"}));
  EXPECT_TRUE(traced.report.refused("jumped_into", "exit"));
  EXPECT_EQ(traced.counted.at("jumps_into_other"), traced.truth.at("jumps_into_other"));
}

TEST(Sites, AFunctionIsNeverCountedWronglyWhenItsNeighboursAreRefused) {
  const Traced traced = trace("sites", entries_of("sites!packed_*"));
  for (const auto& [name, calls] : traced.counted)
    EXPECT_EQ(calls, traced.truth.at(name)) << name;
}

TEST(Sites, AnIfuncIsCountedThroughPltPointerAndLibrary) {
  const Traced traced = trace("aliases", entries_of("libifunc_library.so!copy_*"));
  uint64_t copies = 0;
  for (const auto& [name, calls] : traced.counted)
    copies += name == "copy_word" ? 0 : calls;
  EXPECT_EQ(copies, traced.truth.at("copy_bytes"));
  EXPECT_EQ(traced.counted.at("copy_word"), traced.truth.at("copy_word"));
}

TEST(Sites, AnIfuncIsFoundByItsNameAlone) {
  const Traced traced = trace("aliases", entries_of("copy_bytes"));
  uint64_t copies = 0;
  for (const auto& [name, calls] : traced.counted)
    copies += calls;
  EXPECT_EQ(copies, traced.truth.at("copy_bytes"));
}

// A glob of D that has an IFUNC and what it chose.
TEST(Sites, AnIfuncAndWhatItChoseAreOneProbeOfD) {
  if (geteuid() != 0) GTEST_SKIP() << "NOT TESTED: D needs root";
  Victim victim("aliases");
  Child tracer(
      {.arguments = {CLEW_COMMAND, "dtrace", "-q", "-p", std::to_string(victim.pid()), "-n",
                     "BEGIN { printf(\"ready\\n\"); } "
                     "pid$target:libifunc_library.so:copy_*:entry { @[probefunc] = count(); }"}});
  ASSERT_EQ(tracer.read_line(), "ready");
  victim.run(10);
  const Numbers truth = victim.counts();
  tracer.signal(SIGINT);
  std::istringstream lines(tracer.wait_for_end().output);
  uint64_t copies = 0;
  std::string name;
  for (uint64_t calls = 0; lines >> name >> calls;)
    copies += name == "copy_word" ? 0 : calls;
  EXPECT_EQ(copies, truth.at("copy_bytes"));
}

TEST(Sites, TwoNamesOfOneAddressAreOneProbe) {
  const Traced traced = trace("aliases", entries_of("aliases!twin_*"));
  uint64_t twins = 0;
  for (const auto& [name, calls] : traced.counted)
    twins += calls;
  EXPECT_EQ(twins, traced.truth.at("twin"));
}

TEST(Sites, EachNameOfAnAddressFindsIt) {
  for (const char* name : {"twin_left", "twin_right"}) {
    const Traced traced = trace("aliases", entries_of(std::string("aliases!") + name));
    ASSERT_EQ(traced.counted.size(), 1U) << name;
    EXPECT_EQ(traced.counted.begin()->second, traced.truth.at("twin")) << name;
  }
}

TEST(Sites, AConstructorIsCountedOnceForItsTwoSymbols) {
  const Traced traced = trace("aliases", entries_of("aliases!Widget::Widget*"));
  uint64_t constructed = 0;
  for (const auto& [name, calls] : traced.counted)
    constructed += calls;
  EXPECT_EQ(constructed, traced.truth.at("Widget"));
}

TEST(Sites, AModuleWithoutRoomInReachIsRefusedAndLeftAlone) {
  Victim victim("no_gap");
  const uint64_t expected = victim.run(kSiteRounds);
  victim.ask("reserve");
  const ProcessState before = ProcessState::of(victim.pid());
  const Report report =
      run_clew({"run", entries_of("no_gap!lonely"), "-p", std::to_string(victim.pid()), "--json"});
  EXPECT_EQ(report.status, 1);
  EXPECT_THAT(report.error, HasSubstr("error:"));
  EXPECT_EQ(victim.run(kSiteRounds), expected);
  expect_text_equals_file(victim.pid());
  expect_no_residue(before, victim.pid());
}

}  // namespace
}  // namespace clew::live

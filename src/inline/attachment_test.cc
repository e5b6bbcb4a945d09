// SPDX-License-Identifier: Apache-2.0
// Sessions on a live victim. Every count is compared with the victim's own.
#include "inline/attachment.h"

#include <fstream>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include "inline/victim.h"

namespace clew::inline_ {
namespace {

using testing_::cell;
using testing_::changed_text;
using testing_::CounterOptions;
using testing_::Footprint;
using testing_::footprint_of;
using testing_::header_word;
using testing_::install_counters;
using testing_::Module;
using testing_::module_of;
using testing_::plan_of;
using testing_::small_options;
using testing_::Victim;

class LiveSession : public testing::Test {
 protected:
  LiveSession()
      : victim_(CLEW_COUNTER_VICTIM), module_(module_of(victim_.pid(), "counter_victim")) {}

  Attachment open(const OpenOptions& options = small_options()) {
    auto attachment = Attachment::open(victim_.pid(), options);
    if (!attachment) {
      ADD_FAILURE() << attachment.error().message;
      std::abort();
    }
    return std::move(*attachment);
  }

  void install(Attachment& attachment,
               const std::vector<std::pair<code::RequestKind, std::string>>& wanted,
               const CounterOptions& options = {}) {
    const code::Plan plan = plan_of(*module_, wanted, attachment);
    EXPECT_TRUE(plan.refusals.empty());
    const auto report = install_counters(attachment, *module_, plan, options);
    ASSERT_TRUE(report.has_value()) << report.error().message;
    EXPECT_TRUE(report->refusals.empty());
    EXPECT_EQ(report->points, plan.points.size());
  }

  void detach(Attachment& attachment) {
    const auto report = attachment.detach();
    ASSERT_TRUE(report.has_value()) << report.error().message;
    EXPECT_FALSE(report->residue) << report->residue_reason;
    EXPECT_EQ(report->foreign_patches, 0U);
  }

  Victim victim_;
  std::unique_ptr<Module> module_;
};

TEST_F(LiveSession, CountsEveryEntryAndLeavesNothingBehind) {
  const Footprint before = footprint_of(victim_.pid());
  ASSERT_TRUE(changed_text(victim_.pid()).empty());
  Attachment attachment = open();
  install(attachment, {{code::RequestKind::Entry, "work"}});
  EXPECT_FALSE(changed_text(victim_.pid()).empty());
  EXPECT_EQ(victim_.ask_number("calls 100000"), 100000);
  EXPECT_EQ(cell(attachment, 0), 100000U);
  detach(attachment);
  EXPECT_TRUE(changed_text(victim_.pid()).empty());
  EXPECT_EQ(footprint_of(victim_.pid()), before);
  EXPECT_EQ(victim_.ask_number("calls 10"), 100010);
  EXPECT_EQ(cell(attachment, 0), 100000U);  // Readable after the end.
  EXPECT_EQ(victim_.finish(), 0);
}

// A thread leaves its processor at the beginning and at the end of each call that it makes for us.
uint64_t processor_changes(pid_t tid) {
  std::ifstream file(fmt::format("/proc/{0}/task/{0}/status", tid));
  std::string word;
  uint64_t value = 0;
  uint64_t sum = 0;
  while (file >> word) {
    const bool is_one = word == "voluntary_ctxt_switches:" || word == "nonvoluntary_ctxt_switches:";
    if (is_one && file >> value) sum += value;
  }
  return sum;
}

// On a busy machine each of them takes its turn, while all threads stand still.
TEST_F(LiveSession, BeginsWithFewCallsOfTheProcess) {
  constexpr uint64_t kCallsMax = 22;
  const uint64_t before = processor_changes(victim_.pid());
  Attachment attachment = open();
  EXPECT_LE(processor_changes(victim_.pid()) - before, 2 * kCallsMax + 2);
  detach(attachment);
}

TEST_F(LiveSession, CountsExactlyInManyThreads) {
  Attachment attachment = open();
  install(attachment, {{code::RequestKind::Entry, "work"}}, {.guarded = true});
  EXPECT_EQ(victim_.ask_number("threads 32 10000"), 320000);
  EXPECT_EQ(cell(attachment, 0), 320000U);
  EXPECT_EQ(header_word(attachment, offsetof(abi::RegionHeader, missed_reentry)), 0U);
  detach(attachment);
}

TEST_F(LiveSession, CountsEveryExit) {
  Attachment attachment = open();
  const code::Plan plan = plan_of(
      *module_, {{code::RequestKind::Entry, "choose"}, {code::RequestKind::Exits, "choose"}},
      attachment);
  ASSERT_TRUE(plan.refusals.empty());
  ASSERT_TRUE(install_counters(attachment, *module_, plan).has_value());
  EXPECT_EQ(victim_.ask_number("exits 30000"), 30000);
  uint64_t entries = 0;
  uint64_t exits = 0;
  for (uint32_t i = 0; i < plan.points.size(); ++i) {
    (plan.points[i].kind == code::PointKind::Entry ? entries : exits) += cell(attachment, i);
  }
  EXPECT_EQ(entries, 30000U);
  EXPECT_EQ(exits, 30000U);
  detach(attachment);
}

TEST_F(LiveSession, ComesAndGoesUnderAStorm) {
  EXPECT_EQ(victim_.ask("storm 4"), "storming");
  const Footprint before = footprint_of(victim_.pid());
  for (int round = 0; round < 10; ++round) {
    Attachment attachment = open();
    install(attachment, {{code::RequestKind::Entry, "work"}}, {.guarded = round % 2 == 1});
    while (cell(attachment, 0) == 0)
      sched_yield();
    detach(attachment);
    EXPECT_TRUE(changed_text(victim_.pid()).empty());
  }
  EXPECT_EQ(footprint_of(victim_.pid()).mappings, before.mappings);
  EXPECT_GT(victim_.ask_number("calm"), 0);
  EXPECT_EQ(victim_.finish(), 0);
}

}  // namespace
}  // namespace clew::inline_

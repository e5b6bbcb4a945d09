// SPDX-License-Identifier: Apache-2.0
// When processes that are traced are not read by loads any more. Whether they are until then makes
// no difference here: the probes of these tests read no memory.
#include "inline/reading_way.h"

#include <optional>

#include <gtest/gtest.h>
#include <unistd.h>

#include "inline/victim.h"

namespace clew::inline_ {
namespace {

using testing_::install_counters;
using testing_::module_of;
using testing_::plan_of;
using testing_::small_options;
using testing_::Victim;

class ReadingWay : public testing::Test {
 protected:
  void SetUp() override {
    OpenOptions options = small_options();
    options.fork_policy = abi::ForkPolicy::Follow;
    auto opened = Attachment::open(victim_.pid(), options);
    ASSERT_TRUE(opened.has_value()) << opened.error().message;
    attachment_.emplace(std::move(*opened));
    const auto module = module_of(victim_.pid(), "counter_victim");
    const code::Plan plan = plan_of(*module, {{code::RequestKind::Entry, "work"}}, *attachment_);
    ASSERT_TRUE(install_counters(*attachment_, *module, plan).has_value());
    constexpr uint64_t kAnywhere = 1;
    if (load() == 0) attachment_->arena().header->load_address = kAnywhere;
  }

  [[nodiscard]] uint64_t load() const { return attachment_->arena().header->load_address; }

  void bury() {
    EXPECT_EQ(victim_.ask_number("bury"), 7 << 8);
    EXPECT_TRUE(attachment_->detach().has_value());
  }

  Victim victim_{CLEW_COUNTER_VICTIM};
  std::optional<Attachment> attachment_;
};

TEST_F(ReadingWay, IsTheKernelOnceAFollowedChildMapsWhatMustNotBeLoaded) {
  ASSERT_GT(victim_.ask_number("strays 10"), 0);
  ASSERT_EQ(attachment_->arena().target->process_count, 2U);
  attachment_->look_at_mappings();
  EXPECT_EQ(load(), 0U);
  bury();
}

TEST_F(ReadingWay, StaysWhereAllChildrenMapWhatMayBeLoaded) {
  ASSERT_GT(victim_.ask_number("family 10"), 0);
  ASSERT_EQ(attachment_->arena().target->process_count, 2U);
  attachment_->look_at_mappings();
  EXPECT_NE(load(), 0U);
  bury();
}

TEST_F(ReadingWay, IsTheKernelOnceMappingsCannotBeSeen) {
  constexpr uid_t kNobody = 65534;
  const uid_t own = geteuid();
  if (own != 0) GTEST_SKIP() << "NOT TESTED: only root can become somebody else";
  ASSERT_EQ(seteuid(kNobody), 0);
  attachment_->look_at_mappings();
  ASSERT_EQ(seteuid(own), 0);
  EXPECT_EQ(load(), 0U);
  EXPECT_TRUE(attachment_->detach().has_value());
}

// What the process writes there leads to no harm.
TEST_F(ReadingWay, StaysWhateverTheProcessSaysOfItsChildren) {
  abi::TargetPage& page = *attachment_->arena().target;
  page.process_count = UINT32_MAX;
  page.processes[1].pid = UINT32_MAX;
  page.processes[2].pid = static_cast<uint32_t>(getppid());
  page.processes[abi::kProcessesMax - 1].pid = static_cast<uint32_t>(getpid());
  attachment_->look_at_mappings();
  EXPECT_NE(load(), 0U);
  EXPECT_TRUE(attachment_->detach().has_value());
}

}  // namespace
}  // namespace clew::inline_

// SPDX-License-Identifier: Apache-2.0
// Libraries that are closed, and opened again, between the steps of a session.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "inline/attachment.h"
#include "inline/victim.h"

namespace clew::inline_ {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;
using testing_::changed_text;
using testing_::install_counters;
using testing_::Module;
using testing_::module_of;
using testing_::plan_of;
using testing_::small_options;
using testing_::Victim;

// A plan for a library that is open, and where its code was then.
class Reload : public testing::Test {
 protected:
  void SetUp() override {
    std::string folder = std::filesystem::temp_directory_path() / "clew-reload-XXXXXX";
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    folder_ = folder;
    for (const char* name : {"libfirst.so", "libsecond.so"})
      std::filesystem::copy_file(CLEW_PLUGIN_VICTIM, folder_ / name);
    load("libfirst.so");
    module_ = module_of(victim_.pid(), "libfirst.so");
    ASSERT_NE(module_, nullptr);
    auto attachment = Attachment::open(victim_.pid(), small_options());
    ASSERT_TRUE(attachment) << attachment.error().message;
    attachment_.emplace(std::move(*attachment));
    plan_ = plan_of(*module_, {{code::RequestKind::Entry, "plugin_work"}}, *attachment_);
    ASSERT_EQ(plan_.points.size(), 1U);
    const auto modules = target::read_modules(victim_.pid());
    ASSERT_TRUE(modules);
    for (const target::ProcessModule& one : *modules) {
      if (one.path.ends_with("libfirst.so")) module_->text = one.executable_ranges;
    }
    ASSERT_FALSE(module_->text.empty());
  }

  void TearDown() override {
    attachment_.reset();
    std::error_code error;
    std::filesystem::remove_all(folder_, error);
  }

  void load(const std::string& name) { victim_.ask_number("load " + (folder_ / name).string()); }
  void unload() { victim_.ask("unload"); }

  code::RefusalReason reason_of_installation() {
    const auto report = install_counters(*attachment_, *module_, plan_);
    EXPECT_TRUE(report) << report.error().message;
    EXPECT_EQ(report->windows, 0U);
    EXPECT_EQ(report->refusals.size(), 1U);
    return report->refusals.empty() ? code::RefusalReason::TooShort : report->refusals[0].reason;
  }

  Victim victim_{CLEW_COUNTER_VICTIM};
  std::filesystem::path folder_;
  std::unique_ptr<Module> module_;
  std::optional<Attachment> attachment_;
  code::Plan plan_;
};

TEST_F(Reload, ALibraryThatIsGoneIsNobodysPatch) {
  unload();
  EXPECT_EQ(reason_of_installation(), code::RefusalReason::ModuleGone);
}

// The bytes are the same: what was learned of the one says nothing about the other.
TEST_F(Reload, AnotherLibraryInItsPlaceGetsNoJumps) {
  unload();
  load("libsecond.so");
  ASSERT_EQ(module_of(victim_.pid(), "libsecond.so")->load_bias, module_->load_bias);
  EXPECT_EQ(reason_of_installation(), code::RefusalReason::ModuleGone);
  EXPECT_THAT(changed_text(victim_.pid()), IsEmpty());
}

TEST_F(Reload, ALibraryThatComesBackIsArmedAnew) {
  for (int turn = 0; turn < 3; ++turn) {
    const auto report = install_counters(*attachment_, *module_, plan_);
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_EQ(report->points, 1U) << turn;
    EXPECT_THAT(attachment_->reloaded(), IsEmpty());
    unload();
    EXPECT_THAT(attachment_->reloaded(), IsEmpty());
    load("libfirst.so");
    ASSERT_EQ(module_of(victim_.pid(), "libfirst.so")->load_bias, module_->load_bias);
    EXPECT_THAT(attachment_->reloaded(), ElementsAre(module_->load_bias));
  }
}

// Its windows are not those of what is there now.
TEST_F(Reload, WindowsOfALibraryThatIsGoneAreNotInstalled) {
  ASSERT_TRUE(install_counters(*attachment_, *module_, plan_));
  EXPECT_THAT(attachment_->installed(module_->load_bias), Not(IsEmpty()));
  unload();
  load("libsecond.so");
  EXPECT_THAT(attachment_->installed(module_->load_bias), IsEmpty());
}

}  // namespace
}  // namespace clew::inline_

// SPDX-License-Identifier: Apache-2.0
#include "ledger/site_rules.h"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

namespace clew::ledger {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string error_of(const std::string& text) {
  const auto rules = parse_site_rules(text, "clew.toml");
  return rules ? "" : rules.error().message;
}

SiteRules rules_of(const std::string& text) {
  auto rules = parse_site_rules(text, "clew.toml");
  EXPECT_TRUE(rules) << rules.error().message;
  return std::move(*rules);
}

TEST(SiteRules, SayWhatIsForbidden) {
  const SiteRules rules = rules_of(
      "[log]\nrequire = true\n[limits]\nallow_users = [\"ann\"]\ndeny_programs = [\"/bin/*\"]\n");
  EXPECT_TRUE(rules.is_log_required);
  EXPECT_TRUE(rules.names_users);
  EXPECT_THAT(rules.allow_users, ElementsAre("ann"));
  ASSERT_EQ(rules.deny_programs.size(), 1U);
  EXPECT_FALSE(rules_of("").names_users);
  EXPECT_FALSE(rules_of("[log]\nrequire = false\n").is_log_required);
}

TEST(SiteRules, WhatIsWrongInThemIsAnErrorWithItsPlace) {
  EXPECT_EQ(error_of("[lgo]\n"), "clew.toml:1:2: error: unknown key 'lgo'; did you mean 'log'?");
  EXPECT_EQ(error_of("[limits]\ndeny_program = []\n"),
            "clew.toml:2:1: error: unknown key 'deny_program'; did you mean 'deny_programs'?");
  EXPECT_EQ(error_of("[log]\nrequire = 1\n"), "clew.toml:2:11: error: 'require' is true or false");
  EXPECT_EQ(error_of("log = 1\n"), "clew.toml:1:7: error: expected [log], a table");
  EXPECT_EQ(error_of("[limits]\nallow_users = \"ann\"\n"),
            "clew.toml:2:15: error: 'allow_users' is a list");
  EXPECT_EQ(error_of("[limits]\nallow_users = [1]\n"),
            "clew.toml:2:16: error: 'allow_users' is a list of non-empty strings");
  EXPECT_EQ(error_of("[limits]\ndeny_programs = [\"gpg\"]\n"),
            "clew.toml:2:18: error: 'gpg' is no path: it begins with / or *");
  EXPECT_THAT(error_of("[limits]\ndeny_programs = [\"/[\"]\n"),
              HasSubstr("clew.toml:2:18: error: "));
  EXPECT_THAT(error_of("[limits\n"), HasSubstr("clew.toml:1:"));
  EXPECT_THAT(error_of("[("), HasSubstr("clew.toml:1:"));
}

TEST(SiteRules, WhoLoggedInIsWhoActs) {
  const SiteRules rules = rules_of("[limits]\nallow_users = [\"ann\"]\n");
  const Who ann{.uid = 0, .user = "root", .login_uid = 1000, .login_user = "ann"};
  EXPECT_TRUE(check_user(rules, ann));
  const Who root{.uid = 0, .user = "root", .login_uid = {}};
  const auto refused = check_user(rules, root);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "clew.toml does not let the user root trace (allow_users)");
  const Who other{.uid = 1001, .user = "ann", .login_uid = 1001, .login_user = "bob"};
  EXPECT_FALSE(check_user(rules, other));
  // What sudo says is no proof, and who has no name is none of them.
  const Who said{.uid = 0, .user = "root", .login_uid = {}, .sudo_user = "ann"};
  EXPECT_FALSE(check_user(rules, said));
  EXPECT_FALSE(check_user(rules_of("[limits]\nallow_users = []\n"), {.uid = 5, .login_uid = {}}));
  EXPECT_TRUE(check_user(rules_of(""), root));
}

TEST(SiteRules, AProgramIsDeniedByThePathOfItsFile) {
  EXPECT_FALSE(
      check_program(rules_of("[limits]\ndeny_programs = [\"*/ledger_test\"]\n"), getpid()));
  EXPECT_TRUE(check_program(rules_of("[limits]\ndeny_programs = [\"/ledger_test\"]\n"), getpid()));
  EXPECT_TRUE(check_program(rules_of(""), -1));
  // That has ended: nobody can trace it.
  EXPECT_TRUE(check_program(rules_of("[limits]\ndeny_programs = [\"/x\"]\n"), -1));
}

TEST(SiteRules, AFileThatOthersCouldHaveWrittenIsNone) {
  std::string folder = testing::TempDir() + "/rules.XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const std::string path = folder + "/clew.toml";
  const auto none = read_site_rules(path);
  ASSERT_TRUE(none);
  EXPECT_TRUE(none->path.empty());
  EXPECT_TRUE(read_site_rules(folder + "/no/clew.toml"));
  std::ofstream(path) << "[log]\nrequire = true\n";
  ASSERT_EQ(chmod(path.c_str(), 0644), 0);
  EXPECT_EQ(static_cast<bool>(read_site_rules(path)), geteuid() == 0);
  ASSERT_EQ(chmod(path.c_str(), 0664), 0);
  EXPECT_FALSE(read_site_rules(path));
  ASSERT_EQ(chmod(path.c_str(), 0644), 0);
  ASSERT_EQ(chmod(folder.c_str(), 0777), 0);
  EXPECT_FALSE(read_site_rules(path));
  ASSERT_EQ(chmod(folder.c_str(), 0700), 0);
  std::filesystem::remove(path);
  std::filesystem::create_directory(path);
  EXPECT_FALSE(read_site_rules(path));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace clew::ledger

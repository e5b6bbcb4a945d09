// SPDX-License-Identifier: Apache-2.0
#include "recorder/policy.h"

#include <csignal>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace clew::recorder {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;

Policy policy_of(std::string_view text) {
  auto policy = parse_policy(text, "p.toml");
  EXPECT_TRUE(policy) << policy.error().message;
  return policy ? *policy : Policy();
}

std::string error_of(std::string_view text) {
  const auto policy = parse_policy(text, "p.toml");
  EXPECT_FALSE(policy);
  if (policy) return {};
  EXPECT_EQ(policy.error().code, ErrorCode::InvalidQuery);
  return policy.error().message;
}

TEST(Policy, AnEmptyOneIsWhatClewRecordDoesWithout) {
  const Policy policy = policy_of("");
  EXPECT_EQ(policy.group, "");
  EXPECT_EQ(policy.folder, ".");
  EXPECT_TRUE(policy.follows && policy.caches && !policy.each_iteration);
  EXPECT_EQ(policy.signals, core_signals());
  EXPECT_TRUE((policy.signals & signal_bit(SIGSEGV)) != 0);
  EXPECT_EQ(policy.signals & signal_bit(SIGTERM), 0U);
  EXPECT_FALSE(policy.limits.same_crash_max || policy.limits.files_max || policy.limits.bytes_max);
}

TEST(Policy, HasAllThatTheExampleSays) {
  const auto policy = read_policy(CLEW_SOURCE_DIR "/examples/record/policy.toml");
  ASSERT_TRUE(policy) << policy.error().message;
  EXPECT_EQ(policy->group, "shop");
  EXPECT_EQ(policy->folder, "snaps");
  EXPECT_TRUE(policy->follows && policy->caches && !policy->each_iteration);
  EXPECT_EQ(policy->signals, core_signals() | signal_bit(SIGTERM));
  EXPECT_EQ(policy->limits.same_crash_max, 1U);
  EXPECT_EQ(policy->limits.interval_ns, 3600 * kSecond);
  EXPECT_EQ(policy->limits.files_max, 50U);
  EXPECT_EQ(policy->limits.bytes_max, uint64_t{512} << 20);
  EXPECT_TRUE(policy->conditions.empty());  // It is for root.
}

TEST(Policy, AQueryHasTheTextAndItsPlace) {
  const Policy policy = policy_of(
      "[[when]]\nquery = 'profile(1hz)'\n[[when]]\n  query = \"\"\"\nfrom e in\n"
      "syscall(\"close\")\"\"\"");
  ASSERT_EQ(policy.conditions.size(), 2U);
  EXPECT_EQ(policy.conditions[0].query, "profile(1hz)");
  EXPECT_EQ(policy.conditions[0].place, "p.toml:2:9");
  EXPECT_EQ(policy.conditions[1].query, "from e in\nsyscall(\"close\")");
  EXPECT_EQ(policy.conditions[1].place, "p.toml:4:11");
}

TEST(Policy, AQueryThatIsNoneHasItsPlace) {
  const std::string expected = "error: expected [[when]], a table for each query";
  EXPECT_EQ(error_of("[when]\nquery = 'a'"), "p.toml:1:1: " + expected);
  EXPECT_EQ(error_of("when = ['a']"), "p.toml:1:8: " + expected);
  EXPECT_EQ(error_of("when = 3"), "p.toml:1:8: " + expected);
  EXPECT_EQ(error_of("\n[[when]]"), "p.toml:2:1: error: [[when]] has no 'query'");
  EXPECT_EQ(error_of("[[when]]\nquery = ''"), "p.toml:2:9: error: 'query' is a non-empty string");
  EXPECT_EQ(error_of("[[when]]\nqery = 'a'"),
            "p.toml:2:1: error: unknown key 'qery'; did you mean 'query'?");
  std::string many;
  for (size_t i = 0; i <= kConditionsMax; ++i)
    many += "[[when]]\nquery = 'a'\n";
  EXPECT_EQ(error_of(many), "p.toml:1:1: error: 8 queries are possible");
}

TEST(Policy, TakesEachValueOfAKey) {
  const Policy policy = policy_of(
      "follow = false\nloops = \"each\"\ncache = false\n[snaps]\nsignals = [\"segv\", "
      "\"SIGTERM\"]\n"
      "exits = \"failures\"\nheartbeat = \"2 m\"\nsame_crash_max = 3\ninterval = \"90 "
      "m\"\nbytes_max = \"7B\"");
  EXPECT_TRUE(!policy.follows && policy.each_iteration && !policy.caches);
  EXPECT_EQ(policy.signals, signal_bit(SIGSEGV) | signal_bit(SIGTERM));
  EXPECT_EQ(policy.exits, Exits::Failures);
  EXPECT_EQ(policy.heartbeat_ns, 120 * kSecond);
  EXPECT_EQ(policy.limits.interval_ns, 5400 * kSecond);
  EXPECT_EQ(policy.limits.bytes_max, 7U);
}

TEST(Policy, NoSignalsIsNoSnapOfACrash) {
  EXPECT_EQ(policy_of("[snaps]\nsignals = []").signals, 0U);
  EXPECT_EQ(policy_of("[snaps]\nsignals = [\"kill\"]").signals, signal_bit(SIGKILL));
}

TEST(Policy, AnUnknownKeyHasItsPlaceAndTheNearestName) {
  EXPECT_EQ(error_of("group = \"a\"\n  foldr = \"x\""),
            "p.toml:2:3: error: unknown key 'foldr'; did you mean 'folder'?");
  EXPECT_EQ(error_of("[snaps]\nsignal = []"),
            "p.toml:2:1: error: unknown key 'signal'; did you mean 'signals'?");
  EXPECT_EQ(error_of("zzzzzz = 1"),
            "p.toml:1:1: error: unknown key 'zzzzzz'; there are group, folder, follow, loops, "
            "cache, snaps, when");
}

TEST(Policy, AWrongValueHasItsPlaceAndWhatWasExpected) {
  EXPECT_EQ(error_of("follow = 1"), "p.toml:1:10: error: 'follow' is true or false");
  EXPECT_EQ(error_of("folder = \"\""), "p.toml:1:10: error: 'folder' is a non-empty string");
  EXPECT_EQ(error_of("snaps = 3"), "p.toml:1:9: error: expected [snaps], a table");
  EXPECT_EQ(error_of("loops = \"all\""),
            "p.toml:1:9: error: 'loops' is \"once\" or \"each\", not 'all'");
  EXPECT_EQ(error_of("[snaps]\nexits = \"failure\""),
            "p.toml:2:9: error: 'exits' is \"none\", \"failures\" or \"all\", not 'failure'");
  EXPECT_EQ(error_of("group = \"a b\""),
            "p.toml:1:9: error: a group's name has letters, digits, '.', '_' and '-', and 32 at "
            "most");
  EXPECT_EQ(error_of("[snaps]\nsignals = \"SIGSEGV\""),
            "p.toml:2:11: error: 'signals' is a list of names, as [\"SIGSEGV\", \"SIGABRT\"]");
  EXPECT_EQ(error_of("[snaps]\nsignals = [\"SIGSEVG\"]"),
            "p.toml:2:12: error: 'SIGSEVG' is no signal that can be seen to kill; did you mean "
            "'SIGSEGV'?");
  EXPECT_EQ(error_of("[snaps]\ninterval = \"1h\""),
            "p.toml:2:12: error: 'interval' is that of 'same_crash_max', which is missing");
}

TEST(Policy, AValueOutOfRangeIsRefused) {
  const std::string counted = "'files_max' is a whole number from 1 to 100000";
  for (const char* const value : {"0", "-1", "100001", "9223372036854775807", "1.5", "\"1\""}) {
    EXPECT_EQ(error_of(std::string("[snaps]\nfiles_max = ") + value),
              "p.toml:2:13: error: " + counted);
  }
  for (const char* const value : {"\"0MiB\"", "\"1 XB\"", "\"-1B\"", "\"99999999999GiB\"",
                                  "\"MiB\"", "1", "\"\"", "\"1  B\""}) {
    EXPECT_EQ(error_of(std::string("[snaps]\nbytes_max = ") + value),
              "p.toml:2:13: error: 'bytes_max' is a whole number with a unit, as \"512MiB\" "
              "(units: B KiB MiB GiB), from 1B to 17179869183GiB");
  }
}

TEST(Policy, WhatIsNoTomlHasItsPlace) {
  EXPECT_TRUE(error_of("group = \"a\"\nfolder =").starts_with("p.toml:2:")) << error_of("a =");
  EXPECT_TRUE(error_of("group = \"a\"\ngroup = \"b\"").starts_with("p.toml:2:"));
  EXPECT_TRUE(error_of("[(").starts_with("p.toml:1:2: error: "));
}

TEST(Policy, LettersBeyondAsciiAreForStringsAndComments) {
  EXPECT_EQ(policy_of("# Für später\nfolder = \"/srv/Ж/ä\" # Й").folder, "/srv/Ж/ä");
  EXPECT_TRUE(error_of("\nfür = 1").starts_with("p.toml:2:"));
  EXPECT_TRUE(error_of("ä = 1").starts_with("p.toml:1:"));
  EXPECT_TRUE(error_of("folder = \"a\"ä").starts_with("p.toml:1:"));
  EXPECT_TRUE(error_of("folder = \"\xff\"").starts_with("p.toml:1:"));
}

TEST(Policy, AFileThatIsNotThereIsAnError) {
  const auto policy = read_policy("/nowhere/p.toml");
  ASSERT_FALSE(policy);
  EXPECT_EQ(policy.error().message,
            "the policy /nowhere/p.toml cannot be read: No such file or directory");
  EXPECT_FALSE(read_policy("/proc"));
}

}  // namespace
}  // namespace clew::recorder

// SPDX-License-Identifier: Apache-2.0
// Programs in every form and place: linked statically, with another C library, of other languages,
// in namespaces of their own, and with fewer rights than others.
#include <algorithm>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "live/process_state.h"
#include "live/server.h"
#include "live/tracer.h"
#include "live/victim.h"

namespace clew::live {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
namespace fs = std::filesystem;

constexpr uint64_t kFormRounds = 300;

// Of a program whose file is called `name`: each call is entered once and left once.
void expect_counts(Victim& victim, const std::string& name) {
  const Traced traced =
      trace_rounds(victim, name, entries_and_returns_of(name + "!form_*"), kFormRounds);
  ASSERT_FALSE(traced.truth.empty());
  for (const auto& [function, calls] : traced.truth) {
    EXPECT_GT(calls, 0U) << function;
    const auto counted = traced.counted.find(function);
    EXPECT_EQ(counted == traced.counted.end() ? 0 : counted->second, 2 * calls)
        << function << ": " << traced.report.summary;
  }
}

// --- forms ---------------------------------------------------------------------------------------

class Form : public testing::TestWithParam<const char*> {
 protected:
  [[nodiscard]] static std::string name() { return std::string("forms_") + GetParam(); }
};

TEST_P(Form, AreCountedExactlyAtEntriesAndReturns) {
  ASSERT_TRUE(present(victim_path(name()))) << "no musl-gcc";
  Victim victim(name());
  expect_counts(victim, name());
}

// The victim's threads are four new ones in each run, and the first.
TEST_P(Form, HaveThreadsThatAreToldApart) {
  ASSERT_TRUE(present(victim_path(name()))) << "no musl-gcc";
  Victim victim(name());
  Tracer tracer = Tracer::attach(victim.pid(), "from e in entry(\"" + name() +
                                                   "!form_deep\") group by e.tid select new { tid "
                                                   "= e.tid, calls = count() }");
  victim.run(kFormRounds);
  const uint64_t calls = victim.counts().at("form_deep");
  const Report report = tracer.finish();
  uint64_t counted = 0;
  uint64_t of_first = 0;
  for (const nlohmann::json& row : report.rows) {
    const auto of_row = row.at("calls").get<uint64_t>();
    counted += of_row;
    if (row.at("tid") == victim.pid()) of_first = of_row;
  }
  EXPECT_EQ(report.rows.size(), 5U) << report.error;
  EXPECT_EQ(counted, calls);
  EXPECT_EQ(of_first, 6 * kFormRounds);
}

TEST_P(Form, AreCountedFromTheirStartAsCommands) {
  ASSERT_TRUE(present(victim_path(name()))) << "no musl-gcc";
  Child tracer({.arguments = {CLEW_COMMAND, "run", entries_of(name() + "!form_deep"), "--json",
                              "-c", victim_path(name())}});
  tracer.write_line("run 10");
  tracer.write_line("exit");
  tracer.close_input();
  const Child::End end = tracer.wait_for_end();
  EXPECT_EQ(end.status, 0) << end.error;
  // The first thread's 10 rounds, and 10 to 13 of the others, of six calls each.
  EXPECT_THAT(end.output, HasSubstr("\"calls\":336"));
}

INSTANTIATE_TEST_SUITE_P(Forms, Form,
                         testing::Values("pie", "fixed", "static", "static_pie", "stripped",
                                         "landing", "musl", "musl_static"),
                         [](const auto& tested) { return std::string(tested.param); });

// --- other languages -----------------------------------------------------------------------------

bool has_arena(pid_t pid) {
  const auto mappings = ProcessState::of(pid).strange_mappings;
  return std::any_of(mappings.begin(), mappings.end(), [](const std::string& mapping) {
    return mapping.find("clew-arena") != std::string::npos;
  });
}

// The scheduler's signals interrupt probes as well. What they leave on their stacks may look like a
// thread that still stands there, until the next ones are there: then it can be removed.
void remove_residue(Victim& victim) {
  constexpr int kTries = 20;
  for (int i = 0; i < kTries && has_arena(victim.pid()); ++i) {
    victim.run(kFormRounds);
    Child({.arguments = {CLEW_COMMAND, "detach", std::to_string(victim.pid())}}).wait_for_end();
  }
}

// Its runtime has threads of its own, which never rest.
Traced trace_gophers(Victim& victim, const std::string& query) {
  Traced traced;
  const uint64_t expected = untraced_result("gophers", kFormRounds);
  const ProcessState before = ProcessState::of(victim.pid());
  const Numbers counts_before = victim.counts();
  Tracer tracer = Tracer::attach(victim.pid(), query, {"--yes"});
  EXPECT_EQ(victim.run(kFormRounds), expected) << "while traced";
  traced.truth = difference(counts_before, victim.counts());
  traced.report = tracer.finish();
  EXPECT_EQ(traced.report.status, 0) << traced.report.error;
  traced.counted = traced.report.calls();
  EXPECT_EQ(victim.run(kFormRounds), expected) << "after detach";
  expect_text_equals_file(victim.pid());
  remove_residue(victim);
  expect_no_strange_residue(before, victim.pid());
  return traced;
}

// Its goroutines' stacks grow, so their functions begin again in the middle of a call.
TEST(FormsOfGo, AreCountedExactlyAtEntriesAndReturns) {
  if (!present(victim_path("gophers"))) GTEST_SKIP() << "NOT TESTED: no Go compiler";
  Victim victim("gophers");
  const Traced entries = trace_gophers(victim, entries_of("gophers!main.*"));
  EXPECT_EQ(entries.report.lost(), 0U) << entries.report.summary;
  expect_exact(entries, "entry");
  const Traced returns = trace_gophers(victim, returns_of("gophers!main.*"));
  EXPECT_EQ(returns.report.lost(), 0U) << returns.report.summary;
  for (const char* function : {"main.leaf", "main.plain", "main.deep"})
    EXPECT_EQ(returns.counted.at(function), returns.truth.at(function)) << function;
  // Every other call is left by a panic.
  const uint64_t left = returns.truth.at("main.panicOdd") - returns.counted.at("main.panicOdd");
  EXPECT_EQ(left, 8 * kFormRounds / 2);
}

// The scheduler and the collector of garbage at work.
TEST(FormsOfGo, AreUnharmedWithAllTheirFunctionsTraced) {
  if (!present(victim_path("gophers"))) GTEST_SKIP() << "NOT TESTED: no Go compiler";
  Victim victim("gophers");
  for (const std::string& query : {entries_of("gophers!*"), returns_of("gophers!*")})
    EXPECT_GT(trace_gophers(victim, query).counted["main.leaf"], 0U);
}

// --- namespaces ----------------------------------------------------------------------------------

ChildOptions unshared(const std::vector<std::string>& options, const std::string& program) {
  std::vector<std::string> arguments = {"unshare"};
  arguments.insert(arguments.end(), options.begin(), options.end());
  arguments.push_back(program);
  return {.arguments = arguments};
}

TEST(FormsInNamespaces, OfPidsAreCounted) {
  if (geteuid() != 0) GTEST_SKIP() << "NOT TESTED: unshare needs root";
  Victim victim(
      unshared({"--pid", "--fork", "--kill-child", "--mount-proc"}, victim_path("forms_pie")),
      Victim::Place::ItsChild);
  ASSERT_GT(victim.pid(), 1);
  expect_counts(victim, "forms_pie");
}

TEST(FormsInNamespaces, HavePidsOfTheMachineInAnswers) {
  if (geteuid() != 0) GTEST_SKIP() << "NOT TESTED: unshare needs root";
  Victim victim(
      unshared({"--pid", "--fork", "--kill-child", "--mount-proc"}, victim_path("forms_pie")),
      Victim::Place::ItsChild);
  Tracer tracer =
      Tracer::attach(victim.pid(),
                     "from e in entry(\"forms_pie!form_deep\") group by e.pid select new { pid = "
                     "e.pid, calls = count() }");
  victim.run(kFormRounds);
  const uint64_t calls = victim.counts().at("form_deep");
  const Report report = tracer.finish();
  ASSERT_EQ(report.rows.size(), 1U) << report.error;
  EXPECT_EQ(report.rows[0].at("pid"), victim.pid());
  EXPECT_EQ(report.rows[0].at("calls"), calls);
}

// A program that only its own mount namespace has, and which sees nothing else.
TEST(FormsInNamespaces, OfMountsHaveFilesThatNobodyElseSees) {
  if (geteuid() != 0) GTEST_SKIP() << "NOT TESTED: unshare needs root";
  const TemporaryFolder folder;
  const std::string at = folder.path();
  const std::string copy = "mount -t tmpfs none " + at + " && cp " + victim_path("forms_static") +
                           " " + victim_path("forms_pie") + " " + at;
  for (const auto& [name, start] :
       {std::pair("forms_static", "exec chroot " + at + " /forms_static"),
        std::pair("forms_pie", "exec " + at + "/forms_pie")}) {
    Victim victim({.arguments = {"unshare", "--mount", "sh", "-c", copy + " && " + start}},
                  Victim::Place::Started);
    ASSERT_FALSE(fs::exists(folder.file(name)));
    expect_counts(victim, name);
  }
}

TEST(FormsInNamespaces, OfUsersAreCounted) {
  if (geteuid() != 0) GTEST_SKIP() << "NOT TESTED: needs root to become somebody else";
  ChildOptions options = unshared({"--user", "--map-root-user", "--mount", "--pid", "--fork",
                                   "--kill-child", "--mount-proc", "--net", "--ipc", "--uts"},
                                  victim_path("forms_pie"));
  options.as_nobody = true;
  options.folder = "/";
  Victim victim(options, Victim::Place::ItsChild);
  expect_counts(victim, "forms_pie");
}

// Who made a user namespace has all rights in it.
TEST(FormsInNamespaces, OfUsersAreCountedByTheUserWhoMadeThem) {
  if (geteuid() != 0) GTEST_SKIP() << "NOT TESTED: needs root to become somebody else";
  ChildOptions options = unshared({"--user", "--map-root-user"}, victim_path("forms_pie"));
  options.as_nobody = true;
  options.folder = "/";
  Victim victim(options, Victim::Place::Started);
  Tracer tracer =
      Tracer::attach(victim.pid(), entries_of("forms_pie!form_*"), {}, /*as_nobody=*/true);
  victim.run(kFormRounds);
  const Report report = tracer.finish();
  EXPECT_EQ(report.status, 0) << report.error;
  EXPECT_EQ(report.calls(), victim.counts());
  expect_text_equals_file(victim.pid());
}

// --- fewer rights --------------------------------------------------------------------------------

Victim hardened_of_nobody(const std::string& path) {
  return Victim(ChildOptions{.arguments = {path}, .folder = "/", .as_nobody = true},
                Victim::Place::Started);
}

// Of `hardened`, root's: it runs with his rights, whoever starts it.
std::string set_user_id_copy(const TemporaryFolder& folder) {
  std::string copy = folder.file("hardened");
  fs::copy_file(victim_path("hardened"), copy);
  constexpr mode_t kSetUserId = 04755;
  EXPECT_EQ(chmod(copy.c_str(), kSetUserId), 0);
  return copy;
}

// Nothing was changed, and the message names the reason.
void expect_refused(Victim& victim, bool as_nobody, const testing::Matcher<std::string>& words) {
  const ProcessState before = ProcessState::of(victim.pid());
  const Report report = run_clew(
      {"run", entries_of("*!*_work"), "--allow-missing", "-p", std::to_string(victim.pid())},
      as_nobody);
  EXPECT_EQ(report.status, 1) << report.error;
  EXPECT_THAT(report.error, words);
  expect_text_equals_file(victim.pid());
  expect_no_residue(before, victim.pid());
  EXPECT_EQ(victim.run(100), victim.run(100));
}

TEST(FormsWithFewerRights, ThatMakeNoMemoryExecutableAreCounted) {
  Victim victim("hardened");
  if (victim.ask("deny_execution 0").at("denied") == 0) {
    GTEST_SKIP() << "NOT TESTED: this kernel has no PR_SET_MDWE";
  }
  const Traced traced =
      trace_rounds(victim, "hardened", entries_and_returns_of("hardened!hard_work"), kFormRounds);
  EXPECT_EQ(traced.counted.at("hard_work"), 2 * kFormRounds);
}

TEST(FormsWithFewerRights, ThatMayNotBeDumpedAreTheRootUsers) {
  if (geteuid() != 0) GTEST_SKIP() << "NOT TESTED: needs root to become somebody else";
  Victim victim = hardened_of_nobody(victim_path("hardened"));
  ASSERT_EQ(victim.ask("deny_dumps 0").at("denied"), 1U);
  expect_refused(victim, /*as_nobody=*/true, AllOf(HasSubstr("permission"), HasSubstr("root")));
  const Traced traced =
      trace_rounds(victim, "hardened", entries_of("hardened!hard_work"), kFormRounds);
  EXPECT_EQ(traced.counted.at("hard_work"), kFormRounds);
}

TEST(FormsWithFewerRights, ThatRunWithTheRightsOfTheirFileAreRefusedToTheirUser) {
  if (geteuid() != 0) GTEST_SKIP() << "NOT TESTED: needs root to become somebody else";
  const TemporaryFolder folder;
  const std::string copy = set_user_id_copy(folder);
  Victim victim = hardened_of_nobody(copy);
  const Numbers users = victim.ask("users 0");
  if (users.at("effective") != 0) GTEST_SKIP() << "NOT TESTED: mounted with nosuid";
  ASSERT_NE(users.at("real"), 0U);
  expect_refused(victim, /*as_nobody=*/true, AllOf(HasSubstr("permission"), HasSubstr("root")));
  const Traced traced =
      trace_rounds(victim, "hardened", entries_of("hardened!hard_work"), kFormRounds);
  EXPECT_EQ(traced.counted.at("hard_work"), kFormRounds);
}

// The kernel gives a command no rights of its file while somebody traces it who has them not.
TEST(FormsWithFewerRights, ThatTheirUserStartsToBeTracedGetNoRightsOfTheirFile) {
  if (geteuid() != 0) GTEST_SKIP() << "NOT TESTED: needs root to become somebody else";
  const TemporaryFolder folder;
  const std::string copy = set_user_id_copy(folder);
  Child tracer({.arguments = {CLEW_COMMAND, "run", "-c", copy,
                              "from e in entry(\"hardened!hard_work\") select calls = count()"},
                .folder = "/",
                .as_nobody = true});
  tracer.write_line("users 0");
  tracer.write_line("run " + std::to_string(kFormRounds));
  tracer.close_input();
  const Child::End end = tracer.wait_for_end();
  EXPECT_EQ(end.status, 0) << end.error;
  EXPECT_THAT(end.output, Not(HasSubstr("effective 0")));
  EXPECT_THAT(end.output, HasSubstr("errors 0"));
  EXPECT_THAT(end.output, HasSubstr(std::to_string(kFormRounds)));
}

TEST(FormsWithFewerRights, ThatMayOnlyReadAndWriteAreRefused) {
  Victim victim("hardened");
  ASSERT_EQ(victim.ask("deny_calls 0").at("denied"), 1U);
  expect_refused(victim, /*as_nobody=*/false, HasSubstr("[seccomp]"));
}

TEST(FormsWithFewerRights, ThatFilterTheirCallsAreTheRootUsers) {
  if (geteuid() != 0) GTEST_SKIP() << "NOT TESTED: needs root to become somebody else";
  Victim victim = hardened_of_nobody(victim_path("sandbox"));
  victim.ask("lock 0");
  expect_refused(victim, /*as_nobody=*/true,
                 AllOf(HasSubstr("[seccomp]"), HasSubstr("CAP_SYS_ADMIN")));
  const Traced traced =
      trace_rounds(victim, "sandbox", entries_of("sandbox!sandbox_work"), kFormRounds);
  EXPECT_EQ(traced.counted.at("sandbox_work"), kFormRounds);
}

}  // namespace
}  // namespace clew::live

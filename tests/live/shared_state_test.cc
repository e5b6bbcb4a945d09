// SPDX-License-Identifier: Apache-2.0
// Memory that Clew shares with a program, where the program does not play along: it lies about it,
// locks it, sandboxes itself, or waits for a tracer that does not answer.
#include <chrono>
#include <csignal>
#include <fstream>
#include <memory>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "live/process_state.h"
#include "live/tracer.h"
#include "live/victim.h"

namespace clew::live {
namespace {

using testing::HasSubstr;

// Field 22 of /proc/PID/stat.
std::string start_time_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  std::getline(file, line);
  std::istringstream words(line.substr(line.rfind(')') + 2));
  std::string word;
  for (int i = 0; i < 20; ++i)
    words >> word;
  return word;
}

uint64_t locked_kib(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/status");
  std::string word;
  while (file >> word) {
    uint64_t kib = 0;
    if (word == "VmLck:" && file >> kib) return kib;
  }
  return 0;
}

class FalseArenas : public testing::TestWithParam<const char*> {};

// A write or a read where the lie leads would end the command with a signal.
TEST_P(FalseArenas, LeadTheTracerNowhere) {
  Child liar({.arguments = {victim_path("false_arena"), GetParam(), std::to_string(getpid()),
                            start_time_of(getpid())}});
  const std::optional<std::string> pid = liar.read_line();
  ASSERT_TRUE(pid.has_value());
  for (const std::vector<std::string>& verb :
       {std::vector<std::string>{"ps"},
        {"run", "-p", *pid, "--for", "10ms", "from e in entry(\"false_arena!*\") select count()"},
        {"detach", *pid},
        {"detach", "--force", *pid}}) {
    std::vector<std::string> arguments = {CLEW_COMMAND};
    arguments.insert(arguments.end(), verb.begin(), verb.end());
    Child clew({.arguments = arguments});
    const Child::End end = clew.wait_for_end();
    EXPECT_LT(end.status, 128) << verb.front() << ": " << end.error;
  }
  EXPECT_TRUE(liar.running());
  expect_text_equals_file(liar.pid());
  liar.close_input();
  EXPECT_EQ(liar.wait_for_end().status, 0);
}

INSTANTIATE_TEST_SUITE_P(SharedState, FalseArenas,
                         testing::Values("unsealed", "unsealed_slots", "few_slots", "file_offset",
                                         "extent_size", "patch_size", "patch_address",
                                         "patch_in_data", "layer_size", "layer_site", "window_size",
                                         "no_instructions", "instruction_offset",
                                         "instruction_length", "stride", "region", "nothing"));

TEST(SharedState, AProgramThatLocksItsMemoryDoesNotLockTheArena) {
  if (geteuid() != 0) GTEST_SKIP() << "locking memory needs root";
  Victim victim("locked");
  victim.run(10);
  const uint64_t before = locked_kib(victim.pid());
  ASSERT_GT(before, 0U);
  Tracer tracer = Tracer::attach(victim.pid(), entries_of("locked!locked_work"));
  EXPECT_LT(locked_kib(victim.pid()), before + 1024);
  const uint64_t calls = victim.counts().at("locked_work");
  victim.run(1000);
  EXPECT_LT(locked_kib(victim.pid()), before + 4096);
  EXPECT_EQ(victim.counts().at("locked_work"), calls + 1000);
  EXPECT_EQ(tracer.finish().calls().at("locked_work"), 1000U);
}

TEST(SharedState, TracersAreNotListedAsTraced) {
  Victim victim("sites");
  Tracer tracer = Tracer::attach(victim.pid(), entries_of("sites!rip_*"));
  const Child::End end = Child({.arguments = {CLEW_COMMAND, "ps"}}).wait_for_end();
  EXPECT_THAT(end.output, HasSubstr(std::to_string(victim.pid())));
  std::istringstream lines(end.output);
  for (std::string line; std::getline(lines, line);) {
    std::string first;
    std::istringstream(line) >> first;
    EXPECT_NE(first, std::to_string(tracer.child().pid())) << line;
  }
  EXPECT_EQ(tracer.finish().status, 0);
}

TEST(SharedState, AProgramThatSandboxesItselfLaterIsCountedAndLives) {
  Victim victim("sandbox");
  Tracer tracer = Tracer::attach(victim.pid(), entries_of("sandbox!sandbox_work"));
  victim.ask("lock 0");
  victim.run(100);
  EXPECT_EQ(tracer.finish().calls().at("sandbox_work"), 100U);
  EXPECT_EQ(victim.counts().at("sandbox_work"), 100U);
}

TEST(SharedState, ACommandThatSandboxesItselfAtItsStartLives) {
  const Report report = run_clew(
      {"run", entries_of("sandbox!sandbox_work"), "--json", "-c", victim_path("sandbox") + " now"});
  EXPECT_EQ(report.status, 0) << report.error;
  EXPECT_EQ(report.calls().at("sandbox_work"), 100U) << report.error;
}

// They end by themselves, but for the script.
std::vector<std::vector<std::string>> sessions_on_scribbler() {
  std::vector<std::vector<std::string>> sessions;
  for (const char* query :
       {R"(from e in return("scribbler!scribbled_*") group by e.function for 80ms
           select new { e.function, calls = count(), took = max(e.elapsed) })",
        R"(from e in return("scribbler!scribbled_work") group by e.entry.arg0 for 80ms
           select new { argument = e.entry.arg0, calls = count(), times = quantize(e.elapsed) })",
        R"(from e in entry("scribbler!scribbled_step") for 80ms
           select new { e.time, e.tid, e.arg0 })"})
    sessions.push_back({CLEW_COMMAND, "run", query, "--json"});
  if (geteuid() == 0) {
    sessions.push_back(
        {CLEW_COMMAND, "dtrace", "-q", "-n",
         "pid$target::scribbled_work:entry { self->x = arg0; @[arg0 % 64] = count(); } "
         "pid$target::scribbled_work:return /self->x/ { @s = sum(self->x); self->x = 0; } "
         "pid$target::scribbled_step:entry { @t[tid] = quantize(arg0); trace(arg0); }"});
  }
  return sessions;
}

// While sessions come and go. What they answer is the program's own, a script's exit status
// included; they end, and it has its own results and its own text: it cannot write where these are
// decided.
TEST(SharedState, AProgramThatWritesOverAllOfItNeitherHarmsTracersNorItself) {
  constexpr uint64_t kRounds = 4;
  const uint64_t expected = untraced_result("scribbler", 2000);
  for (uint64_t seed = 1; seed <= kRounds; ++seed) {
    SCOPED_TRACE(seed);
    Victim victim("scribbler");
    victim.ask("scribble " + std::to_string(seed));
    std::vector<std::unique_ptr<Child>> tracers;
    for (std::vector<std::string> arguments : sessions_on_scribbler()) {
      arguments.insert(arguments.end(), {"-p", std::to_string(victim.pid())});
      tracers.push_back(std::make_unique<Child>(ChildOptions{.arguments = arguments}));
      for (int i = 0; i < 10; ++i)
        EXPECT_EQ(victim.run(2000), expected);
    }
    for (const auto& tracer : tracers) {
      EXPECT_EQ(victim.run(2000), expected);
      if (tracer == tracers.back() && geteuid() == 0) tracer->signal(SIGINT);
      const Child::End end = tracer->wait_for_end();
      EXPECT_FALSE(end.by_signal) << end.status << end.error;
    }
    EXPECT_GT(victim.ask("stop").at("written"), 0U);
    EXPECT_EQ(victim.run(2000), expected);
    expect_text_equals_file(victim.pid());
  }
}

// The tracer stands still for longer than the loader waits.
TEST(SharedState, ModulesAreFollowedAfterATracerThatWasLateOnce) {
  Victim victim("plugins");
  Tracer tracer =
      Tracer::attach(victim.pid(), entries_of("libplugin_a.so!plugin_work"), {"--allow-missing"});
  victim.run(2);
  tracer.child().signal(SIGSTOP);
  victim.run(1);
  tracer.child().signal(SIGCONT);
  // Nobody waits until the tracer has answered once; then all wait.
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  while (std::chrono::steady_clock::now() < end)
    victim.run(1);
  const uint64_t truth = victim.counts().at("plugin_work");
  const Report report = tracer.finish();
  ASSERT_EQ(report.status, 0) << report.error;
  const uint64_t counted = report.calls().at("plugin_work");
  EXPECT_LE(counted, truth);
  EXPECT_GE(counted, 2U + 10U) << report.summary;
  EXPECT_THAT(report.summary.at("lost").dump(), HasSubstr("may be missing"));
}

}  // namespace
}  // namespace clew::live

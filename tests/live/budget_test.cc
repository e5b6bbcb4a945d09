// SPDX-License-Identifier: Apache-2.0
// What a session costs, as it is measured, and what --max-overhead does about it; --idle.
#include <chrono>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "live/process_state.h"
#include "live/tracer.h"
#include "live/victim.h"

namespace clew::live {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// Of both functions: calls with their time, which costs most of what `hot` does.
constexpr const char* kCallsWithTimes =
    R"(from r in return("busy!hot"), return("busy!rare") group by r.function
       select new { name = r.function, calls = count(), longest = max(r.elapsed) })";

// Sampling others' CPU time takes a right that users seldom have.
#define NEEDS_SAMPLES() \
  if (geteuid() != 0) GTEST_SKIP() << "only root may sample CPU time here"

// Reads lines until one has this in it.
std::string await(Child& child, const std::string& part, std::string& said) {
  while (const auto line = child.read_error_line()) {
    said += *line + "\n";
    if (line->find(part) != std::string::npos) return *line;
  }
  return "";
}

// The victim works until then, and what it computes is what it computes untraced.
void expect_same_work(Victim& victim) {
  const Numbers done = victim.ask("rest");
  EXPECT_EQ(done.at("result_of_work"), untraced_result("busy", done.at("rounds")));
}

TEST(Budget, TheHottestFunctionIsTakenOutAndTheOthersAreCounted) {
  NEEDS_SAMPLES();
  Victim victim("busy");
  victim.ask("work");  // The C library catches a signal from the first thread on.
  victim.ask("rest");
  const ProcessState before = ProcessState::of(victim.pid());
  const Numbers counts_before = victim.counts();
  Tracer tracer = Tracer::attach(victim.pid(), kCallsWithTimes, {"--max-overhead", "3%"});
  victim.ask("work");
  std::string said;
  EXPECT_THAT(await(tracer.child(), "taken out", said), HasSubstr("hot")) << said;
  expect_same_work(victim);
  victim.run(10);
  const Numbers truth = difference(counts_before, victim.counts());
  const Report report = tracer.finish();
  ASSERT_EQ(report.status, 0) << report.error;
  const Numbers calls = report.calls();
  EXPECT_EQ(calls.at("rare"), truth.at("rare")) << report.summary;
  EXPECT_GT(calls.at("hot"), 0U);
  EXPECT_LT(calls.at("hot"), truth.at("hot"));
  ASSERT_EQ(report.disarmed.size(), 1U);
  const nlohmann::json& hot = report.disarmed[0];
  EXPECT_EQ(hot.at("probe"), "hot");
  EXPECT_EQ(hot.at("process"), victim.pid());
  EXPECT_GT(hot.at("share").get<double>(), 0.03);
  EXPECT_EQ(hot.at("max_overhead"), 0.03);
  EXPECT_GT(hot.at("after_ms").get<double>(), 0);
  EXPECT_EQ(report.summary.at("disarmed"), nlohmann::json::array({hot}));
  EXPECT_THAT(report.summary.at("lost"), IsEmpty());
  expect_text_equals_file(victim.pid());
  expect_no_residue(before, victim.pid());
}

TEST(Budget, ABoundThatIsHeldTakesNothingOut) {
  NEEDS_SAMPLES();
  Victim victim("busy");
  Tracer tracer = Tracer::attach(victim.pid(), entries_of("busy!rare"), {"--max-overhead", "3"});
  victim.run(4000);
  const Report report = tracer.finish();
  ASSERT_EQ(report.status, 0) << report.error;
  EXPECT_EQ(report.calls().at("rare"), victim.counts().at("rare"));
  EXPECT_THAT(report.disarmed, IsEmpty());
  EXPECT_FALSE(report.summary.contains("disarmed")) << report.summary;
  const nlohmann::json& cost = report.summary.at("cost");
  EXPECT_GT(cost.at("samples").get<uint64_t>(), 20U) << cost;
  EXPECT_LT(cost.at("share").get<double>(), 0.03) << cost;
  EXPECT_GE(cost.at("stops").get<uint64_t>(), 2U) << cost;
}

TEST(Budget, WhatASessionCostsIsMeasuredAndShown) {
  NEEDS_SAMPLES();
  Victim victim("busy");
  Tracer tracer = Tracer::attach(victim.pid(), kCallsWithTimes, {"-v"});
  victim.run(2000);
  const Report report = tracer.finish();
  ASSERT_EQ(report.status, 0) << report.error;
  const nlohmann::json& cost = report.summary.at("cost");
  EXPECT_GT(cost.at("share_low").get<double>(), 0.10) << cost;
  EXPECT_LT(cost.at("share_high").get<double>(), 1) << cost;
  EXPECT_GT(cost.at("own_ms").get<double>(), cost.at("own_cpu_ms").get<double>());
  const nlohmann::json& process = cost.at("processes").at(0);
  EXPECT_EQ(process.at("process"), victim.pid());
  EXPECT_EQ(process.at("functions").at(0).at("function"), "hot");
  EXPECT_THAT(report.error, HasSubstr("in those of hot: "));
}

TEST(Budget, WhatItCannotGovernIsRefusedBeforeAnythingIsTouched) {
  NEEDS_SAMPLES();
  Victim victim("busy");
  const std::string pid = std::to_string(victim.pid());
  const auto refusal = [&pid](const std::string& query) {
    const Report report = run_clew({"run", "--max-overhead", "3%", "-p", pid, query});
    EXPECT_NE(report.status, 0);
    EXPECT_THAT(report.error, Not(HasSubstr("tracing")));
    return report.error;
  };
  EXPECT_THAT(refusal(R"(from e in syscall("read") select count())"), HasSubstr("in the kernel"));
  EXPECT_THAT(refusal(R"(from a in outstanding(entry("busy!hot") until entry("busy!rare")
                         on arg0 equals arg0) select count())"),
              HasSubstr("joins and outstanding()"));
  EXPECT_THAT(run_clew({"run", "--max-overhead", "a bit", "-p", pid, kCallsWithTimes}).error,
              HasSubstr("'a bit' is no percentage"));
}

TEST(Budget, OfDTheHottestFunctionIsTakenOutToo) {
  NEEDS_SAMPLES();
  Victim victim("busy");
  const std::string pid = std::to_string(victim.pid());
  const std::string script =
      "pid$target:busy:hot:entry, pid$target:busy:rare:entry { self->t = timestamp; } "
      "pid$target:busy:hot:return, pid$target:busy:rare:return "
      "{ @calls[probefunc] = count(); @longest = max(timestamp - self->t); } "
      "BEGIN { printf(\"begun\\n\"); } END { printa(\"%s=%@d\\n\", @calls); }";
  Child tracer({.arguments = {CLEW_COMMAND, "dtrace", "-q", "-p", pid, "--max-overhead", "3%", "-n",
                              script}});
  ASSERT_EQ(tracer.read_line(), "begun");
  victim.ask("work");
  std::string said;
  EXPECT_THAT(await(tracer, "taken out", said), HasSubstr("hot")) << said;
  expect_same_work(victim);
  const Numbers truth = victim.counts();
  tracer.signal(SIGINT);
  const Child::End end = tracer.wait_for_end();
  EXPECT_EQ(end.status, 0) << end.error;
  EXPECT_THAT(end.output, HasSubstr(fmt::format("rare={}\n", truth.at("rare"))));
  EXPECT_THAT(end.output, Not(HasSubstr(fmt::format("hot={}\n", truth.at("hot")))));
  EXPECT_THAT(end.error, HasSubstr("cost: probes took")) << end.error;
  expect_text_equals_file(victim.pid());
}

TEST(Budget, OfDWhatItCannotGovernIsRefused) {
  NEEDS_SAMPLES();
  Victim victim("busy");
  const Child::End end =
      clew({"dtrace", "-p", std::to_string(victim.pid()), "--max-overhead", "3%", "-n",
            "pid$target:busy:rare:entry, syscall::read:entry { @ = count(); }"});
  EXPECT_EQ(end.status, 1);
  EXPECT_THAT(end.error, HasSubstr("--max-overhead governs probes inside processes, and syscall:"));
  EXPECT_EQ(clew({"dtrace", "--max-overhead", "0", "-n", "BEGIN { exit(0); }"}).status, 2);
}

// --- --idle ------------------------------------------------------------------------------------

// Ends by itself, with status 0 and one line about why.
void expect_idle_end(const Child::End& end, const std::string& why, pid_t victim) {
  EXPECT_EQ(end.status, 0) << end.error;
  EXPECT_THAT(end.error, HasSubstr(why));
  EXPECT_THAT(end.error, HasSubstr("(--idle)"));
  expect_text_equals_file(victim);
}

TEST(Budget, ASessionThatAnswersNothingEndsByItself) {
  Victim victim("busy");
  const std::string pid = std::to_string(victim.pid());
  for (const char* const query :
       {R"(from e in entry("busy!rare") select e.function)",
        R"(from e in entry("busy!rare") group by e.function select e.function, count())"}) {
    const Child::End end = clew({"run", "--idle", "300ms", "-p", pid, query});
    expect_idle_end(end, "nothing was answered for 0.3 s", victim.pid());
  }
}

TEST(Budget, ASessionThatCountsGoesOn) {
  Victim victim("busy");
  Tracer tracer = Tracer::attach(victim.pid(), entries_of("busy!rare"), {"--idle", "300ms"});
  victim.ask("work");
  // It ends once the victim rests, and not before.
  const auto begin = std::chrono::steady_clock::now();
  victim.ask("counts");
  while (std::chrono::steady_clock::now() - begin < std::chrono::milliseconds(900))
    victim.ask("counts");
  EXPECT_TRUE(tracer.child().running());
  victim.ask("rest");
  const Report report = tracer.wait();
  EXPECT_EQ(report.status, 0) << report.error;
  EXPECT_EQ(report.calls().at("rare"), victim.counts().at("rare"));
}

// Standard output of the command is a pipe of which a line is read, and no more until the test has
// ended.
Child unread(const std::string& command) {
  return Child({.arguments = {"sh", "-c",
                              fmt::format("exec 3<&0; {{ {} {}; echo status $? >&2; }} | "
                                          "{{ read -r line; read -r rest <&3; }}",
                                          CLEW_COMMAND, command)}});
}

void expect_unread_end(Child& shell, Victim& victim) {
  victim.ask("work");
  std::string said;
  EXPECT_THAT(await(shell, "status", said), HasSubstr("status 0")) << said;
  EXPECT_THAT(said, HasSubstr("nobody has read the answer for 0.5 s"));
  victim.ask("rest");
  expect_text_equals_file(victim.pid());
}

TEST(Budget, ASessionThatNobodyReadsEndsByItself) {
  Victim victim("busy");
  Child shell = unread(fmt::format(
      "run --json --idle 500ms -p {} 'from e in entry(\"busy!hot\") select e.arg0, e.time'",
      victim.pid()));
  std::string said;
  ASSERT_NE(await(shell, "tracing", said), "");
  expect_unread_end(shell, victim);
}

TEST(Budget, OfDToo) {
  if (geteuid() != 0) GTEST_SKIP() << "D needs root";
  Victim victim("busy");
  const std::string pid = std::to_string(victim.pid());
  const Child::End end = clew({"dtrace", "-q", "--idle", "300ms", "-p", pid, "-n",
                               "pid$target:busy:rare:entry { @[probefunc] = count(); }"});
  expect_idle_end(end, "nothing was answered for 0.3 s", victim.pid());
  Child shell = unread(fmt::format(
      "dtrace --idle 500ms -p {} -n 'pid$target:busy:hot:entry {{ trace(arg0); }}'", pid));
  std::string said;
  ASSERT_NE(await(shell, "matched", said), "");
  expect_unread_end(shell, victim);
}

}  // namespace
}  // namespace clew::live

// SPDX-License-Identifier: Apache-2.0
// One session over many processes: they are counted for the same time, whatever state a query
// needs, and one that cannot be traced is named and left out.
#include <algorithm>
#include <csignal>
#include <iostream>
#include <memory>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "live/process_state.h"
#include "live/server.h"
#include "live/tracer.h"
#include "live/victim.h"

namespace clew::live {
namespace {

using testing::HasSubstr;

// Programs that call a function which takes a millisecond, one time after the other.
class ManyProcesses : public testing::Test {
 protected:
  static constexpr size_t kProcesses = 12;

  ManyProcesses() {
    for (size_t i = 0; i < kProcesses; ++i) {
      victims_.push_back(std::make_unique<Victim>("paced"));
      (void)victims_.back()->ask("pace");
    }
  }

  [[nodiscard]] std::vector<std::string> run_all(const std::string& query) const {
    std::vector<std::string> arguments = {"run", query, "--json", "--for", "150ms"};
    for (const auto& victim : victims_) {
      arguments.insert(arguments.end(), {"-p", std::to_string(victim->pid())});
    }
    return arguments;
  }

  // Of the common beginning and end, as the session says them.
  static double window_ms(const Report& report) {
    EXPECT_EQ(report.status, 0) << report.error;
    EXPECT_EQ(report.summary.value("processes", 0U), kProcesses) << report.summary;
    const double window = report.summary.value("window_ms", 0.0);
    EXPECT_GE(window, 150);
    return window;
  }

  // The largest number of calls that a process can have ended in the window: each takes 1 ms.
  static uint64_t calls_max(double window) { return static_cast<uint64_t>(window) + 2; }

  void expect_calls_fit(const Report& report) const {
    const uint64_t most = calls_max(window_ms(report));
    std::map<int64_t, uint64_t> calls;
    for (const nlohmann::json& row : report.rows)
      calls[row.at("process").get<int64_t>()] += row.at("calls").get<uint64_t>();
    EXPECT_EQ(calls.size(), kProcesses) << report.summary;
    for (const auto& [pid, count] : calls)
      EXPECT_LE(count, most) << pid << ": " << report.summary;
  }

  std::vector<std::unique_ptr<Victim>> victims_;
};

TEST_F(ManyProcesses, AreCountedForTheSameTime) {
  expect_calls_fit(run_clew(run_all(
      R"(from e in entry("paced!pause_shortly") group by e.pid
         select new { process = e.pid, calls = count() })")));
}

TEST_F(ManyProcesses, AreCountedForTheSameTimeByKeysOfTheHit) {
  expect_calls_fit(run_clew(run_all(
      R"(from e in entry("paced!pause_shortly") group by e.pid, e.arg0
         select new { process = e.pid, turn = e.arg0, calls = count() })")));
}

TEST_F(ManyProcesses, HaveTheirReturnsPairedInTheSameTime) {
  const Report report = run_clew(run_all(
      R"(from e in return("paced!pause_shortly") group by e.pid
         select new { process = e.pid, calls = count(), took = sum(e.elapsed) })"));
  expect_calls_fit(report);
  for (const nlohmann::json& row : report.rows) {
    // The first of them may have begun before the window.
    const double longest_ms = window_ms(report) + 100;
    EXPECT_LE(row.at("took").get<double>() / 1e6, longest_ms) << row;
  }
}

// Minima cannot be subtracted: what was counted before the beginning is forgotten.
TEST_F(ManyProcesses, HaveExtremesOfTheSameTime) {
  const Report report = run_clew(run_all(
      R"(from e in entry("paced!pause_shortly") group by e.pid
         select new { process = e.pid, calls = count(),
                      first = min(e.time), last = max(e.time) })"));
  expect_calls_fit(report);
  const auto most_ns = static_cast<int64_t>(window_ms(report) * 1e6) + 5'000'000;
  int64_t first = INT64_MAX;
  int64_t last = 0;
  for (const nlohmann::json& row : report.rows) {
    first = std::min(first, row.at("first").get<int64_t>());
    last = std::max(last, row.at("last").get<int64_t>());
  }
  EXPECT_LE(last - first, most_ns);
}

TEST_F(ManyProcesses, HaveEventsOfTheSameTime) {
  const Report report = run_clew(
      run_all(R"(from e in entry("paced!pause_shortly") select new { at = e.time, e.pid })"));
  const auto most_ns = static_cast<int64_t>(window_ms(report) * 1e6) + 5'000'000;
  std::map<int64_t, uint64_t> calls;
  int64_t first = INT64_MAX;
  int64_t last = 0;
  for (const nlohmann::json& row : report.rows) {
    ++calls[row.at("pid").get<int64_t>()];
    first = std::min(first, row.at("at").get<int64_t>());
    last = std::max(last, row.at("at").get<int64_t>());
  }
  EXPECT_LE(last - first, most_ns);
  EXPECT_EQ(calls.size(), kProcesses);
}

TEST_F(ManyProcesses, AreCountedForTheSameTimeAsTheKernel) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  const Report report = run_clew(run_all(
      R"(from e in entry("paced!pause_shortly"), syscall("clock_nanosleep") group by e.probe
         select new { e.probe, calls = count() })"));
  const uint64_t most = kProcesses * calls_max(window_ms(report));
  ASSERT_EQ(report.rows.size(), 2U) << report.error;
  for (const nlohmann::json& row : report.rows)
    EXPECT_LE(row.at("calls").get<uint64_t>(), most) << row;
}

// Processes of one large program, each with a session's sites.
class Pythons {
 public:
  explicit Pythons(size_t count) {
    for (size_t i = 0; i < count; ++i) {
      processes_.push_back(std::make_unique<Child>(
          ChildOptions{.arguments = {"/usr/bin/python3", "-S", "-c",
                                     "import sys; print('ready', flush=True); sys.stdin.read()"}}));
    }
    for (const auto& process : processes_)
      EXPECT_EQ(process->read_line(), "ready");
  }

  struct Cost {
    double processor_ms = 0;  // Of the tracer's own code.
    nlohmann::json summary;
  };
  // Without an analysis that another session has kept.
  [[nodiscard]] Cost trace() const {
    const TemporaryFolder no_cache;
    std::vector<std::string> arguments = {
        CLEW_COMMAND,
        "run",
        "--json",
        "--for",
        "1ms",
        R"(from e in entry("python3*!PyObject_Str"), entry("python3*!PyDict_New"),
                     entry("python3*!PyList_New") select calls = count())"};
    for (const auto& process : processes_)
      arguments.insert(arguments.end(), {"-p", std::to_string(process->pid())});
    const double before = processor_ms_of_ended();
    Child tracer({.arguments = arguments, .environment = {"XDG_CACHE_HOME=" + no_cache.path()}});
    const Child::End end = tracer.wait_for_end();
    EXPECT_EQ(end.status, 0) << end.error;
    const size_t last = end.output.rfind('\n', end.output.size() - 2) + 1;
    return {processor_ms_of_ended() - before,
            nlohmann::json::parse(end.output.substr(last)).at("summary")};
  }

 private:
  static double processor_ms_of_ended() {
    rusage usage = {};
    getrusage(RUSAGE_CHILDREN, &usage);
    return static_cast<double>(usage.ru_utime.tv_sec) * 1e3 +
           static_cast<double>(usage.ru_utime.tv_usec) / 1e3;
  }

  std::vector<std::unique_ptr<Child>> processes_;
};

// What another process of the same file costs is a small part of what the first one does. The time
// until all are armed is printed, and no more: it is the machine's.
TEST(Many, AFileIsAnalysedOnceForAllItsProcesses) {
  constexpr size_t kProcesses = 85;
  const double first_ms = Pythons(1).trace().processor_ms;
  const Pythons::Cost all = Pythons(kProcesses).trace();
  EXPECT_EQ(all.summary.at("processes"), kProcesses);
  EXPECT_EQ(all.summary.at("sites"), 3 * kProcesses);
  const double each_ms = (all.processor_ms - first_ms) / (kProcesses - 1);
  EXPECT_LT(each_ms, first_ms / 3);
  std::cout << "one process: " << first_ms << " ms of the processor; each one more: " << each_ms
            << " ms; all armed in " << all.summary.at("attach_ms") << " ms\n";
}

constexpr const char* kPausesByProcess =
    R"(from e in entry("paced!pause_shortly") group by e.pid
       select new { process = e.pid, calls = count() })";

// A pid whose process has just ended.
pid_t ended_pid() {
  Victim victim("paced");
  const pid_t pid = victim.pid();
  victim.child().signal(SIGKILL);
  victim.child().wait_for_end();
  return pid;
}

TEST(Many, AProcessThatIsGoneIsNamedAndLeftOut) {
  Victim victim("paced");
  const pid_t gone = ended_pid();
  Tracer tracer = Tracer::attach(victim.pid(), kPausesByProcess, {"-p", std::to_string(gone)});
  victim.run(5);
  const Report report = tracer.finish();
  EXPECT_EQ(report.status, 0) << report.error;
  ASSERT_EQ(report.rows.size(), 1U) << report.error;
  EXPECT_EQ(report.rows[0].at("calls").get<uint64_t>(), 5U);
  EXPECT_THAT(report.error, HasSubstr(std::to_string(gone)));
  const auto left_out = report.summary.at("left_out");
  ASSERT_EQ(left_out.size(), 1U) << report.summary;
  EXPECT_EQ(left_out[0].at("process").get<pid_t>(), gone);
  EXPECT_FALSE(left_out[0].at("reason").get<std::string>().empty());
}

TEST(Many, AProcessThatUsesTheGsSegmentDoesNotKeepTheOthersFromBeingTraced) {
  Victim victim("paced");
  Victim refused("uses_gs");
  (void)refused.ask("use_gs");
  Tracer tracer =
      Tracer::attach(victim.pid(), R"(from e in entry("libc.so.6!fgets") select calls = count())",
                     {"-p", std::to_string(refused.pid())});
  (void)victim.counts();
  (void)victim.counts();  // By now it has asked for the second.
  const Report report = tracer.finish();
  EXPECT_EQ(report.status, 0) << report.error;
  ASSERT_EQ(report.rows.size(), 1U) << report.error;
  EXPECT_GT(report.rows[0].at("calls").get<uint64_t>(), 0U);
  const auto left_out = report.summary.at("left_out");
  ASSERT_EQ(left_out.size(), 1U) << report.summary;
  EXPECT_EQ(left_out[0].at("process").get<pid_t>(), refused.pid());
  EXPECT_THAT(left_out[0].at("reason").get<std::string>(), HasSubstr("[gs-in-use]"));
}

TEST_F(ManyProcesses, OfWhatTheyHaveInCommonIsToldOnce) {
  Victim victim("keys");
  std::vector<std::string> arguments =
      run_all(R"(from e in entry("keys!take_key") select count())");
  arguments.insert(arguments.end(), {"-p", std::to_string(victim.pid())});
  const Report report = run_clew(arguments);
  EXPECT_EQ(report.status, 0) << report.error;
  EXPECT_EQ(report.summary.at("left_out").size(), kProcesses) << report.summary;
  EXPECT_THAT(report.error, HasSubstr(fmt::format("{} processes are left out (", kProcesses)));
  EXPECT_THAT(report.error, testing::Not(HasSubstr("is left out")));
}

TEST(Many, WhenAllAreRefusedTheReasonIsAnError) {
  const Report report = run_clew({"run", kPausesByProcess, "--json", "-p",
                                  std::to_string(ended_pid()), "-p", std::to_string(ended_pid())});
  EXPECT_NE(report.status, 0);
  EXPECT_THAT(report.error, HasSubstr("error: "));
}

}  // namespace
}  // namespace clew::live

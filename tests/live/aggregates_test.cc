// SPDX-License-Identifier: Apache-2.0
// One aggregating function is the same wherever it is counted: in a process, in the kernel, in the
// tracer of events from a file, and, where D has it, in a script.
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "live/tracer.h"
#include "live/victim.h"

namespace clew::live {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kValues = 50;  // 0 to 49, each as often.
constexpr double kVariance = (50.0 * 50 - 1) / 12;

struct Function {
  const char* name;
  double result;
  int64_t
      in_d;  // 0: D has no such function. Averages of squares and of values are cut to integers.
};

class Aggregate : public testing::TestWithParam<Function> {
 protected:
  static std::string query(const std::string& source, const std::string& value) {
    return fmt::format("from e in {} select x = {}(e.{})", source, GetParam().name, value);
  }
  static void expect_result(const Report& report) {
    ASSERT_EQ(report.rows.size(), 1U) << report.error;
    EXPECT_NEAR(report.rows[0].at("x").get<double>(), GetParam().result, 1e-9);
  }
  static std::string paced() { return fmt::format("paced {}", kValues); }
};

TEST_P(Aggregate, IsCountedInProcesses) {
  Victim victim("keys");
  Tracer tracer = Tracer::attach(victim.pid(), query("entry(\"keys!take_key\")", "arg0"));
  victim.ask(paced());
  expect_result(tracer.finish());
}

TEST_P(Aggregate, IsCountedOfAFile) {
  const fs::path file = fs::temp_directory_path() / fmt::format("clew-aggregates-{}", getpid());
  Victim victim("keys");
  Tracer tracer = Tracer::attach(victim.pid(), "from e in entry(\"keys!take_key\") select e.arg0",
                                 {"--spill", file.string()});
  victim.ask(paced());
  EXPECT_EQ(tracer.finish().rows.size(), kValues);
  expect_result(run_clew(
      {"run", query("entry(\"keys!take_key\")", "arg0"), "--from", file.string(), "--json"}));
  fs::remove(file);
}

TEST_P(Aggregate, IsCountedInTheKernel) {
  if (geteuid() != 0) GTEST_SKIP() << "NOT TESTED: programs in the kernel need root";
  Victim victim("calls");
  const uint64_t zeros = victim.ask("file 0").at("file");
  const std::string reads = fmt::format("syscall_return(\"read\") where e.entry.fd == {}", zeros);
  Tracer tracer = Tracer::attach(victim.pid(), query(reads, "retval"));
  victim.ask(fmt::format("run {}", 20 * kValues));
  expect_result(tracer.finish());
}

TEST_P(Aggregate, IsCountedByD) {
  if (geteuid() != 0) GTEST_SKIP() << "NOT TESTED: D needs root";
  Victim victim("keys");
  Child tracer(
      {.arguments = {CLEW_COMMAND, "dtrace", "-q", "-p", std::to_string(victim.pid()), "-n",
                     fmt::format("BEGIN {{ printf(\"armed\\n\"); }} "
                                 "pid$target:keys:take_key:entry {{ @ = {}(arg0); }}",
                                 GetParam().name)}});
  if (GetParam().in_d == 0) {
    const Child::End end = tracer.wait_for_end();
    EXPECT_EQ(end.status, 1);
    EXPECT_NE(end.error.find(GetParam().name), std::string::npos) << end.error;
    return;
  }
  ASSERT_EQ(tracer.read_line(), "armed");
  victim.ask(paced());
  tracer.signal(SIGINT);
  const Child::End end = tracer.wait_for_end();
  EXPECT_EQ(std::strtoll(end.output.c_str(), nullptr, 10), GetParam().in_d)
      << end.output << end.error;
}

INSTANTIATE_TEST_SUITE_P(Aggregates, Aggregate,
                         testing::Values(Function{"stddev", std::sqrt(kVariance), 15},
                                         Function{"variance", kVariance, 0}),
                         [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace clew::live

// SPDX-License-Identifier: Apache-2.0
// Functions in C, called at every hit inside a real process.
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "live/process_state.h"
#include "live/tracer.h"
#include "live/victim.h"

namespace clew::live {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kExtensionRounds = 1000;

// A file of C for the time of a test.
class Source {
 public:
  explicit Source(const std::string& text) {
    path_ = std::filesystem::temp_directory_path() /
            ("clew_live_" + std::to_string(getpid()) + "_ext.c");
    std::ofstream(path_) << "#include \"clew.h\"\n" << text;
  }
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;
  ~Source() { std::filesystem::remove(path_); }
  [[nodiscard]] std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

// The victim's result is that of an untraced one.
Report traced(Victim& victim, const std::string& query, uint64_t rounds,
              const std::vector<std::string>& more = {}) {
  Tracer tracer = Tracer::attach(victim.pid(), query, more);
  EXPECT_EQ(victim.run(rounds), untraced_result("typed", rounds));
  Report report = tracer.finish();
  EXPECT_EQ(report.status, 0) << report.error;
  return report;
}

TEST(Extensions, AListOfTheProgramIsWalked) {
  Victim victim("typed");
  const Report report =
      traced(victim, R"(from e in entry("typed!priced") let length = list_length(e.item, 16)
      group by length select length, count())",
             kExtensionRounds);
  ASSERT_EQ(report.rows.size(), 1U) << report.error;
  EXPECT_EQ(report.rows[0].at("length").get<uint64_t>(), 2U) << report.rows[0].dump();
  EXPECT_EQ(report.rows[0].at("count").get<uint64_t>(), kExtensionRounds);
}

// As Fay prints it (5.2.3), with this program's function and argument.
TEST(Extensions, FaysMovingAverage) {
  Victim victim("typed");
  const Report report = traced(victim, R"(function("typed!priced")
    .Select(event => event.args.count)
    .Select(sizeArg => new { average = MovingAverage(sizeArg, State), size = sizeArg })
    .Where(alloc => alloc.size > 10*alloc.average))",
                               kExtensionRounds);
  EXPECT_EQ(report.rows.size(), 0U) << report.error;  // 3 is never ten times 3.
}

TEST(Extensions, AMovingAverageIsThatOfTheLastCalls) {
  Victim victim("typed");
  const Report report = traced(victim, R"(from e in entry("typed!scaled")
      select size = e.count, average = MovingAverage(e.count, State))",
                               200);
  ASSERT_EQ(report.rows.size(), 200U) << report.error;
  for (int64_t i = 0; i < 200; ++i) {
    const auto& row = report.rows[static_cast<size_t>(i)];
    EXPECT_EQ(row.at("size").get<int64_t>(), i);
    const int64_t first = i < 64 ? 0 : i - 63;
    EXPECT_EQ(row.at("average").get<int64_t>(), (first + i) / 2) << i;
  }
}

TEST(Extensions, FaysSketchPassesPowersOfTwo) {
  Victim victim("typed");
  const Report report = traced(victim, R"(function("typed!scaled")
    .Where(ev => ev.time < Now.AddMinutes(5))
    .Where(e => sample(e, State))
    .Select(e => new { count = e.count }))",
                               kExtensionRounds);
  ASSERT_EQ(report.rows.size(), 10U) << report.error;
  for (size_t i = 0; i < 10; ++i)
    EXPECT_EQ(report.rows[i].at("count").get<uint64_t>(), (uint64_t{1} << i) - 1);
}

TEST(Extensions, AFileOfTheUsers) {
  const Source source(
      "static u64 last = 5;\n"
      "static const u32 factors[4] = {1, 10, 100, 1000};\n"
      "u64 step(u32 now) { u64 before = last; last = now; return before; }\n"
      "u64 scale(s32 n) { return n * factors[n & 3]; }\n");
  Victim victim("typed");
  const Report report = traced(
      victim,
      R"(from e in entry("typed!scaled") select before = step(e.count), big = scale(e.count))", 100,
      {"--ext", source.path()});
  ASSERT_EQ(report.rows.size(), 100U) << report.error;
  constexpr uint64_t kFactors[] = {1, 10, 100, 1000};
  for (uint64_t i = 0; i < 100; ++i) {
    EXPECT_EQ(report.rows[i].at("before").get<uint64_t>(), i == 0 ? 5 : i - 1);
    EXPECT_EQ(report.rows[i].at("big").get<uint64_t>(), i * kFactors[i % 4]);
  }
}

// A thread that has used up its fuel eight times at a probe is left alone there; what it misses
// until the probe is gone is counted.
// Also of a function that cannot return at all.
class EndlessLoops : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(, EndlessLoops,
                         testing::Values("while (n != 12345678) ++turns; return turns;",
                                         "for (;;) ++turns;",
                                         "if (n == 12345678) return 1; for (;;) turns += n;"));

TEST_P(EndlessLoops, AreCut) {
  const Source source(std::string("static volatile u64 turns;\nu64 spin(u32 n) { ") + GetParam() +
                      " }\n");
  Victim victim("typed");
  const Report report =
      traced(victim, R"(from e in entry("typed!scaled") select hits = count(), sum(spin(e.count)))",
             kExtensionRounds, {"--ext", source.path()});
  EXPECT_EQ(report.summary.at("missed").at("fuel").get<uint64_t>(), 8U) << report.summary.dump();
  EXPECT_LE(report.summary.at("missed").value("left_alone", uint64_t{0}), kExtensionRounds - 8);
  EXPECT_EQ(report.rows.at(0).at("hits").get<uint64_t>(), 8U);
}

// The probe is taken out for all threads; another one, which calls the same function, goes on.
TEST(Extensions, AProbeThatSpinsIsDisarmedForAllThreads) {
  const Source source(
      "static volatile u64 turns;\n"
      "bool ends(u64 n) { for (u64 i = 0; i < 3 || n; ++i) ++turns; return true; }\n");
  const std::string query = R"(
      from e in entry("crowd!crowd_work") as "in" { spins = 1 },
                return("crowd!crowd_work") as "out" { spins = 0 }
      where ends(e.spins) group by e.probe select e.probe, hits = count())";
  Victim victim("crowd");
  const uint64_t result = victim.run(2);  // With all its threads.
  const ProcessState before = ProcessState::of(victim.pid());
  const Numbers start = victim.counts();
  Tracer other = Tracer::attach(victim.pid(), R"(from e in entry("crowd!crowd_work")
      select hits = count())");
  Tracer tracer = Tracer::attach(victim.pid(), query, {"--ext", source.path()});
  EXPECT_EQ(victim.run(2), result);
  const nlohmann::json told = nlohmann::json::parse(tracer.child().read_line().value_or("{}"));
  ASSERT_TRUE(told.contains("disarmed")) << told.dump();
  EXPECT_GE(told.at("disarmed").at("out_of_fuel").get<uint64_t>(), 8U);
  EXPECT_EQ(told.at("disarmed").at("process").get<pid_t>(), victim.pid());
  EXPECT_EQ(victim.run(2), result);
  const uint64_t calls = difference(start, victim.counts()).at("crowd_work");
  const Report report = tracer.finish();
  const Report counted = other.finish();
  ASSERT_EQ(report.rows.size(), 1U) << report.error;
  EXPECT_EQ(report.rows[0].at("probe"), "out");
  EXPECT_EQ(report.rows[0].at("hits").get<uint64_t>(), calls);
  EXPECT_EQ(counted.rows.at(0).at("hits").get<uint64_t>(), calls);
  EXPECT_THAT(report.error, HasSubstr("is disarmed; give it more with --fuel"));
  EXPECT_EQ(report.summary.at("disarmed").size(), 1U) << report.summary.dump();
  const uint64_t ended = report.summary.at("missed").at("fuel").get<uint64_t>();
  const uint64_t left = report.summary.at("missed").value("left_alone", uint64_t{0});
  EXPECT_EQ(report.summary.at("disarmed").at(0).at("out_of_fuel").get<uint64_t>(), ended);
  EXPECT_LE(ended + left, calls / 2);  // None in the second run.
  expect_text_equals_file(victim.pid());
  expect_no_residue(before, victim.pid());
}

// However many threads there are, and while the tracer does not look: a hit that spins is at most
// the eighth, or began before the eighth had ended. Eight threads at a time make calls here.
TEST(Extensions, AllThreadsTogetherSpinEightTimes) {
  constexpr uint64_t kAtOnce = 8;
  constexpr uint64_t kCalls = 4000;
  const Source source(
      "static volatile u64 turns;\n"
      "u64 spin(u64 n) { for (;;) turns += n; }\n");
  Victim victim("crowd");
  victim.run(2);  // With all its threads.
  Tracer tracer = Tracer::attach(victim.pid(), R"(from e in entry("crowd!crowd_work")
      select hits = count(), sum(spin(e.arg0)))",
                                 {"--ext", source.path()});
  ASSERT_EQ(kill(tracer.child().pid(), SIGSTOP), 0);
  const uint64_t before = victim.counts().at("crowd_work");
  victim.ask("rush");
  while (victim.counts().at("crowd_work") < before + kCalls) {
  }
  victim.ask("halt");
  ASSERT_EQ(kill(tracer.child().pid(), SIGCONT), 0);
  const Report report = tracer.finish();
  ASSERT_EQ(report.status, 0) << report.error;
  const uint64_t ended = report.summary.at("missed").at("fuel").get<uint64_t>();
  EXPECT_GE(ended, 8U);
  EXPECT_LE(ended, 8U + kAtOnce - 1) << report.summary.dump();
  EXPECT_GE(ended + report.summary.at("missed").at("left_alone").get<uint64_t>(), kCalls);
}

// What needs more gets more.
TEST(Extensions, FuelIsTheUsersToSay) {
  const Source source(
      "static u64 t[8];\n"
      "u64 rounds(u64 n) { for (u64 i = 0; i < n; ++i) t[i & 7] += i; return t[7] != 0; }\n");
  const auto answered = [&](const std::vector<std::string>& options) {
    Victim victim("typed");
    const Report report =
        traced(victim,
               R"(from e in entry("typed!scaled") select ended = sum(rounds(50000 + e.count % 2)))",
               kExtensionRounds, options);
    return report.rows.empty() ? 0 : report.rows.at(0).at("ended").get<uint64_t>();
  };
  EXPECT_EQ(answered({"--ext", source.path()}), 0U);
  EXPECT_EQ(answered({"--ext", source.path(), "--fuel", "10000000"}), kExtensionRounds);
}

// Stores to addresses of the program: they end the hit, or land in the thread's own state.
TEST(Extensions, WildPointersDoNotReachTheProgram) {
  const Source source(
      "u64 wild(u64 *p) { for (u64 i = 1; i < 50; ++i) p[i * 997] = i; *p = 1; return *p; }\n");
  const std::string query = R"(from e in entry("typed!priced") select wild(e.item))";
  {
    Victim victim("typed");
    const Report report = traced(victim, query, kExtensionRounds, {"--ext", source.path()});
    EXPECT_EQ(report.summary.at("missed").at("unreadable").get<uint64_t>(), kExtensionRounds);
    EXPECT_EQ(report.rows.size(), 0U);
  }
  Victim victim("typed");
  (void)traced(victim, query, kExtensionRounds, {"--ext", source.path(), "--no-branch-guards"});
  EXPECT_EQ(victim.run(kExtensionRounds), untraced_result("typed", kExtensionRounds));
}

// The base of such an access may be in front of the window, and the access is right.
TEST(Extensions, NegativeIndicesIntoATable) {
  const Source source(
      "static u64 t[1000];\n"
      "u64 at(s64 i) { t[i + 400] = 7; return t[i + 400] + (u64)i; }\n");
  Victim victim("typed");
  const Report report =
      traced(victim, R"(from e in entry("typed!scaled") select value = at(e.count - 400))", 800,
             {"--ext", source.path()});
  ASSERT_EQ(report.rows.size(), 800U) << report.summary.dump();
  for (int64_t i = 0; i < 800; ++i)
    EXPECT_EQ(report.rows[static_cast<size_t>(i)].at("value").get<int64_t>(), 7 + i - 400);
}

TEST(Extensions, ANamedCallIsMadeOnceForEachEvent) {
  const Source source("static u64 n;\nu64 next(void) { return ++n; }\n");
  Victim victim("typed");
  const Report report = traced(victim, R"(from e in entry("typed!scaled") let c = next()
      where c % 2 == 0 select count = e.count, c = c)",
                               100, {"--ext", source.path()});
  ASSERT_EQ(report.rows.size(), 50U);
  for (uint64_t i = 0; i < 50; ++i) {
    EXPECT_EQ(report.rows[i].at("c").get<uint64_t>(), 2 * i + 2);
    EXPECT_EQ(report.rows[i].at("count").get<uint64_t>(), 2 * i + 1);
  }
}

TEST(Extensions, FunctionsOfTheLanguageKeepTheirNames) {
  const Source source("u64 min(u64 a, u64 b) { return a + b; }\n");
  const Report report =
      run_clew({"run", R"(from e in entry("typed!scaled") select min(e.count, 3))", "-c",
                victim_path("typed"), "--ext", source.path()});
  EXPECT_EQ(report.status, 1);
  EXPECT_THAT(report.error, HasSubstr("'min' is a function of the query language"));
}

// tests/d_extensions compares what they give.
TEST(Extensions, SourcesOfTheKernelCallThem) {
  if (geteuid() != 0) GTEST_SKIP() << "NOT TESTED: programs in the kernel need root";
  const Source source("static u64 n;\nu64 next(void) { return ++n; }\n");
  const Report report = run_clew(
      {"run", R"(from e in syscall("read") where next() > 0 select moving_average(e.arg2))",
       "--for", "100ms", "--json", "--ext", source.path()});
  EXPECT_EQ(report.status, 0) << report.error;
}

TEST(Extensions, MistakesHaveTheirLine) {
  const Source source("u64 f(u64 a);\nu64 g(u64 a) {\n  return f(a) + 1;\n}\n");
  const Report report = run_clew({"run", R"(from e in entry("typed!scaled") select g(e.count))",
                                  "-c", victim_path("typed"), "--ext", source.path()});
  EXPECT_EQ(report.status, 1);
  EXPECT_THAT(report.error,
              HasSubstr(source.path() + ":4: error: 'f' is not defined in this file"));
}

}  // namespace
}  // namespace clew::live

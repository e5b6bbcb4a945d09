// SPDX-License-Identifier: Apache-2.0
// Windows of time over real programs: what they count is what the victims counted, each event is in
// the window of its own time, and a file of events gives the rows that its events say.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "live/child.h"
#include "live/tracer.h"
#include "live/victim.h"

namespace clew::live {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr uint64_t kPacedKeys = 40'000;  // More than half a second of them.
constexpr int64_t kMs = 1'000'000;

// Of `keys`, whose keys are 0, 1, 2, …, each once.
std::string windows_of(const std::string& window) {
  return "from k in entry(\"keys!take_key\") window " + window +
         " select window.start, window.end, n = count(), first = min(k.arg0), last = max(k.arg0), "
         "earliest = min(k.time), latest = max(k.time)";
}

int64_t number(const Json& row, const char* name) {
  return row.at(name).get<int64_t>();
}

Report trace_keys(const std::string& query, const std::vector<std::string>& more = {}) {
  Victim victim("keys");
  Tracer tracer = Tracer::attach(victim.pid(), query, more);
  victim.ask("paced " + std::to_string(kPacedKeys));
  EXPECT_EQ(victim.counts().at("take_key"), kPacedKeys);
  Report report = tracer.finish();
  EXPECT_EQ(report.status, 0) << report.error;
  EXPECT_EQ(report.lost(), 0U) << report.summary;
  return report;
}

// What is given later takes the place of what was given of the window.
std::map<int64_t, Json> by_start(const Report& report) {
  std::map<int64_t, Json> rows;
  for (const Json& row : report.rows)
    rows[number(row, "window.start")] = row;
  return rows;
}

// One window behind the other: each key once, each in the window of its time.
void expect_all_keys(const std::map<int64_t, Json>& rows, int64_t size_ns) {
  int64_t next = 0;
  for (const auto& [start, row] : rows) {
    EXPECT_EQ(start % size_ns, 0);
    EXPECT_EQ(number(row, "window.end"), start + size_ns);
    EXPECT_EQ(number(row, "first"), next) << row;
    EXPECT_EQ(number(row, "n"), number(row, "last") - number(row, "first") + 1) << row;
    EXPECT_GE(number(row, "earliest"), start) << row;
    EXPECT_LT(number(row, "latest"), start + size_ns) << row;
    next = number(row, "last") + 1;
  }
  EXPECT_EQ(next, kPacedKeys);
}

TEST(TimeWindows, EachCallIsCountedOnceInTheWindowOfItsTime) {
  const Report report = trace_keys(windows_of("tumbling 100ms"));
  const std::map<int64_t, Json> rows = by_start(report);
  EXPECT_GE(rows.size(), 5U);
  expect_all_keys(rows, 100 * kMs);
  EXPECT_EQ(report.rows.front().at("partial"), true);  // The session began within it.
  for (const Json& row : report.rows)
    EXPECT_EQ(row.at("interval_begin"), row.at("window.start")) << row;
}

TEST(TimeWindows, ShortOnesLoseNothingEither) {
  const Report report = trace_keys(windows_of("tumbling 1ms"));
  EXPECT_GE(report.rows.size(), 500U);
  expect_all_keys(by_start(report), kMs);
}

TEST(TimeWindows, ProcessesHaveTheSameWindows) {
  Victim one("keys");
  Victim other("keys");
  Tracer tracer = Tracer::attach(
      one.pid(),
      "from k in entry(\"keys!take_key\") groupby k.pid window tumbling 50ms select k.pid, "
      "window.start, n = count()",
      {"-p", std::to_string(other.pid())});
  one.tell("paced " + std::to_string(kPacedKeys));
  other.ask("paced " + std::to_string(kPacedKeys / 2));
  EXPECT_EQ(one.answer().count("result"), 1U);
  const Report report = tracer.finish();
  ASSERT_EQ(report.status, 0) << report.error;
  std::map<pid_t, uint64_t> sums;
  std::map<std::pair<int64_t, pid_t>, uint64_t> last;
  for (const Json& row : report.rows)
    last[{number(row, "window.start"), row.at("pid").get<pid_t>()}] = row.at("n").get<uint64_t>();
  for (const auto& [place, count] : last)
    sums[place.second] += count;
  EXPECT_EQ(sums,
            (std::map<pid_t, uint64_t>{{one.pid(), kPacedKeys}, {other.pid(), kPacedKeys / 2}}));
}

TEST(TimeWindows, HoppingOnesHaveEachCallAsOftenAsTheyOverlap) {
  const Report report = trace_keys(windows_of("hopping 150ms by 50ms"));
  const std::map<int64_t, Json> rows = by_start(report);
  uint64_t sum = 0;
  for (const auto& [start, row] : rows) {
    EXPECT_EQ(start % (50 * kMs), 0);
    EXPECT_EQ(number(row, "n"), number(row, "last") - number(row, "first") + 1) << row;
    EXPECT_GE(number(row, "earliest"), start) << row;
    EXPECT_LT(number(row, "latest"), start + 150 * kMs) << row;
    sum += row.at("n").get<uint64_t>();
  }
  EXPECT_EQ(sum, 3 * kPacedKeys);
}

// The victim pauses for a millisecond behind every 64th key.
TEST(TimeWindows, SessionsEndWhereTheVictimPauses) {
  const Report report = trace_keys(windows_of("session 1ms"));
  const std::map<int64_t, Json> rows = by_start(report);
  EXPECT_GT(rows.size(), kPacedKeys / 64 / 2);
  int64_t next = 0;
  int64_t end = 0;
  for (const auto& [start, row] : rows) {
    EXPECT_GT(start - end, kMs) << row;
    EXPECT_EQ(number(row, "first"), next) << row;
    EXPECT_EQ(next % 64, 0) << row;
    EXPECT_EQ(number(row, "n"), number(row, "last") - next + 1) << row;
    EXPECT_EQ(start, number(row, "earliest"));
    end = number(row, "window.end");
    EXPECT_EQ(end, number(row, "latest"));
    next = number(row, "last") + 1;
  }
  EXPECT_EQ(next, kPacedKeys);
}

TEST(TimeWindows, OfTheKernelsSourcesAsWell) {
  Victim victim("keys");
  Tracer tracer = Tracer::attach(
      victim.pid(),
      "from s in syscall(\"clock_nanosleep\") window tumbling 50ms select window.start, n = "
      "count(), earliest = min(s.time), latest = max(s.time)");
  victim.ask("paced " + std::to_string(kPacedKeys));
  const Report report = tracer.finish();
  ASSERT_EQ(report.status, 0) << report.error;
  uint64_t sum = 0;
  for (const auto& [start, row] : by_start(report)) {
    sum += row.at("n").get<uint64_t>();
    EXPECT_GE(number(row, "earliest"), start) << row;
    EXPECT_LT(number(row, "latest"), start + 50 * kMs) << row;
  }
  EXPECT_EQ(sum, kPacedKeys / 64);
}

TEST(TimeWindows, OfJoinedRows) {
  for (const std::string plan : {"emit", "in-place"}) {
    Victim victim("causes");
    Tracer tracer = Tracer::attach(
        victim.pid(),
        "from w in entry(\"causes!work\") join r in First(entry(\"causes!receive\")) on r -> w "
        "window tumbling 10ms select window.start, n = count(), latest = max(w.time)",
        {"--plan", plan});
    const Numbers before = victim.counts();
    victim.run(200);
    const Numbers truth = difference(before, victim.counts());
    const Report report = tracer.finish();
    ASSERT_EQ(report.status, 0) << report.error;
    uint64_t sum = 0;
    for (const auto& [start, row] : by_start(report)) {
      sum += row.at("n").get<uint64_t>();
      EXPECT_GE(number(row, "latest"), start) << row;
      EXPECT_LT(number(row, "latest"), start + 10 * kMs) << row;
    }
    EXPECT_EQ(sum, truth.at("work")) << plan;
  }
}

// --- of a file -----------------------------------------------------------------------------------

class TimeWindowsOfFile : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder() = fs::temp_directory_path() / ("clew-windows-" + std::to_string(getpid()));
    fs::create_directories(folder());
    events() = std::make_unique<Report>(trace_keys(
        "from k in entry(\"keys!take_key\") select key = k.arg0, k.time", {"--spill", file()}));
  }
  static void TearDownTestSuite() {
    fs::remove_all(folder());
    events().reset();
  }
  static fs::path& folder() {
    static fs::path path;
    return path;
  }
  static std::string file() { return (folder() / "events").string(); }
  static std::unique_ptr<Report>& events() {
    static std::unique_ptr<Report> report;
    return report;
  }
  static Report ask(const std::string& window) {
    const Report report =
        run_clew({"run",
                  "from k in entry(\"keys!take_key\") groupby k.arg0 % 3 as third "
                  "window " +
                      window +
                      " select third, window.start, n = count(), last = "
                      "max(k.arg0)",
                  "--from", file(), "--json"});
    EXPECT_EQ(report.status, 0) << report.error;
    EXPECT_EQ(report.lost(), 0U) << report.summary;
    return report;
  }

  // By a window's begin and the key: how many, and the largest.
  using Counts = std::map<std::pair<int64_t, int64_t>, std::pair<int64_t, int64_t>>;
  static Counts counts_of(const Report& report) {
    Counts counts;
    for (const Json& row : report.rows) {
      EXPECT_EQ(row.at("version"), 1);
      counts[{number(row, "window.start"), number(row, "third")}] = {number(row, "n"),
                                                                     number(row, "last")};
    }
    EXPECT_EQ(counts.size(), report.rows.size());
    return counts;
  }
  // What the single events say, as the tracer gave them when they happened.
  static Counts expected(int64_t size_ns, int64_t step_ns) {
    Counts counts;
    for (const Json& event : events()->rows) {
      const int64_t time = number(event, "time");
      const int64_t key = number(event, "key");
      for (int64_t start = time / step_ns * step_ns; start > time - size_ns; start -= step_ns) {
        auto& [count, largest] = counts[{start, key % 3}];
        ++count;
        largest = std::max(largest, key);
      }
    }
    return counts;
  }
};

TEST_F(TimeWindowsOfFile, TumblingOnesAreWhatItsEventsSay) {
  EXPECT_EQ(counts_of(ask("tumbling 20ms")), expected(20 * kMs, 20 * kMs));
}

TEST_F(TimeWindowsOfFile, HoppingOnesAreSumsOfTumblingOnes) {
  const Counts hopping = counts_of(ask("hopping 100ms by 40ms"));
  EXPECT_EQ(hopping, expected(100 * kMs, 40 * kMs));
  Counts sums;
  for (const auto& [place, counted] : counts_of(ask("tumbling 20ms"))) {
    for (int64_t start = place.first / (40 * kMs) * 40 * kMs; start > place.first - 100 * kMs;
         start -= 40 * kMs) {
      auto& [count, largest] = sums[{start, place.second}];
      count += counted.first;
      largest = std::max(largest, counted.second);
    }
  }
  EXPECT_EQ(hopping, sums);
}

TEST_F(TimeWindowsOfFile, SessionsAreWhatItsEventsSay) {
  Counts sessions;
  std::map<int64_t, std::pair<int64_t, int64_t>> open;  // By key: the first and the last time.
  for (const Json& event : events()->rows) {
    const int64_t time = number(event, "time");
    const int64_t third = number(event, "key") % 3;
    const auto known = open.try_emplace(third, time, time).first;
    if (time - known->second.second > kMs) known->second.first = time;
    known->second.second = time;
    auto& [count, largest] = sessions[{known->second.first, third}];
    ++count;
    largest = std::max(largest, number(event, "key"));
  }
  EXPECT_GT(sessions.size(), 100U);
  EXPECT_EQ(counts_of(ask("session 1ms")), sessions);
}

TEST_F(TimeWindowsOfFile, AnyFormatHasItsColumns) {
  const std::string query = "from k in entry(\"keys!take_key\") window tumbling 1h select count()";
  const Child::End csv =
      Child({.arguments = {CLEW_COMMAND, "run", query, "--from", file(), "--csv"}}).wait_for_end();
  EXPECT_THAT(csv.output, HasSubstr("interval,window.start,count,version\r\n1,"));
  const Child::End text =
      Child({.arguments = {CLEW_COMMAND, "run", query, "--from", file()}}).wait_for_end();
  EXPECT_THAT(text.output, HasSubstr("window.start"));
  EXPECT_THAT(text.output, HasSubstr("version"));
  const std::string database = (folder() / "windows.sqlite").string();
  ASSERT_EQ(run_clew({"run", query, "--from", file(), "-o", database}).status, 0);
  const Child::End asked =
      Child({.arguments = {"sqlite3", database,
                           "SELECT sum(count), max(version), min(\"window.start\" = begin_ns) "
                           "FROM rows JOIN intervals ON interval = number"}})
          .wait_for_end();
  EXPECT_EQ(asked.output, std::to_string(kPacedKeys) + "|1|1\n");
}

TEST_F(TimeWindowsOfFile, EveryIsStillAnError) {
  const Report every = run_clew({"run", windows_of("tumbling 1s") + " every 1s", "--from", file()});
  EXPECT_EQ(every.status, 1);
  EXPECT_THAT(every.error, HasSubstr("'every' and 'window'"));
  Victim victim("keys");
  const Report option = run_clew(
      {"run", windows_of("tumbling 1s"), "-p", std::to_string(victim.pid()), "--every", "1s"});
  EXPECT_EQ(option.status, 1);
  EXPECT_THAT(option.error, HasSubstr("--every"));
}

}  // namespace
}  // namespace clew::live

// SPDX-License-Identifier: Apache-2.0
// Tables with more keys than they have room for: exact while the collector can follow, else every
// update that was not stored is counted.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "live/tracer.h"
#include "live/victim.h"

namespace clew::live {
namespace {

constexpr const char* kByKey =
    "from k in entry(\"keys!take_key\") group by k.arg0 select new { name = k.arg0, "
    "calls = count() }";

// count() of each key, by key.
std::map<uint64_t, uint64_t> counts_of(const Report& report) {
  std::map<uint64_t, uint64_t> counts;
  for (const nlohmann::json& row : report.rows)
    counts[row.at("name").get<uint64_t>()] += row.at("calls").get<uint64_t>();
  return counts;
}

uint64_t sum_of(const std::map<uint64_t, uint64_t>& counts) {
  uint64_t sum = 0;
  for (const auto& [key, count] : counts)
    sum += count;
  return sum;
}

void expect_each_once(const Report& report, uint64_t keys) {
  const std::map<uint64_t, uint64_t> counts = counts_of(report);
  EXPECT_EQ(counts.size(), keys);
  EXPECT_EQ(sum_of(counts), keys);
  EXPECT_EQ(report.summary.at("dropped"), nlohmann::json::object()) << report.summary;
}

// A half of the table has room for 8,192.
TEST(Tables, MoreKeysThanATableHoldsAreCountedExactly) {
  constexpr uint64_t kKeys = 40'000;
  Victim victim("keys");
  Tracer tracer = Tracer::attach(victim.pid(), kByKey);
  victim.ask("paced " + std::to_string(kKeys));
  const Report report = tracer.finish();
  EXPECT_EQ(report.status, 0) << report.error;
  expect_each_once(report, kKeys);
}

// Also where a number that is a key stands behind it.
TEST(Tables, AChartDrawsWhatWasCounted) {
  const std::string query =
      "from k in entry(\"keys!take_key\") group by odd = k.arg0 % 2 "
      "select new { calls = count(), odd }";
  Child tracer({.arguments = {CLEW_COMMAND, "run", query, "--chart", "-c", victim_path("keys")}});
  tracer.write_line("paced 40");
  tracer.write_line("exit");
  tracer.close_input();
  const Child::End end = tracer.wait_for_end();
  EXPECT_EQ(end.status, 0) << end.error;
  std::string bar;
  for (int i = 0; i < 40; ++i)
    bar += "\u2588";
  const size_t first = end.output.find(bar);
  ASSERT_NE(first, std::string::npos) << end.output;
  EXPECT_NE(end.output.find(bar, first + bar.size()), std::string::npos) << end.output;
}

// Who comes first, with a single count, does not say how much others may ask.
TEST(Tables, ALittleSessionLeavesRoomForLargeOnes) {
  constexpr uint64_t kKeys = 100;
  Victim victim("keys");
  Tracer little = Tracer::attach(victim.pid(), "entry(\"keys!take_key\").Count()");
  std::vector<Tracer> large;
  for (const char* const what : {"p99(k.arg0)", "quantize(k.arg0)", "distinct(k.arg0)"}) {
    large.push_back(Tracer::attach(victim.pid(),
                                   "from k in entry(\"keys!take_key\") group by k.arg0 select new "
                                   "{ name = k.arg0, calls = count(), more = " +
                                       std::string(what) + " }"));
  }
  victim.ask("paced " + std::to_string(kKeys));
  for (Tracer& tracer : large)
    expect_each_once(tracer.finish(), kKeys);
  EXPECT_EQ(little.finish().rows.at(0).at("count"), kKeys);
}

Report report_in(const std::filesystem::path& path) {
  Report report;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    nlohmann::json row = nlohmann::json::parse(line);
    if (row.contains("summary")) {
      report.summary = row["summary"];
    } else {
      report.rows.push_back(std::move(row));
    }
  }
  return report;
}

constexpr uint64_t kMarkers = 1'000'000;  // Keys from here on only say that others were told.

// Waits until this key has a row. It is taken again from time to time, as it may be dropped, too.
void wait_for_marker(Victim& victim, const std::filesystem::path& answer, uint64_t marker) {
  constexpr int kAnswersPerMarker = 100;
  const std::string name = fmt::format("\"name\":{}", marker);
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  for (int i = 0; std::chrono::steady_clock::now() < deadline; ++i) {
    if (i % kAnswersPerMarker == 0) victim.ask("one " + std::to_string(marker));
    std::ifstream file(answer);
    for (std::string line; std::getline(file, line);) {
      if (line.find(name) != std::string::npos) return;
    }
    victim.counts();
  }
  FAIL() << "no row of " << marker << " in " << answer;
}

// An aggregate that cannot be subtracted takes turns with the interval as well. The answer goes to
// a file: a pipe that nobody reads would hold the collector up. What is counted fits into the half
// that is free when all before it has been told; but keys that meet in eight full places are
// dropped when the collector is late, and counted.
TEST(Tables, IntervalsOfManyKeysAddUpExactly) {
  constexpr uint64_t kKeys = 30'000;
  constexpr uint64_t kBatch = 3'000;
  const std::filesystem::path answer =
      std::filesystem::temp_directory_path() / ("clew-tables-" + std::to_string(getpid()));
  Victim victim("keys");
  Tracer tracer =
      Tracer::attach(victim.pid(),
                     "from k in entry(\"keys!take_key\") group by k.arg0 select new { name = "
                     "k.arg0, calls = count(), largest = max(k.arg0) }",
                     {"--every", "50ms", "-o", answer.string()});
  for (uint64_t keys = kBatch; keys <= kKeys; keys += kBatch) {
    victim.ask("next " + std::to_string(kBatch));
    wait_for_marker(victim, answer, kMarkers + keys);
  }
  const uint64_t truth = victim.counts().at("take_key");
  const Report ended = tracer.finish();
  EXPECT_EQ(ended.status, 0) << ended.error;
  const Report report = report_in(answer);
  std::filesystem::remove(answer);
  const std::map<uint64_t, uint64_t> counts = counts_of(report);
  EXPECT_EQ(sum_of(counts) + report.lost(), truth) << report.summary;
  for (const auto& [key, count] : counts)
    ASSERT_TRUE(count == 1 || key >= kMarkers) << key << " has " << count;
  for (const nlohmann::json& row : report.rows)
    ASSERT_EQ(row.at("largest"), row.at("name"));
}

int64_t time_of_day_ns() {
  return std::chrono::nanoseconds(std::chrono::system_clock::now().time_since_epoch()).count();
}

TEST(Tables, IntervalsSayWhenTheyWereAndLeaveNoTimeOut) {
  Victim victim("keys");
  const int64_t before_ns = time_of_day_ns();
  Tracer tracer = Tracer::attach(victim.pid(), "entry(\"keys!take_key\").Count()",
                                 {"--every", "20ms", "--for", "150ms"});
  const Report report = tracer.wait();
  const int64_t after_ns = time_of_day_ns();
  ASSERT_GE(report.rows.size(), 2U) << report.error;
  EXPECT_GE(report.rows.front().at("interval_begin").get<int64_t>(), before_ns);
  EXPECT_LE(report.rows.back().at("interval_end").get<int64_t>(), after_ns);
  for (size_t i = 0; i < report.rows.size(); ++i) {
    const auto begin_ns = report.rows[i].at("interval_begin").get<int64_t>();
    EXPECT_LT(begin_ns, report.rows[i].at("interval_end").get<int64_t>()) << i;
    if (i == 0) continue;
    EXPECT_EQ(begin_ns, report.rows[i - 1].at("interval_end").get<int64_t>()) << i;
  }
}

TEST(Tables, WhatTheCollectorCannotFollowIsCounted) {
  constexpr uint64_t kKeys = 100'000;
  Victim victim("keys");
  Tracer tracer = Tracer::attach(victim.pid(), kByKey);
  tracer.child().signal(SIGSTOP);  // The slowest collector there is.
  victim.ask("fast " + std::to_string(kKeys));
  tracer.child().signal(SIGCONT);
  victim.ask("paced 100");  // There is room again.
  const uint64_t truth = victim.counts().at("take_key");
  const Report report = tracer.finish();
  EXPECT_EQ(report.status, 0) << report.error;
  const uint64_t dropped = report.summary.at("dropped").value("table_full", uint64_t{0});
  EXPECT_GE(dropped, kKeys - 2 * 8192);
  EXPECT_EQ(sum_of(counts_of(report)) + dropped, truth);
  EXPECT_EQ(truth, kKeys + 100);
}

}  // namespace
}  // namespace clew::live

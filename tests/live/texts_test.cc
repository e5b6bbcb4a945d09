// SPDX-License-Identifier: Apache-2.0
// Long texts of events: from processes, from the kernel, and out of files.
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "live/tracer.h"
#include "live/victim.h"

namespace clew::live {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

constexpr uint64_t kTextRounds = 200;  // A thread's ring has room for all of them.
constexpr uint64_t kLongest = 5000;

// As the victim makes it.
std::string text_of(uint64_t size) {
  std::string text;
  for (uint64_t i = kLongest - size; i < kLongest; ++i)
    text += static_cast<char>('a' + i * i % 26);
  return text;
}

// What a query shows of it that takes so many bytes with their NUL.
std::string shown(uint64_t size, uint64_t capacity) {
  return text_of(size).substr(0, capacity - 1);
}

uint64_t size_of_round(uint64_t round) {
  return round * 37 % kLongest;
}

Report traced(const std::string& query, const std::vector<std::string>& more = {}) {
  Victim victim("texts");
  Tracer tracer = Tracer::attach(victim.pid(), query, more);
  EXPECT_EQ(victim.run(kTextRounds), untraced_result("texts", kTextRounds));
  Report report = tracer.finish();
  EXPECT_EQ(report.status, 0) << report.error;
  EXPECT_EQ(report.lost(), 0U) << report.summary;
  return report;
}

// Two long texts in an event, and what stands between and behind them.
TEST(Texts, OfUpTo4096BytesComeWhole) {
  const Report report = traced(
      "from e in entry(\"texts!take_text\") select str(e.arg0, 4096) as a, e.arg1 as size, "
      "str(e.arg0) as b, e.time, str(e.arg0 + e.arg1, 300) as none, e.tid");
  ASSERT_EQ(report.rows.size(), kTextRounds);
  for (uint64_t i = 0; i < kTextRounds; ++i) {
    const uint64_t size = size_of_round(i);
    EXPECT_EQ(report.rows[i].at("a"), shown(size, 4096)) << size;
    EXPECT_EQ(report.rows[i].at("b"), shown(size, 256)) << size;
    EXPECT_EQ(report.rows[i].at("none"), "");
    EXPECT_EQ(report.rows[i].at("size"), size);
    EXPECT_EQ(report.rows[i].at("tid"), report.rows[0].at("tid"));
  }
  for (uint64_t i = 1; i < kTextRounds; ++i)
    EXPECT_LT(report.rows[i - 1].at("time"), report.rows[i].at("time"));
}

TEST(Texts, AreComparedInTheProbeAndInTheTracer) {
  const Report report = traced(
      "from e in entry(\"texts!take_text\") let text = str(e.arg0, 4096) "
      "where text != \"\" and text like \"%" +
      text_of(20) + "\" select text");
  uint64_t whole = 0;  // The others are cut in front of the letters that the condition asks for.
  for (uint64_t i = 0; i < kTextRounds; ++i)
    whole += size_of_round(i) >= 20 && size_of_round(i) < 4096 ? 1 : 0;
  EXPECT_GE(report.rows.size(), whole);
  for (const nlohmann::json& row : report.rows)
    EXPECT_THAT(row.at("text").get<std::string>(), testing::EndsWith(text_of(20)));
}

TEST(Texts, ComeOutOfFiles) {
  const fs::path folder = fs::temp_directory_path() / ("clew-texts-" + std::to_string(getpid()));
  fs::create_directories(folder);
  const std::string file = (folder / "events").string();
  const std::string source = "from e in entry(\"texts!take_text\") ";
  const Report first =
      traced(source + "select e.arg1, str(e.arg0, 4096) as text", {"--spill", file});
  ASSERT_EQ(first.rows.size(), kTextRounds);
  EXPECT_EQ(first.rows[110].at("text"), shown(size_of_round(110), 4096));
  const Report again =
      run_clew({"run", source + "where e.arg1 > 4000 select e.arg1 as size, str(e.arg0, 4096) as t",
                "--from", file, "--json"});
  ASSERT_EQ(again.status, 0) << again.error;
  ASSERT_GT(again.rows.size(), 10U);
  for (const nlohmann::json& row : again.rows)
    EXPECT_EQ(row.at("t"), shown(row.at("size").get<uint64_t>(), 4096));
  // Less than the file holds: as a key, without a size.
  const Report keys = run_clew(
      {"run", source + "groupby str(e.arg0) as key select key, count()", "--from", file, "--json"});
  ASSERT_EQ(keys.status, 0) << keys.error;
  EXPECT_GE(keys.rows.size(), 26U);  // The letters begin again after 26.
  for (const nlohmann::json& row : keys.rows)
    EXPECT_LE(row.at("key").get<std::string>().size(), 63U);
  fs::remove_all(folder);
}

// What was made of text without a size, which has 256 bytes in events and 64 in groups.
TEST(Texts, ThatWereComparedComeOutOfFiles) {
  const fs::path folder = fs::temp_directory_path() / ("clew-told-" + std::to_string(getpid()));
  fs::create_directories(folder);
  const std::string file = (folder / "events").string();
  const std::string source = "from e in entry(\"texts!take_text\") ";
  const std::string told = "str(e.arg0) == \"" + text_of(37) + "\"";
  ASSERT_EQ(traced(source + "select " + told + " as told, e.arg0", {"--spill", file}).status, 0);
  const Report counts =
      run_clew({"run", source + "groupby " + told + " as told select told, calls = count()",
                "--from", file, "--json"});
  ASSERT_EQ(counts.status, 0) << counts.error;
  ASSERT_EQ(counts.rows.size(), 2U);
  for (const nlohmann::json& row : counts.rows)
    EXPECT_EQ(row.at("calls"), row.at("told") == 1 ? 1U : kTextRounds - 1) << counts.rows;
  // The address is there, the memory is not.
  const Report other =
      run_clew({"run", source + "select str(e.arg0, 32) as t", "--from", file, "--json"});
  EXPECT_EQ(other.status, 1);
  EXPECT_THAT(other.error, HasSubstr("does not hold"));
  fs::remove_all(folder);
}

// How many texts of the victim have the same in front of the first place of `mark`, where it is in
// them at all.
std::map<std::string, uint64_t> counted_in_front_of(const std::string& mark) {
  std::map<std::string, uint64_t> counts;
  for (uint64_t i = 0; i < kTextRounds; ++i) {
    const std::string text = shown(size_of_round(i), 256);
    ++counts[text.substr(0, text.find(mark))];
  }
  return counts;
}

std::map<std::string, uint64_t> counted(const Report& report) {
  EXPECT_EQ(report.status, 0) << report.error;
  std::map<std::string, uint64_t> counts;
  for (const nlohmann::json& row : report.rows)
    counts[row.at("front")] = row.at("calls");
  return counts;
}

// Of events, and of what happened before others; live, and from a file.
TEST(Texts, AreGroupedByWhatIsInFrontOfAMark) {
  const std::string mark = text_of(kLongest).substr(20, 3);
  const auto expected = counted_in_front_of(mark);
  ASSERT_GT(expected.size(), 10U);
  const fs::path folder = fs::temp_directory_path() / ("clew-cut-" + std::to_string(getpid()));
  fs::create_directories(folder);
  const std::string file = (folder / "events").string();
  const std::string vocabulary = (folder / "texts.toml").string();
  std::ofstream(vocabulary) << "[[tracepoint]]\nname = \"texts.take\"\ncause = \"begin\"\n"
                               "function = \"texts!take_text\"\n"
                               "exports = { text = \"str(arg0, 256)\" }\n";
  const std::string front = "before(t.text, \"" + mark + "\")";
  const std::string groups = " groupby " + front + " as front select front, count() as calls";
  const std::string events = "from t in texts.take";
  const std::string joined =
      "from r in return(\"texts!take_text\") join t in First(texts.take) on t -> r";
  for (const std::string& source : {events, joined}) {
    SCOPED_TRACE(source);
    const std::string query = source + groups;
    EXPECT_EQ(counted(traced(query, {"--vocabulary", vocabulary, "--spill", file})), expected);
    EXPECT_EQ(
        counted(run_clew({"run", query, "--from", file, "--vocabulary", vocabulary, "--json"})),
        expected);
    const Report none = traced(source + " where " + front + " == \"\" select " + front,
                               {"--vocabulary", vocabulary});
    EXPECT_EQ(none.rows.size(), expected.at(""));
  }
  fs::remove_all(folder);
}

TEST(Texts, OfTheKernelComeWhole) {
  if (geteuid() != 0) GTEST_SKIP() << "events of the kernel are root's";
  Victim victim("texts");
  Tracer tracer =
      Tracer::attach(victim.pid(),
                     "from e in syscall(\"openat\") select str(e.filename, 4096) as path, "
                     "e.flags, str(e.filename) as short");
  for (const uint64_t size : {40, 255, 256, 3000, 4095, 5000})
    victim.ask("opens " + std::to_string(size));
  const Report report = tracer.finish();
  ASSERT_EQ(report.status, 0) << report.error;
  ASSERT_EQ(report.rows.size(), 6U) << report.error;
  size_t row = 0;
  for (const uint64_t size : {40, 255, 256, 3000, 4095, 5000}) {
    EXPECT_EQ(report.rows[row].at("path"), shown(size, 4096));
    EXPECT_EQ(report.rows[row].at("short"), shown(size, 256));
    ++row;
  }
}

// As many of the usual size as a program of the kernel has room for.
TEST(Texts, OfTheKernelAreManyInARow) {
  if (geteuid() != 0) GTEST_SKIP() << "events of the kernel are root's";
  Victim victim("texts");
  std::string columns;
  for (int i = 0; i < 24; ++i)
    columns += (i == 0 ? "" : ", ") + ("str(e.filename) as t" + std::to_string(i));
  Tracer tracer = Tracer::attach(victim.pid(), "from e in syscall(\"openat\") select " + columns);
  victim.ask("opens 40");
  const Report report = tracer.finish();
  ASSERT_EQ(report.status, 0) << report.error;
  ASSERT_EQ(report.rows.size(), 1U) << report.error;
  EXPECT_EQ(report.rows[0].at("t0"), text_of(40));
  EXPECT_EQ(report.rows[0].at("t23"), text_of(40));
}

TEST(Texts, HaveTheirLimits) {
  Victim victim("texts");
  const auto error_of = [&](const std::string& query) {
    return run_clew({"run", "-p", std::to_string(victim.pid()),
                     "from e in entry(\"texts!take_text\") " + query})
        .error;
  };
  EXPECT_THAT(error_of("select str(e.arg0, 4097)"), HasSubstr("from 2 to 4096 bytes"));
  EXPECT_THAT(error_of("groupby str(e.arg0, 300) select count()"), HasSubstr("at most 256 bytes"));
  EXPECT_THAT(error_of("select str(e.arg0, 4096) as a, str(e.arg1, 4096) as b, "
                       "str(e.arg2, 4096) as c, str(e.arg3, 4096) as d"),
              HasSubstr("16384 are possible"));
}

}  // namespace
}  // namespace clew::live

// SPDX-License-Identifier: Apache-2.0
// One answer in several places, in formats that look at a file or a whole session.
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <regex>
#include <sstream>
#include <stdexcept>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "live/child.h"
#include "live/process_state.h"
#include "live/tracer.h"
#include "live/victim.h"

namespace clew::live {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;
namespace fs = std::filesystem;

class Outputs : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "clew-outputs-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }

  [[nodiscard]] std::string path(const std::string& name) const {
    return (folder_ / name).string();
  }
  [[nodiscard]] std::string text_of(const std::string& name) const {
    std::ifstream file(folder_ / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name, std::ios::binary) << text;
  }

 private:
  fs::path folder_;
};

constexpr const char* kQuery =
    "from e in entry(\"sites!rip_lea\") group by e.function select e.function, calls = count()";

TEST_F(Outputs, OneAnswerIsWrittenToSeveralPlaces) {
  Victim victim("sites");
  write("a.json", std::string(100'000, 'x'));
  Tracer tracer =
      Tracer::attach(victim.pid(), kQuery, {"-o", path("a.json"), "-o", path("b.csv"), "-o", "-"});
  victim.run(10);
  const uint64_t calls = victim.counts().at("rip_lea");
  const Report report = tracer.finish();
  EXPECT_EQ(report.status, 0) << report.error;
  ASSERT_EQ(report.rows.size(), 1U) << "standard output";
  EXPECT_EQ(report.rows[0].at("calls"), calls);
  EXPECT_EQ(text_of("b.csv"), "function,calls\r\nrip_lea," + std::to_string(calls) + "\r\n");
  EXPECT_THAT(text_of("a.json"),
              StartsWith("{\"function\":\"rip_lea\",\"calls\":" + std::to_string(calls) + "}\n"));
}

TEST_F(Outputs, APlaceThatCannotBeWrittenIsAnErrorAndTheOthersHaveTheAnswer) {
  Victim victim("sites");
  const Report report = run_clew({"run", kQuery, "-p", std::to_string(victim.pid()), "--for",
                                  "10ms", "-o", "/dev/full", "-o", path("b.csv")});
  EXPECT_EQ(report.status, 1);
  EXPECT_THAT(report.error, HasSubstr("cannot write the answer to /dev/full"));
  EXPECT_THAT(text_of("b.csv"), StartsWith("function,calls\r\n"));
}

TEST_F(Outputs, AFileStaysAsItWasWhenTheQueryIsWrong) {
  Victim victim("sites");
  write("a.json", "of yesterday");
  const Report report = run_clew({"run", entries_of("sites!rip_laa"), "-p",
                                  std::to_string(victim.pid()), "-o", path("a.json")});
  EXPECT_EQ(report.status, 1);
  EXPECT_EQ(text_of("a.json"), "of yesterday");
}

TEST_F(Outputs, AFormatOfStacksIsRefusedBeforeAnyProcessIsTouched) {
  Victim victim("sites");
  const ProcessState before = ProcessState::of(victim.pid());
  write("a.folded", "of yesterday");
  const Report report =
      run_clew({"run", kQuery, "-p", std::to_string(victim.pid()), "-o", path("a.folded")});
  EXPECT_EQ(report.status, 1);
  EXPECT_THAT(report.error, HasSubstr("the answer has function (string), calls (integer)"));
  EXPECT_THAT(report.error, testing::Not(HasSubstr("clew: tracing"))) << "never armed";
  EXPECT_EQ(text_of("a.folded"), "of yesterday");
  expect_text_equals_file(victim.pid());
  expect_no_residue(before, victim.pid());
}

// The same answer in three formats: each has all calls, under the function that made them.
TEST_F(Outputs, StacksAreFoldedAndDrawn) {
  const Report report =
      run_clew({"run", "-c", victim_path("stacks_pie"),
                "from f in entry(\"stacks_pie!leaf\") group by f.procName, f.ustack "
                "select f.procName, f.ustack, calls = count()",
                "-o", "-", "-o", path("a.folded"), "-o", path("a.svg"), "--format", "json"});
  ASSERT_EQ(report.status, 0) << report.error;
  uint64_t calls = 0;
  for (const nlohmann::json& row : report.rows)
    calls += row.at("calls").get<uint64_t>();
  ASSERT_GT(calls, 0U);
  uint64_t folded = 0;
  std::istringstream lines(text_of("a.folded"));
  for (std::string line; std::getline(lines, line);) {
    const size_t blank = line.rfind(' ');
    EXPECT_THAT(line, StartsWith("stacks_pie;"));
    EXPECT_THAT(line.substr(0, blank), testing::EndsWith(";leaf"));
    folded += std::stoull(line.substr(blank + 1));
  }
  EXPECT_EQ(folded, calls);
  EXPECT_THAT(text_of("a.svg"),
              AllOf(HasSubstr("<title>all\n" + std::to_string(calls) + " calls (100.00 %)"),
                    HasSubstr("<title>stacks_pie\n"), HasSubstr("<title>leaf\n")));
}

// Protobuf, which is not ours, reads what receivers get.
TEST_F(Outputs, RequestsOfOtlpSayWhatTheAnswerSays) {
  const char* const query =
      "from e in Return(\"stacks_pie!*\") group by e.function "
      "select name = e.function, calls = count(), took = quantize(e.elapsed) every 50ms";
  const Report report = run_clew(
      {"run", "-c", victim_path("stacks_pie"), query, "-o", path("a.otlp"), "-o", path("a.json")});
  ASSERT_EQ(report.status, 0) << report.error;
  Child check({.arguments = {"/usr/bin/python3", CLEW_EXAMPLES "/../tests/otlp/check_requests",
                             path("a.otlp"), path("a.json")}});
  const Child::End end = check.wait_for_end();
  EXPECT_EQ(end.status, 0) << end.error;
}

// The lines of a stream as they come.
class Stream {
 public:
  explicit Stream(Child& child) : child_(child) {}
  // The value of the next line of this kind.
  nlohmann::json next(const std::string& kind) {
    for (;;) {
      const std::optional<std::string> line = child_.read_line();
      if (!line) throw std::runtime_error("the stream ended without " + kind);
      nlohmann::json json = nlohmann::json::parse(*line);
      EXPECT_EQ(json.at("seq"), seq_++);
      if (json.contains(kind)) return json.at(kind);
    }
  }

 private:
  Child& child_;
  uint64_t seq_ = 0;
};

TEST_F(Outputs, AStreamIsReadWhileTheSessionRuns) {
  Victim victim("sites");
  Child clew({.arguments = {CLEW_COMMAND, "run", kQuery, "-p", std::to_string(victim.pid()),
                            "--stream", "--every", "50ms"}});
  Stream stream(clew);
  EXPECT_EQ(stream.next("session").at("targets")[0].at("pid"), std::to_string(victim.pid()));
  EXPECT_EQ(stream.next("columns")[1].at("role"), "aggregate");
  victim.run(10);
  const uint64_t calls = victim.counts().at("rip_lea");
  uint64_t seen = 0;
  while (seen < calls)
    seen += stream.next("rows")[0][1].get<uint64_t>();
  EXPECT_EQ(seen, calls);
  EXPECT_FALSE(stream.next("interval").at("partial"));
  clew.signal(SIGINT);
  const nlohmann::json end = stream.next("end");
  EXPECT_EQ(end.at("error"), nullptr);
  EXPECT_EQ(end.at("losses").at("sites"), 1);
  EXPECT_EQ(clew.wait_for_end().status, 0);
}

TEST_F(Outputs, AStreamSaysWhyThereIsNoAnswer) {
  Victim victim("sites");
  Child clew({.arguments = {CLEW_COMMAND, "run", entries_of("sites!rip_laa"), "-p",
                            std::to_string(victim.pid()), "--stream"}});
  Stream stream(clew);
  EXPECT_THAT(stream.next("end").at("error").at("message").get<std::string>(),
              HasSubstr("rip_lea"));
  EXPECT_EQ(clew.wait_for_end().status, 1);
}

TEST_F(Outputs, AnOldAnswerStaysWhereNoNewOneBegins) {
  write("old.ndjson", "old\n");
  write("old.json", "old\n");
  Victim victim("sites");
  const Report refused =
      run_clew({"run", "-p", std::to_string(victim.pid()), "-o", path("old.ndjson"), "-o",
                path("old.json"), "from e in entry(\"sites!nosuch\") select count()"});
  EXPECT_NE(refused.status, 0);
  EXPECT_EQ(text_of("old.ndjson"), "old\n");
  EXPECT_EQ(text_of("old.json"), "old\n");
}

class OutputsOfD : public Outputs {
 protected:
  void SetUp() override {
    Outputs::SetUp();
    if (geteuid() != 0) GTEST_SKIP() << "NOT TESTED: D needs root";
  }
};

TEST_F(OutputsOfD, AScriptOfDIsLinesOfJson) {
  const std::string script =
      "pid$target::leaf:entry { printf(\"%s calls\", probefunc); @leaves[probefunc] = count(); "
      "@again = quantize(8); ustack(2); }  END { printa(@leaves); }";
  Child command({.arguments = {CLEW_COMMAND, "dtrace", "--json", "-n", script, "-c",
                               victim_path("stacks_pie")}});
  const Child::End end = command.wait_for_end();
  ASSERT_EQ(end.status, 0) << end.error;
  std::vector<nlohmann::json> lines;
  std::istringstream text(end.output);
  for (std::string line; std::getline(text, line);)
    lines.push_back(nlohmann::json::parse(line));
  ASSERT_GT(lines.size(), 4U);
  const uint64_t firings = lines.size() - 3;
  for (size_t i = 0; i < firings; ++i) {
    EXPECT_EQ(lines[i].at("probe").at("function"), "leaf");
    EXPECT_EQ(lines[i].at("values").at(0), "leaf");
    EXPECT_EQ(lines[i].at("values").at(1).at(0).at("symbol"), "leaf");
    EXPECT_THAT(lines[i].at("text").get<std::string>(), StartsWith("leaf calls"));
  }
  EXPECT_EQ(lines[firings], nlohmann::json({{"aggregation", "leaves"},
                                            {"key", nlohmann::json::array({"leaf"})},
                                            {"value", firings}}));
  EXPECT_EQ(lines[firings + 1].at("value").at(0).at("count"), firings);
  EXPECT_EQ(lines.back().at("summary").at("exit"), 0);
  EXPECT_TRUE(lines.back().at("summary").at("drops").empty());
}

// What the script prints by itself is no part of the table.
Child::End dtrace_in(const std::string& format, const std::string& script,
                     const std::string& file = "") {
  std::vector<std::string> arguments = {
      CLEW_COMMAND, "dtrace", "--format", format, "-n", script, "-c", victim_path("stacks_pie")};
  if (!file.empty()) arguments.insert(arguments.end(), {"-o", file});
  return Child({.arguments = std::move(arguments)}).wait_for_end();
}

// Of "N calls" among what a script said.
uint64_t calls_in(const std::string& text) {
  std::smatch found;
  const bool is_there = std::regex_search(text, found, std::regex("([0-9]+) calls"));
  EXPECT_TRUE(is_there) << text;
  return is_there ? std::stoull(found[1].str()) : 0;
}

TEST_F(OutputsOfD, AggregationsOfDAreTables) {
  const std::string script =
      "pid$target::leaf:entry { @[probefunc, 1] = count(); @sizes = quantize(8); n++; } "
      "END { printf(\"%d calls\", n); }";
  const Child::End csv = dtrace_in("csv", script);
  ASSERT_EQ(csv.status, 0) << csv.error;
  const uint64_t calls = calls_in(csv.error);
  EXPECT_GT(calls, 0U);
  EXPECT_EQ(csv.output,
            fmt::format("probefunc,1,count\r\nleaf,1,{0}\r\n\r\n@sizes\r\n8:{0}\r\n", calls));
  const Child::End chart = dtrace_in("chart", script);
  EXPECT_THAT(chart.output, testing::StartsWith(fmt::format("{} calls", calls)));
  EXPECT_THAT(chart.output, HasSubstr("\u2588"));
}

TEST_F(OutputsOfD, StacksOfDAreFlameGraphs) {
  const std::string script =
      "pid$target::leaf:entry { @[ustack(3)] = count(); n++; } END { printf(\"%d calls\", n); }";
  const Child::End folded = dtrace_in("folded", script);
  ASSERT_EQ(folded.status, 0) << folded.error;
  uint64_t calls = 0;
  std::istringstream lines(folded.output);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_THAT(line, HasSubstr(";leaf "));
    calls += std::stoull(line.substr(line.rfind(' ')));
  }
  EXPECT_EQ(calls, calls_in(folded.error));
  write("leaf.svg", "old");
  EXPECT_EQ(dtrace_in("svg", script, path("leaf.svg")).status, 0);
  EXPECT_THAT(text_of("leaf.svg"), testing::StartsWith("<?xml"));
}

// A line of a clause of the victim, and what it counts, whose sum says how many lines there must
// be.
constexpr const char* kRecordsAndCounts =
    "pid$target::leaf:entry { printf(\"%s %d\", probefunc, 7); @calls[execname] = count(); n++; } "
    "END { printf(\"%d calls\", n); }";

TEST_F(OutputsOfD, AreOneStreamOfSeveralTables) {
  const Child::End end = dtrace_in("stream", kRecordsAndCounts);
  ASSERT_EQ(end.status, 0) << end.error;
  EXPECT_EQ(end.error, "");
  std::map<std::string, std::vector<nlohmann::json>> rows;
  nlohmann::json last;
  uint64_t lines_count = 0;
  std::istringstream lines(end.output);
  for (std::string line; std::getline(lines, line); ++lines_count) {
    last = nlohmann::json::parse(line);
    EXPECT_EQ(last.at("seq"), lines_count);
    if (lines_count == 0) {
      EXPECT_THAT(last.at("session").at("query").get<std::string>(), HasSubstr("execname"));
    }
    if (!last.contains("rows")) continue;
    auto& of_table = rows[last.at("table")];
    of_table.insert(of_table.end(), last.at("rows").begin(), last.at("rows").end());
  }
  EXPECT_TRUE(last.at("end").at("error").is_null());
  ASSERT_EQ(rows["clause_1"].size(), 1U);
  const uint64_t calls = calls_in(rows["clause_1"][0].back());
  EXPECT_GT(calls, 0U);
  EXPECT_EQ(rows["clause_0"].size(), calls);
  const nlohmann::json& row = rows["clause_0"].at(0);
  EXPECT_THAT(row.at(2).get<std::string>(), testing::EndsWith(":leaf:entry"));
  EXPECT_EQ(row.at(3), "leaf");
  EXPECT_EQ(row.at(4), 7);
  EXPECT_EQ(row.at(5), "leaf 7");
  ASSERT_EQ(rows["calls"].size(), 1U);
  EXPECT_EQ(rows["calls"][0], nlohmann::json({"stacks_pie", calls}));
}

// Nothing that comes from elsewhere stands between the lines, whatever the script does.
TEST_F(OutputsOfD, AStreamHasNothingButItsLines) {
  const Child::End end =
      Child({.arguments = {CLEW_COMMAND, "dtrace", "-v", "-w", "-x", "format=stream", "-n",
                           "BEGIN { trace(1); system(\"echo from elsewhere\"); "
                           "setopt(\"json\"); freopen(\"/dev/null\"); trace(2); } "
                           "BEGIN { @a = count(); printa(@a); trace(walltimestamp); exit(3); }"}})
          .wait_for_end();
  EXPECT_EQ(end.status, 3) << end.error;
  uint64_t lines_count = 0;
  std::string tables;
  nlohmann::json last;
  std::istringstream lines(end.output);
  for (std::string line; std::getline(lines, line); ++lines_count) {
    last = nlohmann::json::parse(line, nullptr, false);
    ASSERT_FALSE(last.is_discarded()) << line;
    EXPECT_EQ(last.at("seq"), lines_count);
    if (!last.contains("rows")) continue;
    tables += last.at("table").get<std::string>() + " ";
    const nlohmann::json& row = last.at("rows").at(0);
    if (last.at("table") == "clause_1") {
      EXPECT_EQ(row.at(0), row.at(3)) << "its walltimestamp";
    }
  }
  EXPECT_EQ(tables, "clause_0 a clause_1 ");
  EXPECT_EQ(last.at("end").at("losses").at("sites"), 1);
  EXPECT_THAT(end.error, AllOf(HasSubstr("from elsewhere"), HasSubstr("freopen("),
                               HasSubstr("couldn't set option \"json\""), HasSubstr("Stability")));
}

TEST_F(OutputsOfD, AreADatabaseOfSeveralTables) {
  ASSERT_EQ(dtrace_in("sqlite", kRecordsAndCounts, path("d.sqlite")).status, 0);
  const Child::End asked =
      Child({.arguments = {"sqlite3", path("d.sqlite"),
                           "select (select count(*) from clause_0) = calls, execname, "
                           "(select max(text) from clause_0), (select distinct probefunc from "
                           "clause_0), (select value from meta where name = 'state') from calls"}})
          .wait_for_end();
  EXPECT_EQ(asked.output, "1|stacks_pie|leaf 7|leaf|answered\n") << asked.error;
  const Child::End without = dtrace_in("sqlite", "BEGIN { exit(0); }");
  EXPECT_EQ(without.status, 1);
  EXPECT_THAT(without.error, HasSubstr("sqlite needs a file: -o FILE.sqlite"));
  const Child::End reserved =
      dtrace_in("sqlite", "BEGIN { @sqlite_calls = count(); exit(0); }", path("r.sqlite"));
  EXPECT_EQ(reserved.status, 0) << reserved.error;
  write("mine.sqlite", "mine");
  EXPECT_EQ(dtrace_in("sqlite", "BEGIN { exit(0); }", path("mine.sqlite")).status, 1);
  EXPECT_EQ(text_of("mine.sqlite"), "mine");
}

// What is not in the picture, and what was printed of it before the end, is text beside it.
TEST_F(OutputsOfD, AFlameGraphOfDTakesNothingAway) {
  const Child::End end =
      dtrace_in("folded",
                "BEGIN { @s[stack(1)] = count(); @n[\"other\"] = count(); printa(@s); } "
                "END { trunc(@s); setopt(\"format\", \"csv\"); }");
  EXPECT_EQ(end.status, 0);
  EXPECT_EQ(end.output, "");
  EXPECT_THAT(end.error, HasSubstr("other"));
  EXPECT_THAT(end.error, testing::ContainsRegex("`[^\n]*\n *1\n"));
  EXPECT_THAT(end.error, HasSubstr("couldn't set option \"format\""));
}

TEST_F(OutputsOfD, WhatDCannotDrawIsSaidBeforeItBegins) {
  const auto error_of = [](const std::string& format, const std::string& script) {
    const Child::End end = dtrace_in(format, script);
    EXPECT_EQ(end.status, 1);
    EXPECT_EQ(end.output, "");
    return end.error;
  };
  EXPECT_THAT(error_of("svg", "BEGIN { @a[ustack()] = count(); @b[stack()] = count(); }"),
              HasSubstr("the script has @a, @b"));
  EXPECT_THAT(error_of("folded", "BEGIN { @a[execname] = count(); }"),
              HasSubstr("the script has none"));
  EXPECT_THAT(error_of("svg", "BEGIN { @a[ustack()] = max(1); @b[stack(), 1] = quantize(2); }"),
              HasSubstr("the script has none, as the values of @a (max), @b (quantize) do not add "
                        "up"));
  EXPECT_THAT(error_of("table", "BEGIN { exit(0); }"),
              HasSubstr("'table' is no format: there are text, json, csv, chart"));
}

Child::End dtrace(const std::vector<std::string>& arguments) {
  std::vector<std::string> all = {CLEW_COMMAND, "dtrace"};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return Child({.arguments = std::move(all)}).wait_for_end();
}

// What a script prints by itself is what it is, however its file is called.
TEST_F(OutputsOfD, AFileMayAskForAPicture) {
  const std::string draws = "BEGIN { @[stack(1)] = count(); exit(0); }";
  EXPECT_EQ(dtrace({"-n", draws, "-o", path("a.svg")}).status, 0);
  EXPECT_THAT(text_of("a.svg"), StartsWith("<?xml"));
  EXPECT_EQ(dtrace({"-n", draws, "-o", path("a.folded")}).status, 0);
  EXPECT_THAT(text_of("a.folded"), testing::EndsWith(" 1\n"));
  EXPECT_EQ(dtrace({"-n", draws, "--format", "text", "-o", path("b.svg")}).status, 0);
  EXPECT_THAT(text_of("b.svg"), HasSubstr("`"));
  EXPECT_EQ(dtrace({"-qn", "BEGIN { printf(\"{}\"); exit(0); }", "-o", path("a.json")}).status, 0);
  EXPECT_THAT(text_of("a.json"), testing::StartsWith("{}\n"));
  const Child::End end = dtrace({"-n", "BEGIN { exit(0); }", "-o", path("c.svg")});
  EXPECT_EQ(end.status, 1);
  EXPECT_THAT(end.error, HasSubstr("the script has none; --format text writes text to"));
}

TEST_F(OutputsOfD, TwoFilesAreRefused) {
  const Child::End end =
      dtrace({"-n", "BEGIN { exit(0); }", "-o", path("a.txt"), "-o", path("b.txt")});
  EXPECT_EQ(end.status, 2);
  EXPECT_THAT(end.error, HasSubstr("-o names the one file for all output, not two"));
  EXPECT_FALSE(fs::exists(path("a.txt")) || fs::exists(path("b.txt")));
}

TEST_F(OutputsOfD, TheCommandLineSaysTheFormatBeforeTheScriptDoes) {
  const std::string script = "#pragma D option format=svg\nBEGIN { @n[1] = count(); exit(0); }";
  const Child::End csv = dtrace({"--format", "csv", "-n", script});
  EXPECT_EQ(csv.status, 0) << csv.error;
  EXPECT_EQ(csv.output, "1,@n\r\n1,1\r\n");
  EXPECT_EQ(dtrace({"-n", script}).status, 1);
}

TEST_F(OutputsOfD, TheKernelStandsOnTheProcessThatCalledIt) {
  const Child::End end =
      dtrace({"--format", "folded", "-n",
              "syscall::write:entry /pid == $target/ { @[stack(), ustack()] = count(); }", "-c",
              "/bin/echo word"});
  ASSERT_EQ(end.status, 0) << end.error;
  std::istringstream lines(end.output);
  size_t found = 0;
  for (std::string line; std::getline(lines, line);) {
    const size_t process = line.find("write;");
    const size_t kernel = line.find("do_syscall_64");
    if (process == std::string::npos || kernel == std::string::npos) continue;
    EXPECT_LT(process, kernel) << line;
    ++found;
  }
  EXPECT_GT(found, 0U) << end.output;
}

}  // namespace
}  // namespace clew::live

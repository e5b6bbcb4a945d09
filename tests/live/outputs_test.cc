// SPDX-License-Identifier: Apache-2.0
// One answer in several places, in formats that look at a file or a whole session.
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <stdexcept>

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
  if (geteuid() != 0) GTEST_SKIP() << "NOT TESTED: stacks of processes need root";
  const Report report = run_clew(
      {"run", "-c", victim_path("stacks_pie"),
       "from f in entry(\"stacks_pie!leaf\") group by f.comm, f.ustack select f.comm, f.ustack, "
       "calls = count()",
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

TEST_F(Outputs, AScriptOfDIsLinesOfJson) {
  if (geteuid() != 0) GTEST_SKIP() << "NOT TESTED: D needs root";
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

}  // namespace
}  // namespace clew::live

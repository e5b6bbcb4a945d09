// SPDX-License-Identifier: Apache-2.0
// k-means over what real programs do: phases are clusters, and a file of events gives the rows that
// the program gave.
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "live/child.h"
#include "live/server.h"
#include "live/tracer.h"
#include "live/victim.h"

namespace clew::live {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;

// Keys 0, 1, 2, … fall into 40 slots, the first half of which has few kinds of keys.
constexpr const char* kSlots =
    "var calls = from k in entry(\"keys!take_key\") "
    "groupby k.arg0 % 40 as slot, (k.arg0 % 40 < 20 ? k.arg0 % 3 : k.arg0 % 7 + 10) as kind "
    "select slot, kind, n = count();\n"
    "from c in kmeans(2, calls, by slot, of kind, value n)";

TEST(KMeans, OfAFileIsThatOfTheProgram) {
  const TemporaryFolder folder;
  Victim victim("keys");
  Tracer live = Tracer::attach(victim.pid(), kSlots);
  Tracer spilled = Tracer::attach(victim.pid(), "from k in entry(\"keys!take_key\") select k.arg0",
                                  {"--spill", folder.file("events")});
  victim.ask("paced 4000");
  const Report rows = live.finish();
  ASSERT_EQ(spilled.finish().status, 0);
  ASSERT_EQ(rows.status, 0) << rows.error;
  EXPECT_EQ(rows.lost(), 0U);
  ASSERT_EQ(rows.rows.size(), 40U);
  std::set<int64_t> first;
  std::set<int64_t> second;
  for (const Json& row : rows.rows) {
    (row.at("slot").get<int64_t>() < 20 ? first : second).insert(row.at("cluster").get<int64_t>());
  }
  EXPECT_EQ(first.size(), 1U);
  EXPECT_EQ(second.size(), 1U);
  EXPECT_NE(first, second);
  const Report again = run_clew({"run", kSlots, "--from", folder.file("events"), "--json"});
  EXPECT_EQ(again.rows, rows.rows) << again.error;
}

// Reads for a while, and then writes; says when, in ns since 1970.
constexpr const char* kPhases = R"(
use Time::HiRes; $| = 1; open my $zero, "<", "/dev/zero"; open my $null, ">", "/dev/null";
sub phase { my $do = shift; my $begin = Time::HiRes::time();
  while (Time::HiRes::time() < $begin + 0.6) { $do->(); select undef, undef, undef, 0.001 }
  printf "%d %d\n", $begin * 1e9, Time::HiRes::time() * 1e9 }
<STDIN>; phase(sub { sysread $zero, my $some, 100 }); phase(sub { syswrite $null, "some" })
)";

class KMeansOfPhases : public testing::Test {
 protected:
  void SetUp() override {
    Child perl({.arguments = {"perl", "-e", kPhases}});
    Tracer tracer = Tracer::attach(
        perl.pid(),
        "from c in entry(\"libc.so.6!read\") as \"read\", entry(\"libc.so.6!write\") as \"write\" "
        "select c.probe, c.time",
        {"--spill", folder_.file("events")});
    perl.write_line("");
    for (auto* phase : {&reads_, &writes_}) {
      const std::string line = perl.read_line().value_or("0 0");
      phase->first = std::stoll(line);
      phase->second = std::stoll(line.substr(line.find(' ')));
    }
    const Report report = tracer.finish();
    ASSERT_EQ(report.status, 0) << report.error;
  }
  [[nodiscard]] Child::End ask(std::vector<std::string> more) const {
    more.insert(more.begin(),
                {"run",
                 "var calls = from c in entry(\"libc.so.6!read\") as \"read\", "
                 "entry(\"libc.so.6!write\") as \"write\" groupby c.probe window tumbling 50ms "
                 "select program = \"perl\", c.probe, window.start, n = count();\n"
                 "from c in kmeans(2, calls, by new { program, window }, of probe, value n)",
                 "--from", folder_.file("events")});
    return clew(std::move(more));
  }

  TemporaryFolder folder_;
  std::pair<int64_t, int64_t> reads_;
  std::pair<int64_t, int64_t> writes_;
};

TEST_F(KMeansOfPhases, AreClusters) {
  const Child::End end = ask({"--json"});
  ASSERT_EQ(end.status, 0) << end.error;
  std::map<int64_t, std::string> centres;  // By the window's begin.
  std::istringstream lines(end.output);
  for (std::string line; std::getline(lines, line);) {
    const Json row = Json::parse(line);
    if (row.contains("window"))
      centres[row.at("window").get<int64_t>()] = row.at("centre").get<std::string>();
  }
  size_t compared = 0;
  for (const auto& [start, centre] : centres) {
    const int64_t stop = start + 50'000'000;
    if (start >= reads_.first && stop <= reads_.second) {
      EXPECT_THAT(centre, testing::StartsWith("read "));
      ++compared;
    } else if (start >= writes_.first && stop <= writes_.second) {
      EXPECT_THAT(centre, testing::StartsWith("write "));
      ++compared;
    }
  }
  EXPECT_GE(compared, 16U);
}

TEST_F(KMeansOfPhases, AreColorsOfCharts) {
  const Child::End chart = ask({"--chart"});
  ASSERT_EQ(chart.status, 0) << chart.error;
  EXPECT_THAT(chart.output,
              testing::ContainsRegex("perl  (1111111111*2222222222*|2222222222*1111111111*)"));
  const std::string picture = folder_.file("phases.svg");
  ASSERT_EQ(ask({"-o", picture}).status, 0);
  std::ifstream file(picture);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  EXPECT_THAT(text, HasSubstr("<svg"));
  EXPECT_THAT(text, HasSubstr("1: "));
  EXPECT_EQ(
      system(("python3 -c 'import sys, xml.dom.minidom as d; d.parse(sys.argv[1])' " + picture)
                 .c_str()),
      0);
}

}  // namespace
}  // namespace clew::live

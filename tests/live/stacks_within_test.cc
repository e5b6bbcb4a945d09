// SPDX-License-Identifier: Apache-2.0
// Stacks from places within functions and at static probes, and of calls that exceptions leave:
// walked in the process they are those that uprobes see at the same places, and the chains of calls
// that the victims' sources say.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "live/stacks.h"
#include "live/tracer.h"
#include "live/victim.h"

namespace clew::live {
namespace {

using testing::HasSubstr;

// What begins at the same place, in the order of the hits.
using Places = std::map<std::string, std::vector<Frames>>;

Places by_place(const std::vector<Stack>& stacks) {
  Places places;
  for (const Stack& stack : stacks)
    places[stack.frames.at(0)].push_back(stack.frames);
  return places;
}

void skip_without_uprobes() {
  if (geteuid() != 0) GTEST_SKIP() << "NOT TESTED: uprobes need root";
}

// At all instructions of a function.
Places in_d(const std::string& function, const std::vector<std::string>& more) {
  std::vector<std::string> arguments = {"-c", victim_path("stacks_pie")};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return by_place(stacks_of("pid$target:stacks_pie:" + function +
                                ": /probename != \"entry\" && probename != \"return\"/ "
                                "{ ustack(); printf(\"\\n\"); }",
                            arguments));
}

std::string offset_of(const std::string& frame) {
  const size_t plus = frame.find('+');
  return plus == std::string::npos ? "0" : frame.substr(plus + 1);
}

// By jumps alone. Places without room for one are left out, and told.
Report in_a_query(const std::string& function, const Places& places) {
  std::string sources;
  for (const auto& [frame, stacks] : places) {
    sources += fmt::format("{}offset(\"stacks_pie!{}\", {})", sources.empty() ? "" : ", ", function,
                           offset_of(frame));
  }
  return run_clew({"run", "--json", "--no-uprobes", "-c", victim_path("stacks_pie"),
                   "from e in " + sources + " select new { stack = e.ustack(100) }"});
}

// Without inlined calls, of which D and returns know nothing.
Frames calls_of(const nlohmann::json& stack) {
  Frames frames;
  for (const nlohmann::json& frame : stack) {
    if (!frame.value("inlined", false)) frames.push_back(frame_of(frame));
  }
  return frames;
}

Places places_of(const Report& report) {
  Places places;
  for (const nlohmann::json& row : report.rows) {
    const Frames frames = calls_of(row.at("stack"));
    places[frames.at(0)].push_back(frames);
  }
  return places;
}

struct Chain {
  Frames functions;  // Of the victim, the innermost first.
};

class StacksWithin : public testing::TestWithParam<Chain> {
 protected:
  void SetUp() override { skip_without_uprobes(); }
};

TEST_P(StacksWithin, AFunctionAreThoseThatUprobesSee) {
  const Frames& chain = GetParam().functions;
  const Places truth = in_d(chain[0], {"-x", "useruprobes"});
  ASSERT_GT(truth.size(), 5U);
  for (const auto& [place, stacks] : truth) {
    for (const Frames& frames : stacks) {
      const Stack stack{.frames = frames};
      EXPECT_EQ(stack.functions("stacks_pie"), chain) << testing::PrintToString(frames);
      EXPECT_TRUE(stack.is_whole()) << testing::PrintToString(frames);
    }
  }
  EXPECT_EQ(in_d(chain[0], {}), truth);
  const Report report = in_a_query(chain[0], truth);
  EXPECT_EQ(report.lost(), 0U) << report.summary;
  const size_t refused = report.summary.at("refused").size();
  const Places places = places_of(report);
  EXPECT_EQ(places.size() + refused, truth.size()) << report.summary;
  EXPECT_GT(places.size(), truth.size() / 2);
  for (const auto& [place, stacks] : places)
    EXPECT_EQ(stacks, truth.at(place)) << place;
}

INSTANTIATE_TEST_SUITE_P(StacksWithin, StacksWithin,
                         testing::Values(Chain{{"odd_bases", "main", "_start"}},
                                         Chain{{"aligned_frame", "main", "_start"}},
                                         Chain{{"variable_frame", "main", "_start"}},
                                         Chain{{"large_frame", "main", "_start"}},
                                         Chain{{"compare", "sort", "main", "_start"}},
                                         Chain{{"in_thread"}}),
                         [](const auto& one) { return one.param.functions[0]; });

TEST(StacksWithinProcesses, OfALineNeedNoRoot) {
  const Report report = run_clew({"run", "--json", "--no-uprobes", "-c", victim_path("stacks_pie"),
                                  "from f in line(\"stacks.c:24\") group by f.ustack(3) "
                                  "select new { stack = f.ustack(3), count = count() }"},
                                 true);
  ASSERT_FALSE(report.rows.empty()) << report.error;
  std::set<std::string> callers;
  for (const nlohmann::json& row : report.rows) {
    EXPECT_THAT(frame_of(row.at("stack").at(0)), HasSubstr("stacks_pie`leaf"));
    const Frames frames = calls_of(row.at("stack"));
    if (frames.size() > 1) callers.insert(frames[1].substr(0, frames[1].find('+')));
  }
  for (const char* name : {"recurse", "compare", "on_signal", "in_thread", "variable_frame",
                           "aligned_frame", "large_frame"}) {
    EXPECT_THAT(callers, testing::Contains(std::string("stacks_pie`") + name));
  }
}

TEST(StacksWithinProcesses, OfStaticProbesAreThoseThatUprobesSee) {
  constexpr uint64_t kRounds = 20;
  Victim victim("usdt");
  Tracer tracer = Tracer::attach(victim.pid(),
                                 "from t in usdt(\"clew_victim:twice\") group by t.ustack "
                                 "select new { stack = t.ustack, count = count() }",
                                 {"--no-uprobes"});
  victim.run(kRounds);
  const Report report = tracer.finish();
  ASSERT_EQ(report.rows.size(), 2U) << report.error;
  std::map<Frames, uint64_t> in_process;
  for (const nlohmann::json& row : report.rows)
    in_process[calls_of(row.at("stack"))] = row.at("count");
  EXPECT_EQ(in_process.begin()->second, kRounds);
  if (geteuid() != 0) GTEST_SKIP() << "NOT TESTED: uprobes need root";
  for (const char* option : {"useruprobes", "quiet"}) {  // In the kernel, and in the process.
    Child script({.arguments = {CLEW_COMMAND, "dtrace", "-q", "-x", option, "-p",
                                std::to_string(victim.pid()), "-n",
                                "BEGIN { printf(\"ready\\n\"); } clew_victim$target:::twice "
                                "{ @[ustack()] = count(); }"}});
    ASSERT_EQ(script.read_line(), "ready");
    victim.run(kRounds);
    script.signal(SIGINT);
    std::map<Frames, uint64_t> in_d;
    for (const Stack& stack : parse_stacks(script.wait_for_end().output))
      in_d[stack.frames] = stack.count;
    EXPECT_EQ(in_process, in_d) << option;
  }
}

// Functions as sources name them.
Frames names_of(const nlohmann::json& stack) {
  Frames names;
  for (const std::string& frame : calls_of(stack))
    names.push_back(frame.substr(0, std::min(frame.find(".cold"), frame.find('+'))));
  return names;
}

// The calls that are left are those with odd numbers; at its begin each has its function in front.
TEST(StacksOfExceptions, AreThoseOfTheCallsThatAreLeft) {
  const std::string sources = "\"exceptions!throw_odd\"";
  Victim victim("exceptions");
  const auto chains = [&victim](const std::string& query) {
    Tracer tracer = Tracer::attach(victim.pid(), query);
    victim.run(20);
    const Report report = tracer.finish();
    EXPECT_EQ(report.status, 0) << report.error;
    EXPECT_EQ(report.lost(), 0U) << report.summary;
    std::map<Frames, uint64_t> counts;
    for (const nlohmann::json& row : report.rows)
      counts[names_of(row.at("stack"))] += row.at("count").get<uint64_t>();
    return counts;
  };
  const auto left = chains("from e in exception(" + sources +
                           ") group by e.ustack(100) "
                           "select new { stack = e.ustack(100), count = count() }");
  auto begun = chains("from e in entry(" + sources +
                      ") where e.arg0 & 1 == 1 group by e.ustack(100) "
                      "select new { stack = e.ustack(100), count = count() }");
  std::map<Frames, uint64_t> expected;
  for (const auto& [names, count] : begun)
    expected[Frames(names.begin() + 1, names.end())] += count;
  ASSERT_GT(expected.size(), 3U);
  EXPECT_EQ(left, expected);
}

}  // namespace
}  // namespace clew::live

// SPDX-License-Identifier: Apache-2.0
// How many frames a stack of a clock has: as many as a script, its options or a query say, and the
// innermost ones. The whole stack beside the limited one, of the same moment, is the truth; where
// an option limits both, it is the number of calls that the victim's code has.
#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "live/child.h"
#include "live/tracer.h"
#include "live/victim.h"

namespace clew::live {
namespace {

using nlohmann::json;
using testing::HasSubstr;

// Burns time in burn(), which burn_long() calls, which main() calls, which two functions of the C
// library and _start do.
constexpr size_t kCallsLeast = 5;

class StacksLimited : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "NOT TESTED: clocks need root";
  }
};

// Keys of the aggregations that a script leaves; each is a list.
std::vector<json> keys_of(const std::string& script, const std::vector<std::string>& more) {
  ChildOptions options{.arguments = {CLEW_COMMAND, "dtrace", "--json", "-n", script}};
  options.arguments.insert(options.arguments.end(), more.begin(), more.end());
  const Child::End end = Child(options).wait_for_end();
  EXPECT_EQ(end.status, 0) << end.error;
  std::vector<json> keys;
  std::istringstream lines(end.output);
  for (std::string line; std::getline(lines, line);) {
    const json object = json::parse(line);
    if (object.contains("aggregation")) keys.push_back(object.at("key"));
  }
  EXPECT_FALSE(keys.empty()) << end.output << end.error;
  return keys;
}

// A key of user stacks, taken until there are enough.
std::string user_clock(const std::string& key) {
  return fmt::format(
      "profile-997 /pid == $target && arg1 != 0/ {{ @[{}] = count(); n++; }} "
      "profile-997 /n > 100/ {{ exit(0); }}",
      key);
}

std::string kernel_clock(const std::string& key) {
  return fmt::format(
      "profile-997 /pid == $target && arg0 != 0/ {{ @[{}] = count(); n++; }} "
      "profile-997 /n > 100/ {{ exit(0); }}",
      key);
}

class Burning {
 public:
  Burning() { EXPECT_EQ(victim_.read_line(), "ready"); }
  Burning(const Burning&) = delete;
  Burning& operator=(const Burning&) = delete;
  ~Burning() {
    victim_.close_input();
    EXPECT_EQ(victim_.wait_for_end().status, 0);
  }
  [[nodiscard]] std::string pid() const { return std::to_string(victim_.pid()); }

 private:
  Child victim_{{.arguments = {victim_path("stacks_pie"), "burn"}}};
};

// In the kernel nearly all the time; killed at the end.
class Reading {
 public:
  [[nodiscard]] std::string pid() const { return std::to_string(reader_.pid()); }

 private:
  Child reader_{{.arguments = {"/bin/dd", "if=/dev/zero", "of=/dev/null", "bs=1M"}}};
};

size_t calls_in(const json& stack) {
  return static_cast<size_t>(std::count_if(
      stack.begin(), stack.end(), [](const json& frame) { return !frame.contains("inlined"); }));
}

// `limited` is the beginning of `whole`, with `most` calls, or all of it.
void expect_beginning(const json& limited, const json& whole, size_t most) {
  EXPECT_EQ(calls_in(limited), std::min(calls_in(whole), most)) << limited << " of " << whole;
  ASSERT_LE(limited.size(), whole.size());
  for (size_t i = 0; i < limited.size(); ++i)
    EXPECT_EQ(limited[i], whole[i]) << i;
}

TEST_F(StacksLimited, OfAProgramHaveAsManyFramesAsTheCallSays) {
  const Burning victim;
  for (const json& key :
       keys_of(user_clock("ustack(100), ustack(1), ustack(3), jstack(2)"), {"-p", victim.pid()})) {
    EXPECT_GE(key[0].size(), kCallsLeast);
    expect_beginning(key[1], key[0], 1);
    expect_beginning(key[2], key[0], 3);
    expect_beginning(key[3], key[0], 2);
  }
}

TEST_F(StacksLimited, OfAProgramHaveAsManyFramesAsTheOptionsSay) {
  const Burning victim;
  for (const json& key : keys_of(user_clock("ustack(100), ustack(), jstack(), ustack(4)"),
                                 {"-p", victim.pid(), "-x", "ustackframes=2", "-x",
                                  "jstackframes=3", "-x", "stackframes=1"})) {
    EXPECT_GE(key[0].size(), kCallsLeast);
    expect_beginning(key[1], key[0], 2);
    expect_beginning(key[2], key[0], 3);
    expect_beginning(key[3], key[0], 4);
  }
}

TEST_F(StacksLimited, OfTheKernelHaveAsManyFramesAsTheCallOrTheOptionSays) {
  const Reading reader;
  size_t cut = 0;
  for (const json& key :
       keys_of(kernel_clock("stack(100), stack(), stack(1), stack(3)"),
               {"-x", "stackframes=2", "-x", "ustackframes=1", "-p", reader.pid()})) {
    expect_beginning(key[1], key[0], 2);
    expect_beginning(key[2], key[0], 1);
    expect_beginning(key[3], key[0], 3);
    cut += key[0].size() > 3 ? 1 : 0;
  }
  EXPECT_GT(cut, 0U);
}

// The most of each, whatever asks for more; less is less.
TEST_F(StacksLimited, HaveAtMostMaxframes) {
  const Burning victim;
  const Reading reader;
  for (const size_t most : {1, 2, 4}) {
    const std::vector<std::string> flags = {"-x", fmt::format("maxframes={}", most), "-x",
                                            "stackframes=50"};
    std::vector<std::string> more = flags;
    more.insert(more.end(), {"-p", victim.pid()});
    for (const json& key :
         keys_of(user_clock("ustack(), ustack(100), jstack(), ustack(1)"), more)) {
      EXPECT_EQ(calls_in(key[0]), most);
      EXPECT_EQ(key[0], key[1]);
      EXPECT_EQ(key[0], key[2]);
      expect_beginning(key[3], key[0], 1);
    }
    more = flags;
    more.insert(more.end(), {"-p", reader.pid()});
    size_t cut = 0;
    for (const json& key : keys_of(kernel_clock("stack(), stack(100), stack(1)"), more)) {
      EXPECT_LE(key[0].size(), most);
      EXPECT_EQ(key[0], key[1]);
      expect_beginning(key[2], key[0], 1);
      cut += key[0].size() == most ? 1 : 0;
    }
    EXPECT_GT(cut, 0U);
  }
}

// As a pragma of a script, and printed by an action in place of a key.
TEST_F(StacksLimited, HaveAtMostMaxframesOfAPragma) {
  const Burning victim;
  Child command(
      {.arguments = {CLEW_COMMAND, "dtrace", "-q", "-p", victim.pid(), "-n",
                     "#pragma D option maxframes=2\n"
                     "profile-997 /pid == $target && arg1 != 0/ { ustack(); exit(0); }"}});
  const Child::End end = command.wait_for_end();
  EXPECT_EQ(end.status, 0) << end.error;
  EXPECT_EQ(std::count(end.output.begin(), end.output.end(), '`'), 2) << end.output;
}

TEST_F(StacksLimited, InAQueryOfAProgramHaveAsManyCallsAsItSays) {
  const Burning victim;
  const Report report =
      run_clew({"run", "--json", "-p", victim.pid(),
                "from s in profile(997hz) where s.user_pc != 0 select new { whole = s.ustack(200), "
                "one = s.ustack(1), three = s.ustack(3), more = s.ustack(64) } take 100"});
  ASSERT_EQ(report.status, 0) << report.error;
  ASSERT_EQ(report.rows.size(), 100U) << report.error;
  for (const json& row : report.rows) {
    EXPECT_GE(calls_in(row.at("whole")), kCallsLeast) << row;
    expect_beginning(row.at("one"), row.at("whole"), 1);
    expect_beginning(row.at("three"), row.at("whole"), 3);
    EXPECT_EQ(row.at("more"), row.at("whole"));
  }
}

TEST_F(StacksLimited, InAQueryOfTheKernelHaveAsManyFramesAsItSays) {
  const Reading reader;
  const Report report =
      run_clew({"run", "--json", "-p", reader.pid(),
                "from s in profile(997hz) where s.kernel_pc != 0 group by s.kstack(100), "
                "s.kstack(1), s.kstack(3) select new { whole = s.kstack(100), one = s.kstack(1), "
                "three = s.kstack(3), samples = count() } for 300ms"});
  ASSERT_EQ(report.status, 0) << report.error;
  ASSERT_FALSE(report.rows.empty()) << report.error;
  size_t cut = 0;
  for (const json& row : report.rows) {
    expect_beginning(row.at("one"), row.at("whole"), 1);
    expect_beginning(row.at("three"), row.at("whole"), 3);
    cut += row.at("whole").size() > 3 ? 1 : 0;
  }
  EXPECT_GT(cut, 0U);
}

TEST_F(StacksLimited, InAQueryHaveALimitOfTheirOwn) {
  for (const char* depth : {"0", "201"}) {
    const Report report = run_clew(
        {"run", "-c", "/bin/true",
         fmt::format("from s in profile(997hz) group by s.ustack({}) select count()", depth)});
    EXPECT_EQ(report.status, 1) << depth;
    EXPECT_THAT(report.error, HasSubstr("200")) << depth;
  }
}

}  // namespace
}  // namespace clew::live

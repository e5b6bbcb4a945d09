// SPDX-License-Identifier: Apache-2.0
// Stacks of processes are the chains of calls that there are, in D and in queries, in programs
// without frame pointers: known ones of a victim, and those of Debian's programs, which all begin
// at _start.
#include "live/stacks.h"

#include <algorithm>
#include <csignal>
#include <fstream>
#include <functional>
#include <set>
#include <sstream>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "live/child.h"
#include "live/tracer.h"
#include "live/victim.h"

namespace clew::live {
namespace {

using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::SizeIs;

constexpr const char* kAtSystemCall = "syscall::getppid:entry /pid == $target/ { ustack(); }";
constexpr const char* kAtFunction = "pid$target::leaf:entry { ustack(); }";

// Chains of a form of the victim, in the order in which it makes them.
void expect_chains(const std::vector<Stack>& stacks, const std::string& module, bool has_library) {
  const std::vector<Frames> expected = {
      {"leaf", "recurse", "recurse", "recurse", "recurse", "main"},
      {"leaf", "compare", "sort", "main"},
      {"leaf", "on_signal", "raise_signal", "main"},
      {"leaf", "on_signal", "raise_signal", "on_other_stack", "main"},
      {"leaf", "in_thread"},
      {"leaf", "variable_frame", "main"},
      {"leaf", "aligned_frame", "main"},
      {"leaf", "large_frame", "main"},
      {"leaf", "main"}};  // Through the library.
  const size_t chains = has_library ? expected.size() : expected.size() - 1;
  ASSERT_THAT(stacks, SizeIs(chains + 3));  // And three false stacks.
  for (size_t i = 0; i < chains; ++i) {
    SCOPED_TRACE(i);
    Frames functions;
    for (const std::string& name : stacks[i].functions(module)) {
      const bool is_known =
          std::find(expected[i].begin(), expected[i].end(), name) != expected[i].end();
      if (is_known) functions.push_back(name);  // A static program has libc's functions as well.
    }
    EXPECT_EQ(functions, expected[i]) << testing::PrintToString(stacks[i].frames);
    EXPECT_TRUE(stacks[i].is_whole()) << testing::PrintToString(stacks[i].frames);
  }
  for (size_t i = chains; i < stacks.size(); ++i) {
    EXPECT_THAT(stacks[i].functions(module), Contains("on_false_stack"));
    EXPECT_LE(stacks[i].frames.size(), 100U);
  }
}

struct LinkedForm {
  const char* name;
  bool has_library;
};

void skip_unless_root() {
  if (geteuid() != 0) GTEST_SKIP() << "NOT TESTED: D needs root";
}

class Stacks : public testing::Test {
 protected:
  void SetUp() override { skip_unless_root(); }
};

class StackForm : public testing::TestWithParam<LinkedForm> {
 public:
  void SetUp() override { skip_unless_root(); }

 protected:
  std::string module_ = std::string("stacks_") + GetParam().name;
};

TEST_P(StackForm, AtASystemCallAreTheChainsOfCalls) {
  expect_chains(stacks_of(kAtSystemCall, {"-c", victim_path(module_)}), module_,
                GetParam().has_library);
}

TEST_P(StackForm, AtAFunctionAreTheChainsOfCalls) {
  const auto stacks = stacks_of(kAtFunction, {"-c", victim_path(module_)});
  ASSERT_FALSE(stacks.empty());
  EXPECT_EQ(stacks[0].frames[0], module_ + "`leaf");  // Its entry: no offset.
  expect_chains(stacks, module_, GetParam().has_library);
}

TEST_P(StackForm, WhereProbesHideReturnAddressesAreWhole) {
  const auto stacks = stacks_of(
      "pid$target::recurse:return, pid$target::sort:return {} " + std::string(kAtFunction),
      {"-c", victim_path(module_)});
  expect_chains(stacks, module_, GetParam().has_library);
}

// `take` looks at the process that burns time.
void expect_burning(const std::string& module,
                    const std::function<std::vector<Stack>(const std::string& pid)>& take) {
  Child victim({.arguments = {victim_path(module), "burn"}});
  ASSERT_EQ(victim.read_line(), "ready");
  const std::vector<Stack> stacks = take(std::to_string(victim.pid()));
  ASSERT_FALSE(stacks.empty());
  for (const Stack& stack : stacks) {
    EXPECT_TRUE(stack.is_whole()) << testing::PrintToString(stack.frames);
    EXPECT_THAT(stack.functions(module), Contains("burn_long"));
  }
  victim.close_input();
  EXPECT_EQ(victim.wait_for_end().status, 0);
}

TEST_P(StackForm, OfAClockAreWhole) {
  expect_burning(module_, [](const std::string& pid) {
    return stacks_of(
        "profile-997 /pid == $target && arg1 != 0/ { @[ustack()] = count(); n++; } "
        "profile-997 /n > 200/ { exit(0); }",
        {"-p", pid});
  });
}

TEST_P(StackForm, InAQueryAtASystemCallAreTheChainsOfCalls) {
  const auto stacks =
      queried_stacks("from s in syscall(\"getppid\") select new { stack = s.ustack(100) }",
                     {"--follow", "-c", victim_path(module_)});
  expect_chains(stacks, module_, GetParam().has_library);
}

TEST_P(StackForm, InAQueryAtAFunctionAreTheChainsOfCalls) {
  const std::string source = fmt::format("from f in entry(\"{}!leaf\") ", module_);
  const auto stacks = queried_stacks(source + "select new { f.tid, stack = f.stack(100) }",
                                     {"-c", victim_path(module_)});
  ASSERT_FALSE(stacks.empty());
  EXPECT_EQ(stacks[0].frames[0], module_ + "`leaf");
  expect_chains(stacks, module_, GetParam().has_library);
  // The same stacks as keys, each once.
  std::set<Frames> expected;
  for (const Stack& stack : stacks)
    expected.insert(stack.frames);
  const auto counted = queried_stacks(
      source + "group by f.ustack(100) select new { stack = f.ustack(100), count = count() }",
      {"-c", victim_path(module_)});
  uint64_t sum = 0;
  for (const Stack& stack : counted)
    sum += stack.count;
  EXPECT_EQ(sum, stacks.size());
  EXPECT_EQ(counted.size(), expected.size());
}

TEST_P(StackForm, InAQueryOfAClockAreWhole) {
  expect_burning(module_, [](const std::string& pid) {
    return queried_stacks(
        "from s in profile(997hz) where s.user_pc != 0 group by s.ustack "
        "select new { stack = s.ustack, count = count() } for 300ms",
        {"-p", pid});
  });
}

TEST_P(StackForm, HaveADepthAndACaller) {
  Child command({.arguments = {CLEW_COMMAND, "dtrace", "-q", "-n",
                               "pid$target::leaf:entry /!n++/ { printf(\"%d \", ustackdepth); "
                               "usym(ucaller); exit(0); }",
                               "-c", victim_path(module_)}});
  const Child::End end = command.wait_for_end();
  std::istringstream words(end.output);
  uint64_t depth = 0;
  std::string caller;
  words >> depth >> caller;
  EXPECT_EQ(depth, 9U) << end.output << end.error;  // leaf, 4 recurse, main, 2 of libc, _start.
  EXPECT_EQ(caller, module_ + "`recurse");
}

INSTANTIATE_TEST_SUITE_P(Stacks, StackForm,
                         testing::Values(LinkedForm{"pie", true}, LinkedForm{"fixed", true},
                                         LinkedForm{"static", false},
                                         LinkedForm{"static_pie", false}),
                         [](const auto& one) { return one.param.name; });

// What a script prints at a hit, without blanks around it, up to a line "end".
Frames next_hit(Child& tracer) {
  Frames lines;
  for (auto line = tracer.read_line(); line && *line != "end"; line = tracer.read_line()) {
    const size_t begin = line->find_first_not_of(' ');
    if (begin == std::string::npos) continue;
    lines.push_back(line->substr(begin, line->find_last_not_of(' ') + 1 - begin));
  }
  return lines;
}

// Commands that end at once, one behind the other, below a shell that is traced.
class BriefCommands {
 public:
  BriefCommands() : shell_({.arguments = {"/bin/sh", "-c", run_of_lines()}}), tracer_(trace()) {}

  [[nodiscard]] bool is_traced() { return tracer_.read_line() == "ready"; }

  // Starts so many. How many of them have their stack whole, with all its names.
  int run(int count) {
    std::string words;
    for (int i = 0; i < count; ++i)
      words += " x";
    shell_.write_line(words);
    EXPECT_EQ(shell_.read_line(), "over");
    const Frames chain = {"leaf", "compare", "sort", "main", "_start"};
    int named = 0;
    for (int over = 0; over < count;) {
      const Frames lines = next_hit(tracer_);
      if (lines.empty()) break;  // The tracer is gone.
      if (lines[0] == "over") ++over;
      if (Stack{.frames = lines}.functions("stacks_pie") == chain) ++named;
    }
    return named;
  }

 private:
  static std::string run_of_lines() {
    return "while read line; do for i in $line; do " + victim_path("stacks_pie") +
           "; done; echo over; done";
  }
  [[nodiscard]] ChildOptions trace() const {
    return {.arguments = {CLEW_COMMAND, "dtrace", "-q", "-x", "switchrate=100hz", "-n",
                          "BEGIN { printf(\"ready\\n\"); } "
                          "syscall::getppid:entry /execname == \"stacks_pie\" && ppid == $target/ "
                          "{ ustack(100); printf(\"\\nend\\n\"); } "
                          "syscall::exit_group:entry "
                          "/execname == \"stacks_pie\" && ppid == $target/ "
                          "{ printf(\"over\\nend\\n\"); }",
                          "-p", std::to_string(shell_.pid())}};
  }

  Child shell_;
  Child tracer_;
};

// A file is read while the first of its processes run, which may be over before the tracer has a
// processor. From then on each is known, though it has ended when its stack is printed, and though
// the tracer may not run while they do.
TEST_F(Stacks, OfCommandsThatEndAtOnceAreWholeAndNamedOnceTheirFileIsKnown) {
  constexpr int kUnknownMax = 10;
  BriefCommands commands;
  ASSERT_TRUE(commands.is_traced());
  int unknown = 0;
  while (commands.run(1) == 0)
    ASSERT_LT(++unknown, kUnknownMax);
  for (int i = 0; i < 8; ++i)
    EXPECT_EQ(commands.run(1), 1) << i;
  EXPECT_EQ(commands.run(16), 16);
}

// Code that a process makes, some of it while the session runs, and whose names it tells in a file.
TEST_F(Stacks, OfGeneratedCodeHaveTheNamesOfItsMap) {
  Victim victim("generated");
  victim.ask("make 1");
  const std::string script = R"(
      BEGIN { printf("armed\n"); }
      pid$target::at_leaf:entry { ustack(3); usym(ucaller); printf("\nend\n");
                                  @[ustack(3)] = count(); })";
  Child tracer({.arguments = {CLEW_COMMAND, "dtrace", "-q", "-x", "switchrate=100hz", "-p",
                              std::to_string(victim.pid()), "-n", script}});
  ASSERT_EQ(tracer.read_line(), "armed");
  victim.run(1);
  EXPECT_THAT(next_hit(tracer),
              ElementsAre("generated`at_leaf", "jit`made_1+0x10",
                          testing::StartsWith("generated`victim_run+"), "jit`made_1"));
  victim.ask("make 2");
  // The file is not read for each address that is in no map: only some milliseconds later again.
  Frames frames;
  do {
    victim.run(1);
    frames = next_hit(tracer);
    ASSERT_THAT(frames, SizeIs(4));
  } while (frames[2].starts_with("0x"));
  EXPECT_THAT(frames,
              ElementsAre("generated`at_leaf", "jit`made_1+0x10", "jit`made_2+0x10", "jit`made_1"));
  tracer.signal(SIGINT);
  const std::vector<Stack> aggregated = parse_stacks(tracer.wait_for_end().output);
  victim.tell("exit");  // It removes its file.
  victim.child().wait_for_end();
  ASSERT_THAT(aggregated, SizeIs(2));
  for (const Stack& stack : aggregated)
    EXPECT_THAT(stack.functions("jit"), Contains("made_1"));
}

// Both sides of one event; a thread of the kernel has no stack of a program.
TEST_F(Stacks, OfTheKernelInAQueryReachItsEntry) {
  const Report report =
      run_clew({"run", "--json", "-c", "/bin/sleep 0.2",
                "from s in tracepoint(\"sched:sched_switch\") where s.comm == \"sleep\" "
                "select new { kernel = s.kstack, side = s.stack, program = s.ustack(3) }"});
  ASSERT_EQ(report.status, 0) << report.error;
  ASSERT_FALSE(report.rows.empty());
  bool has_slept = false;
  for (const nlohmann::json& row : report.rows) {
    EXPECT_EQ(row.at("kernel"), row.at("side"));
    // What is inlined stands beside the frame that it is in.
    EXPECT_LE(std::count_if(row.at("program").begin(), row.at("program").end(),
                            [](const auto& frame) { return !frame.contains("inlined"); }),
              3);
    std::set<std::string> names;
    for (const nlohmann::json& frame : row.at("kernel")) {
      EXPECT_FALSE(frame.value("symbol", "").empty()) << frame;
      names.insert(frame.value("symbol", ""));
    }
    // The kernel leaves its scheduler's own functions out.
    has_slept =
        has_slept || (names.contains("hrtimer_nanosleep") && names.contains("do_syscall_64") &&
                      row.at("program")[0].at("module") == "libc.so.6");
    for (const char* const own : {"trace_call_bpf", "perf_trace_sched_switch"})
      EXPECT_FALSE(names.contains(own)) << row;
  }
  EXPECT_TRUE(has_slept) << report.rows.size();
}

// Of the victim's source.
int marked_line(const std::string& mark) {
  std::ifstream source(CLEW_EXAMPLES "/../tests/victims/stacks.c");
  int number = 1;
  for (std::string line; std::getline(source, line); ++number) {
    if (line.ends_with("// MARK " + mark)) return number;
  }
  return 0;
}

// Code lies elsewhere in each process.
TEST_F(Stacks, InAQueryThatAreEqualInSeveralProcessesAreOne) {
  Child first({.arguments = {victim_path("stacks_pie"), "burn"}});
  Child second({.arguments = {victim_path("stacks_pie"), "burn"}});
  ASSERT_EQ(first.read_line(), "ready");
  ASSERT_EQ(second.read_line(), "ready");
  const auto stacks = queried_stacks(
      "from s in profile(997hz) where s.user_pc != 0 group by s.ustack "
      "select new { stack = s.ustack, count = count() } for 300ms",
      {"-p", fmt::format("{},{}", first.pid(), second.pid())});
  std::set<Frames> different;
  for (const Stack& stack : stacks)
    different.insert(stack.frames);
  EXPECT_FALSE(stacks.empty());
  EXPECT_EQ(different.size(), stacks.size());
  for (Child* const each : {&first, &second}) {
    each->close_input();
    EXPECT_EQ(each->wait_for_end().status, 0);
  }
}

// The second program has other names at the addresses of the first one.
TEST_F(Stacks, InAQueryAreOfTheProgramThatRanThen) {
  Child victim({.arguments = {victim_path("renamed_alpha"), victim_path("renamed_omega")}});
  victim.write_line("");
  ASSERT_EQ(victim.read_line(), "called");
  Child tracer({.arguments = {CLEW_COMMAND, "run", "--json", "-p", std::to_string(victim.pid()),
                              "from s in syscall(\"getppid\") "
                              "select new { stack = s.ustack(3) } take 3"}});
  Frames names;
  const auto call = [&] {
    victim.write_line("");
    const auto row = nlohmann::json::parse(tracer.read_line().value_or("null"));
    names.push_back(row.at("stack").at(1).value("symbol", ""));
  };
  ASSERT_THAT(tracer.read_error_line().value_or(""), testing::HasSubstr("tracing"));
  call();
  victim.write_line("next");
  call();
  call();
  EXPECT_THAT(names, ElementsAre("alpha", "omega", "omega"));
  EXPECT_EQ(tracer.wait_for_end().status, 0);
  victim.close_input();
  victim.wait_for_end();
}

TEST_F(Stacks, InAQueryNameTheInstructionThatASignalInterrupted) {
  Child victim({.arguments = {victim_path("struck")}});
  Tracer tracer = Tracer::attach(victim.pid(),
                                 "from s in syscall(\"getppid\") select new { stack = s.ustack }");
  victim.write_line("");
  ASSERT_EQ(victim.read_line(), "called");
  const Report report = tracer.finish();
  ASSERT_EQ(report.rows.size(), 1U) << report.error;
  Frames names;
  for (const nlohmann::json& frame : report.rows[0].at("stack"))
    names.push_back(frame.value("symbol", ""));
  EXPECT_THAT(names, Contains("struck"));
  EXPECT_THAT(names, testing::Not(Contains("innocent")));
  victim.close_input();
  victim.wait_for_end();
}

TEST_F(Stacks, OfTheKernelAreSeenFromTheBeginOfACommand) {
  const auto calls = [](const std::string& values) {
    const Report report =
        run_clew({"run", "--json", "-c", "/bin/true", "from s in syscall(\"execve\") " + values});
    return std::pair(report.rows.size(), report.summary.at("lost").size());
  };
  EXPECT_EQ(calls("select new { s.pid }"), std::pair(size_t{1}, size_t{0}));
  EXPECT_EQ(calls("select new { s.pid, s.kstack(2) }"), std::pair(size_t{1}, size_t{0}));
  // Told: stacks of programs need what the loader has mapped.
  EXPECT_EQ(calls("select new { s.pid, s.ustack(2) }"), std::pair(size_t{0}, size_t{1}));
}

TEST_F(Stacks, InAQueryHaveLinesAndWhatWasInlined) {
  const Report report =
      run_clew({"run", "--json", "-c", victim_path("stacks_pie"),
                "from f in entry(\"stacks_pie!leaf\") select new { stack = f.ustack } take 1"});
  ASSERT_EQ(report.rows.size(), 1U) << report.error;
  const nlohmann::json& stack = report.rows[0].at("stack");
  const nlohmann::json& copy = stack.at(1);
  EXPECT_EQ(copy.at("symbol"), "inlined_call");
  EXPECT_EQ(copy.at("line"), marked_line("inlined"));
  EXPECT_TRUE(copy.at("inlined").get<bool>());
  const nlohmann::json& caller = stack.at(2);
  EXPECT_EQ(caller.at("symbol"), "recurse");
  EXPECT_EQ(caller.at("line"), marked_line("caller"));
  EXPECT_THAT(caller.at("file").get<std::string>(), testing::EndsWith("tests/victims/stacks.c"));
  EXPECT_FALSE(caller.contains("address"));  // It has a name.
  EXPECT_FALSE(caller.contains("inlined"));
}

TEST_F(Stacks, InAQueryAreExplained) {
  Child victim({.arguments = {victim_path("stacks_pie"), "burn"}});
  ASSERT_EQ(victim.read_line(), "ready");
  Child command({.arguments = {CLEW_COMMAND, "explain", "-p", std::to_string(victim.pid()),
                               "from f in entry(\"stacks_pie!leaf\") group by f.ustack(5)"}});
  const Child::End end = command.wait_for_end();
  EXPECT_EQ(end.status, 0) << end.error;
  EXPECT_THAT(end.output, testing::HasSubstr("1 point in 1 window"));
  EXPECT_THAT(end.output,
              testing::HasSubstr("entries of 72 bytes per thread"));  // 7 words, 1 count.
  victim.close_input();
  EXPECT_EQ(victim.wait_for_end().status, 0);
}

// No probe is there when they are told.
TEST_F(Stacks, InAQueryAreRefusedOfCallsThatAreOpenAtTheEnd) {
  const Report report = run_clew({"run", "--no-uprobes", "-c", victim_path("stacks_pie"),
                                  "from f in return(\"stacks_pie!sort\") including open "
                                  "select f.ustack"});
  EXPECT_EQ(report.status, 1);
  EXPECT_THAT(report.error, testing::HasSubstr("with 'including open' are walked by the kernel"));
}

// Those of Debian: each makes system calls in the depth of its own code.
TEST_F(Stacks, OfProgramsOfDebianReachTheirBegin) {
  struct Program {
    const char* path;
    std::string command;
  };
  const std::vector<Program> programs = {
      {"/usr/bin/python3", "/usr/bin/python3 -c 'import json,os; os.getppid()'"},
      {"/usr/bin/perl", "/usr/bin/perl -e 'print getppid()'"},
      {"/bin/bash", "/bin/bash -c 'ls /; echo $PPID'"},
      {"/usr/bin/sqlite3", "/usr/bin/sqlite3 :memory: 'select 1'"}};
  for (const Program& program : programs) {
    struct stat unused {};
    if (stat(program.path, &unused) != 0) continue;
    SCOPED_TRACE(program.path);
    const auto stacks = stacks_of("syscall:::entry /pid == $target/ { @[ustack(200)] = count(); }",
                                  {"-c", program.command});
    ASSERT_FALSE(stacks.empty());
    uint64_t whole = 0;
    uint64_t all = 0;
    std::string broken;
    for (const Stack& stack : stacks) {
      all += stack.count;
      if (stack.is_whole()) {
        whole += stack.count;
      } else {
        broken += testing::PrintToString(stack.frames) + '\n';
      }
    }
    EXPECT_EQ(whole, all) << broken;
  }
}

}  // namespace
}  // namespace clew::live

// SPDX-License-Identifier: Apache-2.0
// The verbs that are queries and scripts: each is compared with what a victim has done, and says
// what to do where there is nothing to see.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "live/server.h"
#include "live/tracer.h"
#include "live/victim.h"

namespace clew::live {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
namespace fs = std::filesystem;

bool is_root() {
  return geteuid() == 0;
}

std::string oncall(const std::string& what, int times) {
  return victim_path("oncall") + " " + what + " " + std::to_string(times);
}

struct VerbAnswer {
  int status = -1;
  std::vector<json> rows;
  std::vector<std::string> said;  // By the victim, to the same place.
  std::string error;
};

// Runs `clew WORDS --json`.
VerbAnswer ask(std::vector<std::string> words) {
  words.insert(words.begin() + 1, "--json");
  const Child::End end = clew(std::move(words));
  VerbAnswer answer{.status = end.status, .rows = {}, .said = {}, .error = end.error};
  std::istringstream lines(end.output);
  for (std::string line; std::getline(lines, line);) {
    json row = json::parse(line, nullptr, false);
    if (row.is_object()) {
      answer.rows.push_back(std::move(row));
    } else {
      answer.said.push_back(line);
    }
  }
  return answer;
}

// "owner 17" -> 17
int64_t number_of(const VerbAnswer& answer, const std::string& word) {
  for (const std::string& line : answer.said)
    if (line.starts_with(word + " ")) return std::stoll(line.substr(word.size() + 1));
  return -1;
}

json row_with(const VerbAnswer& answer, const std::string& column, const json& value) {
  for (const json& row : answer.rows)
    if (row.value(column, json()) == value) return row;
  return json::object();
}

// The value of an aggregation of a script for the keys that begin with these.
int64_t sum_of_keys(const VerbAnswer& answer, const std::string& aggregation,
                    const std::vector<json>& begin) {
  int64_t sum = 0;
  for (const json& row : answer.rows) {
    if (row.value("aggregation", "") != aggregation) continue;
    const json& key = row.at("key");
    if (key.size() >= begin.size() && std::equal(begin.begin(), begin.end(), key.begin()))
      sum += row.at("value").get<int64_t>();
  }
  return sum;
}

TEST(Verbs, SyscallsCountsCallsAndFailures) {
  if (!is_root()) GTEST_SKIP() << "the kernel is root's";
  const VerbAnswer answer = ask({"syscalls", "--calls", "close", "-c", oncall("calls", 321)});
  ASSERT_EQ(answer.status, 0) << answer.error;
  const json row = row_with(answer, "program", "oncall");
  EXPECT_EQ(row.value("failed", 0), 321) << answer.error;
  EXPECT_GE(row.value("calls", 0), 321);
  EXPECT_EQ(row.value("call", ""), "close");
}

TEST(Verbs, FilesTellsOpensThatFailAndBytes) {
  if (!is_root()) GTEST_SKIP() << "the kernel is root's";
  const VerbAnswer answer = ask({"files", "-c", oncall("opens", 7)});
  ASSERT_EQ(answer.status, 0) << answer.error;
  EXPECT_EQ(sum_of_keys(answer, "opens", {"oncall", 2, "/no/such/file/of/oncall"}), 7);
  EXPECT_EQ(sum_of_keys(answer, "opens", {"oncall", 0, "/dev/null"}), 7);
  EXPECT_EQ(sum_of_keys(answer, "written", {"oncall", "/dev/null"}), 21);
  const VerbAnswer some = ask({"files", "--path", "no/such", "-c", oncall("opens", 3)});
  EXPECT_EQ(sum_of_keys(some, "opens", {"oncall"}), 3) << some.error;
}

// The last number of each line with these words.
int64_t sum_of_lines(const std::string& text, const std::string& words) {
  int64_t sum = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const size_t last = line.find_last_of(' ');
    if (line.find(words) != std::string::npos) sum += std::stoll(line.substr(last + 1));
  }
  return sum;
}

// Intervals and what is left of the last one, each once, in the form of the others.
TEST(Verbs, ALiveScriptLosesNothing) {
  if (!is_root()) GTEST_SKIP() << "the kernel is root's";
  const TemporaryFolder folder;
  const std::string file = folder.file("answer.txt");
  std::ofstream(file) << "of another time\n";
  const Child::End end = clew(
      {"files", "--path", "no/such", "--every", "100ms", "-o", file, "-c", oncall("opens", 7)});
  ASSERT_EQ(end.status, 0) << end.error;
  std::stringstream text;
  text << std::ifstream(file).rdbuf();
  EXPECT_EQ(sum_of_lines(text.str(), "/no/such/file/of/oncall "), 7) << text.str();
  EXPECT_EQ(sum_of_lines(text.str(), "/dev/null "), 21) << text.str();
  EXPECT_THAT(text.str(), Not(HasSubstr("of another time")));
}

TEST(Verbs, ExecTellsArgumentsStatusAndLife) {
  if (!is_root()) GTEST_SKIP() << "the kernel is root's";
  const VerbAnswer answer = ask({"exec", "-c", oncall("execs", 3)});
  ASSERT_EQ(answer.status, 0) << answer.error;
  int begun = 0;
  int ended = 0;
  for (const json& row : answer.rows) {
    const std::string text = row.value("text", "");
    if (text.find("sh -c exit 7") == std::string::npos) continue;
    const json& values = row.at("values");
    begun += values.at(1) == "begins" ? 1 : 0;
    if (values.at(1) != "ends") continue;
    ++ended;
    EXPECT_EQ(values.at(5), "status");
    EXPECT_EQ(values.at(6), 7);
    EXPECT_GT(values.at(4).get<int64_t>(), 0);
  }
  EXPECT_EQ(begun, 3) << answer.error;
  EXPECT_EQ(ended, 3);
}

TEST(Verbs, LocksNamesTheOwnerAndWhoWaits) {
  if (!is_root()) GTEST_SKIP() << "the kernel is root's";
  const VerbAnswer answer = ask({"locks", "-c", oncall("locks", 3)});
  ASSERT_EQ(answer.status, 0) << answer.error;
  const int64_t owner = number_of(answer, "owner");
  ASSERT_GT(owner, 0);
  EXPECT_EQ(sum_of_keys(answer, "waits", {"oncall", owner}), 3) << answer.error;
  EXPECT_GT(sum_of_keys(answer, "nanoseconds", {"oncall", owner}), 100'000'000);
  EXPECT_THAT(json(answer.rows).dump(), HasSubstr("oncall_locks"));
}

// All that the program has kept, and not what it has given back.
TEST(Verbs, LeaksTellsWhatIsKeptByStack) {
  const VerbAnswer answer = ask({"leaks", "-c", oncall("keeps", 50)});
  ASSERT_EQ(answer.status, 0) << answer.error;
  int64_t blocks = 0;
  int64_t bytes = 0;
  for (const json& row : answer.rows) {
    if (row.value("stack", json()).dump().find("oncall_keeps") == std::string::npos) continue;
    blocks += row.at("blocks").get<int64_t>();
    bytes += row.at("bytes").get<int64_t>();
    EXPECT_GT(row.at("oldest").get<int64_t>(), 0);
  }
  EXPECT_EQ(blocks, 50) << answer.error;
  EXPECT_EQ(bytes, 50'000);
  const VerbAnswer young = ask({"leaks", "--age", "1h", "-c", oncall("keeps", 5)});
  EXPECT_EQ(young.status, 0) << young.error;
  EXPECT_THAT(json(young.rows).dump(), Not(HasSubstr("stack")));
}

TEST(Verbs, NetCountsBytesByPeerAndConnections) {
  if (!is_root()) GTEST_SKIP() << "the kernel is root's";
  const VerbAnswer answer = ask({"net", "-c", oncall("sends", 5)});
  if (answer.error.find("sock_send_length") != std::string::npos)
    GTEST_SKIP() << "Linux before 6.3";
  ASSERT_EQ(answer.status, 0) << answer.error;
  const int64_t port = number_of(answer, "port");
  EXPECT_EQ(sum_of_keys(answer, "sent", {"oncall", "127.0.0.1", port}), 5000) << answer.error;
  EXPECT_EQ(sum_of_keys(answer, "received", {"oncall", "127.0.0.1"}), 5000);
  EXPECT_EQ(sum_of_keys(answer, "connections", {"oncall", "connect", "127.0.0.1", port}), 1);
  EXPECT_EQ(sum_of_keys(answer, "connections", {"oncall", "accept"}), 1);
}

TEST(Verbs, OffcpuSumsWaitsByStack) {
  if (!is_root()) GTEST_SKIP() << "the kernel is root's";
  const VerbAnswer answer = ask({"offcpu", "--least", "10ms", "-c", oncall("naps", 4)});
  ASSERT_EQ(answer.status, 0) << answer.error;
  EXPECT_GE(sum_of_keys(answer, "waits", {"oncall"}), 80'000'000);
  EXPECT_THAT(json(answer.rows).dump(), HasSubstr("oncall_naps"));
}

TEST(Verbs, SlowTellsEachCallOverTheBound) {
  if (!is_root()) GTEST_SKIP() << "the kernel is root's";
  const VerbAnswer answer =
      ask({"slow", "--calls", "*nanosleep", "--above", "10ms", "-c", oncall("naps", 4)});
  ASSERT_EQ(answer.status, 0) << answer.error;
  const auto naps = std::count_if(answer.rows.begin(), answer.rows.end(), [](const json& row) {
    return row.value("program", "") == "oncall" && row.value("elapsed", 0) >= 20'000'000;
  });
  EXPECT_EQ(naps, 4) << answer.error;
  // Those that wait by their nature are not what is slow.
  const VerbAnswer others = ask({"slow", "--above", "10ms", "-c", oncall("naps", 1)});
  EXPECT_EQ(row_with(others, "call", "clock_nanosleep"), json::object());
  EXPECT_THAT(others.error, HasSubstr("a smaller --above finds more"));
}

TEST(Verbs, TopAndCpuFindTheFunctionThatRuns) {
  if (!is_root()) GTEST_SKIP() << "the kernel is root's";
  const VerbAnswer top = ask({"top", "-c", oncall("spins", 4)});
  ASSERT_EQ(top.status, 0) << top.error;
  ASSERT_FALSE(top.rows.empty()) << top.error;
  EXPECT_THAT(top.rows[0].dump(), HasSubstr("oncall_spins"));
  const VerbAnswer cpu = ask({"cpu", "-c", oncall("spins", 4)});
  ASSERT_FALSE(cpu.rows.empty()) << cpu.error;
  EXPECT_THAT(cpu.rows[0].dump(), AllOf(HasSubstr("oncall_spins"), HasSubstr("\"oncall\"")));
  const Child::End folded = clew({"cpu", "--folded", "-c", oncall("spins", 4)});
  EXPECT_THAT(folded.output, HasSubstr("main;oncall_spins ")) << folded.error;
}

TEST(Verbs, TopCountsCallsOfFunctionsThatAreNamed) {
  const VerbAnswer answer =
      ask({"top", "--calls", "oncall!oncall_throws", "-c", oncall("throws", 8)});
  ASSERT_EQ(answer.status, 0) << answer.error;
  EXPECT_EQ(row_with(answer, "function", "oncall_throws").value("calls", 0), 1);
}

TEST(Verbs, ThrowsTellsTypeAndTextOfExceptions) {
  const VerbAnswer answer = ask({"throws", "-c", oncall("throws", 16)});
  ASSERT_EQ(answer.status, 0) << answer.error;
  const auto times = [&answer](const std::string& type, const std::string& text) {
    int64_t sum = 0;
    for (const json& row : answer.rows) {
      if (row.value("type", "") == type && row.value("text", "") == text)
        sum += row.at("times").get<int64_t>();
    }
    return sum;
  };
  EXPECT_EQ(times("shop::Refused", "card 0"), 2);
  EXPECT_EQ(times("shop::Refused", "card 4"), 2);
  EXPECT_EQ(times("shop::Plain", ""), 4);
  EXPECT_EQ(times("std::out_of_range", "far out"), 4);
  EXPECT_EQ(times("int", ""), 4);
  EXPECT_THAT(json(answer.rows).dump(), HasSubstr("oncall_throws"));
}

TEST(Verbs, SqlCountsStatementsOfSqlite) {
  if (!is_root() || !present("/usr/bin/sqlite3")) GTEST_SKIP() << "no root, or no sqlite3";
  const VerbAnswer answer =
      ask({"sql", "--as", "sqlite", "-c", "sqlite3 :memory: 'select 1' 'select 2' 'select 1'"});
  ASSERT_EQ(answer.status, 0) << answer.error;
  EXPECT_EQ(sum_of_keys(answer, "calls", {"select 1"}), 2) << answer.error;
  EXPECT_EQ(sum_of_keys(answer, "calls", {"select 2"}), 1);
  EXPECT_GT(sum_of_keys(answer, "nanoseconds", {"select 1"}), 0);
}

TEST(Verbs, ShowPrintsWhatRuns) {
  if (!is_root()) GTEST_SKIP() << "the kernel is root's";
  const std::vector<std::string> options = {"--calls", "close", "--take", "3"};
  std::vector<std::string> words = {"syscalls", "--show"};
  words.insert(words.end(), options.begin(), options.end());
  const Child::End shown = clew(words);
  ASSERT_EQ(shown.status, 0) << shown.error;
  EXPECT_THAT(shown.output, AllOf(HasSubstr("syscall_return(\"close\")"), HasSubstr("take 3"),
                                  Not(HasSubstr("${"))));
  const VerbAnswer by_hand = ask({"run", shown.output, "-c", oncall("calls", 50)});
  ASSERT_EQ(by_hand.status, 0) << by_hand.error;
  EXPECT_EQ(row_with(by_hand, "program", "oncall").value("failed", 0), 50);
  const Child::End script = clew({"files", "--show", "-p", std::to_string(getpid())});
  EXPECT_THAT(script.output, AllOf(HasSubstr("pid == " + std::to_string(getpid())),
                                   HasSubstr("END"), Not(HasSubstr("${"))))
      << script.error;
}

// All files of the folder, and none that does not compile.
TEST(Verbs, EachAnswersAboutACommandThatDoesLittle) {
  if (!is_root()) GTEST_SKIP() << "the kernel is root's";
  const std::set<std::string> of_servers = {"sql"};
  std::set<std::string> names;
  for (const auto& file : fs::directory_iterator(CLEW_VERBS_FOLDER))
    names.insert(
        file.path().filename().string().substr(0, file.path().filename().string().find('.')));
  EXPECT_GE(names.size(), 11U);
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    if (of_servers.contains(name)) continue;
    const Child::End end = clew({name, "-c", oncall("naps", 1), "--for", "5s"});
    EXPECT_EQ(end.status, 0) << end.error;
    EXPECT_THAT(end.error, Not(HasSubstr("error")));
  }
}

TEST(Verbs, WrongInputIsSaidWithWhatToDo) {
  struct Wrong {
    std::vector<std::string> words;
    int status;
    std::string said;
  };
  const std::vector<Wrong> all = {
      {{"top"}, 1, "clew top is about a process: -p PID, -n NAME, or -c COMMAND"},
      {{"syscalls", "-p", "4194304"}, 1, "there is no process 4194304"},
      {{"files", "-n", "no-such-name"}, 1, "no process is called 'no-such-name'"},
      {{"syscalls", "--cals", "x"}, 2, "no option '--cals'; did you mean '--calls'?"},
      {{"slow", "--above", "soon"}, 2, "--above: 'soon' is not a duration"},
      {{"cpu", "--take", "many"}, 2, "--take: 'many' is no whole number"},
      {{"sql", "--as", "sqllite", "-c", "true"}, 1, "did you mean 'sqlite'?"},
      {{"sql", "-p", std::to_string(getpid())}, 1, "-p PID, -n NAME or -c COMMAND names one"},
      {{"locks", "--kind", "al"}, 2, "--kind: 'al' is none of mutex, all"},
      {{"cpu", "--take", "3", "--folded"}, 1, "clew cpu (stacks) makes no use of --take"},
      {{"files", "--take", "3", "--json"}, 1, "--take where the answer is no text; leave it out"},
      {{"files", "-y"}, 1, "clew files is a script, which makes no use of --yes"},
      {{"files", "--vocabulary", "x"}, 1, "a script, which makes no use of --vocabulary"},
      {{"syscal"}, 2, "no verb 'syscal'; did you mean 'syscalls'?"},
      {{"top", "--verbs", "/no/such/folder"}, 1, "cannot read the verbs in /no/such/folder"},
      {{"examples", "no", "such", "thing", "anywhere"}, 1, "fewer or shorter words find more"}};
  for (const Wrong& wrong : all) {
    SCOPED_TRACE(testing::PrintToString(wrong.words));
    const Child::End end = clew(wrong.words);
    EXPECT_EQ(end.status, wrong.status);
    EXPECT_THAT(end.error, HasSubstr(wrong.said));
    EXPECT_EQ(end.output, "");
  }
}

TEST(Verbs, TheKernelAnswersRootAlone) {
  if (!is_root()) GTEST_SKIP() << "only root can be somebody else";
  Child child({.arguments = {CLEW_COMMAND, "syscalls"}, .folder = "/", .as_nobody = true});
  child.close_input();
  const Child::End end = child.wait_for_end();
  EXPECT_EQ(end.status, 1);
  EXPECT_THAT(end.error,
              HasSubstr("asks the kernel, which answers root alone: sudo clew syscalls"));
}

TEST(Verbs, AFolderAddsVerbs) {
  if (!is_root()) GTEST_SKIP() << "the kernel is root's";
  const TemporaryFolder folder;
  std::ofstream(folder.file("closes.clew"))
      << "// help: closed files\n// parameter: least number 1 at least so many\n"
         "from c in syscall_return(\"close\") where c.errno != 0 groupby c.procName\n"
         "select program = c.procName, n = count() where n >= ${least}\n";
  const VerbAnswer answer =
      ask({"closes", "--verbs", folder.path(), "--least", "40", "-c", oncall("calls", 40)});
  ASSERT_EQ(answer.status, 0) << answer.error;
  EXPECT_EQ(row_with(answer, "program", "oncall").value("n", 0), 40);
  const VerbAnswer none =
      ask({"closes", "--verbs", folder.path(), "--least", "90", "-c", oncall("calls", 40)});
  EXPECT_EQ(row_with(none, "program", "oncall"), json::object());
  std::ofstream(folder.file("wrong.clew")) << "// help: x\n// needs: wheel\nfrom\n";
  constexpr const char* kWhy = "wrong.clew:2: error: 'wheel' is nothing that a verb needs";
  const Child::End wrong = clew({"wrong", "--verbs", folder.path()});
  EXPECT_EQ(wrong.status, 1);
  EXPECT_THAT(wrong.error, HasSubstr(kWhy));
  const Child::End other = clew({"closes", "--verbs", folder.path(), "--show"});
  EXPECT_EQ(other.status, 0);
  EXPECT_EQ(other.error, "");
  EXPECT_THAT(clew({"--help", "--verbs", folder.path()}).output,
              AllOf(HasSubstr(kWhy), HasSubstr("closed files")));
}

// Of `script`: what a verb writes on a terminal of its own.
std::string on_a_terminal(const std::string& command) {
  Child child({.arguments = {"script", "-qec", command, "/dev/null"}});
  child.close_input();
  return child.wait_for_end().output;
}

TEST(Verbs, TablesAreDrawnInPlaceOnATerminalAlone) {
  if (!is_root() || !present("/usr/bin/script")) GTEST_SKIP() << "no root, or no script(1)";
  constexpr const char* kUp = "A\r\x1b[J";  // Behind ESC [ and a number.
  const std::string command = std::string(CLEW_COMMAND) + " ";
  const std::string often = " --every 200ms --for 1s";
  for (const char* verb : {"syscalls", "files"}) {
    SCOPED_TRACE(verb);
    EXPECT_THAT(on_a_terminal(command + verb + often), HasSubstr(kUp));
    EXPECT_THAT(on_a_terminal(command + verb + often + " | cat"), Not(HasSubstr(kUp)));
  }
}

TEST(Verbs, ExamplesAreFoundByWordsWithTheirCommands) {
  const Child::End found = clew({"examples", "LATENCY", "run", "queue"});
  ASSERT_EQ(found.status, 0) << found.error;
  EXPECT_THAT(found.output, AllOf(HasSubstr("d/run_queue_latency.d"), HasSubstr("clew dtrace -s /"),
                                  Not(HasSubstr("hot_keys"))));
  const VerbAnswer all = ask({"examples"});
  ASSERT_GT(all.rows.size(), 80U);
  for (const json& row : all.rows) {
    SCOPED_TRACE(row.dump());
    EXPECT_NE(row.value("question", ""), "");
    EXPECT_FALSE(row.at("commands").empty());
  }
}

}  // namespace
}  // namespace clew::live

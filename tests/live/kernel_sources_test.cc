// SPDX-License-Identifier: Apache-2.0
// Queries over events of the kernel, against a victim that knows its system calls.
#include <csignal>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "live/tracer.h"
#include "live/victim.h"

namespace clew::live {
namespace {

using nlohmann::json;
using testing::HasSubstr;

constexpr uint64_t kKernelRounds = 1000;

class KernelSources : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "NOT TESTED: programs in the kernel need root";
  }

  // What the query answers about `command` of the victim; `truth` are its counters meanwhile.
  Report trace(const std::string& query, const std::string& command,
               const std::vector<std::string>& more = {}) {
    Tracer tracer = Tracer::attach(victim_.pid(), query, more);
    const Numbers before = victim_.counts();
    answer_ = victim_.ask(command);
    truth_ = difference(before, victim_.counts());
    Report report = tracer.finish();
    EXPECT_EQ(report.status, 0) << report.error;
    return report;
  }

  uint64_t zeros() { return victim_.ask("file 0").at("file"); }

  Victim victim_{"calls"};
  Numbers answer_;
  Numbers truth_;
};

uint64_t number_in(const Report& report, const std::string& name) {
  EXPECT_EQ(report.rows.size(), 1U);
  return report.rows.empty() ? 0 : report.rows[0].at(name).get<uint64_t>();
}

TEST_F(KernelSources, CountsEachCall) {
  const Report report = trace("syscall(\"getppid\").Count()", "parents 100000");
  EXPECT_EQ(number_in(report, "count"), truth_.at("take_parent"));
  EXPECT_EQ(report.lost(), 0U) << report.summary;
}

TEST_F(KernelSources, AddsUpTheResultsOfReads) {
  const Report report = trace(
      fmt::format("from e in syscall_return(\"read\") where e.entry.fd == {} select count() as n, "
                  "sum(e.retval) as bytes, max(e.entry.count) as most, min(e.retval) as least, "
                  "avg(e.retval) * count() as again",
                  zeros()),
      fmt::format("run {}", kKernelRounds));
  EXPECT_EQ(number_in(report, "n"), truth_.at("reads"));
  EXPECT_EQ(number_in(report, "bytes"), truth_.at("bytes"));
  EXPECT_EQ(number_in(report, "most"), 49U);
  EXPECT_EQ(number_in(report, "least"), 0U);
  ASSERT_EQ(report.rows.size(), 1U);
  EXPECT_NEAR(report.rows[0].at("again").get<double>(), double(truth_.at("bytes")), 0.1);
}

TEST_F(KernelSources, GroupsByNamesErrorsAndArguments) {
  const Report report = trace(
      "from e in syscall_return(\"fchdir\"), syscall_return(\"getppid\") "
      "group by e.function, e.errno, e.procName, e.pid select new { name = e.function, "
      "error = e.errno, who = e.procName, pid = e.pid, calls = count() }",
      fmt::format("run {}", kKernelRounds));
  ASSERT_EQ(report.rows.size(), 2U);
  EXPECT_EQ(report.calls().at("fchdir"), truth_.at("failures"));
  EXPECT_EQ(report.calls().at("getppid"), 2 * truth_.at("take_parent"));
  EXPECT_EQ(report.rows[0].at("error"), "EBADF");
  EXPECT_EQ(report.rows[1].at("error"), 0);
  for (const json& row : report.rows) {
    EXPECT_EQ(row.at("who"), "calls");
    EXPECT_EQ(row.at("pid"), victim_.pid());
  }
}

// Sizes 0 to 49 in turn, each as often.
TEST_F(KernelSources, CountsByAnArgument) {
  const Report report =
      trace(fmt::format("from e in syscall(\"read\") where e.fd == {} group by e.count as size "
                        "select size, count() as n, topk(e.count, 1), distinct(e.buf) as places",
                        zeros()),
            fmt::format("run {}", kKernelRounds));
  ASSERT_EQ(report.rows.size(), 50U);
  for (const json& row : report.rows) {
    EXPECT_EQ(row.at("n"), kKernelRounds / 50) << row;
    EXPECT_EQ(row.at("places"), 1) << row;
  }
}

TEST_F(KernelSources, CountsInHistograms) {
  const Report report =
      trace(fmt::format("from e in syscall_return(\"read\") where e.entry.fd == {} select "
                        "quantize(e.retval) as q, lquantize(e.retval, 10, 40, 10) as l",
                        zeros()),
            fmt::format("run {}", kKernelRounds));
  ASSERT_EQ(report.rows.size(), 1U);
  uint64_t sum = 0;
  for (const json& bucket : report.rows[0].at("q"))
    sum += bucket.at("count").get<uint64_t>();
  EXPECT_EQ(sum, truth_.at("reads"));
  // Below 10, 10 to 19, 20 to 29, 30 to 39, from 40 on: 10 of 50 each.
  for (const json& bucket : report.rows[0].at("l"))
    EXPECT_EQ(bucket.at("count"), kKernelRounds / 5) << bucket;
}

// Sizes 0 to 49, each as often; from 32 on a bucket has two (abi/buckets.h). Each interval is
// counted for itself.
TEST_F(KernelSources, CountsQuantilesAndDistinctValues) {
  const std::string query = fmt::format(
      "from e in syscall(\"read\") where e.fd == {} select count() as n, p50(e.count) "
      "as half, p99(e.count) as most, distinct(e.count) as sizes",
      zeros());
  const Report report = trace(query, fmt::format("run {}", kKernelRounds));
  EXPECT_EQ(number_in(report, "n"), kKernelRounds);
  EXPECT_EQ(number_in(report, "half"), 24U);
  EXPECT_EQ(number_in(report, "most"), 49U);
  EXPECT_NEAR(static_cast<double>(number_in(report, "sizes")), 50, 2);
  EXPECT_EQ(report.lost(), 0U) << report.summary;
  const Report intervals = trace(query, fmt::format("run {}", kKernelRounds), {"--every", "10ms"});
  uint64_t sum = 0;
  for (const json& row : intervals.rows) {
    sum += row.at("n").get<uint64_t>();
    EXPECT_LE(row.at("sizes"), 52) << row;
  }
  EXPECT_EQ(sum, kKernelRounds);
}

TEST_F(KernelSources, TellsTheTimeOfACall) {
  constexpr uint64_t kNaps = 50;
  const Report report = trace(
      "from e in syscall_return(\"clock_nanosleep\") select count() as n, min(e.elapsed) as "
      "least, sum(e.elapsed) as sum, max(e.elapsed) as most",
      fmt::format("naps {}", kNaps));
  EXPECT_EQ(number_in(report, "n"), kNaps);
  EXPECT_GE(number_in(report, "least"), 1'000'000U);
  EXPECT_LE(number_in(report, "sum"), answer_.at("sum"));
  EXPECT_GE(number_in(report, "sum"), kNaps * 1'000'000);
  EXPECT_LE(number_in(report, "most"), answer_.at("most"));
}

TEST_F(KernelSources, ShowsEachEventInOrder) {
  const Report report =
      trace(fmt::format("from e in syscall_return(\"read\") where e.entry.fd == {} select e.time, "
                        "e.entry.count as asked, e.retval as got, e.comm, e.tid",
                        zeros()),
            "run 120");
  ASSERT_EQ(report.rows.size(), 120U);
  for (size_t i = 0; i < report.rows.size(); ++i) {
    EXPECT_EQ(report.rows[i].at("asked"), i % 50);
    EXPECT_EQ(report.rows[i].at("got"), i % 50);
    EXPECT_EQ(report.rows[i].at("comm"), "calls");
    EXPECT_EQ(report.rows[i].at("tid"), victim_.pid());
  }
}

TEST_F(KernelSources, ReadsTextOfThePrograms) {
  const Report report = trace(
      "from e in syscall(\"openat\") where str(e.filename) == \"/dev/null\" "
      "select count() as n, max(e.flags) as flags",
      "opens 300");
  EXPECT_EQ(number_in(report, "n"), truth_.at("opens"));
  EXPECT_EQ(number_in(report, "flags"), 1U);
}

TEST_F(KernelSources, ReadsTheFieldsOfATracepoint) {
  const Report report = trace(
      "from e in tracepoint(\"task:task_rename\") where e.args.pid == e.tid && e.newcomm != "
      "\"calls\" group by e.newcomm select new { name = e.newcomm, calls = count() }",
      "renames 400");
  const Numbers calls = report.calls();
  EXPECT_EQ(calls, (Numbers{{"name 0", 100}, {"name 1", 100}, {"name 2", 100}, {"name 3", 100}}));
}

TEST_F(KernelSources, ReadsTextWhoseLengthTheEventSays) {
  const std::string path =
      std::filesystem::temp_directory_path() / fmt::format("clew-kernel-sources-{}", getpid());
  std::filesystem::remove(path);
  std::filesystem::create_symlink("/bin/true", path);
  Child tracer({.arguments = {CLEW_COMMAND, "run", "--json",
                              fmt::format("from e in tracepoint(\"sched:sched_process_exec\") "
                                          "where e.filename == \"{}\" select e.pid, e.filename "
                                          "take 1",
                                          path)}});
  while (const auto line = tracer.read_error_line()) {
    if (line->starts_with("clew: tracing")) break;
  }
  pid_t pid = 0;
  char* arguments[] = {const_cast<char*>(path.c_str()), nullptr};
  ASSERT_EQ(posix_spawn(&pid, path.c_str(), nullptr, nullptr, arguments, nullptr), 0);
  EXPECT_EQ(waitpid(pid, nullptr, 0), pid);
  const auto end = tracer.wait_for_end();
  std::filesystem::remove(path);
  EXPECT_THAT(end.output, HasSubstr(fmt::format("{{\"pid\":{},\"filename\":\"{}\"}}", pid, path)));
}

// The clock ticks 499 times in each second that a processor works for the victim. What the bounds
// leave is for ticks that an interrupt of another kind delays or a virtual machine leaves out.
TEST_F(KernelSources, SamplesByTheClock) {
  const Report report =
      trace("from e in profile(499hz) select count() as n, sum(e.user_pc != 0 ? 1 : 0) as user",
            "spin 1000");
  const double expected = 499.0 * static_cast<double>(answer_.at("cpu_ns")) / 1e9;
  EXPECT_GT(static_cast<double>(number_in(report, "n")), 0.7 * expected);
  EXPECT_LT(static_cast<double>(number_in(report, "n")), 1.3 * expected);
  EXPECT_GT(number_in(report, "user"), number_in(report, "n") / 2);
}

TEST_F(KernelSources, IntervalsAddUpToTheWhole) {
  const Report report =
      trace("from e in syscall(\"getppid\") select count() as n, max(e.tid) as most",
            "parents 300000", {"--every", "50ms"});
  uint64_t sum = 0;
  for (const json& row : report.rows)
    sum += row.at("n").get<uint64_t>();
  EXPECT_EQ(sum, truth_.at("take_parent"));
}

TEST_F(KernelSources, StandBesideSourcesInTheProcess) {
  const Report report = trace(
      "from e in entry(\"calls!take_parent\"), syscall(\"getppid\") "
      "group by e.function, e.pid select new { name = e.function, pid = e.pid, calls = "
      "count() }",
      "parents 5000");
  EXPECT_EQ(report.calls(), (Numbers{{"take_parent", 5000}, {"getppid", 5000}}));
  for (const json& row : report.rows)
    EXPECT_EQ(row.at("pid"), victim_.pid());
}

// Each call comes behind the entry of the function that makes it.
TEST_F(KernelSources, EventsOfBothComeInOneOrder) {
  const Report report = trace(
      "from e in entry(\"calls!take_parent\"), syscall(\"getppid\") select e.function, e.time",
      "parents 200");
  ASSERT_EQ(report.rows.size(), 400U);
  size_t right = 0;
  for (size_t i = 0; i < report.rows.size(); ++i)
    right += report.rows[i].at("function") == (i % 2 == 0 ? "take_parent" : "getppid") ? 1 : 0;
  EXPECT_EQ(right, 400U);
}

TEST_F(KernelSources, CountsDownEvents) {
  const Report report =
      trace("from e in syscall(\"getppid\") select count() as n for 77 events", "parents 500");
  EXPECT_EQ(number_in(report, "n"), 77U);
}

TEST_F(KernelSources, ARingThatIsFullIsALossThatIsCounted) {
  Tracer tracer = Tracer::attach(victim_.pid(), "from e in syscall(\"getppid\") select e.arg0");
  tracer.child().signal(SIGSTOP);
  constexpr uint64_t kCalls = 1'000'000;
  victim_.ask(fmt::format("parents {}", kCalls));
  tracer.child().signal(SIGCONT);
  const Report report = tracer.finish();
  ASSERT_EQ(report.status, 0) << report.error;
  const auto dropped = report.summary.at("dropped").value("ring_full", uint64_t{0});
  EXPECT_GT(dropped, 0U);
  EXPECT_EQ(report.rows.size() + dropped, kCalls);
}

TEST_F(KernelSources, SaysWhatItCannotDo) {
  const auto error_of = [](const std::string& query, const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments{"run", query};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Report report = run_clew(arguments);
    EXPECT_EQ(report.status, 1) << query;
    return report.error;
  };
  EXPECT_THAT(
      error_of("syscall(\"raed\").Count()"),
      HasSubstr("no system call 'raed'; did you mean 'read'?\nsyscall(\"raed\").Count()\n^"));
  EXPECT_THAT(error_of("tracepoint(\"sched:sched_swich\").Count()"),
              HasSubstr("no tracepoint 'sched:sched_swich'; did you mean 'sched:sched_switch'?"));
  EXPECT_THAT(error_of("tracepoint(\"sched_switch\").Count()"),
              HasSubstr("a tracepoint is written with its group: did you mean "
                        "'sched:sched_switch'?"));
  EXPECT_THAT(error_of("from e in syscall(\"read\") select e.cuont"),
              HasSubstr("exports no 'cuont'; did you mean 'count'?"));
  EXPECT_THAT(error_of("from e in kernel(\"vfs_raed\") select count()"),
              HasSubstr("1:11: error: no function 'vfs_raed' in the kernel; did you mean "
                        "'vfs_read'?"));
  EXPECT_THAT(error_of("kernel(\"no_module!vfs_read\").Count()"),
              HasSubstr("no function 'vfs_read' in the kernel's module 'no_module'"));
  EXPECT_THAT(error_of("from e in kernel(\"vfs_read\") select e.cuont"),
              HasSubstr("kernel(\"vfs_read\") exports no 'cuont'; did you mean 'count'?"));
  EXPECT_THAT(error_of("kernel(\"*\").Count()"), HasSubstr("more than 10000; narrow the pattern"));
  EXPECT_THAT(error_of("profile(9999hz).Count()"), HasSubstr("at most 5000 samples a second"));
  EXPECT_THAT(error_of("from e in syscall(\"read\") select e.pid", {"--spill", "/tmp/x"}),
              HasSubstr("--spill of events of the kernel"));
}

// Three programs, each in a process of its own.
constexpr const char* kChildren = "sh -c '/bin/true; /bin/true; (/bin/true); exit 0'";

// None of what its process did before is counted, nor the signal by which it waited for its tracer.
TEST_F(KernelSources, TheFirstCallOfACommandIsItsExec) {
  for (const char* const call : {"prctl", "kill", "getpid", "getppid", "ptrace"}) {
    const Report report =
        run_clew({"run", "--json", "-c", "true", fmt::format("syscall(\"{}\").Count()", call)});
    EXPECT_EQ(report.status, 0) << report.error;
    EXPECT_EQ(number_in(report, "count"), 0U) << call;
  }
  const Report report = run_clew({"run", "--json", "-c", "true", "syscall(\"execve\").Count()"});
  EXPECT_EQ(number_in(report, "count"), 1U) << report.error;
}

TEST_F(KernelSources, ChildrenOfACommandAreCountedAsNotTraced) {
  const Report report =
      run_clew({"run", "--json", "-c", kChildren, "syscall_return(\"execve\").Count()"});
  ASSERT_EQ(report.status, 0) << report.error;
  EXPECT_EQ(number_in(report, "count"), 1U) << "the command's own";
  EXPECT_EQ(report.summary.at("missed").value("forks_muted", 0), 3) << report.summary;
}

TEST_F(KernelSources, ChildrenOfACommandAreFollowed) {
  const Report report = run_clew({"run", "--json", "--follow", "-c", kChildren,
                                  "from e in tracepoint(\"sched:sched_process_exec\") "
                                  "group by e.comm select e.comm, count() as n orderby e.comm"});
  ASSERT_EQ(report.status, 0) << report.error;
  ASSERT_EQ(report.rows.size(), 2U) << report.error;
  EXPECT_EQ(report.rows[0].at("n"), 1) << "sh";
  EXPECT_EQ(report.rows[1].at("n"), 3) << "true";
  EXPECT_EQ(report.summary.at("missed"), json::object()) << report.summary;
}

// Of a process that is there already, which waits for a line before it makes them.
TEST_F(KernelSources, ChildrenOfAProcessAreCountedOrFollowed) {
  for (const bool follows : {false, true}) {
    Child shell({.arguments = {"sh", "-c", "read line; /bin/true; (/bin/true); read line"}});
    Tracer tracer =
        Tracer::attach(shell.pid(), "syscall_return(\"execve\").Count()",
                       follows ? std::vector<std::string>{"--follow"} : std::vector<std::string>{});
    shell.write_line("go");
    shell.close_input();
    (void)shell.wait_for_end();
    const Report report = tracer.wait();
    ASSERT_EQ(report.status, 0) << report.error;
    EXPECT_EQ(number_in(report, "count"), follows ? 2U : 0U);
    EXPECT_EQ(report.summary.at("missed").value("forks_muted", 0), follows ? 0 : 2)
        << report.summary;
  }
}

// And theirs, any number.
TEST_F(KernelSources, GrandchildrenAreFollowedAsWell) {
  const Report report =
      run_clew({"run", "--json", "--follow", "-c",
                "sh -c 'for i in $(seq 100); do sh -c \"/bin/true; exit 0\"; done'",
                "from e in tracepoint(\"sched:sched_process_exec\") "
                "where e.comm == \"true\" select count() as n"});
  ASSERT_EQ(report.status, 0) << report.error;
  EXPECT_EQ(number_in(report, "n"), 100U);
}

TEST_F(KernelSources, ACommandThatCannotBeExecutedIsAnError) {
  const Report report =
      run_clew({"run", "--json", "-c", "no-such-command-of-clew", "syscall(\"read\").Count()"});
  EXPECT_EQ(report.status, 1);
  EXPECT_THAT(report.error, HasSubstr("cannot start 'no-such-command-of-clew'"));
}

// Of a test, gone with it.
class Folder {
 public:
  Folder() {
    std::string name = std::filesystem::temp_directory_path() / "clew.XXXXXX";
    path_ = mkdtemp(name.data());
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { std::filesystem::remove_all(path_); }
  // A command of these lines.
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(path_ / name) << text;
    std::filesystem::permissions(path_ / name, std::filesystem::perms::owner_all);
  }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// Of `clew run -c COMMAND` in the folder.
Child::End run_command(const std::string& command, const std::string& path, const Folder& folder) {
  Child child({.arguments = {CLEW_COMMAND, "run", "--json", "-c", command,
                             "syscall(\"exit_group\").Count()"},
               .environment = {"PATH=" + path},
               .folder = folder.path()});
  return child.wait_for_end();
}

TEST_F(KernelSources, ACommandIsFoundAsAShellFindsIt) {
  const Folder folder;
  const std::string here = folder.path();
  std::filesystem::create_directory(folder.path() / "true");  // Folders are no commands.
  folder.write("false", "#!/etc/passwd\n");                   // Nor what may not be run.
  folder.write("tool", "exit 0\n");
  for (const std::string command : {"true", "false"}) {
    const Child::End end = run_command(command, here + ":/usr/bin:/bin", folder);
    EXPECT_EQ(end.status, 0) << end.error;
    const bool has_failed = end.error.find("exited with status 1") != std::string::npos;
    EXPECT_EQ(has_failed, command == "false") << end.error;
  }
  for (const char* path : {"/no-such-folder:", "", ":/no-such-folder"}) {
    const Child::End end = run_command("tool", path, folder);
    EXPECT_EQ(end.status, 0) << end.error;
  }
}

TEST_F(KernelSources, ACommandThatCannotBeExecutedIsNamed) {
  const Folder folder;
  folder.write("tool", "#!/no/such/interpreter\n");
  const Child::End end = run_command("tool", folder.path(), folder);
  EXPECT_EQ(end.status, 1);
  EXPECT_THAT(end.error, HasSubstr("cannot start 'tool'"));
}

// In the process and in the kernel alike.
TEST_F(KernelSources, SayHowTheMachineIsCalledWhereTheProcessIs) {
  Victim elsewhere({.arguments = {"unshare", "--uts", "sh", "-c",
                                  "hostname clew-elsewhere && exec \"$0\"", victim_path("calls")}},
                   Victim::Place::Started);
  Tracer tracer = Tracer::attach(
      victim_.pid(),
      "from e in syscall(\"getppid\"), entry(\"calls!take_parent\") groupby e.nodename, e.function "
      "select e.nodename, e.function, count() as n, max(e.pid) as pid",
      {"-p", std::to_string(elsewhere.pid())});
  victim_.ask("parents 20");
  elsewhere.ask("parents 30");
  const Report report = tracer.finish();
  EXPECT_EQ(report.status, 0) << report.error;
  EXPECT_EQ(report.rows.size(), 4U);
  for (const json& row : report.rows) {
    const bool is_elsewhere = row.at("nodename") == "clew-elsewhere";
    EXPECT_EQ(row.at("n"), is_elsewhere ? 30 : 20) << row;
    EXPECT_EQ(row.at("pid"), is_elsewhere ? elsewhere.pid() : victim_.pid()) << row;
  }
}

// A kernel may let no program at its functions, and then it says why; tests/kernel_machine has one
// that does.
TEST_F(KernelSources, FunctionsAreCountedOrRefusedWithTheReason) {
  const Report report = run_clew({"run", "--json", "-p", std::to_string(victim_.pid()),
                                  "from e in kernel(\"vfs_read\") select count() as n for 1ms"});
  if (report.status == 0) return;
  EXPECT_THAT(report.error, HasSubstr("vfs_read: this kernel lets no program at its functions: "));
}

TEST_F(KernelSources, FunctionsAreExplained) {
  Child child({.arguments = {CLEW_COMMAND, "explain",
                             "from e in kernel_return(\"vfs_read\") where e.retval > 0 group by "
                             "e.entry.file->f_flags & 3 select count(), p50(e.elapsed), "
                             "p99(e.elapsed), sum(e.entry.count)"}});
  const auto end = child.wait_for_end();
  EXPECT_EQ(end.status, 0) << end.error;
  for (const char* part :
       {"1 probe, of all processes but clew itself\n", "3 tables of cells by key, per processor\n",
        "program of source 0, at entries (keeps open calls): "}) {
    EXPECT_THAT(end.output, HasSubstr(part));
  }
}

TEST_F(KernelSources, AreExplained) {
  Child child({.arguments = {CLEW_COMMAND, "explain", "--programs",
                             "from e in syscall_return(\"read\") where e.elapsed > 1ms "
                             "group by e.pid select e.pid, count(), sum(e.retval)"}});
  const auto end = child.wait_for_end();
  EXPECT_EQ(end.status, 0) << end.error;
  for (const char* part :
       {"in the kernel\n", "probe    filter e.elapsed > 1ms\n",
        "count per processor: count(), sum(e.retval) by e.pid\n",
        "1 probe, of all processes but clew itself\n", "2 tables of cells by key, per processor\n",
        "program of source 0, at entries (keeps open calls): "}) {
    EXPECT_THAT(end.output, HasSubstr(part));
  }
}

TEST_F(KernelSources, AreListedWithWhatTheyExport) {
  Child child({.arguments = {CLEW_COMMAND, "list", "--kernel", "*read"}});
  EXPECT_THAT(child.wait_for_end().output,
              HasSubstr("syscall(\"read\")  unsigned int fd, char * buf, size_t count\n"));
  Child function({.arguments = {CLEW_COMMAND, "list", "--kernel", "vfs_read"}});
  EXPECT_THAT(
      function.wait_for_end().output,
      HasSubstr("kernel(\"vfs_read\")  (struct file * file, char * buf, size_t count, loff_t * "
                "pos) -> ssize_t\n"));
  Child other({.arguments = {CLEW_COMMAND, "list", "--kernel", "sched:sched_swich"}});
  EXPECT_THAT(other.wait_for_end().error, HasSubstr("did you mean 'sched:sched_switch'?"));
}

TEST_F(KernelSources, AnOrdinaryUserIsToldWhatIsMissing) {
  Child child({.arguments = {CLEW_COMMAND, "run", "syscall(\"read\").Count()"}, .as_nobody = true});
  const auto end = child.wait_for_end();
  EXPECT_THAT(end.error, HasSubstr("tracing the kernel needs more rights than you have; run as "
                                   "root, or with CAP_BPF and CAP_PERFMON"));
}

}  // namespace
}  // namespace clew::live

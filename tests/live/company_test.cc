// SPDX-License-Identifier: Apache-2.0
// Other observers on the same process, before and after Clew: uprobes of the kernel, a sampling
// profiler, strace and gdb. Each counts and leaves as if it were alone.
#include <array>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>

#include "live/process_state.h"
#include "live/server.h"
#include "live/tracer.h"
#include "live/uprobe.h"
#include "live/victim.h"

namespace clew::live {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr uint64_t kCompanyRounds = 200;

// Who is refused its sites, wholly or in part, can ask whoever has them.
TEST(Company, OfAnotherSessionIsNamedWhereItHasTheSites) {
  Victim victim("forms_pie");
  Tracer first = Tracer::attach(victim.pid(), entries_of("forms_pie!thread_main"));
  const std::string pid = std::to_string(victim.pid());
  const std::string holder = "clew " + std::to_string(first.child().pid()) + " (user ";
  const Child::End refused =
      Child({.arguments = {CLEW_COMMAND, "run", "-p", pid, returns_of("forms_pie!thread_main")}})
          .wait_for_end();
  EXPECT_EQ(refused.status, 1);
  EXPECT_THAT(refused.error, AllOf(HasSubstr("'thread_main' is refused (window-in-use)"),
                                   HasSubstr("; the process is traced by " + holder)));
  Tracer second = Tracer::attach(victim.pid(), returns_of("forms_pie!*"));
  EXPECT_THAT(
      second.finish().error,
      HasSubstr("sites are refused (window-in-use) while the process is traced by " + holder));
  EXPECT_EQ(first.finish().status, 0);
}

// A program of the kernel at it makes its holder known.
TEST(Company, ListAndDoctorAgreeAboutAUprobeAndNameItsOwner) {
  const std::string name = "forms_pie";
  Victim victim(name);
  // At the second instruction: the first one stays, so that a uprobe there does no harm.
  const uint64_t address = victim.ask("addresses 0").at("form_plain") + 4;
  Uprobe probe(victim.pid(), address);
  NEED_UPROBE(probe);
  const std::string pid = std::to_string(victim.pid());
  const auto said = [](const std::vector<std::string>& arguments) {
    std::vector<std::string> all = {CLEW_COMMAND};
    all.insert(all.end(), arguments.begin(), arguments.end());
    return Child({.arguments = all}).wait_for_end().output;
  };
  EXPECT_THAT(said({"list", name + "!form_plain", "--sites", "-p", pid}),
              HasSubstr("entry: foreign-patch"));
  EXPECT_THAT(said({"doctor", "-p", pid}), HasSubstr("[foreign-patch]"));
  probe.remove();
  EXPECT_THAT(said({"list", name + "!form_plain", "--sites", "-p", pid}), HasSubstr("entry: yes"));
  Child other({.arguments = {CLEW_COMMAND, "dtrace", "-x", "useruprobes", "-p", pid, "-qn",
                             "BEGIN { printf(\"go\\n\"); } pid$target:" + name +
                                 ":form_plain:4 { @ = count(); }"}});
  ASSERT_TRUE(other.read_line().has_value());
  const std::string owner = "clew " + std::to_string(other.pid());
  EXPECT_THAT(said({"list", name + "!form_plain", "--sites", "-p", pid}),
              AllOf(HasSubstr("entry: foreign-patch"), HasSubstr("(" + owner + ")")));
  EXPECT_THAT(said({"doctor", "-p", pid}), HasSubstr("(" + owner + ")"));
}

TEST(Company, OfAnEarlierUprobeIsLeftAlone) {
  const std::string name = "forms_pie";
  Victim victim(name);
  const uint64_t expected = untraced_result(name, kCompanyRounds);
  Uprobe probe(victim.pid(), victim.ask("addresses 0").at("form_plain"));
  NEED_UPROBE(probe);
  // The jump would lie over the uprobe: the first instruction changes what the query asks for.
  const std::string query = "from e in entry(\"" + name +
                            "!form_*\") group by e.function select new { name = e.function, calls "
                            "= count(), third = sum(e.arg2) }";
  Tracer tracer = Tracer::attach(victim.pid(), query, {"--allow-late-uprobe-danger"});
  EXPECT_EQ(victim.run(kCompanyRounds), expected);
  const Numbers truth = victim.counts();
  Report report = tracer.finish();
  EXPECT_EQ(report.status, 0) << report.error;
  EXPECT_THAT(report.summary.dump(), HasSubstr("foreign-patch"));
  EXPECT_EQ(report.calls().count("form_plain"), 0U);
  for (const char* function : {"form_exits", "form_tail", "form_deep"})
    EXPECT_EQ(report.calls()[function], truth.at(function)) << function;
  EXPECT_EQ(probe.hits(), truth.at("form_plain"));
  EXPECT_EQ(victim.run(kCompanyRounds), expected);
  EXPECT_EQ(probe.hits(), 2 * truth.at("form_plain"));
  probe.remove();
  expect_text_equals_file(victim.pid());
  EXPECT_EQ(victim.run(kCompanyRounds), expected);
}

// A tracer has the arenas of others in its memory, and its own is not to be taken for one of them.
TEST(Company, ATracerThatIsTracedKeepsWhatItTraces) {
  Victim victim("sites");
  const uint64_t expected = untraced_result("sites", kCompanyRounds);
  const std::string pid = std::to_string(victim.pid());
  const std::string calls = "from e in entry(\"libc.so.6!write\") select count()";
  Child inner({.arguments = {CLEW_COMMAND, "run", "--json", "/dev/stdin", "-p", pid}});
  Tracer before = Tracer::attach(inner.pid(), calls);  // While it reads its query.
  inner.write_line(entries_of("sites!*"));
  inner.close_input();
  for (auto line = inner.read_error_line(); line; line = inner.read_error_line()) {
    if (line->find("tracing") != std::string::npos) break;
  }
  Tracer behind = Tracer::attach(inner.pid(), calls);
  const Numbers start = victim.counts();
  EXPECT_EQ(victim.run(kCompanyRounds), expected);
  EXPECT_EQ(before.finish().status, 0);
  EXPECT_EQ(victim.run(kCompanyRounds), expected);
  EXPECT_EQ(behind.finish().status, 0);
  EXPECT_EQ(victim.run(kCompanyRounds), expected);
  const Numbers truth = difference(start, victim.counts());
  inner.signal(SIGINT);
  const Child::End end = inner.wait_for_end();
  ASSERT_EQ(end.status, 0) << end.error;
  std::istringstream lines(end.output);
  size_t compared = 0;
  for (std::string line; std::getline(lines, line);) {
    const auto row = nlohmann::json::parse(line);
    if (!row.contains("name") || !truth.contains(row.at("name"))) continue;
    ++compared;
    EXPECT_EQ(row.at("calls"), truth.at(row.at("name"))) << line;
  }
  EXPECT_GT(compared, 10U);
  expect_text_equals_file(victim.pid());
}

// In the same page of text, and whoever leaves first.
TEST(Company, OfALaterUprobeOnAnotherFunctionCountsExactly) {
  const std::string name = "forms_pie";
  for (const bool uprobe_leaves_first : {true, false}) {
    Victim victim(name);
    const uint64_t expected = untraced_result(name, kCompanyRounds);
    Tracer tracer = Tracer::attach(victim.pid(), entries_and_returns_of(name + "!form_exits"));
    Uprobe probe(victim.pid(), victim.ask("addresses 0").at("form_plain"));
    NEED_UPROBE(probe);
    EXPECT_EQ(victim.run(kCompanyRounds), expected);
    const Numbers truth = victim.counts();
    EXPECT_EQ(probe.hits(), truth.at("form_plain"));
    if (uprobe_leaves_first) probe.remove();
    Report report = tracer.finish();
    EXPECT_EQ(report.calls()["form_exits"], 2 * truth.at("form_exits")) << report.error;
    probe.remove();
    EXPECT_EQ(victim.run(kCompanyRounds), expected);
    expect_text_equals_file(victim.pid());
  }
}

// Behind a landing pad is room for both: the uprobe stands on it, and the jump behind.
TEST(Company, OfAUprobeOnTheSameLandingPadCountsExactly) {
  const std::string name = "forms_landing";
  for (const bool uprobe_comes_first : {true, false}) {
    for (const Uprobe::Kind kind : {Uprobe::Kind::Entry, Uprobe::Kind::Return}) {
      Victim victim(name);
      const uint64_t expected = untraced_result(name, kCompanyRounds);
      const uint64_t address = victim.ask("addresses 0").at("form_exits");
      std::optional<Uprobe> probe;
      if (uprobe_comes_first) probe.emplace(victim.pid(), address, kind);
      Tracer tracer = Tracer::attach(victim.pid(), entries_and_returns_of(name + "!form_*"));
      if (!uprobe_comes_first) probe.emplace(victim.pid(), address, kind);
      NEED_UPROBE(*probe);
      EXPECT_EQ(victim.run(kCompanyRounds), expected);
      const Numbers truth = victim.counts();
      EXPECT_EQ(probe->hits(), truth.at("form_exits"));
      Report report = tracer.finish();
      for (const auto& [function, calls] : truth)
        EXPECT_EQ(report.calls()[function], 2 * calls) << function << report.error;
      EXPECT_EQ(victim.run(kCompanyRounds), expected);
      EXPECT_EQ(probe->hits(), 2 * truth.at("form_exits"));
      probe->remove();
      expect_text_equals_file(victim.pid());
    }
  }
}

// The kernel executes the first instruction elsewhere and goes on behind it: there stands our jump,
// and the instruction where it was. Whoever comes and leaves first.
void expect_company_of_uprobes(bool uprobes_come_first, bool uprobes_leave_first) {
  const std::string name = "firsts";
  for (const Uprobe::Kind kind : {Uprobe::Kind::Entry, Uprobe::Kind::Return}) {
    Victim victim(name);
    const uint64_t expected = untraced_result(name, kCompanyRounds);
    const Numbers addresses = victim.ask("addresses 0");
    std::map<std::string, Uprobe> probes;
    const auto add_probes = [&] {
      for (const auto& [function, address] : addresses)
        probes.try_emplace(function, victim.pid(), address, kind);
    };
    if (uprobes_come_first) add_probes();
    Tracer tracer = Tracer::attach(victim.pid(), entries_and_returns_of(name + "!first_*"));
    add_probes();
    NEED_UPROBE(probes.begin()->second);
    EXPECT_EQ(victim.run(kCompanyRounds), expected);
    const Numbers truth = victim.counts();
    for (const auto& [function, probe] : probes)
      EXPECT_EQ(probe.hits(), truth.at(function)) << function;
    if (uprobes_leave_first) probes.clear();
    Report report = tracer.finish();
    for (const auto& [function, address] : addresses)
      EXPECT_EQ(report.calls()[function], 2 * truth.at(function)) << function << report.error;
    EXPECT_EQ(victim.run(kCompanyRounds), expected);
    probes.clear();
    expect_text_equals_file(victim.pid());
    EXPECT_EQ(victim.run(kCompanyRounds), expected);
  }
}

TEST(Company, OfLaterUprobesOnTheSameFunctionsCountsExactly) {
  expect_company_of_uprobes(false, true);
  expect_company_of_uprobes(false, false);
}

TEST(Company, OfEarlierUprobesOnTheSameFunctionsCountsExactly) {
  expect_company_of_uprobes(true, true);
  expect_company_of_uprobes(true, false);
}

// Where the program begins in memory, before a session has put something in front of it: addresses
// of lists are those of its file.
uint64_t load_bias_of(pid_t pid) {
  std::ifstream maps("/proc/" + std::to_string(pid) + "/maps");
  uint64_t start = 0;
  maps >> std::hex >> start;
  return start;
}

// `clew list --sites` says beforehand what comes of it: both count, or the uprobe alone. When it
// has gone, the program is as it was.
TEST(Company, OfALaterUprobeIsWhatTheListOfSitesSays) {
  const std::string name = "sites";
  Child list({.arguments = {CLEW_COMMAND, "list", "sites!rip_*", "--sites", "--json", "--file",
                            victim_path(name)}});
  std::istringstream lines(list.wait_for_end().output);
  const uint64_t expected = untraced_result(name, kCompanyRounds);
  std::map<std::string, unsigned> entries;
  std::map<std::string, unsigned> fates;
  for (std::string line; std::getline(lines, line);) {
    const auto function = nlohmann::json::parse(line);
    ++entries[function.at("entry")];
    if (function.at("entry") != "yes") continue;
    const std::string fate = function.at("later_uprobe");
    ++fates[fate];
    const std::string called = function.at("function");
    Victim victim(name);
    const uint64_t address = load_bias_of(victim.pid()) + function.at("address").get<uint64_t>();
    Tracer tracer = Tracer::attach(victim.pid(), entries_of(name + "!" + called));
    Uprobe probe(victim.pid(), address);
    NEED_UPROBE(probe);
    EXPECT_EQ(victim.run(kCompanyRounds), expected) << called;
    const uint64_t calls = victim.counts().at(called);
    EXPECT_EQ(probe.hits(), calls) << called;
    probe.remove();
    EXPECT_EQ(victim.run(kCompanyRounds), expected) << called << ", the uprobe has gone";
    const uint64_t counted = tracer.finish().calls()[called];
    if (fate == "safe") {
      EXPECT_EQ(counted, 2 * calls) << called;
    }
  }
  EXPECT_NE(entries["later-uprobe"], 0U);
  EXPECT_NE(fates["safe"], 0U);
}

// --- where a command is stopped at its start
// ------------------------------------------------------

constexpr const char* kLoader = "/lib64/ld-linux-x86-64.so.2";

// The loader's notice to debuggers, in a process.
uint64_t notice_of(pid_t pid) {
  Child list({.arguments = {CLEW_COMMAND, "list", "*!_dl_debug_state", "--json", "--file",
                            std::filesystem::canonical(kLoader)}});
  const auto function = nlohmann::json::parse(list.wait_for_end().output);
  std::ifstream maps("/proc/" + std::to_string(pid) + "/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find("/ld-linux") == std::string::npos) continue;
    return std::stoull(line, nullptr, 16) + function.at("address").get<uint64_t>();
  }
  ADD_FAILURE() << "no loader";
  return 0;
}

void expect_command_is_traced() {
  Child tracer({.arguments = {CLEW_COMMAND, "run", entries_of("forms_pie!form_*"), "--json", "-c",
                              victim_path("forms_pie")}});
  tracer.write_line("run 10");
  tracer.write_line("exit");
  tracer.close_input();
  const Child::End end = tracer.wait_for_end();
  EXPECT_EQ(end.status, 0) << end.error;
  EXPECT_THAT(end.output, HasSubstr("\"form_plain\""));
}

// Its trap is the kernel's: nobody else hears of it.
TEST(Company, OfAUprobeWhereACommandIsStoppedAtItsStart) {
  Victim victim("forms_pie");
  Uprobe probe(victim.pid(), notice_of(victim.pid()));
  NEED_UPROBE(probe);
  expect_command_is_traced();
  EXPECT_NE(probe.hits(), 0U);
}

// The processor has four, which others may have taken.
TEST(Company, OfSomebodyWhoHasAllBreakpointsOfTheProcessor) {
  std::vector<FileDescriptor> taken;
  for (int processor = 0; processor < get_nprocs_conf(); ++processor) {
    for (uint64_t i = 0; i < 4; ++i) {
      perf_event_attr attributes{};
      attributes.type = PERF_TYPE_BREAKPOINT;
      attributes.bp_type = HW_BREAKPOINT_X;
      attributes.bp_addr = 0x1000 + 16 * i;
      attributes.bp_len = sizeof(long);
      attributes.pinned = 1;
      FileDescriptor event = open_event(attributes, {.processor = processor});
      if (!event.valid()) GTEST_SKIP() << "NOT TESTED: no breakpoints for us on this machine";
      taken.push_back(std::move(event));
    }
  }
  expect_command_is_traced();
}

// --- a profiler ----------------------------------------------------------------------------------

// Samples stacks by the processor's clock into a ring, as `perf record -g` does.
class Sampler {
 public:
  explicit Sampler(pid_t pid) {
    perf_event_attr attributes{};
    attributes.type = PERF_TYPE_SOFTWARE;
    attributes.config = PERF_COUNT_SW_CPU_CLOCK;
    attributes.sample_freq = kSamplesPerSecond;
    attributes.freq = 1;
    attributes.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_CALLCHAIN;
    attributes.exclude_kernel = 1;
    event_ = open_event(attributes, {.pid = pid});
    if (!event_.valid()) return;
    void* const ring =
        mmap(nullptr, kRingBytes, PROT_READ | PROT_WRITE, MAP_SHARED, event_.get(), 0);
    if (ring != MAP_FAILED) ring_ = static_cast<perf_event_mmap_page*>(ring);
  }
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;
  ~Sampler() {
    if (ring_ != nullptr) munmap(ring_, kRingBytes);
  }

  [[nodiscard]] bool is_there() const { return ring_ != nullptr; }
  [[nodiscard]] uint64_t bytes() const {
    return __atomic_load_n(&ring_->data_head, __ATOMIC_ACQUIRE);
  }

 private:
  static constexpr uint64_t kSamplesPerSecond = 2000;
  static constexpr size_t kRingBytes = 4096 * (1 + 64);

  FileDescriptor event_;
  perf_event_mmap_page* ring_ = nullptr;
};

TEST(Company, OfAProfilerBeforeAndAfterCountsExactly) {
  const std::string name = "forms_pie";
  constexpr uint64_t kLong = 100'000;
  Victim victim(name);
  const uint64_t expected = untraced_result(name, kLong);
  auto first = std::make_unique<Sampler>(victim.pid());
  if (!first->is_there()) GTEST_SKIP() << "NOT TESTED: no perf events for us on this machine";
  Tracer tracer = Tracer::attach(victim.pid(), entries_and_returns_of(name + "!form_*"));
  EXPECT_EQ(victim.run(kLong), expected);
  EXPECT_GT(first->bytes(), 0U);
  first.reset();
  const Sampler second(victim.pid());
  EXPECT_EQ(victim.run(kLong), expected);
  const Numbers truth = victim.counts();
  Report report = tracer.finish();
  EXPECT_EQ(victim.run(kLong), expected);
  EXPECT_GT(second.bytes(), 0U);
  for (const auto& [function, calls] : truth)
    EXPECT_EQ(report.calls()[function], 2 * calls) << function;
  expect_text_equals_file(victim.pid());
}

// --- debuggers -----------------------------------------------------------------------------------

pid_t tracer_of(pid_t pid) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  std::string word;
  pid_t tracer = 0;
  while (status >> word) {
    if (word == "TracerPid:" && status >> tracer) break;
  }
  return tracer;
}

// Until it holds the process.
Child start_strace(pid_t pid) {
  Child strace({.arguments = {"strace", "-f", "-o", "/dev/null", "-p", std::to_string(pid)}});
  while (strace.running() && tracer_of(pid) != strace.pid()) {
  }
  return strace;
}

void end_strace(Child& strace, pid_t pid) {
  strace.signal(SIGTERM);
  strace.wait_for_end();
  EXPECT_EQ(tracer_of(pid), 0);
}

bool have_strace() {
  return present("/usr/bin/strace");
}

TEST(Company, OfAnEarlierStraceIsRefused) {
  if (!have_strace()) GTEST_SKIP() << "NOT TESTED: no strace";
  Victim victim("forms_pie");
  Child strace = start_strace(victim.pid());
  const Report refused = run_clew(
      {"run", entries_of("forms_pie!form_*"), "-p", std::to_string(victim.pid()), "--json"});
  EXPECT_EQ(refused.status, 1);
  EXPECT_THAT(refused.error, HasSubstr("is traced by process " + std::to_string(strace.pid()) +
                                       " (a debugger?); end that one first [already-traced]"));
  EXPECT_EQ(victim.run(kCompanyRounds), untraced_result("forms_pie", kCompanyRounds));
  expect_text_equals_file(victim.pid());
  end_strace(strace, victim.pid());
  const Traced traced =
      trace_rounds(victim, "forms_pie", entries_of("forms_pie!form_*"), kCompanyRounds);
  expect_exact(traced, "entry");
}

TEST(Company, OfALaterStraceCountsExactly) {
  if (!have_strace()) GTEST_SKIP() << "NOT TESTED: no strace";
  Victim victim("forms_pie");
  const uint64_t expected = untraced_result("forms_pie", kCompanyRounds);
  Tracer tracer = Tracer::attach(victim.pid(), entries_and_returns_of("forms_pie!form_*"));
  Child strace = start_strace(victim.pid());
  EXPECT_EQ(victim.run(kCompanyRounds), expected);
  const Numbers truth = victim.counts();
  end_strace(strace, victim.pid());
  Report report = tracer.finish();
  EXPECT_EQ(report.status, 0) << report.error;
  for (const auto& [function, calls] : truth)
    EXPECT_EQ(report.calls()[function], 2 * calls) << function;
  EXPECT_EQ(victim.run(kCompanyRounds), expected);
  expect_text_equals_file(victim.pid());
}

// Nobody may stop a process that another one traces: the probes stay, say so, and can be removed
// when that has left.
TEST(Company, OfAStraceThatStaysLongerLeavesProbesThatAreRemovedLater) {
  if (!have_strace()) GTEST_SKIP() << "NOT TESTED: no strace";
  Victim victim("forms_pie");
  const uint64_t expected = untraced_result("forms_pie", kCompanyRounds);
  EXPECT_EQ(victim.run(kCompanyRounds), expected);
  const ProcessState before = ProcessState::of(victim.pid());
  const Numbers counts_before = victim.counts();
  Tracer tracer = Tracer::attach(victim.pid(), entries_of("forms_pie!form_*"));
  Child strace = start_strace(victim.pid());
  EXPECT_EQ(victim.run(kCompanyRounds), expected);
  const Numbers truth = difference(counts_before, victim.counts());
  Report report = tracer.finish();
  EXPECT_EQ(report.calls(), truth) << report.error;
  EXPECT_THAT(report.error, HasSubstr("clew detach " + std::to_string(victim.pid())));
  EXPECT_EQ(victim.run(kCompanyRounds), expected);
  end_strace(strace, victim.pid());
  Child detach({.arguments = {CLEW_COMMAND, "detach", std::to_string(victim.pid())}});
  EXPECT_EQ(detach.wait_for_end().status, 0);
  EXPECT_EQ(victim.run(kCompanyRounds), expected);
  expect_text_equals_file(victim.pid());
  expect_no_residue(before, victim.pid());
}

}  // namespace
}  // namespace clew::live

// SPDX-License-Identifier: Apache-2.0
// What `clew doctor` says of real processes, and that it leaves them as they were.
#include <csignal>
#include <cstdio>
#include <fstream>
#include <map>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "live/process_state.h"
#include "live/tracer.h"
#include "live/victim.h"

namespace clew::live {
namespace {

using testing::HasSubstr;

struct Diagnosis {
  int status = -1;
  std::map<std::string, nlohmann::json> of_machine;  // By check.
  std::map<std::string, nlohmann::json> of_process;

  [[nodiscard]] std::string verdict(const std::string& check) const {
    const auto found = of_process.find(check);
    return found == of_process.end() ? "" : found->second.at("verdict").get<std::string>();
  }
  [[nodiscard]] std::string text(const std::string& check) const {
    const auto found = of_process.find(check);
    return found == of_process.end() ? "" : found->second.dump();
  }
};

Diagnosis doctor(pid_t pid, const std::vector<std::string>& more = {}, bool as_nobody = false) {
  std::vector<std::string> arguments = {CLEW_COMMAND, "doctor", "--json", "-p",
                                        std::to_string(pid)};
  arguments.insert(arguments.end(), more.begin(), more.end());
  Child child({.arguments = arguments, .folder = "/", .as_nobody = as_nobody});
  const Child::End end = child.wait_for_end();
  Diagnosis diagnosis;
  diagnosis.status = end.status;
  std::istringstream lines(end.output);
  for (std::string line; std::getline(lines, line);) {
    const auto finding = nlohmann::json::parse(line);
    const bool of_machine = finding.at("about") == "machine";
    (of_machine ? diagnosis.of_machine
                : diagnosis.of_process)[finding.at("check").get<std::string>()] = finding;
  }
  return diagnosis;
}

TEST(Doctor, NamesWhatTheMachineAllows) {
  const Child::End end = Child({.arguments = {CLEW_COMMAND, "doctor"}}).wait_for_end();
  for (const char* check : {"system", "fsgsbase", "clock", "shadow-stack", "executable-memory",
                            "ptrace", "capabilities", "lockdown", "bpf", "perf-events"})
    EXPECT_THAT(end.output, HasSubstr(check));
}

TEST(Doctor, FindsNothingAgainstAPlainProcessAndLeavesItAsItWas) {
  Victim victim("forms_pie");
  const ProcessState before = ProcessState::of(victim.pid());
  const Diagnosis looked = doctor(victim.pid());
  EXPECT_EQ(looked.verdict("permission"), "ok") << looked.text("permission");
  EXPECT_EQ(looked.verdict("seccomp"), "ok");
  EXPECT_THAT(looked.text("threads"), HasSubstr("--stop"));
  const Diagnosis stopped = doctor(victim.pid(), {"--stop"});
  EXPECT_EQ(stopped.verdict("threads"), "ok") << stopped.text("threads");
  expect_text_equals_file(victim.pid());
  expect_no_residue(before, victim.pid());
  EXPECT_EQ(victim.run(100), untraced_result("forms_pie", 100));
}

TEST(Doctor, SeesWhoUsesGsOnlyWhenItMayStopIt) {
  Victim victim("uses_gs");
  victim.ask("use_gs");
  const uint64_t expected = victim.run(100);
  EXPECT_EQ(doctor(victim.pid()).verdict("gs-in-use"), "");
  const Diagnosis diagnosis = doctor(victim.pid(), {"--stop"});
  EXPECT_EQ(diagnosis.status, 1);
  EXPECT_EQ(diagnosis.verdict("gs-in-use"), "problem");
  EXPECT_EQ(victim.run(100), expected);
}

TEST(Doctor, NamesTheDebugger) {
  Victim victim("forms_pie");
  ASSERT_EQ(ptrace(PTRACE_SEIZE, victim.pid(), nullptr, nullptr), 0);
  const Diagnosis diagnosis = doctor(victim.pid());
  EXPECT_THAT(diagnosis.text("already-traced"), HasSubstr(std::to_string(getpid())));
  EXPECT_EQ(diagnosis.status, 1);
}

TEST(Doctor, NamesASessionAndWhatAKilledOneLeft) {
  Victim victim("forms_pie");
  Tracer tracer = Tracer::attach(victim.pid(), entries_of("forms_pie!form_*"));
  const Diagnosis during = doctor(victim.pid(), {"--stop"});
  EXPECT_THAT(during.text("session"), HasSubstr(std::to_string(tracer.child().pid())));
  EXPECT_EQ(during.verdict("threads"), "ok") << during.text("gs-in-use");
  tracer.child().signal(SIGKILL);
  tracer.child().wait_for_end();
  EXPECT_THAT(doctor(victim.pid()).text("residue"),
              HasSubstr("clew detach " + std::to_string(victim.pid())));
}

TEST(Doctor, SeesFiltersOfSystemCalls) {
  Victim filtered("sandbox");
  filtered.ask("lock 0");
  EXPECT_EQ(doctor(filtered.pid()).verdict("seccomp"), geteuid() == 0 ? "note" : "problem");
  Victim strict("hardened");
  strict.ask("deny_calls 0");
  EXPECT_EQ(doctor(strict.pid()).verdict("seccomp"), "problem");
}

TEST(Doctor, TellsAnOrdinaryUserWhy) {
  if (geteuid() != 0) GTEST_SKIP() << "NOT TESTED: needs root to become somebody else";
  Victim of_root("forms_pie");
  const Diagnosis strange = doctor(of_root.pid(), {}, /*as_nobody=*/true);
  if (strange.status == 127) GTEST_SKIP() << "the build folder is not readable by others";
  EXPECT_THAT(strange.text("permission"), HasSubstr("belongs to user 0"));
  EXPECT_EQ(strange.of_machine.at("capabilities").at("verdict"), "note");
  EXPECT_EQ(strange.of_machine.at("uprobes").at("verdict"), "note");
  EXPECT_EQ(strange.of_machine.at("kprobes").at("verdict"), "note");
  const ChildOptions options = {
      .arguments = {victim_path("hardened")}, .folder = "/", .as_nobody = true};
  Victim own(options, Victim::Place::Started);
  const Diagnosis allowed = doctor(own.pid(), {"--stop"}, /*as_nobody=*/true);
  EXPECT_EQ(allowed.verdict("permission"), "ok") << allowed.text("permission");
  EXPECT_EQ(allowed.verdict("threads"), "ok");
  own.ask("deny_dumps 0");
  EXPECT_THAT(doctor(own.pid(), {}, /*as_nobody=*/true).text("permission"),
              HasSubstr("PR_SET_DUMPABLE"));
}

TEST(Doctor, SeesNamespacesAndLimits) {
  if (geteuid() != 0) GTEST_SKIP() << "NOT TESTED: unshare needs root";
  const ChildOptions options = {.arguments = {"unshare", "--pid", "--fork", "--kill-child",
                                              "--mount-proc", victim_path("forms_pie")}};
  Victim victim(options, Victim::Place::ItsChild);
  const rlimit narrow = {.rlim_cur = rlim_t{100} << 20, .rlim_max = RLIM_INFINITY};
  ASSERT_EQ(prlimit(victim.pid(), RLIMIT_AS, &narrow, nullptr), 0);
  const Diagnosis diagnosis = doctor(victim.pid());
  EXPECT_THAT(diagnosis.text("pid-namespace"), HasSubstr("process 1;"));
  EXPECT_EQ(diagnosis.verdict("mount-namespace"), "note");
  EXPECT_THAT(diagnosis.text("address-space"), HasSubstr("--as=unlimited"));
}

Diagnosis doctor_of_causes(pid_t pid, const std::string& vocabulary) {
  Child child({.arguments = {CLEW_COMMAND, "doctor", "--json", "--cause", std::to_string(pid),
                             "--vocabulary", vocabulary}});
  const Child::End end = child.wait_for_end();
  Diagnosis diagnosis;
  diagnosis.status = end.status;
  std::istringstream lines(end.output);
  for (std::string line; std::getline(lines, line);) {
    const auto finding = nlohmann::json::parse(line);
    diagnosis.of_process[finding.at("check").get<std::string>()] = finding;
  }
  return diagnosis;
}

TEST(Doctor, SaysWhatIsKnownOfAProgramsRequests) {
  const std::string vocabulary =
      testing::TempDir() + "/forms." + std::to_string(getpid()) + ".toml";
  std::ofstream(vocabulary) << R"(
[[program]]
name = "forms_pie"
onward = "blocking"
how = "heuristic"
[[tracepoint]]
name = "forms.work"
function = ["forms_pie!main", "forms_pie!of_another_version"]
cause = "begin"
)";
  Victim victim("forms_pie");
  const ProcessState before = ProcessState::of(victim.pid());
  const Diagnosis known = doctor_of_causes(victim.pid(), vocabulary);
  EXPECT_EQ(known.status, 1);  // A query with joins would be refused.
  EXPECT_THAT(known.text("program"), HasSubstr("forms."));
  EXPECT_THAT(known.text("program"), HasSubstr("with cause >= heuristic"));
  EXPECT_EQ(known.verdict("hand-over"), "problem");
  EXPECT_THAT(known.text("hand-over"), HasSubstr("of_another_version"));
  EXPECT_THAT(known.text("unseen"), HasSubstr("pipes"));
  expect_text_equals_file(victim.pid());
  expect_no_residue(before, victim.pid());
  const Diagnosis missing = doctor_of_causes(4194303, vocabulary);
  EXPECT_EQ(missing.status, 1);
  EXPECT_EQ(missing.verdict("process"), "problem");
  std::ofstream(vocabulary) << "[[program]]\nname = 3\n";
  EXPECT_THAT(doctor_of_causes(victim.pid(), vocabulary).text("process"), HasSubstr("forms."));
  std::remove(vocabulary.c_str());
}

TEST(Doctor, SaysWhenThereIsNoSuchProcess) {
  const Diagnosis diagnosis = doctor(4194303);
  EXPECT_EQ(diagnosis.status, 1);
  EXPECT_EQ(diagnosis.verdict("process"), "problem");
}

}  // namespace
}  // namespace clew::live

// SPDX-License-Identifier: Apache-2.0
// Machines and processes that are not here, and what the doctor says of them.
#include <cerrno>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "doctor/machine.h"
#include "doctor/process.h"

namespace clew::doctor {
namespace {

using testing::HasSubstr;

constexpr uint64_t kAllCapabilities = ~uint64_t{0};

Machine machine_of(uint64_t capabilities, uid_t user) {
  Machine machine;
  machine.system = "Linux 6.18.0 x86_64";
  machine.architecture = "x86_64";
  machine.perf_paranoid = 2;
  machine.lockdown = "none";
  machine.asker = {.user = user, .capabilities = capabilities};
  machine.kernel = {.has_types = true,
                    .has_open_loops = true,
                    .has_uprobes = true,
                    .has_uprobe_multi = true,
                    .has_kprobes = true,
                    .has_kprobe_multi = true,
                    .trampoline_error = 0,
                    .has_tracepoints = true};
  return machine;
}

Machine root_machine() {
  return machine_of(kAllCapabilities, 0);
}

Machine user_machine() {
  Machine machine = machine_of(0, 1000);
  machine.kernel.program_error = EPERM;
  machine.kernel.uprobe_error = EACCES;
  machine.kernel.has_uprobe_multi = false;  // Not seen without rights.
  machine.kernel.has_kprobe_multi = false;
  machine.kernel.has_tracepoints = false;
  return machine;
}

Finding found(const Findings& findings, std::string_view check) {
  const Finding* const finding = findings.find(check);
  EXPECT_NE(finding, nullptr) << check << " is not in\n" << text_of(findings.all());
  return finding == nullptr ? Finding{} : *finding;
}

TEST(DoctorOfAMachine, FindsNothingWrongForRootOnANewKernel) {
  const Findings findings = judge(root_machine());
  for (const Finding& finding : findings.all())
    EXPECT_EQ(finding.verdict, Verdict::Ok) << finding.check << ": " << finding.detail;
}

TEST(DoctorOfAMachine, TellsAnOrdinaryUserWhatNeedsRights) {
  const Findings findings = judge(user_machine());
  EXPECT_EQ(findings.problems(), 0U) << "own processes can be traced";
  EXPECT_THAT(found(findings, "ptrace").refused, HasSubstr("others"));
  EXPECT_THAT(found(findings, "capabilities").detail, HasSubstr("CAP_BPF"));
  EXPECT_THAT(found(findings, "bpf").refused, HasSubstr("dtrace"));
  EXPECT_THAT(found(findings, "bpf").remedy, HasSubstr("CAP_PERFMON"));
  EXPECT_THAT(found(findings, "perf-events").detail, HasSubstr("is 2"));
  EXPECT_THAT(found(findings, "uprobes").detail, HasSubstr("gives you none"));
  EXPECT_EQ(found(findings, "kprobes").verdict, Verdict::Note);
}

TEST(DoctorOfAMachine, SaysWhoseProcessesProcHides) {
  EXPECT_EQ(found(judge(user_machine()), "hidepid").verdict, Verdict::Ok);
  Machine user = user_machine();
  user.hides_processes = true;
  EXPECT_EQ(found(judge(user), "hidepid").verdict, Verdict::Note);
  EXPECT_THAT(found(judge(user), "hidepid").refused, HasSubstr("others"));
  Machine root = root_machine();
  root.hides_processes = true;
  EXPECT_EQ(found(judge(root), "hidepid").verdict, Verdict::Ok);
}

TEST(DoctorOfAMachine, KnowsThatUprobesNeedProgramsAsWell) {
  Machine machine = user_machine();
  machine.kernel.uprobe_error = 0;  // CAP_PERFMON alone.
  EXPECT_THAT(found(judge(machine), "uprobes").detail, HasSubstr("takes no program"));
}

TEST(DoctorOfAMachine, TellsOfAKernelThatIsTooOldWhatItServes) {
  Machine machine = root_machine();
  machine.kernel.is_too_old = true;
  const Findings findings = judge(machine);
  EXPECT_EQ(findings.problems(), 0U) << "processes can be traced by jumps";
  for (const std::string_view check : {"bpf", "uprobes", "kprobes"})
    EXPECT_THAT(found(findings, check).remedy, HasSubstr("Linux 6.1 or later")) << check;
  EXPECT_THAT(found(findings, "bpf").detail, HasSubstr("it is older than 6.1"));
}

TEST(DoctorOfAMachine, KnowsThatSysAdminHoldsTheYoungerCapabilities) {
  const uint64_t admin = uint64_t{1} << static_cast<uint8_t>(Capability::SysAdmin);
  const Findings findings = judge(machine_of(admin, 0));
  EXPECT_EQ(found(findings, "capabilities").detail, "without CAP_SYS_PTRACE");
}

struct YamaCase {
  int scope;
  Verdict user;
  Verdict root;
};

TEST(DoctorOfAMachine, KnowsTheScopesOfYama) {
  for (const YamaCase& yama :
       {YamaCase{0, Verdict::Note, Verdict::Ok}, YamaCase{1, Verdict::Note, Verdict::Ok},
        YamaCase{2, Verdict::Problem, Verdict::Ok},
        YamaCase{3, Verdict::Problem, Verdict::Problem}}) {
    Machine user = user_machine();
    user.yama_scope = yama.scope;
    Machine root = root_machine();
    root.yama_scope = yama.scope;
    EXPECT_EQ(found(judge(user), "ptrace").verdict, yama.user) << yama.scope;
    EXPECT_EQ(found(judge(root), "ptrace").verdict, yama.root) << yama.scope;
  }
}

TEST(DoctorOfAMachine, NamesWhatAnOldOrLockedKernelRefuses) {
  Machine machine = root_machine();
  machine.has_fsgsbase = false;
  machine.load_refusal = "the vDSO has no exception table";
  machine.memfd_noexec = 2;
  machine.lockdown = "confidentiality";
  machine.has_shadow_stacks = true;
  machine.kernel.has_kprobes = false;
  machine.kernel.trampoline_error = EOPNOTSUPP;
  const Findings findings = judge(machine);
  EXPECT_EQ(found(findings, "fsgsbase").verdict, Verdict::Note);
  EXPECT_THAT(found(findings, "fsgsbase").detail, HasSubstr("arch_prctl"));
  EXPECT_THAT(found(findings, "memory-reads").detail, HasSubstr("no exception table"));
  EXPECT_THAT(found(findings, "executable-memory").remedy, HasSubstr("vm.memfd_noexec=1"));
  EXPECT_EQ(found(findings, "lockdown").verdict, Verdict::Note);
  EXPECT_THAT(found(findings, "shadow-stack").remedy, HasSubstr("GLIBC_TUNABLES"));
  EXPECT_THAT(found(findings, "kprobes").refused, HasSubstr("fbt"));
  EXPECT_THAT(found(findings, "fentry").refused, HasSubstr("lockstat"));
}

TEST(DoctorOfAMachine, SaysWhatAContainerTakesAway) {
  Machine machine = root_machine();
  machine.asker.is_filtered = true;
  machine.asker.in_first_user_namespace = false;
  machine.asker.in_first_pid_namespace = false;
  const Findings findings = judge(machine);
  EXPECT_THAT(found(findings, "seccomp").refused, HasSubstr("[seccomp]"));
  EXPECT_EQ(found(findings, "user-namespace").verdict, Verdict::Note);
  EXPECT_EQ(found(findings, "pid-namespace").verdict, Verdict::Note);
}

ProcessView plain_view() {
  ProcessView view;
  view.pid = 12;
  view.user = 1000;
  view.facts->uid = 1000;
  view.facts->root = "/";
  view.stop = inline_::TrialStop{.threads = 3, .keeps_self_pointer = true};
  return view;
}

TEST(DoctorOfAProcess, FindsNothingWrongWithAPlainOne) {
  const Findings findings = judge(plain_view(), user_machine());
  for (const Finding& finding : findings.all())
    EXPECT_EQ(finding.verdict, Verdict::Ok) << finding.check << ": " << finding.detail;
}

TEST(DoctorOfAProcess, SaysWhyItMayNotBeTraced) {
  ProcessView view = plain_view();
  view.memory_error = EACCES;
  view.facts = fail(ErrorCode::Io, "not readable");
  view.is_dumpable = false;
  Findings findings = judge(view, user_machine());
  EXPECT_THAT(found(findings, "permission").detail, HasSubstr("set-user-id"));
  view.user = 0;
  findings = judge(view, user_machine());
  EXPECT_THAT(found(findings, "permission").detail, HasSubstr("belongs to user 0"));
  EXPECT_THAT(found(findings, "permission").refused, HasSubstr("[no-permission]"));
  Machine yama = user_machine();
  yama.yama_scope = 1;
  view.user = 1000;
  view.is_dumpable = true;
  findings = judge(view, yama);
  EXPECT_THAT(found(findings, "permission").remedy, HasSubstr("-c"));
}

TEST(DoctorOfAProcess, KnowsWhoMaySuspendAFilter) {
  ProcessView view = plain_view();
  view.facts->seccomp = target::ProcessFacts::Seccomp::Filter;
  EXPECT_EQ(found(judge(view, user_machine()), "seccomp").verdict, Verdict::Problem);
  EXPECT_EQ(found(judge(view, root_machine()), "seccomp").verdict, Verdict::Note);
  Machine filtered = root_machine();
  filtered.asker.is_filtered = true;
  EXPECT_EQ(found(judge(view, filtered), "seccomp").verdict, Verdict::Problem);
  view.facts->seccomp = target::ProcessFacts::Seccomp::Strict;
  EXPECT_EQ(found(judge(view, root_machine()), "seccomp").verdict, Verdict::Problem);
}

TEST(DoctorOfAProcess, SaysHowThreadsComeByTheirSlots) {
  ProcessView view = plain_view();
  view.has_base_instructions = false;
  Finding bases = found(judge(view, root_machine()), "fsgsbase");
  EXPECT_EQ(bases.verdict, Verdict::Ok);
  EXPECT_THAT(bases.detail, HasSubstr("by a system call"));
  view.stop = inline_::TrialStop{
      .threads = 3, .keeps_self_pointer = true, .bases = abi::SegmentBases::Tracer};
  bases = found(judge(view, root_machine()), "fsgsbase");
  EXPECT_EQ(bases.verdict, Verdict::Note);
  EXPECT_THAT(bases.refused, HasSubstr("no_slot"));
  view.stop.reset();
  view.facts->seccomp = target::ProcessFacts::Seccomp::Filter;
  EXPECT_THAT(found(judge(view, root_machine()), "fsgsbase").detail, HasSubstr("--stop"));
}

TEST(DoctorOfAProcess, SaysHowItsMemoryIsRead) {
  ProcessView view = plain_view();
  EXPECT_THAT(found(judge(view, root_machine()), "memory-reads").detail, HasSubstr("by loads"));
  view.facts->seccomp = target::ProcessFacts::Seccomp::Filter;
  EXPECT_EQ(found(judge(view, root_machine()), "seccomp").refused, "");
  view.load_refusal = "it maps the device /dev/mem";
  EXPECT_THAT(found(judge(view, root_machine()), "memory-reads").detail, HasSubstr("/dev/mem"));
  EXPECT_THAT(found(judge(view, root_machine()), "seccomp").refused, HasSubstr("read memory"));
}

TEST(DoctorOfAProcess, NamesEachHazardOnce) {
  ProcessView view = plain_view();
  view.tracer = 7;
  view.tracer_name = "gdb";
  view.facts->has_shadow_stack = true;
  view.facts->namespace_pids = {12, 1};
  view.in_our_pid_namespace = false;
  view.in_our_mount_namespace = false;
  view.uprobes = {"shop+0x1130"};
  view.address_space = {.used = 1 << 20, .most = 2 << 20};
  view.descriptors = {.used = 10, .most = 10};
  view.stop = fail(ErrorCode::Refused, "process 12 is traced by process 7 [already-traced]");
  const Findings findings = judge(view, root_machine());
  EXPECT_THAT(found(findings, "already-traced").detail, HasSubstr("process 7 (gdb) holds it"));
  EXPECT_EQ(found(findings, "shadow-stack").verdict, Verdict::Problem);
  EXPECT_THAT(found(findings, "pid-namespace").detail, HasSubstr("process 1;"));
  EXPECT_EQ(found(findings, "mount-namespace").verdict, Verdict::Note);
  EXPECT_THAT(found(findings, "uprobes").refused, HasSubstr("[foreign-patch]"));
  EXPECT_THAT(found(findings, "uprobes").detail, HasSubstr("at shop+0x1130"));
  EXPECT_THAT(found(findings, "address-space").remedy, HasSubstr("prlimit --pid 12"));
  EXPECT_EQ(found(findings, "descriptors").verdict, Verdict::Problem);
  EXPECT_EQ(findings.find("threads"), nullptr);
  EXPECT_EQ(findings.problems(), 4U);
}

TEST(DoctorOfAProcess, CountsTheEntriesThatBearLaterUprobes) {
  ProcessView view = plain_view();
  EXPECT_EQ(judge(view, root_machine()).find("later-uprobes"), nullptr);
  view.later_uprobes = {.safe = 10};
  EXPECT_EQ(found(judge(view, root_machine()), "later-uprobes").verdict, Verdict::Ok);
  view.later_uprobes = {.safe = 10, .hides_probe = 3, .refused = 2};
  const Findings findings = judge(view, root_machine());
  EXPECT_THAT(found(findings, "later-uprobes").detail,
              HasSubstr("10 of 15 entries bear later uprobes of others; at 3 one hides Clew's "
                        "probe"));
  EXPECT_THAT(found(findings, "later-uprobes").refused, HasSubstr("2 entries"));
  EXPECT_THAT(found(findings, "later-uprobes").remedy, HasSubstr("clew list --sites -p 12"));
  EXPECT_EQ(findings.problems(), 0U);
}

TEST(DoctorOfAProcess, PassesOnWhatItsThreadsSay) {
  ProcessView view = plain_view();
  view.stop = fail(ErrorCode::Refused, "thread 13 of process 12 uses the gs segment [gs-in-use]");
  EXPECT_THAT(found(judge(view, root_machine()), "gs-in-use").detail, HasSubstr("thread 13"));
  view.stop = std::nullopt;
  EXPECT_THAT(found(judge(view, root_machine()), "threads").detail, HasSubstr("--stop"));
}

TEST(DoctorsWords, AreTextForPeopleAndALineOfJsonForEachFinding) {
  Findings findings("process 12");
  findings.ok("seccomp", "it does not filter its system calls");
  findings.problem("residue", {.detail = "left", .refused = "much", .remedy = "clew detach 12"});
  const std::string text = text_of(findings.all());
  EXPECT_THAT(text, HasSubstr("process 12\n  ok       seccomp            it does"));
  EXPECT_THAT(text, HasSubstr("  PROBLEM  residue            left\n"));
  EXPECT_THAT(text, HasSubstr("refused: much\n"));
  EXPECT_THAT(text, HasSubstr("to do: clew detach 12\n"));
  const std::string json = json_of(findings.all());
  const auto second = nlohmann::json::parse(json.substr(json.find('\n') + 1));
  EXPECT_EQ(second.at("about"), "process 12");
  EXPECT_EQ(second.at("check"), "residue");
  EXPECT_EQ(second.at("verdict"), "problem");
  EXPECT_EQ(second.at("to_do"), "clew detach 12");
}

}  // namespace
}  // namespace clew::doctor

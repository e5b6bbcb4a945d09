// SPDX-License-Identifier: Apache-2.0
#include "doctor/machine.h"

#include <array>

#include <fmt/format.h>

#include "base/error_text.h"

namespace clew::doctor {
namespace {

constexpr std::string_view kKernelQuestions =
    "queries of the kernel (syscall, tracepoint, kernel, profile), and clew dtrace";

void judge_system(const Machine& machine, Findings& findings) {
  findings.ok("system", machine.system);
  if (machine.architecture != "x86_64") {
    findings.problem("architecture", {.detail = machine.architecture,
                                      .refused = "everything: Clew runs on x86_64"});
  }
  if (machine.has_fsgsbase) {
    findings.ok("fsgsbase", "programs may set gs: slots are reached without a system call");
  } else {
    findings.note("fsgsbase",
                  {.detail = "programs may not set gs: a thread's first hit makes a system call "
                             "(arch_prctl), and each hit of a program without the C library's "
                             "thread pointer (Go)",
                   .refused = "later threads of processes whose filter forbids that (no_slot)"});
  }
  if (machine.load_refusal.empty()) {
    findings.ok("memory-reads",
                "probes read memory by loads that cannot fault (the vDSO's exception table)");
  } else {
    findings.note("memory-reads",
                  {.detail = fmt::format("probes read memory by system calls, about a microsecond "
                                         "each: {}",
                                         machine.load_refusal)});
  }
  if (machine.clock == "tsc") {
    findings.ok("clock", "tsc: the time stamp counter is the kernel's clock as well");
  } else {
    findings.note("clock", {.detail = fmt::format("the kernel uses {}: elapsed times may drift",
                                                  machine.clock)});
  }
  if (machine.has_shadow_stacks) {
    findings.note("shadow-stack",
                  {.detail = "the kernel gives programs shadow stacks that ask for them",
                   .refused = "processes that have one [shadow-stack]",
                   .remedy = "start them with GLIBC_TUNABLES=glibc.cpu.x86_shstk=off"});
  } else {
    findings.ok("shadow-stack", "no program has one");
  }
}

void judge_memory(const Machine& machine, Findings& findings) {
  if (machine.memfd_noexec.value_or(0) >= 2) {
    findings.problem("executable-memory", {.detail = "vm.memfd_noexec is 2",
                                           .refused = "every process: no arena can be made",
                                           .remedy = "sysctl vm.memfd_noexec=1"});
  } else {
    findings.ok("executable-memory", "a memfd can be mapped executable");
  }
}

void judge_ptrace(const Machine& machine, Findings& findings) {
  const int scope = machine.yama_scope.value_or(0);
  const bool privileged = machine.asker.has(Capability::SysPtrace);
  if (scope >= 3) {
    findings.problem("ptrace", {.detail = "kernel.yama.ptrace_scope is 3",
                                .refused = "every process [no-permission]",
                                .remedy = "it cannot be lowered before the next boot"});
  } else if (privileged) {
    findings.ok("ptrace", "allowed for every process (CAP_SYS_PTRACE)");
  } else if (scope == 2) {
    findings.problem("ptrace", {.detail = "kernel.yama.ptrace_scope is 2",
                                .refused = "every process, without CAP_SYS_PTRACE [no-permission]",
                                .remedy = "run as root, or sysctl kernel.yama.ptrace_scope=0"});
  } else if (scope == 1) {
    findings.note("ptrace",
                  {.detail = "kernel.yama.ptrace_scope is 1: only commands that Clew starts (-c)",
                   .refused = "processes that run already [no-permission]",
                   .remedy = "run as root, or sysctl kernel.yama.ptrace_scope=0"});
  } else {
    findings.note("ptrace", {.detail = "allowed for one's own processes",
                             .refused = "processes of others [no-permission]",
                             .remedy = "run as root, or with CAP_SYS_PTRACE"});
  }
}

void judge_view(const Machine& machine, Findings& findings) {
  if (!machine.hides_processes) {
    findings.ok("hidepid", "/proc shows all processes");
  } else if (machine.asker.has(Capability::SysPtrace)) {
    findings.ok("hidepid", "/proc shows users their own processes, and you all");
  } else {
    findings.note("hidepid", {.detail = "/proc shows you your own processes alone",
                              .refused = "processes of others: as if there were none",
                              .remedy = "run as root, or with CAP_SYS_PTRACE"});
  }
}

struct Right {
  Capability capability;
  std::string_view name;
  std::string_view refused;  // Without it.
};

constexpr std::array kRights = {
    Right{Capability::SysPtrace, "CAP_SYS_PTRACE", "processes of others"},
    Right{Capability::SysAdmin, "CAP_SYS_ADMIN", "processes that filter their system calls"},
    Right{Capability::Bpf, "CAP_BPF", "the kernel"},
    Right{Capability::Perfmon, "CAP_PERFMON", "the kernel"},
    Right{Capability::CheckpointRestore, "CAP_CHECKPOINT_RESTORE",
          "joining what a killed session left (clew detach works)"}};

void judge_rights(const Machine& machine, Findings& findings) {
  std::string missing;
  std::string refused;
  for (const Right& right : kRights) {
    // Each of the younger three is a part of CAP_SYS_ADMIN (capabilities(7)).
    const bool is_part = right.capability >= Capability::Perfmon;
    const bool is_there =
        machine.asker.has(right.capability) || (is_part && machine.asker.has(Capability::SysAdmin));
    if (is_there) continue;
    missing += fmt::format("{}{}", missing.empty() ? "" : " ", right.name);
    if (refused.find(right.refused) != std::string::npos) continue;
    refused += fmt::format("{}{}", refused.empty() ? "" : ", ", right.refused);
  }
  if (missing.empty()) {
    findings.ok("capabilities", "all that Clew ever needs");
  } else {
    findings.note("capabilities", {.detail = fmt::format("without {}", missing),
                                   .refused = refused,
                                   .remedy = "run as root, or with those"});
  }
}

void judge_asker(const Machine& machine, Findings& findings) {
  if (machine.asker.is_filtered) {
    findings.note("seccomp", {.detail = "Clew itself runs under a filter of system calls",
                              .refused = "processes that filter theirs [seccomp]",
                              .remedy = "run Clew outside of the container, or without its filter "
                                        "(docker: --security-opt seccomp=unconfined)"});
  }
  if (!machine.asker.in_first_user_namespace) {
    findings.note("user-namespace",
                  {.detail = "Clew runs in a user namespace: its rights end there",
                   .refused = fmt::format("{}; processes outside of it", kKernelQuestions),
                   .remedy = "run Clew outside of the container"});
  }
  if (!machine.asker.in_first_pid_namespace) {
    findings.note("pid-namespace",
                  {.detail = "Clew runs in a pid namespace: events of the kernel have the "
                             "machine's pids, and -p and --name mean the namespace's",
                   .remedy = "run Clew outside of the container"});
  }
}

void judge_lockdown(const Machine& machine, Findings& findings) {
  if (machine.lockdown == "confidentiality") {
    findings.note("lockdown",
                  {.detail = "the kernel is locked down (confidentiality)",
                   .refused = fmt::format("{}, where they read memory", kKernelQuestions),
                   .remedy = "boot without lockdown=confidentiality"});
  } else if (machine.lockdown == "integrity") {
    findings.note("lockdown",
                  {.detail = "the kernel is locked down (integrity)",
                   .refused = "copyout() of D",
                   .remedy = "boot without lockdown=integrity, or without Secure Boot"});
  } else {
    findings.ok("lockdown", "the kernel is not locked down");
  }
}

std::string reason_for_no_programs(const Machine& machine) {
  if (machine.kernel.is_too_old) return "it is older than 6.1";
  const bool unprivileged =
      !machine.asker.has(Capability::Bpf) && !machine.asker.has(Capability::SysAdmin);
  if (unprivileged && machine.unprivileged_bpf_disabled.value_or(0) != 0) {
    return "CAP_BPF is missing (kernel.unprivileged_bpf_disabled is " +
           std::to_string(*machine.unprivileged_bpf_disabled) + ")";
  }
  if (unprivileged) return "CAP_BPF and CAP_PERFMON are missing";
  return error_text(machine.kernel.program_error);
}

std::string remedy_for_programs(const KernelAbilities& kernel) {
  return kernel.is_too_old ? "a kernel of Linux 6.1 or later"
                           : "run as root, or with CAP_BPF and CAP_PERFMON";
}

void judge_bpf(const Machine& machine, Findings& findings) {
  const KernelAbilities& kernel = machine.kernel;
  if (!kernel.takes_programs()) {
    findings.note("bpf", {.detail = fmt::format("the kernel takes no program of ours: {}",
                                                reason_for_no_programs(machine)),
                          .refused = std::string(kKernelQuestions),
                          .remedy = remedy_for_programs(kernel)});
    return;
  }
  findings.ok("bpf", kernel.has_open_loops ? "programs are taken, with open loops"
                                           : "programs are taken, with counted loops: this kernel "
                                             "is older than 6.9");
  if (kernel.has_types) {
    findings.ok("types", "the kernel describes its types (BTF)");
  } else {
    findings.note("types", {.detail = "the kernel does not describe its types (BTF)",
                            .refused = "functions and structs of the kernel, most of D",
                            .remedy = "a kernel with CONFIG_DEBUG_INFO_BTF"});
  }
  if (kernel.has_tracepoints) {
    findings.ok("tracepoints", "tracefs describes them");
  } else {
    findings.note("tracepoints", {.detail = "tracefs can neither be read nor mounted",
                                  .refused = "tracepoints and system calls of the kernel",
                                  .remedy = "run as root, with CAP_SYS_ADMIN"});
  }
}

void judge_uprobes(const KernelAbilities& kernel, Findings& findings) {
  const std::string refused = "D's probes that cannot run in the process";
  if (!kernel.has_uprobes) {
    findings.note("uprobes", {.detail = "the kernel has none",
                              .refused = refused,
                              .remedy = "a kernel with CONFIG_UPROBE_EVENTS"});
  } else if (kernel.uprobe_error != 0) {
    findings.note("uprobes", {.detail = fmt::format("the kernel has them, but gives you none: {}",
                                                    error_text(kernel.uprobe_error)),
                              .refused = refused,
                              .remedy = "run as root, or with CAP_BPF and CAP_PERFMON"});
  } else if (!kernel.takes_programs()) {
    findings.note("uprobes",
                  {.detail = "you may set some, but the kernel takes no program for them",
                   .refused = refused,
                   .remedy = remedy_for_programs(kernel)});
  } else {
    findings.ok("uprobes", kernel.has_uprobe_multi ? "yes, many at a time (uprobe multi)"
                                                   : "yes, one at a time: older than 6.6");
  }
}

void judge_probes(const Machine& machine, Findings& findings) {
  const KernelAbilities& kernel = machine.kernel;
  judge_uprobes(kernel, findings);
  const std::string refused = "functions of the kernel: kernel(), fbt, lockstat";
  if (!kernel.has_kprobes) {
    findings.note("kprobes", {.detail = "the kernel has none",
                              .refused = refused,
                              .remedy = "a kernel with CONFIG_KPROBE_EVENTS"});
  } else if (!kernel.takes_programs()) {
    findings.note("kprobes", {.detail = "the kernel has them, but takes no program for them",
                              .refused = refused,
                              .remedy = remedy_for_programs(kernel)});
  } else {
    findings.ok("kprobes", kernel.has_kprobe_multi ? "yes, many at a time (kprobe multi)"
                                                   : "yes, one at a time, which takes long");
  }
  if (!kernel.trampoline_error) return;
  if (*kernel.trampoline_error == 0) {
    findings.ok("fentry", "programs may stand at entries and exits of functions (fentry, fexit)");
  } else {
    findings.note(
        "fentry",
        {.detail = fmt::format("no program may stand at a function's exit (fexit): {}",
                               error_text(*kernel.trampoline_error)),
         .refused = "returns of kernel functions with their arguments: lockstat, io wait",
         .remedy = "a kernel with CONFIG_FUNCTION_TRACER, CONFIG_KPROBES and CONFIG_BPF_JIT"});
  }
}

void judge_perf(const Machine& machine, Findings& findings) {
  if (!machine.perf_paranoid) {
    findings.note("perf-events", {.detail = "the kernel has none",
                                  .refused = "profile, uprobes and kprobes",
                                  .remedy = "a kernel with CONFIG_PERF_EVENTS"});
    return;
  }
  const bool privileged =
      machine.asker.has(Capability::Perfmon) || machine.asker.has(Capability::SysAdmin);
  const std::string is = fmt::format("kernel.perf_event_paranoid is {}", *machine.perf_paranoid);
  if (privileged) {
    findings.ok("perf-events", fmt::format("{}, which does not bind you", is));
  } else if (*machine.perf_paranoid > -1) {
    findings.note("perf-events", {.detail = is,
                                  .refused = "profile, uprobes and kprobes",
                                  .remedy = "run as root, or with CAP_PERFMON"});
  } else {
    findings.ok("perf-events", is);
  }
}

}  // namespace

Findings judge(const Machine& machine) {
  Findings findings("machine");
  judge_system(machine, findings);
  judge_memory(machine, findings);
  judge_ptrace(machine, findings);
  judge_view(machine, findings);
  judge_rights(machine, findings);
  judge_asker(machine, findings);
  judge_lockdown(machine, findings);
  judge_bpf(machine, findings);
  judge_probes(machine, findings);
  judge_perf(machine, findings);
  return findings;
}

}  // namespace clew::doctor

// SPDX-License-Identifier: Apache-2.0
#include "doctor/process.h"

#include <algorithm>
#include <span>

#include <fmt/format.h>

#include "base/error_text.h"
#include "inline/is_recorded.h"

namespace clew::doctor {
namespace {

using Seccomp = target::ProcessFacts::Seccomp;

// What an arena and its first session need of the address space, without the slots that grow.
constexpr uint64_t kArenaBytes = uint64_t{512} << 20;
constexpr uint64_t kDescriptorsNeeded = 2;  // For a moment: a pair of sockets.

std::string reason_of(const ProcessView& view, const Machine& machine) {
  if (!machine.asker.has(Capability::SysPtrace)) {
    if (view.user != machine.asker.user) {
      return fmt::format("it belongs to user {}, and you are {}", view.user, machine.asker.user);
    }
    if (!view.is_dumpable) {
      return "it is protected: a set-user-id program, a file that you may not read, or "
             "PR_SET_DUMPABLE";
    }
    const int scope = machine.yama_scope.value_or(0);
    if (scope != 0) return fmt::format("kernel.yama.ptrace_scope is {}", scope);
  }
  if (!view.in_our_user_namespace)
    return "it lives in a user namespace in which you have no rights";
  return error_text(view.memory_error);
}

// False when nothing more can be said.
bool judge_permission(const ProcessView& view, const Machine& machine, Findings& findings) {
  const bool is_readable = view.memory_error == 0 && view.facts && view.modules;
  if (is_readable) {
    findings.ok("permission", "it may be traced");
    return true;
  }
  const int scope = machine.yama_scope.value_or(0);
  const bool own = view.user == machine.asker.user && view.is_dumpable;
  findings.problem(
      "permission",
      {.detail = reason_of(view, machine),
       .refused = "the process [no-permission]",
       .remedy = own && scope == 1 ? "run as root, start the program with -c, or sysctl "
                                     "kernel.yama.ptrace_scope=0"
                                   : "run as root, outside of containers"});
  return view.facts.has_value();
}

void judge_state(const ProcessView& view, Findings& findings) {
  if (view.facts->is_32_bit) {
    findings.problem("32-bit", {.detail = "it is a 32-bit program",
                                .refused = "the process: Clew traces x86-64 [32-bit]"});
  }
  if (view.tracer != 0) {
    const std::string name = view.tracer_name.empty() ? "" : fmt::format(" ({})", view.tracer_name);
    findings.problem("already-traced",
                     {.detail = fmt::format("process {}{} holds it", view.tracer, name),
                      .refused = "the process [already-traced]",
                      .remedy = fmt::format("end process {}", view.tracer)});
  }
  if (view.facts->state == 'T') {
    findings.note("stopped", {.detail = "it runs no probe until it goes on",
                              .remedy = fmt::format("kill -CONT {}", view.pid)});
  }
  if (view.facts->has_shadow_stack) {
    findings.problem("shadow-stack",
                     {.detail = "its returns are checked (x86_Thread_features: shstk)",
                      .refused = "the process [shadow-stack]",
                      .remedy = "start it with GLIBC_TUNABLES=glibc.cpu.x86_shstk=off"});
  }
}

void judge_sessions(const ProcessView& view, Findings& findings) {
  if (!view.arena) return;
  for (const inline_::SessionInfo& session : view.arena->sessions) {
    if (!session.tracer_alive) continue;
    findings.note("session", {.detail = fmt::format("clew {} traces it; another session may join",
                                                    session.tracer)});
  }
  if (view.arena->residue && inline_::is_recorded(view.pid)) {
    findings.problem("residue", {.detail = "a recorder is gone; copies of it stay in the process",
                                 .refused = "the process [recorded]",
                                 .remedy = fmt::format("clew record -p {0} goes on with them, clew "
                                                       "detach {0} leads calls to its own "
                                                       "functions; to be traced, start it anew",
                                                       view.pid)});
  } else if (view.arena->residue) {
    findings.problem("residue", {.detail = "a session that is gone left code of its own",
                                 .remedy = fmt::format("clew detach {}", view.pid)});
  }
}

void judge_seccomp(const ProcessView& view, const Machine& machine, Findings& findings) {
  const Asker& asker = machine.asker;
  if (view.facts->seccomp == Seccomp::Strict) {
    findings.problem("seccomp",
                     {.detail = "strict mode: it may make no system call that Clew needs",
                      .refused = "the process [seccomp]"});
  } else if (view.facts->seccomp == Seccomp::Off) {
    findings.ok("seccomp", "it does not filter its system calls");
  } else if (!asker.has(Capability::SysAdmin) || asker.is_filtered ||
             !asker.in_first_user_namespace) {
    findings.problem("seccomp",
                     {.detail = "it filters its system calls, which you may not suspend",
                      .refused = "the process [seccomp]",
                      .remedy = "run as root (CAP_SYS_ADMIN), without a filter of your own"});
  } else {
    findings.note("seccomp",
                  {.detail = "it filters its system calls; if the filter forbids "
                             "restart_syscall, a stop lets sleeps and polls begin again",
                   .refused = view.load_refusal.empty()
                                  ? ""
                                  : "probes that read memory (text, pointers): they make system "
                                    "calls"});
  }
}

// By which way its probes read its memory.
void judge_reading(const ProcessView& view, Findings& findings) {
  if (view.load_refusal.empty()) {
    findings.ok("memory-reads", "its memory is read by loads that cannot fault");
  } else {
    findings.ok("memory-reads",
                fmt::format("its memory is read by system calls: {}", view.load_refusal));
  }
}

// By which way its threads take their slots.
void judge_bases(const ProcessView& view, Findings& findings) {
  if (view.has_base_instructions) {
    findings.ok("fsgsbase", "its threads take their slots without a system call");
    return;
  }
  const bool stopped = view.stop && *view.stop;
  const bool forbidden = stopped && (*view.stop)->bases == abi::SegmentBases::Tracer;
  const bool unknown = !stopped && view.facts->seccomp == Seccomp::Filter;
  if (forbidden) {
    findings.note("fsgsbase", {.detail = "its filter forbids arch_prctl: Clew gives slots to the "
                                         "threads that it has when a session comes",
                               .refused = "hits of threads that come later (no_slot)"});
  } else if (unknown) {
    findings.note("fsgsbase", {.detail = "its threads take their slots by a system call "
                                         "(arch_prctl), if its filter allows that: see --stop",
                               .refused = "else, hits of threads that come later (no_slot)"});
  } else {
    findings.ok("fsgsbase", "its threads take their slots by a system call (arch_prctl)");
  }
}

void judge_namespaces(const ProcessView& view, Findings& findings) {
  if (!view.in_our_pid_namespace) {
    const auto& pids = view.facts->namespace_pids;
    findings.note("pid-namespace",
                  {.detail = fmt::format("it knows itself as process {}; a tracer in there would "
                                         "take your session for dead",
                                         pids.empty() ? 0 : pids.back()),
                   .refused = "D's probes inside of it: they are uprobes"});
  }
  if (!view.in_our_mount_namespace || view.facts->root != "/") {
    findings.note("mount-namespace",
                  {.detail = fmt::format("it sees other files; they are read through /proc/{}/root",
                                         view.pid)});
  }
  if (!view.in_our_user_namespace) {
    findings.note("user-namespace", {.detail = "it lives in a user namespace of its own"});
  }
}

void judge_limits(const ProcessView& view, Findings& findings) {
  const Limit& memory = view.address_space;
  if (memory.most != UINT64_MAX && memory.used + kArenaBytes > memory.most) {
    findings.problem("address-space",
                     {.detail = fmt::format("{} MiB of {} are used (RLIMIT_AS)", memory.used >> 20,
                                            memory.most >> 20),
                      .refused = "the process: an arena needs some 500 MiB of addresses",
                      .remedy = fmt::format("prlimit --pid {} --as=unlimited", view.pid)});
  }
  const Limit& descriptors = view.descriptors;
  if (descriptors.most != UINT64_MAX && descriptors.used + kDescriptorsNeeded > descriptors.most) {
    findings.problem(
        "descriptors",
        {.detail =
             fmt::format("{} of {} are open (RLIMIT_NOFILE)", descriptors.used, descriptors.most),
         .refused = "the process: an arena is made through one",
         .remedy = fmt::format("prlimit --pid {} --nofile={}", view.pid, descriptors.most + 16)});
  }
}

// What a session of the usual kind takes in a thread (abi/region.h), generously.
constexpr uint64_t kThreadBytes = uint64_t{1} << 20;

void judge_memory(const ProcessView& view, Findings& findings) {
  const target::MemoryRoom& room = view.memory;
  const std::string left =
      fmt::format("{} MiB of {} are left {}", room.left_bytes >> 20, room.limit_bytes >> 20,
                  room.group.empty() ? std::string("on the machine")
                                     : fmt::format("in its control group {}", room.group));
  if (room.left_bytes >= kThreadBytes * std::max<uint64_t>(view.threads, 16)) {
    return findings.ok("memory", left);
  }
  findings.note("memory", {.detail = left,
                           .refused = "sessions that might take more in all its threads [memory]",
                           .remedy = "raise the limit, or ask for counts without keys"});
}

void judge_text(const ProcessView& view, Findings& findings) {
  if (!view.uprobes.empty()) {
    constexpr size_t kShownMax = 4;
    const std::span shown(view.uprobes.data(), std::min(kShownMax, view.uprobes.size()));
    const std::string more = view.uprobes.size() > kShownMax
                                 ? fmt::format(" and {} more", view.uprobes.size() - kShownMax)
                                 : "";
    const std::string places = fmt::format("{}{}", fmt::join(shown, ", "), more);
    if (inline_::is_recorded(view.pid)) {
      findings.note("text", {.detail = fmt::format("a recorder's jumps are in it, at {}", places),
                             .remedy = "one in the C library stays where exceptions may go through "
                                       "copies"});
    } else {
      findings.note("uprobes", {.detail = fmt::format(
                                    "others have set uprobes or breakpoints in it, at {}", places),
                                .refused = "functions where one stands [foreign-patch]",
                                .remedy = "end bpftrace, perf, gdb and the like first"});
    }
  }
  if (!view.modules) return;
  findings.ok("modules", fmt::format("{} can be read", view.modules->size()));
  for (const target::ProcessModule& module : *view.modules) {
    if (module.problem.empty()) continue;
    findings.note("module", {.detail = fmt::format("{}: {}", module.path, module.problem),
                             .refused = "its functions"});
  }
}

// What others may set when a session is there.
void judge_later_uprobes(const ProcessView& view, Findings& findings) {
  const LaterUprobes& entries = view.later_uprobes;
  if (entries.all() == 0) return;
  const std::string bear =
      fmt::format("{} of {} entries bear later uprobes of others", entries.safe, entries.all());
  if (entries.safe == entries.all()) return findings.ok("later-uprobes", bear);
  findings.note(
      "later-uprobes",
      {.detail = fmt::format("{}; at {} one hides Clew's probe", bear, entries.hides_probe),
       .refused = entries.refused == 0
                      ? std::string()
                      : fmt::format("{} entries, where one would end the process [later-uprobe]",
                                    entries.refused),
       .remedy = fmt::format(
           "clew list --sites -p {} names those; root's queries have uprobes there, and "
           "--allow-late-uprobe-danger jumps all the same",
           view.pid)});
}

// The message ends with its name in brackets: "… [gs-in-use]".
std::string check_of(const std::string& message) {
  const size_t open = message.rfind('[');
  if (open == std::string::npos || message.back() != ']') return "threads";
  return message.substr(open + 1, message.size() - open - 2);
}

void judge_threads(const ProcessView& view, Findings& findings) {
  if (!view.stop) {
    findings.note("threads", {.detail = "not looked at: whether they use gs, and stop at once, is "
                                        "seen with --stop"});
    return;
  }
  const Expected<inline_::TrialStop>& stop = *view.stop;
  if (!stop) {
    const std::string check = check_of(stop.error().message);
    if (findings.find(check) != nullptr) return;  // Said already, from /proc.
    findings.problem(check, {.detail = stop.error().message, .refused = "the process"});
    return;
  }
  const auto microseconds =
      std::chrono::duration_cast<std::chrono::microseconds>(stop->stood_still).count();
  findings.ok("threads", fmt::format("{} stopped and went on within {}.{:03} ms; none uses gs",
                                     stop->threads, microseconds / 1000, microseconds % 1000));
  if (!stop->keeps_self_pointer) {
    findings.note("thread-pointer",
                  {.detail = stop->bases == abi::SegmentBases::Instructions
                                 ? "fs:0 is not the thread's own: each hit is 1 to 2 ns dearer"
                                 : "fs:0 is not the thread's own: each hit asks the kernel for it "
                                   "(arch_prctl)"});
  }
}

}  // namespace

Findings judge(const ProcessView& view, const Machine& machine) {
  Findings findings(fmt::format("process {}", view.pid));
  if (!judge_permission(view, machine, findings)) return findings;
  judge_state(view, findings);
  judge_sessions(view, findings);
  judge_seccomp(view, machine, findings);
  judge_bases(view, findings);
  judge_reading(view, findings);
  judge_namespaces(view, findings);
  judge_limits(view, findings);
  judge_memory(view, findings);
  judge_text(view, findings);
  judge_later_uprobes(view, findings);
  judge_threads(view, findings);
  return findings;
}

}  // namespace clew::doctor

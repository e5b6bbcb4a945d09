// SPDX-License-Identifier: Apache-2.0
// clew doctor: what stands in the way of tracing on this machine and in a process, before anything
// is touched.
#include <fstream>

#include <fmt/format.h>
#include <sys/auxv.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "engine/inventory.h"
#include "inline/attachment.h"
#include "target/proc_file.h"
#include "target/process.h"

namespace clew::engine {
namespace {

// AT_HWCAP2 bit 1 on x86: wrgsbase and friends are allowed (Linux 5.9, asm/hwcap2.h).
constexpr uint64_t kFsGsBase = 1U << 1;

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

class Report {
 public:
  void good(std::string_view what, std::string_view detail) {
    diagnosis_.text += fmt::format("  ok       {:<22} {}\n", what, detail);
  }
  void note(std::string_view what, std::string_view detail) {
    diagnosis_.text += fmt::format("  note     {:<22} {}\n", what, detail);
  }
  void problem(std::string_view what, std::string_view detail) {
    diagnosis_.text += fmt::format("  PROBLEM  {:<22} {}\n", what, detail);
    ++diagnosis_.problems;
  }
  void head(std::string_view title) { diagnosis_.text += fmt::format("{}\n", title); }
  Diagnosis take() { return std::move(diagnosis_); }

 private:
  Diagnosis diagnosis_;
};

void check_yama(Report& report) {
  const std::string scope = first_line("/proc/sys/kernel/yama/ptrace_scope");
  if (scope.empty() || scope == "0") {
    report.good("ptrace", "allowed for one's own processes");
  } else if (geteuid() == 0 && scope != "3") {
    report.good("ptrace", "allowed for root");
  } else if (scope == "1") {
    report.note("ptrace",
                "kernel.yama.ptrace_scope is 1: without root only commands that Clew starts (-c)");
  } else {
    report.problem("ptrace", fmt::format("kernel.yama.ptrace_scope is {}: not allowed", scope));
  }
}

void check_machine(Report& report) {
  utsname system{};
  if (uname(&system) == 0) {
    report.good("system", fmt::format("{} {} {}", system.sysname, system.release, system.machine));
    if (std::string_view(system.machine) != "x86_64") {
      report.problem("architecture", "Clew runs on x86_64");
    }
  }
  if ((getauxval(AT_HWCAP2) & kFsGsBase) != 0) {
    report.good("fsgsbase", "user programs may set gs: slots are reached without a system call");
  } else {
    report.problem("fsgsbase", "the processor or the kernel (before 5.9) does not allow wrgsbase");
  }
  const std::string clock =
      first_line("/sys/devices/system/clocksource/clocksource0/current_clocksource");
  if (clock == "tsc") {
    report.good("clock", "tsc: the time stamp counter is the kernel's clock as well");
  } else {
    report.note("clock", fmt::format("the kernel uses {}: elapsed times may drift", clock));
  }
  const std::string noexec = first_line("/proc/sys/vm/memfd_noexec");
  if (noexec == "2") {
    report.problem("executable memory", "vm.memfd_noexec is 2: no arena can be made");
  } else {
    report.good("executable memory", "memfd can be mapped executable");
  }
  check_yama(report);
}

// A debugger may hold some threads only.
pid_t tracer_of(pid_t pid) {
  const auto threads = target::list_threads(pid);
  if (!threads) return 0;
  for (const pid_t tid : *threads) {
    const auto facts = target::read_facts(tid);
    if (facts && facts->tracer_pid != 0) return facts->tracer_pid;
  }
  return 0;
}

void check_sessions(Report& report, pid_t pid) {
  for (const inline_::ArenaInfo& arena : inline_::ps()) {
    if (arena.pid != pid) continue;
    for (const inline_::SessionInfo& session : arena.sessions) {
      if (session.tracer_alive) report.note("session", fmt::format("clew {}", session.tracer));
    }
    if (arena.residue) {
      report.problem("residue", fmt::format("of a killed session; remove it: clew detach {}", pid));
    }
  }
}

void check_process(Report& report, pid_t pid) {
  if (const Expected<void> program = target::check_has_program(pid); !program) {
    report.problem("process", program.error().message);
    return;
  }
  const Expected<target::ProcessFacts> facts = target::read_facts(pid);
  if (!facts) {
    report.problem("process", facts.error().message);
    return;
  }
  if (facts->is_32_bit) report.problem("32-bit", "Clew traces 64-bit programs");
  if (const pid_t tracer = tracer_of(pid); tracer != 0) {
    const auto debugger = target::read_process(tracer);
    report.problem("already-traced", fmt::format("process {}{} holds it; end that first", tracer,
                                                 debugger ? " (" + debugger->comm + ")" : ""));
  }
  if (facts->state == 'T') {
    report.note("stopped", fmt::format("it runs no probe until it goes on: kill -CONT {}", pid));
  }
  check_sessions(report, pid);
  if (facts->seccomp == target::ProcessFacts::Seccomp::Strict) {
    report.problem("seccomp", "strict mode allows no system call that Clew needs");
  } else if (facts->seccomp == target::ProcessFacts::Seccomp::Filter) {
    report.note("seccomp", "system calls are filtered: memory is not read by probes");
  }
  if (geteuid() != 0 && facts->uid != geteuid()) {
    report.problem("permission", "the process belongs to another user; use root");
  }
  if (facts->root != "/") report.note("root", fmt::format("the process lives in {}", facts->root));
  const Expected<std::vector<target::ProcessModule>> modules = target::read_modules(pid);
  if (!modules) {
    report.problem("modules", modules.error().message);
    return;
  }
  report.good("modules", fmt::format("{} can be read", modules->size()));
  for (const target::ProcessModule& module : *modules) {
    if (!module.problem.empty()) report.note(module.path, module.problem);
  }
}

}  // namespace

Diagnosis diagnose(std::optional<pid_t> pid) {
  Report report;
  report.head("machine");
  check_machine(report);
  if (pid) {
    report.head(fmt::format("process {}", *pid));
    check_process(report, *pid);
  }
  return report.take();
}

}  // namespace clew::engine

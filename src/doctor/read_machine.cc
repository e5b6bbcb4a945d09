// SPDX-License-Identifier: Apache-2.0
// Where a Machine comes from: /proc, /sys, and trying.
#include <charconv>
#include <filesystem>
#include <fstream>
#include <system_error>

#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "doctor/machine.h"
#include "inline/attachment.h"
#include "inline/vdso_load.h"
#include "kernel/features.h"
#include "kernel/tracefs.h"
#include "target/btf.h"
#include "target/process.h"

namespace clew::doctor {
namespace {

// The namespaces that the kernel starts with (linux/proc_ns.h).
constexpr std::string_view kFirstUserNamespace = "user:[4026531837]";
constexpr std::string_view kFirstPidNamespace = "pid:[4026531836]";

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::optional<int> number_in(const std::string& path) {
  const std::string line = first_line(path);
  int value = 0;
  const auto parsed = std::from_chars(line.data(), line.data() + line.size(), value);
  if (parsed.ec != std::errc()) return std::nullopt;
  return value;
}

// The one in brackets: "none [integrity] confidentiality".
std::string chosen_in(const std::string& path) {
  const std::string line = first_line(path);
  const size_t open = line.find('[');
  const size_t close = line.find(']');
  if (open == std::string::npos || close == std::string::npos || close < open) return "";
  return line.substr(open + 1, close - open - 1);
}

std::string link_of(const std::string& path) {
  std::error_code error;
  return std::filesystem::read_symlink(path, error).string();
}

bool exists(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

bool processor_has(std::string_view flag) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("flags")) continue;
    return (line + " ").find(fmt::format(" {} ", flag)) != std::string::npos;
  }
  return false;
}

// Of the /proc that is seen: the last one mounted there. An option that follows the " - " of
// /proc/self/mountinfo, as a number or since Linux 5.8 as a word; 0 is "off" (proc(5)).
bool proc_hides_processes() {
  std::ifstream mounts("/proc/self/mountinfo");
  bool hides = false;
  for (std::string line; std::getline(mounts, line);) {
    if (line.find(" /proc ") == std::string::npos || line.find(" - proc ") == std::string::npos)
      continue;
    const size_t option = line.find("hidepid=", line.find(" - proc "));
    const std::string value = option == std::string::npos ? "off" : line.substr(option + 8);
    hides = !value.starts_with("off") && !value.starts_with("0");
  }
  return hides;
}

Asker read_asker() {
  Asker asker;
  asker.user = geteuid();
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    constexpr std::string_view kEffective = "CapEff:\t";
    constexpr int kHexadecimal = 16;
    if (line.starts_with(kEffective)) {
      std::from_chars(line.data() + kEffective.size(), line.data() + line.size(),
                      asker.capabilities, kHexadecimal);
    }
    if (line.starts_with("Seccomp:\t")) asker.is_filtered = line != "Seccomp:\t0";
  }
  asker.in_first_user_namespace = link_of("/proc/self/ns/user") == kFirstUserNamespace;
  asker.in_first_pid_namespace = link_of("/proc/self/ns/pid") == kFirstPidNamespace;
  return asker;
}

// A function of the kernel that exists for tests of such programs, and that nobody else calls.
std::optional<int> trampoline_error() {
  const auto types = target::Btf::of_kernel();
  if (!types) return std::nullopt;
  const target::BtfId function = types->find(target::BtfKind::Function, "bpf_fentry_test1");
  if (function == target::kBtfVoid) return std::nullopt;
  return kernel::error_of_trampoline(function);
}

KernelAbilities read_abilities() {
  const kernel::Features& features = kernel::features();
  KernelAbilities kernel;
  kernel.program_error = kernel::error_of_programs();
  kernel.is_too_old = kernel::is_too_old();
  kernel.has_types = exists("/sys/kernel/btf/vmlinux");
  kernel.has_open_loops = features.has_open_loops;
  kernel.has_uprobes = exists("/sys/bus/event_source/devices/uprobe/type");
  if (kernel.has_uprobes) kernel.uprobe_error = kernel::error_of_user_probes();
  kernel.has_uprobe_multi = features.has_user_probe_multi;
  kernel.has_kprobes = exists("/sys/bus/event_source/devices/kprobe/type");
  kernel.has_kprobe_multi = features.has_kernel_probe_multi;
  if (kernel.takes_programs()) kernel.trampoline_error = trampoline_error();
  const auto tracefs = kernel::Tracefs::open();
  kernel.has_tracepoints = tracefs && tracefs->exists("available_events");
  return kernel;
}

}  // namespace

Machine read_machine() {
  Machine machine;
  utsname system{};
  if (uname(&system) == 0) {
    machine.system = fmt::format("{} {} {}", system.sysname, system.release, system.machine);
    machine.architecture = system.machine;
  }
  machine.has_fsgsbase = inline_::has_base_instructions(getpid());
  if (const auto& places = inline_::load_places_here(); !places) {
    machine.load_refusal = places.error().message;
  }
  machine.has_shadow_stacks = processor_has("user_shstk");
  machine.clock = first_line("/sys/devices/system/clocksource/clocksource0/current_clocksource");
  machine.yama_scope = number_in("/proc/sys/kernel/yama/ptrace_scope");
  machine.memfd_noexec = number_in("/proc/sys/vm/memfd_noexec");
  machine.perf_paranoid = number_in("/proc/sys/kernel/perf_event_paranoid");
  machine.unprivileged_bpf_disabled = number_in("/proc/sys/kernel/unprivileged_bpf_disabled");
  machine.hides_processes = proc_hides_processes();
  machine.lockdown = chosen_in("/sys/kernel/security/lockdown");
  machine.asker = read_asker();
  machine.kernel = read_abilities();
  return machine;
}

}  // namespace clew::doctor

// SPDX-License-Identifier: Apache-2.0
#include "engine/record/thread_status.h"

#include <array>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>

#include <fmt/format.h>
#include <linux/kcmp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "target/process.h"

namespace clew::engine {

namespace {

// The next number of a line; text that is none is 0.
uint64_t take_number(std::string_view& text, int base) {
  while (text.starts_with(' ') || text.starts_with('\t'))
    text.remove_prefix(1);
  if (text.starts_with("0x")) text.remove_prefix(2);
  uint64_t number = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), number, base).ptr;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return number;
}

void read_line(std::string_view name, std::string_view value, ThreadStatus& status) {
  if (name == "State") status.state = value.empty() ? 'X' : value.front();
  if (name == "Tgid") status.process = static_cast<pid_t>(take_number(value, 10));
  if (name == "TracerPid") status.tracer = static_cast<pid_t>(take_number(value, 10));
  if (name == "NStgid") status.is_init = value == "1" || value.ends_with("\t1");
  if (name == "SigCgt") status.caught = take_number(value, 16);
  if (name == "SigIgn") status.ignored = take_number(value, 16);
  if (name == "SigBlk") status.blocked = take_number(value, 16);
  if (name == "voluntary_ctxt_switches") status.switches = take_number(value, 10);
}

}  // namespace

ThreadStatus status_of(pid_t thread) {
  std::ifstream file(fmt::format("/proc/{}/status", thread));
  ThreadStatus status;
  for (std::string line; std::getline(file, line);) {
    const std::string_view text = line;
    const size_t colon = text.find(":\t");
    if (colon != std::string_view::npos) {
      read_line(text.substr(0, colon), text.substr(colon + 2), status);
    }
  }
  return status;
}

// proc(5), /proc/pid/syscall: "running", or "-1 SP PC", or "NUMBER ARGUMENT... SP PC".
std::optional<Waiting> waiting(pid_t process, pid_t thread) {
  std::ifstream file(fmt::format("/proc/{}/task/{}/syscall", process, thread));
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  std::string_view text = line;
  Waiting found;
  user_regs_struct& registers = found.registers;
  found.is_in_call = !text.starts_with('-');
  registers.orig_rax = UINT64_MAX;
  if (found.is_in_call) {
    if (text.empty() || text.front() < '0' || text.front() > '9') return std::nullopt;
    registers.orig_rax = take_number(text, 10);
    const std::array arguments = {&registers.rdi, &registers.rsi, &registers.rdx,
                                  &registers.r10, &registers.r8,  &registers.r9};
    for (auto* const argument : arguments)
      *argument = take_number(text, 16);
  } else {
    text.remove_prefix(text.starts_with("-1") ? 2 : text.size());
  }
  registers.rsp = take_number(text, 16);
  registers.rip = take_number(text, 16);
  return registers.rip == 0 ? std::nullopt : std::optional(found);
}

bool waits_for_vfork(pid_t process, pid_t thread) {
  constexpr char kAsleep = 'D';  // Not for signals.
  if (status_of(thread).state != kAsleep) return false;
  const auto waits = waiting(process, thread);
  if (!waits || !waits->is_in_call) return false;
  const uint64_t call = waits->registers.orig_rax;
  return call == SYS_vfork || call == SYS_clone || call == SYS_clone3;
}

bool runs_on_its_parents_memory(pid_t process) {
  const auto who = target::read_process(process);
  if (!who) return false;
  const pid_t parent = target::memory_holder(who->parent_pid);
  return syscall(SYS_kcmp, process, parent, KCMP_VM, 0, 0) == 0;
}

std::vector<pid_t> threads_of(pid_t process) {
  std::vector<pid_t> threads;
  std::error_code error;
  std::filesystem::directory_iterator at(fmt::format("/proc/{}/task", process), error);
  for (; !error && at != std::filesystem::directory_iterator(); at.increment(error)) {
    const std::string name = at->path().filename();
    pid_t thread = 0;
    (void)std::from_chars(name.data(), name.data() + name.size(), thread);
    if (thread != 0) threads.push_back(thread);
  }
  return threads;
}

}  // namespace clew::engine

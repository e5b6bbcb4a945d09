// SPDX-License-Identifier: Apache-2.0
#include "target/process.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <optional>

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/file_descriptor.h"
#include "base/file_name.h"
#include "target/module_names.h"
#include "target/pattern.h"
#include "target/proc_file.h"

namespace clew::target {

namespace {

template <typename T>
std::optional<T> number_in(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return std::nullopt;
  T value = 0;
  const char* begin = text.data() + first;
  const auto parsed = std::from_chars(begin, text.data() + text.size(), value);
  if (parsed.ec != std::errc()) return std::nullopt;
  return value;
}

// The text behind "Name:\t" in /proc/PID/status, which has one field a line; comm cannot forge one,
// since the kernel escapes its newlines there.
std::string_view status_field(std::string_view status, std::string_view name) {
  size_t at = 0;
  while (at < status.size()) {
    const size_t end = std::min(status.find('\n', at), status.size());
    const std::string_view line = status.substr(at, end - at);
    if (line.size() > name.size() && line.starts_with(name) && line[name.size()] == ':') {
      const size_t value = line.find_first_not_of(" \t", name.size() + 1);
      return value == std::string_view::npos ? std::string_view() : line.substr(value);
    }
    at = end + 1;
  }
  return {};
}

struct Stat {
  std::string comm;
  ProcessState state = 'R';
  pid_t parent_pid = 0;
  uint64_t start_ticks = 0;
};

// "pid (comm) state ppid …": comm may hold parentheses and spaces, so it ends at the last ')'.
std::optional<Stat> parse_stat(std::string_view text) {
  const size_t open = text.find('(');
  const size_t close = text.rfind(')');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) {
    return std::nullopt;
  }
  std::vector<std::string_view> fields;  // From field 3, the state.
  size_t at = close + 1;
  while ((at = text.find_first_not_of(" \n", at)) != std::string_view::npos) {
    const size_t end = std::min(text.find_first_of(" \n", at), text.size());
    fields.push_back(text.substr(at, end - at));
    at = end;
  }
  constexpr size_t kStartTime = 22 - 3;
  if (fields.size() <= kStartTime || fields[0].size() != 1) return std::nullopt;
  const auto parent = number_in<pid_t>(fields[1]);
  const auto start = number_in<uint64_t>(fields[kStartTime]);
  if (!parent || !start) return std::nullopt;
  return Stat{.comm = std::string(text.substr(open + 1, close - open - 1)),
              .state = fields[0][0],
              .parent_pid = *parent,
              .start_ticks = *start};
}

Expected<Stat> read_stat(pid_t pid) {
  const std::string text = CLEW_TRY(read_proc_file(pid, "stat"));
  auto stat = parse_stat(text);
  if (!stat) return fail(ErrorCode::Io, fmt::format("/proc/{}/stat makes no sense", pid));
  return std::move(*stat);
}

uint64_t effective_capabilities(std::string_view status) {
  const std::string_view set = status_field(status, "CapEff");
  uint64_t capabilities = 0;
  (void)std::from_chars(set.data(), set.data() + set.size(), capabilities, 16);
  return capabilities;
}

uid_t effective_uid(std::string_view status) {
  // "Uid:", then real, effective, saved and file system ids, with tabs between.
  const std::string_view ids = status_field(status, "Uid");
  const size_t tab = ids.find('\t');
  if (tab == std::string_view::npos) return 0;
  return number_in<uid_t>(ids.substr(tab)).value_or(0);
}

std::vector<std::string> split_arguments(std::string_view text) {
  std::vector<std::string> arguments;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\0'), text.size());
    arguments.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return arguments;
}

std::vector<pid_t> parse_numbers(std::string_view text) {
  std::vector<pid_t> numbers;
  while (const auto number = number_in<pid_t>(text)) {
    numbers.push_back(*number);
    const size_t digit = text.find_first_of("0123456789");
    const size_t end = text.find_first_not_of("0123456789", digit);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end);
  }
  return numbers;
}

bool is_over(char state) {
  return state == 'Z' || state == 'X';
}

bool has_ended(pid_t thread) {
  const Expected<Stat> stat = read_stat(thread);
  return !stat || is_over(stat->state);
}

Expected<bool> is_32_bit_program(pid_t pid) {
  const std::string path = proc_path(memory_holder(pid), "exe");
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return tl::unexpected(proc_error(pid, "exe", errno));
  std::array<uint8_t, EI_NIDENT> identity{};
  const ssize_t count = pread(file.get(), identity.data(), identity.size(), 0);
  return count > EI_CLASS && identity[EI_CLASS] == ELFCLASS32;
}

bool is_kernel_thread(const Process& process) {
  constexpr pid_t kKthreadd = 2;
  // In a pid namespace of its own, pid 2 is a program like any other: it has a file.
  const bool may_be = process.pid() == kKthreadd || process.parent_pid == kKthreadd;
  return may_be && process.executable.empty() && process.arguments.empty();
}

Expected<uint64_t> read_bytes_of(pid_t pid, std::string_view field) {
  const std::string status = CLEW_TRY(read_proc_file(memory_holder(pid), "status"));
  const auto kilobytes = number_in<uint64_t>(status_field(status, field));
  if (kilobytes) return *kilobytes << 10;
  return fail(ErrorCode::Io, fmt::format("/proc/{}/status makes no sense", pid));
}

}  // namespace

Expected<Process> read_process(pid_t pid) {
  if (pid <= 0) return fail(ErrorCode::NotFound, fmt::format("no process has the pid {}", pid));
  const Stat stat = CLEW_TRY(read_stat(pid));
  const std::string status = CLEW_TRY(read_proc_file(pid, "status"));
  Process process;
  process.incarnation = {.pid = pid, .start_ticks = stat.start_ticks};
  process.parent_pid = stat.parent_pid;
  process.uid = effective_uid(status);
  process.comm = stat.comm;
  // A first thread that has ended has no memory any more; the others have.
  const pid_t holder = is_over(stat.state) ? memory_holder(pid) : pid;
  process.state = holder == pid ? stat.state : CLEW_TRY(read_stat(holder)).state;
  process.arguments = split_arguments(CLEW_TRY(read_proc_file(holder, "cmdline")));
  process.executable = read_proc_link(holder, "exe").value_or("");
  return process;
}

Expected<std::vector<Process>> list_processes() {
  std::vector<Process> processes;
  for (const pid_t pid : CLEW_TRY(read_number_names("/proc"))) {
    auto process = read_process(pid);
    if (process && !is_kernel_thread(*process)) processes.push_back(std::move(*process));
  }
  return processes;
}

Expected<std::vector<Process>> find_processes(std::string_view pattern_text) {
  // Of a shell's variable that has no value; whose executable may not be read would match it.
  if (pattern_text.empty())
    return fail(ErrorCode::InvalidQuery, "the name of a process is not empty");
  const Pattern pattern = CLEW_TRY(Pattern::compile(pattern_text));
  std::vector<Process> found;
  for (Process& process : CLEW_TRY(list_processes())) {
    if (is_called(process, pattern) && process.pid() != getpid())
      found.push_back(std::move(process));
  }
  return found;
}

namespace {

bool has_module(const Process& process, const Pattern& pattern) {
  if (pattern.matches(called_name(process)) || matches_file(pattern, process.executable, ""))
    return true;
  const auto map = read_memory_map(process.pid());
  return map && std::any_of(map->begin(), map->end(), [&pattern](const Mapping& mapping) {
           return is_of_module(mapping, pattern);
         });
}

}  // namespace

bool is_called(const Process& process, const Pattern& pattern) {
  return pattern.matches(process.comm) || pattern.matches(file_name_of(process.executable)) ||
         (!process.arguments.empty() && pattern.matches(file_name_of(process.arguments[0])));
}

namespace {

// A library is known by its soname, with which the name of its file begins: libz.so.1 is in
// libz.so.1.2.13.
bool may_be_soname(const Pattern& pattern, std::string_view name) {
  const std::string& text = pattern.text();
  return pattern.is_literal() && text.find(".so.") != std::string::npos &&
         name.starts_with(text + ".");
}

}  // namespace

bool is_of_module(const Mapping& mapping, const Pattern& pattern) {
  return mapping.executable && mapping.inode != 0 &&
         (matches_file(pattern, mapping.path, "") ||
          may_be_soname(pattern, file_name(mapping.path)));
}

bool is_of_this_program(pid_t pid) {
  struct stat ours {};
  struct stat its {};
  return pid == getpid() ||
         (stat("/proc/self/exe", &ours) == 0 && stat(proc_path(pid, "exe").c_str(), &its) == 0 &&
          ours.st_dev == its.st_dev && ours.st_ino == its.st_ino);
}

Expected<std::vector<Process>> list_others() {
  std::vector<Process> others = CLEW_TRY(list_processes());
  std::erase_if(others, [](const Process& one) { return is_of_this_program(one.pid()); });
  return others;
}

Expected<std::vector<pid_t>> find_processes_with(std::string_view module_pattern) {
  const Pattern pattern = CLEW_TRY(Pattern::compile(module_pattern));
  std::vector<pid_t> found;
  for (const Process& process : CLEW_TRY(list_others())) {
    if (has_module(process, pattern)) found.push_back(process.pid());
  }
  return found;
}

Expected<std::vector<pid_t>> list_threads(pid_t pid) {
  auto threads = read_number_names(proc_path(pid, "task"));
  if (!threads && threads.error().code == ErrorCode::NotFound) {
    return tl::unexpected(proc_error(pid, "task", ENOENT));
  }
  return threads;
}

pid_t memory_holder(pid_t pid) {
  if (!has_ended(pid)) return pid;
  const Expected<std::vector<pid_t>> threads = list_threads(pid);
  if (!threads) return pid;
  const auto living = std::find_if_not(threads->begin(), threads->end(), has_ended);
  return living == threads->end() ? pid : *living;
}

Expected<void> check_is_64_bit(pid_t pid) {
  const Expected<bool> is_32_bit = is_32_bit_program(pid);
  if (!is_32_bit || !*is_32_bit) return {};
  return fail(ErrorCode::Refused,
              fmt::format("process {} is a 32-bit program; Clew traces 64-bit ones [32-bit]", pid));
}

Expected<void> check_has_program(pid_t pid) {
  const Process process = CLEW_TRY(read_process(pid));
  if (is_over(process.state)) {
    return fail(ErrorCode::Refused,
                fmt::format("process {} ('{}') is a zombie: it has ended, and process {} has not "
                            "collected it",
                            pid, process.comm, process.parent_pid));
  }
  if (is_kernel_thread(process)) {
    return fail(ErrorCode::Refused,
                fmt::format("process {} ('{}') is a thread of the kernel, not a program", pid,
                            process.comm));
  }
  return {};
}

Expected<Life> read_life(pid_t pid) {
  const Stat stat = CLEW_TRY(read_stat(pid));
  return Life{.incarnation = {.pid = pid, .start_ticks = stat.start_ticks}, .state = stat.state};
}

Expected<ProcessFacts> read_facts(pid_t pid) {
  const Stat stat = CLEW_TRY(read_stat(pid));
  const pid_t holder = is_over(stat.state) ? memory_holder(pid) : pid;
  const std::string status = CLEW_TRY(read_proc_file(holder, "status"));
  const auto field = [&](std::string_view name) {
    return number_in<int>(status_field(status, name)).value_or(0);
  };
  ProcessFacts facts;
  facts.incarnation = {.pid = pid, .start_ticks = stat.start_ticks};
  facts.state = holder == pid ? stat.state : CLEW_TRY(read_stat(holder)).state;
  facts.uid = effective_uid(status);
  facts.capabilities = effective_capabilities(status);
  facts.tracer_pid = field("TracerPid");
  const int seccomp = field("Seccomp");  // prctl(2), PR_GET_SECCOMP: 0, 1 or 2.
  facts.seccomp = seccomp == 0   ? ProcessFacts::Seccomp::Off
                  : seccomp == 1 ? ProcessFacts::Seccomp::Strict
                                 : ProcessFacts::Seccomp::Filter;
  facts.no_new_privileges = field("NoNewPrivs") != 0;
  // "shstk wrss", say (Linux 6.6, Documentation/arch/x86/shstk.rst).
  facts.has_shadow_stack =
      status_field(status, "x86_Thread_features").find("shstk") != std::string_view::npos;
  const std::string own = CLEW_TRY(read_proc_file(pid, "status"));
  facts.namespace_pids = parse_numbers(status_field(own, "NSpid"));
  facts.is_32_bit = CLEW_TRY(is_32_bit_program(pid));
  facts.root = CLEW_TRY(read_proc_link(holder, "root"));
  return facts;
}

Expected<uint64_t> read_locked_bytes(pid_t pid) {
  return read_bytes_of(pid, "VmLck");
}

// All VM_GROWSDOWN, despite the name (mm/mmap.c, vm_stat_account()).
Expected<uint64_t> read_growing_bytes(pid_t pid) {
  return read_bytes_of(pid, "VmStk");
}

Expected<void> read_memory(pid_t pid, uint64_t address, std::span<uint8_t> bytes) {
  const iovec local{.iov_base = bytes.data(), .iov_len = bytes.size()};
  const iovec remote{.iov_base = reinterpret_cast<void*>(address), .iov_len = bytes.size()};
  ssize_t count = process_vm_readv(pid, &local, 1, &remote, 1, 0);
  if (count < 0 && errno == ESRCH) {
    const pid_t holder = memory_holder(pid);
    errno = ESRCH;
    if (holder != pid) count = process_vm_readv(holder, &local, 1, &remote, 1, 0);
  }
  if (count < 0) return tl::unexpected(proc_error(pid, "memory", errno));
  if (static_cast<size_t>(count) != bytes.size()) {
    return fail(ErrorCode::Io,
                fmt::format("process {} has no {} bytes at {:#x}", pid, bytes.size(), address));
  }
  return {};
}

}  // namespace clew::target

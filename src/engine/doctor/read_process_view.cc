// SPDX-License-Identifier: Apache-2.0
// Where a ProcessView comes from: /proc, and a stop for a moment when it is wanted.
#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include "base/file_descriptor.h"
#include "engine/doctor/process.h"
#include "target/proc_file.h"

namespace clew::engine::doctor {
namespace {

bool shares_namespace(pid_t pid, std::string_view kind) {
  std::error_code error;
  const auto ours = std::filesystem::read_symlink(fmt::format("/proc/self/ns/{}", kind), error);
  const auto its = target::read_proc_link(pid, fmt::format("ns/{}", kind));
  return !its || *its == ours.string();
}

int error_of_memory(pid_t pid) {
  const std::string path = target::proc_path(target::memory_holder(pid), "mem");
  const FileDescriptor memory(open(path.c_str(), O_RDWR | O_CLOEXEC));
  return memory.valid() ? 0 : errno;
}

// The kernel gives the files of what may not be dumped to root (proc(5)).
bool is_dumpable(pid_t pid, uid_t user) {
  struct stat info = {};
  return stat(target::proc_path(pid, "mem").c_str(), &info) != 0 || info.st_uid == user;
}

// The soft limit in /proc/PID/limits; UINT64_MAX = unlimited, or not known.
uint64_t limit_of(pid_t pid, std::string_view name) {
  std::ifstream file(target::proc_path(pid, "limits"));
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(name)) continue;
    std::istringstream words(line.substr(name.size()));
    uint64_t most = 0;
    return words >> most ? most : UINT64_MAX;
  }
  return UINT64_MAX;
}

Limit address_space_of(pid_t pid) {
  constexpr uint64_t kPage = 4096;
  std::ifstream file(target::proc_path(pid, "statm"));
  uint64_t pages = 0;
  file >> pages;
  return {.used = pages * kPage, .most = limit_of(pid, "Max address space")};
}

Limit descriptors_of(pid_t pid) {
  const auto open_now = target::read_number_names(target::proc_path(pid, "fd"));
  return {.used = open_now ? open_now->size() : 0, .most = limit_of(pid, "Max open files")};
}

void find_tracer(ProcessView& view) {
  const auto threads = target::list_threads(view.pid);
  if (!threads) return;
  for (const pid_t tid : *threads) {
    const auto facts = target::read_facts(tid);
    if (!facts || facts->tracer_pid == 0) continue;
    view.tracer = facts->tracer_pid;
    const auto tracer = target::read_process(view.tracer);
    if (tracer) view.tracer_name = tracer->comm;
    return;
  }
}

void find_arena(ProcessView& view) {
  const auto all = inline_::ps();
  const auto found = std::find_if(all.begin(), all.end(), [&](const inline_::ArenaInfo& arena) {
    return arena.pid == view.pid;
  });
  if (found != all.end()) view.arena = *found;
}

bool has_uprobes(pid_t pid) {
  const auto maps = target::read_memory_map(pid);
  return maps && std::any_of(maps->begin(), maps->end(),
                             [](const target::Mapping& map) { return map.path == "[uprobes]"; });
}

}  // namespace

Expected<ProcessView> read_process_view(pid_t pid, bool may_stop) {
  CLEW_TRY(target::check_has_program(pid));
  ProcessView view;
  view.pid = pid;
  view.user = CLEW_TRY(target::read_process(pid)).uid;
  view.memory_error = error_of_memory(pid);
  view.is_dumpable = is_dumpable(pid, view.user);
  view.facts = target::read_facts(pid);
  view.in_our_user_namespace = shares_namespace(pid, "user");
  view.in_our_pid_namespace = shares_namespace(pid, "pid");
  view.in_our_mount_namespace = shares_namespace(pid, "mnt");
  find_tracer(view);
  view.address_space = address_space_of(pid);
  view.descriptors = descriptors_of(pid);
  view.has_uprobes = has_uprobes(pid);
  view.modules = target::read_modules(pid);
  find_arena(view);
  if (may_stop) view.stop = inline_::try_stop(pid);
  return view;
}

}  // namespace clew::engine::doctor

// SPDX-License-Identifier: Apache-2.0
// Where a ProcessView comes from: /proc, and a stop for a moment when it is wanted.
#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <span>
#include <sstream>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file_descriptor.h"
#include "code/refusal.h"
#include "doctor/process.h"
#include "engine/sites.h"
#include "engine/takeable.h"
#include "engine/text_changes.h"
#include "inline/vdso_load.h"
#include "target/catalog.h"
#include "target/proc_file.h"

namespace clew::doctor {
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

void look_at_threads(ProcessView& view) {
  const auto threads = target::list_threads(view.pid);
  if (!threads) return;
  view.threads = threads->size();
  for (const pid_t tid : *threads) {
    const auto facts = target::read_facts(tid);
    if (!facts || facts->tracer_pid == 0) continue;
    view.tracer = facts->tracer_pid;
    const auto tracer = target::read_process(view.tracer);
    if (tracer) view.tracer_name = tracer->comm;
    return;
  }
}

// By the code itself: the kernel's page for uprobes is there for some of them only, and stays.
std::vector<std::string> uprobes_of(pid_t pid) {
  std::vector<std::string> found;
  for (const engine::ForeignPatch& patch : engine::foreign_patches(pid)) {
    found.push_back(patch.owner.empty() ? patch.place
                                        : fmt::format("{} ({})", patch.place, patch.owner));
  }
  return found;
}

void add_entry(const engine::Takeable& function, LaterUprobes& sum) {
  if (function.entry == code::name(code::RefusalReason::LaterUprobe)) ++sum.refused;
  if (function.entry != engine::Takeable::kYes) return;
  switch (function.later_uprobe) {
    case code::LaterUprobe::Safe:
      ++sum.safe;
      return;
    case code::LaterUprobe::HidesProbe:
      ++sum.hides_probe;
      return;
    case code::LaterUprobe::HidesValues:  // Of probes that ask for values.
    case code::LaterUprobe::Dangerous:    // None that is planned so.
      return;
  }
}

// Of all modules that can be read.
LaterUprobes later_uprobes_of(pid_t pid) {
  LaterUprobes sum;
  auto catalog = target::Catalog::of_process(pid, target::default_catalog_options());
  if (!catalog) return sum;
  const auto functions = catalog->find("*");
  if (!functions) return sum;
  engine::CodeCache codes;
  for (auto from = functions->begin(); from != functions->end();) {
    const auto to = std::find_if(
        from, functions->end(),
        [from](const target::FunctionMatch& match) { return match.module != from->module; });
    const auto takeable = engine::find_takeable(*catalog, codes, {from, to}, from->module);
    if (takeable) {
      for (const engine::Takeable& function : *takeable)
        add_entry(function, sum);
    }
    from = to;
  }
  return sum;
}

}  // namespace

Expected<ProcessView> read_process_view(pid_t pid, bool may_stop) {
  CLEW_TRY(target::check_has_program(pid));
  ProcessView view;
  view.pid = pid;
  view.user = CLEW_TRY(target::read_process(pid)).uid;
  view.memory_error = error_of_memory(pid);
  view.has_base_instructions = inline_::has_base_instructions(pid);
  if (const auto maps = target::read_memory_map(pid)) {
    if (const auto load = inline_::find_load(pid, *maps); !load)
      view.load_refusal = load.error().message;
  }
  view.is_dumpable = is_dumpable(pid, view.user);
  view.facts = target::read_facts(pid);
  view.in_our_user_namespace = shares_namespace(pid, "user");
  view.in_our_pid_namespace = shares_namespace(pid, "pid");
  view.in_our_mount_namespace = shares_namespace(pid, "mnt");
  look_at_threads(view);
  view.address_space = address_space_of(pid);
  view.descriptors = descriptors_of(pid);
  view.memory = target::memory_room(pid);
  view.uprobes = uprobes_of(pid);
  view.modules = target::read_modules(pid);
  view.later_uprobes = later_uprobes_of(pid);
  view.arena = inline_::look_at(view.pid);
  if (may_stop) view.stop = inline_::try_stop(pid);
  return view;
}

}  // namespace clew::doctor

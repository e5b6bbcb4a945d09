// SPDX-License-Identifier: Apache-2.0
// The modules of a process: its executable file mappings, grouped by file and load bias, and a path
// that opens the very file that is mapped, whatever lies at its name now.
#include <algorithm>
#include <optional>

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "target/elf_file.h"
#include "target/mapped_file.h"
#include "target/proc_file.h"
#include "target/process.h"

namespace clew::target {

namespace {

constexpr uint64_t kPageMask = ~uint64_t{4095};

bool is_same_file(const std::string& path, const Mapping& mapping) {
  struct stat status {};
  // The device is not compared: overlayfs and btrfs show another in maps than stat does.
  return stat(path.c_str(), &status) == 0 && status.st_ino == mapping.inode;
}

}  // namespace

// The name in the process's root first, since that is what a user knows; then the links that the
// kernel keeps to mapped files, which need privilege but survive deletion and replacement. A
// symbolic link inside a container that leads out of it opens another file, which the inode tells.
MappedFile find_mapped_file(pid_t pid, const Mapping& mapping, std::string_view executable) {
  MappedFile opened;
  std::string exe_name(executable);
  if (mapping.is_deleted) exe_name = exe_name.substr(0, exe_name.rfind(" (deleted)"));
  const std::string exe = proc_path(pid, "exe");
  opened.is_executable = mapping.path == exe_name && is_same_file(exe, mapping);
  const std::string named = proc_path(pid, "root") + mapping.path;
  const std::string kept =
      proc_path(pid, fmt::format("map_files/{:x}-{:x}", mapping.start, mapping.end));
  if (!mapping.is_deleted && is_same_file(named, mapping)) {
    opened.open_path = named;
  } else if (opened.is_executable) {
    opened.open_path = exe;
  } else if (is_same_file(kept, mapping)) {
    opened.open_path = kept;
  }
  return opened;
}

// Several segments may share a page of the file, so one with the mapping's permission comes first.
std::optional<uint64_t> load_bias(const ElfFile& file, const Mapping& mapping) {
  for (const bool want_executable : {true, false}) {
    for (const Elf64_Phdr& segment : file.segments()) {
      const bool executable = (segment.p_flags & PF_X) != 0;
      if (segment.p_type != PT_LOAD || executable != want_executable) continue;
      const uint64_t first = segment.p_offset & kPageMask;
      const uint64_t size = segment.p_filesz + (segment.p_offset - first);
      if (mapping.file_offset - first >= size) continue;
      return mapping.start - mapping.file_offset - (segment.p_vaddr - segment.p_offset);
    }
  }
  return std::nullopt;
}

namespace {

ProcessModule describe(pid_t pid, const Mapping& mapping, std::string_view executable) {
  ProcessModule module;
  module.path = mapping.path;
  module.device_major = mapping.device_major;
  module.device_minor = mapping.device_minor;
  module.inode = mapping.inode;
  module.is_deleted = mapping.is_deleted;
  MappedFile opened = find_mapped_file(pid, mapping, executable);
  module.open_path = std::move(opened.open_path);
  module.is_executable = opened.is_executable;
  if (module.open_path.empty()) {
    module.problem = mapping.is_deleted
                         ? "its file was deleted or replaced, and only root can reach it still"
                         : "its file cannot be reached under the name that the process has for it";
  }
  return module;
}

// What one file needs once, however often it is mapped.
struct KnownFile {
  ProcessModule module;
  std::optional<ElfFile> file;
  bool is_elf = true;
};

KnownFile look_at(pid_t pid, const Mapping& mapping, std::string_view executable) {
  KnownFile known{.module = describe(pid, mapping, executable), .file = {}, .is_elf = true};
  if (known.module.open_path.empty()) return known;
  auto file = ElfFile::open(known.module.open_path);
  if (!file) {
    known.module.problem = file.error().message;
    known.is_elf = file.error().code != ErrorCode::Refused;
    return known;
  }
  known.module.build_id = file->build_id();
  known.file = std::move(*file);
  return known;
}

bool is_same_mapped_file(const ProcessModule& module, const Mapping& mapping) {
  return module.inode == mapping.inode && module.device_major == mapping.device_major &&
         module.device_minor == mapping.device_minor && module.path == mapping.path;
}

class ModuleList {
 public:
  ModuleList(pid_t pid, std::string executable) : pid_(pid), executable_(std::move(executable)) {}

  void add(const Mapping& mapping) {
    const KnownFile& known = known_file(mapping);
    if (!known.is_elf) return;
    const auto bias = known.file ? load_bias(*known.file, mapping) : std::nullopt;
    const uint64_t wanted = bias.value_or(0);
    const auto same = std::find_if(modules_.rbegin(), modules_.rend(), [&](const auto& module) {
      return is_same_mapped_file(module, mapping) && module.load_bias == wanted;
    });
    if (same != modules_.rend()) {
      same->executable_ranges.push_back(mapping);
      return;
    }
    ProcessModule module = known.module;
    module.load_bias = wanted;
    if (known.file && !bias) module.problem = "it is mapped from no segment that its file has";
    module.executable_ranges.push_back(mapping);
    modules_.push_back(std::move(module));
  }

  std::vector<ProcessModule> take() { return std::move(modules_); }

 private:
  const KnownFile& known_file(const Mapping& mapping) {
    for (const auto& known : files_) {
      if (is_same_mapped_file(known.module, mapping)) return known;
    }
    return files_.emplace_back(look_at(pid_, mapping, executable_));
  }

  pid_t pid_;
  std::string executable_;
  std::vector<KnownFile> files_;
  std::vector<ProcessModule> modules_;
};

}  // namespace

bool ProcessModule::contains(uint64_t address) const {
  return std::any_of(executable_ranges.begin(), executable_ranges.end(),
                     [&](const Mapping& range) { return range.contains(address); });
}

Expected<std::vector<ProcessModule>> read_modules(pid_t pid) {
  // What a first thread that has ended led to, the others still do.
  const pid_t holder = memory_holder(pid);
  ModuleList modules(holder, read_proc_link(holder, "exe").value_or(""));
  for (const Mapping& mapping : CLEW_TRY(read_memory_map(pid))) {
    // Anonymous memory has no file; "[vdso]" and kin are not files either.
    const bool is_file = mapping.executable && !mapping.path.empty() && mapping.path[0] == '/';
    if (is_file) modules.add(mapping);
  }
  return modules.take();
}

}  // namespace clew::target

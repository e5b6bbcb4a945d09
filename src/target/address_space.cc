// SPDX-License-Identifier: Apache-2.0
#include "target/address_space.h"

#include <algorithm>
#include <csignal>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "target/catalog.h"
#include "target/mapped_file.h"
#include "target/module_names.h"
#include "target/proc_file.h"

namespace clew::target {

namespace {

constexpr std::string_view kVdso = "[vdso]";
constexpr size_t kEndedMax = 4096;        // Processes whose spaces are kept beyond their end.
constexpr size_t kSpacesMax = 16;         // Of one pid.
constexpr size_t kOpenFilesMax = 700;     // Below the common limit of 1024 descriptors.
constexpr size_t kSpaceRangesMax = 4096;  // Of a space.
constexpr size_t kFormerMax = 256;

// Code that only the kernel uses: where it steps over probes, and what returns lead to that it
// probes.
bool is_kernels_own(std::string_view path) {
  return path == "[vsyscall]" || path == "[uprobes]";
}

bool has_program_name(const Process& process, std::string_view name) {
  return called_name(process) == name || process.comm == name;
}

// Whether it is the space of the same program, so that it takes the old one's place.
bool is_continued(const AddressSpace& old, const AddressSpace& fresh) {
  return old.ranges.empty() || (!old.has_ended && old.program == fresh.program);
}

// What the old one had of files, and the fresh one has not, so that it keeps its names.
std::vector<CodeRange> former_of(AddressSpace& old, const AddressSpace& fresh) {
  std::vector<CodeRange> former = std::move(old.former);
  for (const CodeRange& range : old.ranges) {
    const bool is_there =
        std::find(fresh.ranges.begin(), fresh.ranges.end(), range) != fresh.ranges.end();
    if (range.file != nullptr && !is_there) former.push_back(range);
  }
  const size_t too_many = former.size() - std::min(former.size(), kFormerMax);
  former.erase(former.begin(), former.begin() + static_cast<std::ptrdiff_t>(too_many));
  return former;
}

bool is_inode(const FileDescriptor& file, uint64_t inode) {
  struct stat status {};
  return file.valid() && fstat(file.get(), &status) == 0 && status.st_ino == inode;
}

FileDescriptor open_to_read(const std::string& path) {
  return FileDescriptor(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
}

// The very file that is mapped. When the process is gone, what has its name now may be it.
FileDescriptor open_mapped(pid_t pid, const Mapping& mapping, std::string_view executable) {
  const MappedFile mapped = find_mapped_file(pid, mapping, executable);
  FileDescriptor file = open_to_read(mapped.open_path.empty() ? mapping.path : mapped.open_path);
  return is_inode(file, mapping.inode) ? std::move(file) : FileDescriptor();
}

FileDescriptor vdso_file() {
  FileDescriptor file(memfd_create("vdso", MFD_CLOEXEC));
  const std::vector<uint8_t> image = read_vdso();
  const ssize_t written = file.valid() ? write(file.get(), image.data(), image.size()) : -1;
  return written == static_cast<ssize_t>(image.size()) ? std::move(file) : FileDescriptor();
}

}  // namespace

struct AddressSpaces::KnownFile {
  CodeFile file;
  std::optional<ElfFile> elf;  // For its segments.
};

std::vector<uint8_t> read_vdso() {
  const uint64_t address = getauxval(AT_SYSINFO_EHDR);
  const auto maps = read_memory_map(getpid());
  if (address == 0 || !maps) return {};
  for (const Mapping& mapping : *maps) {
    if (mapping.start != address) continue;
    const auto* bytes = reinterpret_cast<const uint8_t*>(mapping.start);
    return {bytes, bytes + mapping.size_bytes()};
  }
  return {};
}

const CodeRange* AddressSpace::find(uint64_t address) const {
  const auto after = std::upper_bound(
      ranges.begin(), ranges.end(), address,
      [](uint64_t wanted, const CodeRange& range) { return wanted < range.begin; });
  if (after != ranges.begin() && address < (after - 1)->end) return &*(after - 1);
  const auto gone = std::find_if(former.rbegin(), former.rend(), [&](const CodeRange& range) {
    return range.begin <= address && address < range.end;
  });
  return gone == former.rend() ? nullptr : &*gone;
}

AddressSpaces::AddressSpaces() = default;
AddressSpaces::~AddressSpaces() = default;

AddressSpace& AddressSpaces::add(pid_t pid) {
  std::vector<Space>& spaces = spaces_[pid];
  if (spaces.size() >= kSpacesMax) spaces.erase(spaces.begin());
  spaces.push_back(std::make_unique<AddressSpace>());
  spaces.back()->pid = pid;
  return *spaces.back();
}

const AddressSpace* AddressSpaces::find(pid_t pid) const {
  const auto found = spaces_.find(pid);
  return found == spaces_.end() ? nullptr : found->second.back().get();
}

const AddressSpace* AddressSpaces::find(pid_t pid, uint64_t address) const {
  const auto found = spaces_.find(pid);
  if (found == spaces_.end()) return nullptr;
  const auto& spaces = found->second;
  const auto has_it = [&](const Space& space) { return space->find(address) != nullptr; };
  const auto newest = std::find_if(spaces.rbegin(), spaces.rend(), has_it);
  return newest == spaces.rend() ? nullptr : newest->get();
}

Expected<const AddressSpace*> AddressSpaces::look_at(pid_t pid) {
  const std::vector<Mapping> mappings = CLEW_TRY(read_memory_map(pid));
  const std::string executable = read_proc_link(pid, "exe").value_or("");
  AddressSpace fresh;
  fresh.pid = pid;
  for (const Mapping& mapping : mappings) {
    if (!mapping.executable || is_kernels_own(mapping.path)) continue;
    if (fresh.ranges.size() >= kSpaceRangesMax) break;
    fresh.ranges.push_back(range_of(pid, mapping, executable));
  }
  if (fresh.ranges.empty()) {
    return fail(ErrorCode::NotFound, fmt::format("process {} runs no program", pid));
  }
  name_program(fresh, pid, executable);
  const auto known = spaces_.find(pid);
  const bool is_same = known != spaces_.end() && is_continued(*known->second.back(), fresh);
  AddressSpace& space = is_same ? *known->second.back() : add(pid);
  fresh.former = former_of(space, fresh);
  space = std::move(fresh);
  return &space;
}

// The main program is shown under the name that it was started by, if that leads to its file.
void AddressSpaces::name_program(AddressSpace& space, pid_t pid, std::string_view executable) {
  for (const CodeRange& range : space.ranges) {
    if (range.file != nullptr && range.file->path == executable) space.program = range.file;
  }
  if (space.program == nullptr) return;
  space.program_name = space.program->name;
  const auto process = read_process(pid);
  if (!process || has_program_name(*process, space.program->name)) return;
  ProcessModule module;
  module.path = space.program->path;
  module.open_path = space.program->open_path;
  const LinkFinder links(proc_path(pid, "root"), module);
  const std::string search_path = default_catalog_options().search_path;
  for (const std::string_view claimed : {called_name(*process), std::string_view(process->comm)}) {
    if (!links.has_link(claimed, search_path)) continue;
    space.program_name = claimed;
    return;
  }
}

const CodeFile* AddressSpaces::file_of(pid_t pid, const Mapping& mapping,
                                       std::string_view executable) {
  for (const auto& known : files_) {
    const CodeFile& file = known->file;
    const bool is_it = file.inode == mapping.inode && file.device_major == mapping.device_major &&
                       file.device_minor == mapping.device_minor && file.path == mapping.path;
    if (is_it) return &file;
  }
  const bool is_vdso = mapping.path == kVdso;
  if (!is_vdso && !mapping.path.starts_with('/')) return nullptr;
  auto known = std::make_unique<KnownFile>();
  CodeFile& file = known->file;
  file.path = mapping.path;
  file.name = file_name(mapping.path);
  file.device_major = mapping.device_major;
  file.device_minor = mapping.device_minor;
  file.inode = mapping.inode;
  if (files_.size() < kOpenFilesMax) {
    file.descriptor = is_vdso ? vdso_file() : open_mapped(pid, mapping, executable);
  }
  if (file.descriptor.valid()) {
    file.open_path = fmt::format("/proc/self/fd/{}", file.descriptor.get());
    auto elf = ElfFile::open(file.open_path);
    if (elf) file.size_bytes = elf->size_bytes();
    if (elf) known->elf = std::move(*elf);
  }
  files_.push_back(std::move(known));
  return &files_.back()->file;
}

CodeRange AddressSpaces::range_of(pid_t pid, const Mapping& mapping, std::string_view executable) {
  CodeRange range{.begin = mapping.start, .end = mapping.end, .file_offset = mapping.file_offset};
  const CodeFile* file = file_of(pid, mapping, executable);
  if (file == nullptr) return range;
  const auto known = std::find_if(files_.begin(), files_.end(),
                                  [&](const auto& one) { return &one->file == file; });
  const auto& elf = (*known)->elf;
  const auto bias = elf ? load_bias(*elf, mapping) : std::nullopt;
  if (!bias) return range;
  range.file = file;
  range.load_bias = *bias;
  return range;
}

void AddressSpaces::fork(pid_t parent, pid_t child) {
  const AddressSpace* const from = find(parent);
  if (from == nullptr) return (void)look_at(child);
  AddressSpace copy = *from;
  copy.pid = child;
  copy.has_ended = false;
  add(child) = std::move(copy);
}

void AddressSpaces::exec(pid_t pid) {
  (void)add(pid);
}

void AddressSpaces::map(pid_t pid, const Mapping& mapping) {
  const auto known = spaces_.find(pid);
  if (known == spaces_.end()) return (void)look_at(pid);
  AddressSpace& space = *known->second.back();
  const CodeRange range = range_of(pid, mapping, read_proc_link(pid, "exe").value_or(""));
  std::vector<CodeRange> ranges;
  for (const CodeRange& one : space.ranges) {
    if (one.begin < range.begin) {
      ranges.push_back(one);
      ranges.back().end = std::min(one.end, range.begin);
    }
    if (one.end > range.end) {
      ranges.push_back(one);
      ranges.back().begin = std::max(one.begin, range.end);
      ranges.back().file_offset += ranges.back().begin - one.begin;
    }
  }
  if (ranges.size() >= kSpaceRangesMax) return;
  ranges.push_back(range);
  std::sort(ranges.begin(), ranges.end(),
            [](const CodeRange& a, const CodeRange& b) { return a.begin < b.begin; });
  space.ranges = std::move(ranges);
  if (space.program == nullptr && range.file != nullptr) {
    space.program = range.file;  // The first that exec maps.
    space.program_name = range.file->name;
  }
}

std::vector<pid_t> AddressSpaces::living() const {
  std::vector<pid_t> pids;
  for (const auto& [pid, spaces] : spaces_) {
    if (!spaces.back()->has_ended) pids.push_back(pid);
  }
  return pids;
}

void AddressSpaces::end(pid_t pid) {
  const auto known = spaces_.find(pid);
  if (known == spaces_.end()) return;
  known->second.back()->has_ended = true;
  ended_.push_back(pid);
  if (ended_.size() <= kEndedMax) return;
  const pid_t oldest = ended_.front();
  ended_.pop_front();
  // Another process may have its pid by now.
  if (kill(oldest, 0) != 0) spaces_.erase(oldest);
}

}  // namespace clew::target

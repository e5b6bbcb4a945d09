// SPDX-License-Identifier: Apache-2.0
#include "live/process_state.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/file_descriptor.h"

namespace clew::live {
namespace {

struct Mapping {
  uint64_t start = 0;
  uint64_t end = 0;
  std::string permissions;
  uint64_t file_offset = 0;
  uint64_t inode = 0;
  std::string path;
};

std::string folder_of(pid_t pid) {
  return "/proc/" + std::to_string(pid);
}

std::vector<Mapping> mappings_of(pid_t pid) {
  std::vector<Mapping> mappings;
  std::ifstream file(folder_of(pid) + "/maps");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    Mapping mapping;
    std::string device;
    char dash = 0;
    words >> std::hex >> mapping.start >> dash >> mapping.end >> mapping.permissions >>
        mapping.file_offset >> device >> std::dec >> mapping.inode;
    std::getline(words >> std::ws, mapping.path);
    mappings.push_back(mapping);
  }
  return mappings;
}

bool is_strange(const Mapping& mapping) {
  constexpr uint64_t kLowEnd = 1ULL << 31;
  const bool anonymous = mapping.inode == 0 && mapping.path.empty();
  const bool executable = mapping.permissions[2] == 'x';
  return mapping.path.find("memfd:") != std::string::npos ||
         (anonymous && (executable || mapping.start < kLowEnd));
}

// Anonymous writable memory is the program's heap, its threads' stacks and their arenas.
bool grows_by_itself(const Mapping& mapping) {
  return mapping.inode == 0 && !is_strange(mapping) && mapping.path != "[vvar]" &&
         mapping.path != "[vdso]";
}

std::string text_of(const Mapping& mapping) {
  std::ostringstream text;
  text << std::hex << mapping.start << "-" << mapping.end << " " << mapping.permissions << " "
       << mapping.path;
  return text.str();
}

std::string bytes_at(const std::string& path, uint64_t offset, uint64_t size) {
  const FileDescriptor fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string bytes(size, '\0');
  const ssize_t got = pread(fd.get(), bytes.data(), size, static_cast<off_t>(offset));
  bytes.resize(got < 0 ? 0 : static_cast<size_t>(got));
  return bytes;
}

// Opens it also when only the process has a name for it: root may.
std::string file_of(pid_t pid, const Mapping& mapping) {
  std::ostringstream range;
  range << std::hex << mapping.start << "-" << mapping.end;
  const std::string by_range = folder_of(pid) + "/map_files/" + range.str();
  if (access(by_range.c_str(), R_OK) == 0) return by_range;
  return folder_of(pid) + "/root" + mapping.path;
}

std::string signals_of(const std::filesystem::path& status) {
  std::string signals;
  std::ifstream file(status);
  for (std::string line; std::getline(file, line);) {
    // SigQ counts the signals of all processes of the user.
    if (line.starts_with("Sig") && !line.starts_with("SigQ")) signals += line + "\n";
  }
  return signals;
}

// A thread that was joined may still be listed: pthread_join waits for the end of its use of the
// memory, not for the kernel's last step. PF_EXITING of linux/sched.h is set before both.
bool is_exiting(const std::filesystem::path& task) {
  constexpr uint64_t kExiting = 0x4;
  constexpr int kFlagsAfterName = 7;  // Field 9 of proc(5)'s stat; the name is field 2.
  std::ifstream file(task / "stat");
  const std::string stat((std::istreambuf_iterator<char>(file)), {});
  const size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos) return true;
  std::istringstream fields(stat.substr(name_end + 1));
  std::string field;
  for (int i = 0; i < kFlagsAfterName; ++i)
    fields >> field;
  return (std::strtoull(field.c_str(), nullptr, 10) & kExiting) != 0;
}

std::vector<std::filesystem::path> entries_of_folder(const std::string& folder) {
  std::vector<std::filesystem::path> entries;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    entries.push_back(entry.path());
  }
  std::sort(entries.begin(), entries.end());
  return entries;
}

// What a process has of a file as executable memory.
struct Text {
  std::string path;
  std::string memory;
  std::string file;

  [[nodiscard]] size_t length() const {  // The file may end in the page.
    return std::min(memory.size(), file.size());
  }
  [[nodiscard]] size_t differs_at(size_t from) const {
    const auto begin = static_cast<ptrdiff_t>(from);
    const auto end = static_cast<ptrdiff_t>(length());
    const auto place =
        std::mismatch(memory.begin() + begin, memory.begin() + end, file.begin() + begin).first;
    return static_cast<size_t>(place - memory.begin());
  }
};

std::vector<Text> texts_of(pid_t pid) {
  std::vector<Text> texts;
  for (const Mapping& mapping : mappings_of(pid)) {
    // Memory that Clew has made executable is its own file.
    const bool has_file = mapping.inode != 0 && !mapping.path.starts_with("/memfd:");
    if (mapping.permissions[2] != 'x' || !has_file) continue;
    const uint64_t size = mapping.end - mapping.start;
    texts.push_back({.path = mapping.path,
                     .memory = bytes_at(folder_of(pid) + "/mem", mapping.start, size),
                     .file = bytes_at(file_of(pid, mapping), mapping.file_offset, size)});
  }
  return texts;
}

// Some bytes from there.
std::string hex_at(const std::string& bytes, size_t place) {
  constexpr size_t kShown = 16;
  std::string shown;
  for (const char byte : bytes.substr(std::min(place, bytes.size()), kShown))
    shown += fmt::format("{:02x} ", static_cast<uint8_t>(byte));
  return shown;
}

}  // namespace

ProcessState ProcessState::of(pid_t pid) {
  ProcessState state;
  for (const Mapping& mapping : mappings_of(pid)) {
    if (!grows_by_itself(mapping)) state.mappings.insert(text_of(mapping));
    if (is_strange(mapping)) state.strange_mappings.insert(text_of(mapping));
  }
  for (const auto& entry : entries_of_folder(folder_of(pid) + "/fd")) {
    std::error_code ignored;
    state.descriptors.push_back(std::filesystem::read_symlink(entry, ignored).string());
  }
  for (const auto& task : entries_of_folder(folder_of(pid) + "/task")) {
    if (is_exiting(task)) continue;
    ++state.thread_count;
    state.signals += signals_of(task / "status");
  }
  return state;
}

void expect_text_equals_file(pid_t pid) {
  const std::vector<Text> texts = texts_of(pid);
  EXPECT_FALSE(texts.empty());
  for (const Text& text : texts) {
    EXPECT_FALSE(text.file.empty()) << text.path;
    const size_t place = text.differs_at(0);
    EXPECT_EQ(place, text.length())
        << text.path << " differs from its file: " << hex_at(text.memory, place) << "instead of "
        << hex_at(text.file, place);
  }
}

size_t changed_text_bytes(pid_t pid) {
  size_t changed = 0;
  for (const Text& text : texts_of(pid)) {
    for (size_t at = text.differs_at(0); at < text.length(); at = text.differs_at(at + 1))
      ++changed;
  }
  return changed;
}

void expect_no_residue(const ProcessState& before, pid_t pid) {
  const ProcessState after = ProcessState::of(pid);
  EXPECT_EQ(after.mappings, before.mappings);
  EXPECT_EQ(after.descriptors, before.descriptors);
  EXPECT_EQ(after.thread_count, before.thread_count);
  EXPECT_EQ(after.signals, before.signals);
}

void expect_no_strange_residue(const ProcessState& before, pid_t pid) {
  const ProcessState after = ProcessState::of(pid);
  EXPECT_EQ(after.strange_mappings, before.strange_mappings);
  for (const std::string& target : after.descriptors) {
    EXPECT_EQ(target.find("memfd:clew"), std::string::npos) << target;
  }
}

}  // namespace clew::live

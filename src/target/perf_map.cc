// SPDX-License-Identifier: Apache-2.0
#include "target/perf_map.h"

#include <charconv>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "base/file_descriptor.h"
#include "target/process.h"

namespace clew::target {
namespace {

constexpr off_t kFileMax = off_t{64} << 20;
constexpr size_t kFunctionsMax = 1U << 20;

// In the process's own file system, under the pid that it has there.
FileDescriptor open_map(pid_t pid) {
  const Expected<ProcessFacts> facts = read_facts(pid);
  if (!facts) return {};
  const pid_t inner = facts->namespace_pids.empty() ? pid : facts->namespace_pids.back();
  const std::string path = fmt::format("/proc/{}/root{}/perf-{}.map", pid, "/tmp", inner);
  FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat status {};
  if (!file.valid() || fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return {};
  const bool is_trusted = status.st_uid == 0 || status.st_uid == facts->uid;
  if (!is_trusted || status.st_size > kFileMax) return {};
  return file;
}

std::string read_all(int file, off_t size_bytes) {
  std::string text(static_cast<size_t>(size_bytes), '\0');
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t count =
        pread(file, text.data() + done, text.size() - done, static_cast<off_t>(done));
    if (count <= 0) break;
    done += static_cast<size_t>(count);
  }
  text.resize(done);
  return text;
}

// Takes a hexadecimal number and the blank behind it.
std::optional<uint64_t> take_number(std::string_view& line) {
  uint64_t number = 0;
  const auto [end, code] = std::from_chars(line.data(), line.data() + line.size(), number, 16);
  const auto length = static_cast<size_t>(end - line.data());
  if (code != std::errc() || length >= line.size() || line[length] != ' ') return std::nullopt;
  line.remove_prefix(length + 1);
  return number;
}

}  // namespace

std::optional<PerfMapPlace> PerfMap::find(uint64_t address) {
  std::optional<PerfMapPlace> place = known(address);
  if (place) return place;
  read();
  return known(address);
}

std::optional<PerfMapPlace> PerfMap::known(uint64_t address) const {
  auto function = functions_.upper_bound(address);
  if (function == functions_.begin()) return std::nullopt;
  --function;
  if (address >= function->second.end) return std::nullopt;
  return PerfMapPlace{.function = function->second.name, .offset_bytes = address - function->first};
}

void PerfMap::read() {
  const FileDescriptor file = open_map(pid_);
  struct stat status {};
  if (!file.valid() || fstat(file.get(), &status) != 0) return;
  const bool is_same = status.st_size == size_bytes_ && status.st_mtim.tv_sec == changed_.tv_sec &&
                       status.st_mtim.tv_nsec == changed_.tv_nsec;
  if (is_same) return;
  size_bytes_ = status.st_size;
  changed_ = status.st_mtim;
  const std::string text = read_all(file.get(), status.st_size);
  functions_.clear();
  std::string_view rest = text;
  // A last line without its end is one that is being written.
  for (size_t end = rest.find('\n'); end != std::string_view::npos; end = rest.find('\n')) {
    add_line(rest.substr(0, end));
    rest.remove_prefix(end + 1);
  }
}

// A later line is of newer code: what it covers is gone.
void PerfMap::add_line(std::string_view line) {
  const std::optional<uint64_t> start = take_number(line);
  const std::optional<uint64_t> size_bytes = start ? take_number(line) : std::nullopt;
  if (!size_bytes || *size_bytes == 0 || line.empty()) return;
  const uint64_t end = *start + *size_bytes;
  if (end < *start || functions_.size() >= kFunctionsMax) return;
  auto first = functions_.lower_bound(*start);
  if (first != functions_.begin()) {
    const auto before = std::prev(first);
    if (before->second.end > *start) first = functions_.erase(before);
  }
  while (first != functions_.end() && first->first < end)
    first = functions_.erase(first);
  functions_.emplace(*start, Function{.end = end, .name = std::string(line)});
}

}  // namespace clew::target

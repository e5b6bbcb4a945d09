// SPDX-License-Identifier: Apache-2.0
#include "target/perf_map.h"

#include <algorithm>
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
constexpr size_t kKnownBytesMax = 256;  // By which a file is known again.
constexpr std::chrono::milliseconds kPauseMin{10};
constexpr std::chrono::milliseconds kPauseMax{1000};
constexpr size_t kBytesPerMillisecond = 8192;  // Of reading, so that it is a tenth of the time.

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

std::string read_part(int file, off_t begin, off_t end) {
  std::string text(static_cast<size_t>(end - begin), '\0');
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t count =
        pread(file, text.data() + done, text.size() - done, begin + static_cast<off_t>(done));
    if (count <= 0) break;
    done += static_cast<size_t>(count);
  }
  text.resize(done);
  return text;
}

bool is_same_file(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

bool is_unchanged(const struct stat& a, const struct stat& b) {
  return is_same_file(a, b) && a.st_size == b.st_size && a.st_mtim.tv_sec == b.st_mtim.tv_sec &&
         a.st_mtim.tv_nsec == b.st_mtim.tv_nsec;
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

std::optional<PerfMapPlace> PerfMap::find(uint64_t address, Clock::time_point now) {
  std::optional<PerfMapPlace> place = known(address);
  if (place || now < next_look_) return place;
  const std::chrono::milliseconds pause(read() / kBytesPerMillisecond);
  next_look_ = now + std::clamp(pause, kPauseMin, kPauseMax);
  return known(address);
}

std::optional<PerfMapPlace> PerfMap::known(uint64_t address) const {
  auto function = functions_.upper_bound(address);
  if (function == functions_.begin()) return std::nullopt;
  --function;
  if (address >= function->second.end) return std::nullopt;
  return PerfMapPlace{.function = function->second.name, .offset_bytes = address - function->first};
}

// Whether what was read is its beginning still: a file may be written anew.
bool PerfMap::has_grown(int file, const struct stat& status) const {
  if (!is_same_file(status, last_) || status.st_size <= last_.st_size) return false;
  const auto line_bytes = static_cast<off_t>(last_line_.size());
  return read_part(file, done_bytes_ - line_bytes, done_bytes_) == last_line_;
}

// How many bytes were read.
size_t PerfMap::read() {
  const FileDescriptor file = open_map(pid_);
  struct stat status {};
  if (!file.valid() || fstat(file.get(), &status) != 0 || is_unchanged(status, last_)) return 0;
  if (!has_grown(file.get(), status)) {
    functions_.clear();
    done_bytes_ = 0;
    last_line_.clear();
  }
  last_ = status;
  const std::string text = read_part(file.get(), done_bytes_, status.st_size);
  add_lines(text);
  return text.size();
}

// A last line without its end is one that is being written.
void PerfMap::add_lines(std::string_view text) {
  std::string_view last;
  for (size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
    last = text.substr(0, end + 1);
    add_line(text.substr(0, end));
    text.remove_prefix(end + 1);
    done_bytes_ += static_cast<off_t>(end) + 1;
  }
  if (!last.empty()) last_line_ = last.substr(last.size() - std::min(last.size(), kKnownBytesMax));
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

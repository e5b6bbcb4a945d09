// SPDX-License-Identifier: Apache-2.0
#include "recorder/source_text.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/file_descriptor.h"

namespace clew::recorder {

namespace {

constexpr size_t kSourceBytesMax = size_t{16} << 20;
constexpr size_t kBytesMax = size_t{128} << 20;  // Of all files.
constexpr size_t kLineBytesMax = 200;
constexpr size_t kPathPartsMax = 64;
constexpr int64_t kSecond = 1'000'000'000;

// Nothing that does something when it is opened or read: devices, pipes, what the kernel makes up.
FileDescriptor open_plain(const std::string& path, struct stat& status) {
  const FileDescriptor found(open(path.c_str(), O_PATH | O_CLOEXEC));
  struct statfs system {};
  if (!found.valid() || fstat(found.get(), &status) != 0 || !S_ISREG(status.st_mode)) return {};
  if (fstatfs(found.get(), &system) != 0 || system.f_type == PROC_SUPER_MAGIC ||
      system.f_type == SYSFS_MAGIC || system.f_type == DEBUGFS_MAGIC ||
      system.f_type == TRACEFS_MAGIC) {
    return {};
  }
  const std::string same = fmt::format("/proc/self/fd/{}", found.get());
  return FileDescriptor(open(same.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
}

bool is_space(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

// A control character of ASCII or, two bytes in UTF-8, of Latin-1.
bool is_control(std::string_view text, size_t i) {
  const auto at = [&](size_t k) { return static_cast<unsigned char>(text[k]); };
  if (at(i) < ' ' || at(i) == 0x7f) return true;
  return at(i) == 0xc2 && i + 1 < text.size() && at(i + 1) < 0xa0;
}

std::string printable(std::string_view text) {
  const bool is_cut = text.size() > kLineBytesMax;
  size_t end = std::min(text.size(), kLineBytesMax);
  while (is_cut && end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80)
    --end;  // In front of a character.
  std::string result(text.substr(0, end));
  for (size_t i = 0; i < result.size(); ++i) {
    const bool is_pair = static_cast<unsigned char>(result[i]) == 0xc2;
    if (!is_control(result, i)) continue;
    result[i] = result[i] == '\t' ? ' ' : '?';
    if (is_pair) result[i + 1] = '?';
  }
  return is_cut ? result + "…" : result;
}

// "/a/b/c.c": these parts of the path, from the whole of it to the file alone.
std::vector<std::string> ends_of(const std::string& file) {
  std::vector<std::string> ends;
  const std::filesystem::path whole = std::filesystem::path(file).lexically_normal();
  for (auto first = whole.begin(); first != whole.end() && ends.size() < kPathPartsMax; ++first) {
    if (*first == "/" || *first == "..") continue;
    std::filesystem::path end;
    for (auto part = first; part != whole.end(); ++part)
      end /= *part;
    ends.push_back(end.string());
  }
  return ends;
}

}  // namespace

std::optional<std::string> SourceText::line(const std::string& file, uint32_t line) {
  std::optional<std::string_view> text = bytes_of(file, line);
  if (!text) return std::nullopt;
  while (!text->empty() && is_space(text->front()))
    text->remove_prefix(1);
  while (!text->empty() && is_space(text->back()))
    text->remove_suffix(1);
  return printable(*text);
}

std::optional<std::string> SourceText::whole_line(const std::string& file, uint32_t line) {
  const auto text = bytes_of(file, line);
  return text ? std::optional(printable(*text)) : std::nullopt;
}

size_t SourceText::count(const std::string& file) {
  const Source* const source = source_of(file);
  return source == nullptr ? 0 : source->lines.size();
}

std::optional<std::string_view> SourceText::bytes_of(const std::string& file, uint32_t line) {
  const Source* const source = source_of(file);
  if (source == nullptr || line == 0 || line > source->lines.size()) return std::nullopt;
  const size_t begin = source->lines[line - 1];
  const std::string_view rest = std::string_view(source->text).substr(begin);
  return rest.substr(0, rest.find('\n'));
}

std::optional<int64_t> SourceText::written_at(const std::string& file) {
  const Source* const source = source_of(file);
  return source == nullptr ? std::nullopt : std::optional(source->written_ns);
}

std::optional<std::string> SourceText::path_of(const std::string& file) {
  const Source* const source = source_of(file);
  return source == nullptr ? std::nullopt : std::optional(source->path);
}

const SourceText::Source* SourceText::source_of(const std::string& file) {
  const auto known = sources_.find(file);
  const auto& source =
      known != sources_.end() ? known->second : sources_.emplace(file, find(file)).first->second;
  return source ? &*source : nullptr;
}

std::optional<SourceText::Source> SourceText::find(const std::string& file) {
  for (const std::string& folder : folders_) {
    for (const std::string& end : ends_of(file)) {
      if (auto source = read(fmt::format("{}/{}", folder, end))) return source;
    }
  }
  // A path that does not say where it begins could be found anywhere.
  return file.starts_with('/') ? read(file) : std::nullopt;
}

std::optional<SourceText::Source> SourceText::read(const std::string& path) {
  struct stat status {};
  const FileDescriptor file = open_plain(path, status);
  const auto size = static_cast<size_t>(status.st_size);
  if (!file.valid() || size > kSourceBytesMax || size > kBytesMax - bytes_) return std::nullopt;
  Source source{.path = path, .text = {}, .lines = {}};
  source.text.resize(size);
  source.written_ns = status.st_mtim.tv_sec * kSecond + status.st_mtim.tv_nsec;
  size_t done = 0;
  while (done < size) {
    const ssize_t got = ::read(file.get(), source.text.data() + done, size - done);
    if (got <= 0) break;
    done += static_cast<size_t>(got);
  }
  source.text.resize(done);
  bytes_ += done;
  for (size_t begin = 0; begin < done;) {
    source.lines.push_back(begin);
    const size_t end = source.text.find('\n', begin);
    begin = end == std::string::npos ? done : end + 1;
  }
  return source;
}

}  // namespace clew::recorder

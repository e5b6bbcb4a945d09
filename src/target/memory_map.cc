// SPDX-License-Identifier: Apache-2.0
// /proc/PID/maps. A line is
//   start-end perms offset major:minor inode [spaces path]
// with numbers in hex but for the inode (proc(5)). The path is the rest of the line; the kernel
// writes a newline in it as \012 and nothing else is escaped.
#include <algorithm>
#include <charconv>
#include <optional>

#include <fmt/format.h>

#include "target/proc_file.h"
#include "target/process.h"

namespace clew::target {

namespace {

constexpr std::string_view kDeleted = " (deleted)";

// Takes parts off the front of one line; once something is not as expected, everything fails.
class LineReader {
 public:
  explicit LineReader(std::string_view line) : rest_(line) {}

  template <typename T>
  T number(int base) {
    T value = 0;
    const auto parsed = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value, base);
    failed_ = failed_ || parsed.ec != std::errc();
    rest_.remove_prefix(static_cast<size_t>(parsed.ptr - rest_.data()));
    return value;
  }
  void expect(char byte) { failed_ = failed_ || take() != byte; }
  bool flag(char set, char other) {
    const char byte = take();
    failed_ = failed_ || (byte != set && byte != other);
    return byte == set;
  }
  [[nodiscard]] bool failed() const { return failed_; }
  [[nodiscard]] std::string_view rest() const { return rest_; }

 private:
  char take() {
    if (rest_.empty()) return '\0';
    const char byte = rest_.front();
    rest_.remove_prefix(1);
    return byte;
  }

  std::string_view rest_;
  bool failed_ = false;
};

std::string unescape_newlines(std::string_view text) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool escaped = text.substr(i, 4) == "\\012";
    result += escaped ? '\n' : text[i];
    i += escaped ? 3 : 0;
  }
  return result;
}

std::optional<Mapping> parse_line(std::string_view line) {
  LineReader reader(line);
  Mapping mapping;
  mapping.start = reader.number<uint64_t>(16);
  reader.expect('-');
  mapping.end = reader.number<uint64_t>(16);
  reader.expect(' ');
  mapping.readable = reader.flag('r', '-');
  mapping.writable = reader.flag('w', '-');
  mapping.executable = reader.flag('x', '-');
  mapping.shared = reader.flag('s', 'p');
  reader.expect(' ');
  mapping.file_offset = reader.number<uint64_t>(16);
  reader.expect(' ');
  mapping.device_major = reader.number<uint32_t>(16);
  reader.expect(':');
  mapping.device_minor = reader.number<uint32_t>(16);
  reader.expect(' ');
  mapping.inode = reader.number<uint64_t>(10);
  if (reader.failed() || mapping.start >= mapping.end) return std::nullopt;
  std::string_view path = reader.rest();
  path.remove_prefix(std::min(path.find_first_not_of(' '), path.size()));
  if (path.ends_with(kDeleted)) {
    mapping.is_deleted = true;
    path.remove_suffix(kDeleted.size());
  }
  mapping.path = unescape_newlines(path);
  return mapping;
}

}  // namespace

Expected<std::vector<Mapping>> parse_memory_map(std::string_view text) {
  std::vector<Mapping> mappings;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    auto mapping = parse_line(text.substr(0, end));
    const bool in_order = mapping && (mappings.empty() || mappings.back().end <= mapping->start);
    if (!in_order) {
      return fail(ErrorCode::Io, fmt::format("line {} of the memory map makes no sense: '{}'",
                                             mappings.size() + 1, text.substr(0, end)));
    }
    mappings.push_back(std::move(*mapping));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return mappings;
}

Expected<std::vector<Mapping>> read_memory_map(pid_t pid) {
  const std::string text = CLEW_TRY(read_proc_file(pid, "maps"));
  std::vector<Mapping> maps = CLEW_TRY(parse_memory_map(text));
  const pid_t holder = maps.empty() ? memory_holder(pid) : pid;
  if (holder == pid) return maps;
  const std::string seen_by_holder = CLEW_TRY(read_proc_file(holder, "maps"));
  return parse_memory_map(seen_by_holder);
}

}  // namespace clew::target

// SPDX-License-Identifier: Apache-2.0
#include "inline/changed_text.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <optional>
#include <set>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/page.h"
#include "code/both_ways.h"
#include "code/instruction_start.h"
#include "code/opcodes.h"
#include "target/elf_file.h"

namespace clew::inline_ {
namespace {

constexpr size_t kMarkBytes = code::kMarkSizeBytes;
constexpr size_t kBothWaysBytes = code::kBothWaysSizeBytes;

// Looked at before it is opened: the process chooses what is at that place by now, and opening a
// FIFO waits for its writer, opening a device may do anything. That a file has the inode of another
// file system's is the process's own affair: its text is compared with it, and nobody else's.
FileDescriptor open_regular(const FileDescriptor& place, uint64_t inode) {
  struct stat info = {};
  if (!place.valid() || fstat(place.get(), &info) != 0) return {};
  if (!S_ISREG(info.st_mode) || info.st_ino != inode) return {};
  return FileDescriptor(open(fmt::format("/proc/self/fd/{}", place.get()).c_str(),
                             O_RDONLY | O_CLOEXEC | O_NONBLOCK));
}

// Code of a file, of which the process may have copies. A memfd's is made at run time.
bool is_text(const target::Mapping& map) {
  return map.executable && !map.shared && map.inode != 0 && map.path.starts_with('/') &&
         !map.path.starts_with("/memfd:");
}

// proc(5), pagemap: a page that is there, or swapped out, and no file's.
bool is_copy(uint64_t entry) {
  constexpr uint64_t kPresent = uint64_t{1} << 63;
  constexpr uint64_t kSwapped = uint64_t{1} << 62;
  constexpr uint64_t kOfFile = uint64_t{1} << 61;
  return (entry & (kPresent | kSwapped)) != 0 && (entry & kOfFile) == 0;
}

// By page of the mapping. Where that cannot be known every page may be one.
std::vector<bool> copies_in(const FileDescriptor& pages, const target::Mapping& map) {
  const size_t count = map.size_bytes() / kPage;
  std::vector<uint64_t> entries(count);
  const auto size = static_cast<ssize_t>(count * sizeof(uint64_t));
  const auto at = static_cast<off_t>(map.start / kPage * sizeof(uint64_t));
  const bool is_known =
      pages.valid() && pread(pages.get(), entries.data(), static_cast<size_t>(size), at) == size;
  std::vector<bool> copies(count, !is_known);
  for (size_t i = 0; is_known && i < count; ++i)
    copies[i] = is_copy(entries[i]);
  return copies;
}

// Offsets, ascending.
std::vector<uint64_t> code_begins_in(const FileDescriptor& file) {
  std::vector<uint64_t> begins;
  const auto elf = target::ElfFile::open(fmt::format("/proc/self/fd/{}", file.get()));
  if (!elf) return begins;
  for (const target::ElfSection& section : elf->sections()) {
    const bool is_code = (section.header.sh_flags & SHF_EXECINSTR) != 0;
    if (is_code && section.header.sh_type == SHT_PROGBITS)
      begins.push_back(section.header.sh_offset);
  }
  std::sort(begins.begin(), begins.end());
  return begins;
}

// The file's bytes of a run of pages, and what else it says of them.
struct FileCode {
  std::span<const uint8_t> code;
  size_t lead = 0;                 // So many of them are in front of the run.
  std::span<const size_t> begins;  // Of sections: where in `code`, ascending.
};

// One run of pages as it is now, and what of it is not the file's.
class Comparison {
 public:
  Comparison(uint64_t address, std::span<const uint8_t> here, const FileCode& file)
      : address_(address),
        here_(here),
        code_(file.code),
        file_(file.code.subspan(file.lead)),
        lead_(file.lead),
        begins_(file.begins) {}

  [[nodiscard]] size_t next_difference(size_t from) const {
    return static_cast<size_t>(std::mismatch(here_.begin() + static_cast<ptrdiff_t>(from),
                                             here_.end(),
                                             file_.begin() + static_cast<ptrdiff_t>(from))
                                   .first -
                               here_.begin());
  }
  [[nodiscard]] size_t size() const { return here_.size(); }
  [[nodiscard]] uint64_t address_of(size_t at) const { return address_ + at; }

  // Where the jump that has written byte `at` begins: its first bytes may be the file's, too.
  [[nodiscard]] std::optional<size_t> jump_over(size_t at, const LeadsToOurs& is_wanted) const {
    return find(at, code::kJumpRel32, code::kJumpRel32Bytes,
                [&](size_t start) { return is_wanted(target_of_jump(start)); });
  }
  [[nodiscard]] std::optional<size_t> short_jump_over(size_t at,
                                                      const std::set<size_t>& jumps) const {
    return find(at, code::kJumpRel8, code::kJumpRel8Bytes, [&](size_t start) {
      return jumps.contains(target_of_short_jump(start) - address_);
    });
  }
  // With a jump behind it. The first byte may be a trap, or the file's, where a uprobe was.
  [[nodiscard]] std::optional<size_t> both_ways_over(size_t at,
                                                     const LeadsToOurs& is_wanted) const {
    for (size_t back = 0; back < kBothWaysBytes && back <= at; ++back) {
      const size_t start = at - back;
      if (start + kBothWaysBytes > size() || here_[start + kMarkBytes] != code::kJumpRel32)
        continue;
      if (has_mark(start) && is_wanted(target_of_jump(start + kMarkBytes)) &&
          can_be_patched(start, kBothWaysBytes)) {
        return start;
      }
    }
    return std::nullopt;
  }
  // A uprobe, or a debugger's breakpoint, may stand beside a jump.
  [[nodiscard]] bool is_the_files_or_a_trap(size_t at) const {
    return at >= size() || here_[at] == file_[at] || here_[at] == code::kInt3;
  }
  [[nodiscard]] bool is_trap(size_t at) const {
    return here_[at] == code::kInt3 && (at + 1 == size() || here_[at + 1] == file_[at + 1]);
  }

  [[nodiscard]] uint64_t target_of_jump(size_t start) const {
    int32_t distance = 0;
    std::memcpy(&distance, &here_[start + 1], sizeof distance);
    return address_ + start + code::kJumpRel32Bytes + static_cast<uint64_t>(int64_t{distance});
  }
  [[nodiscard]] uint64_t target_of_short_jump(size_t start) const {
    const auto distance = static_cast<int8_t>(here_[start + 1]);
    return address_ + start + code::kJumpRel8Bytes + static_cast<uint64_t>(int64_t{distance});
  }
  [[nodiscard]] TextChange change(ChangeKind kind, size_t start, size_t count) const {
    const auto here = here_.subspan(start, count);
    const auto file = file_.subspan(start, count);
    TextChange made;
    made.address = address_ + start;
    made.kind = kind;
    made.here.assign(here.begin(), here.end());
    made.file.assign(file.begin(), file.end());
    if (kind == ChangeKind::Jump)
      made.target = target_of_jump(start + count - code::kJumpRel32Bytes);
    if (kind == ChangeKind::ShortJump) made.target = target_of_short_jump(start);
    return made;
  }

 private:
  [[nodiscard]] bool can_be_patched(size_t start, size_t bytes) const {
    return code::can_be_patched(code_, lead_ + start, bytes, begins_);
  }

  // As it would be over a first instruction of any length.
  [[nodiscard]] bool has_mark(size_t start) const {
    for (uint8_t length = 2; length < kMarkBytes; ++length) {
      const auto mark = code::mark_over(file_.subspan(start, kMarkBytes), length);
      const bool known_first =
          here_[start] == mark[0] || here_[start] == file_[start] || here_[start] == code::kInt3;
      if (known_first && std::equal(mark.begin() + 1, mark.end(),
                                    here_.begin() + static_cast<ptrdiff_t>(start) + 1)) {
        return true;
      }
    }
    return false;
  }

  template <typename Wanted>
  [[nodiscard]] std::optional<size_t> find(size_t at, uint8_t opcode, size_t bytes,
                                           const Wanted& is_wanted) const {
    for (size_t start = at; start + bytes > at; --start) {
      const bool begins = here_[start] == opcode && start + bytes <= size() &&
                          (start == at || file_[start] == opcode);
      if (begins && is_wanted(start) && can_be_patched(start, bytes)) return start;
      if (start == 0) break;
    }
    return std::nullopt;
  }

  uint64_t address_;
  std::span<const uint8_t> here_;
  std::span<const uint8_t> code_;
  std::span<const uint8_t> file_;
  size_t lead_;
  std::span<const size_t> begins_;
};

// What of a run of pages sessions have written, and nobody else: a program that writes its own code
// has bytes that look like a jump, too. Ours begin where an instruction of the file does, or
// between functions, and what lies in front and behind is the file's, or another one of ours.
class Jumps {
 public:
  Jumps(const Comparison& text, const LeadsToOurs& leads_to_ours) : text_(text) {
    collect(both_, kBothWaysBytes,
            [&](size_t at) { return text_.both_ways_over(at, leads_to_ours); });
    collect(long_, code::kJumpRel32Bytes, [&](size_t at) -> std::optional<size_t> {
      return both_over(at) ? std::nullopt : text_.jump_over(at, leads_to_ours);
    });
    collect(short_, code::kJumpRel8Bytes,
            [&](size_t at) { return text_.short_jump_over(at, long_); });
    while (drop_doubtful(both_, kBothWaysBytes) || drop_doubtful(long_, code::kJumpRel32Bytes) ||
           drop_doubtful(short_, code::kJumpRel8Bytes)) {
    }
  }

  // The one that has written byte `at`.
  [[nodiscard]] std::optional<size_t> long_over(size_t at) const {
    return over(long_, code::kJumpRel32Bytes, at);
  }
  [[nodiscard]] std::optional<size_t> short_over(size_t at) const {
    return over(short_, code::kJumpRel8Bytes, at);
  }
  [[nodiscard]] std::optional<size_t> both_over(size_t at) const {
    return over(both_, kBothWaysBytes, at);
  }

 private:
  template <typename Find>
  void collect(std::set<size_t>& found, size_t bytes, const Find& find) {
    for (size_t at = text_.next_difference(0); at < text_.size();) {
      const std::optional<size_t> start = find(at);
      if (start) found.insert(*start);
      at = text_.next_difference(start ? *start + bytes : at + 1);
    }
  }

  static std::optional<size_t> over(const std::set<size_t>& starts, size_t bytes, size_t at) {
    const auto next = starts.upper_bound(at);
    if (next == starts.begin()) return std::nullopt;
    const size_t start = *std::prev(next);
    return at < start + bytes ? std::optional(start) : std::nullopt;
  }

  [[nodiscard]] bool is_explained(size_t at) const {
    return text_.is_the_files_or_a_trap(at) || long_over(at) || short_over(at) || both_over(at);
  }
  [[nodiscard]] bool is_doubtful(size_t start, size_t bytes) const {
    const bool leads_on = bytes >= code::kJumpRel32Bytes ||
                          long_.contains(text_.target_of_short_jump(start) - text_.address_of(0));
    return !leads_on || (start > 0 && !is_explained(start - 1)) || !is_explained(start + bytes);
  }
  bool drop_doubtful(std::set<size_t>& starts, size_t bytes) {
    return std::erase_if(starts, [&](size_t start) { return is_doubtful(start, bytes); }) != 0;
  }

  const Comparison& text_;
  std::set<size_t> both_;
  std::set<size_t> long_;
  std::set<size_t> short_;
};

// Differences that nothing explains are one where they lie side by side.
void add_other(const Comparison& text, size_t at, std::vector<TextChange>& found) {
  TextChange one = text.change(ChangeKind::Other, at, 1);
  const bool goes_on =
      !found.empty() && found.back().kind == ChangeKind::Other && found.back().end() == one.address;
  if (!goes_on) return found.push_back(std::move(one));
  found.back().here.push_back(one.here.front());
  found.back().file.push_back(one.file.front());
}

void add_changes(const Comparison& text, const Jumps& jumps, std::vector<TextChange>& found) {
  for (size_t at = text.next_difference(0); at < text.size();) {
    if (found.size() >= ChangedText::kChangesMax) return;
    size_t next = at + 1;
    if (const auto both = jumps.both_over(at)) {
      found.push_back(text.change(ChangeKind::Jump, *both, kBothWaysBytes));
      next = *both + kBothWaysBytes;
    } else if (const auto jump = jumps.long_over(at)) {
      found.push_back(text.change(ChangeKind::Jump, *jump, code::kJumpRel32Bytes));
      next = *jump + code::kJumpRel32Bytes;
    } else if (const auto near = jumps.short_over(at)) {
      found.push_back(text.change(ChangeKind::ShortJump, *near, code::kJumpRel8Bytes));
      next = *near + code::kJumpRel8Bytes;
    } else if (text.is_trap(at)) {
      found.push_back(text.change(ChangeKind::Trap, at, 1));
    } else {
      add_other(text, at, found);
    }
    at = text.next_difference(next);
  }
}

}  // namespace

FileDescriptor open_text_file(pid_t holder, const target::Mapping& map) {
  const std::string path = fmt::format("/proc/{}/root{}", holder, map.path);
  const FileDescriptor place(open(path.c_str(), O_PATH | O_CLOEXEC | O_NOFOLLOW));
  FileDescriptor file = open_regular(place, map.inode);
  if (file.valid()) return file;
  const std::string link = fmt::format("/proc/{}/map_files/{:x}-{:x}", holder, map.start, map.end);
  const FileDescriptor mapped(open(link.c_str(), O_PATH | O_CLOEXEC));
  return open_regular(mapped, map.inode);
}

bool leads_nowhere(std::span<const target::Mapping> maps, uint64_t address) {
  const auto map =
      std::upper_bound(maps.begin(), maps.end(), address,
                       [](uint64_t wanted, const target::Mapping& m) { return wanted < m.end; });
  return map == maps.end() || !map->contains(address);
}

ChangedText::ChangedText(pid_t pid) {
  const pid_t holder = target::memory_holder(pid);
  const auto maps = target::read_memory_map(pid);
  memory_ = FileDescriptor(
      open(fmt::format("/proc/{}/mem", holder).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  pages_ = FileDescriptor(
      open(fmt::format("/proc/{}/pagemap", holder).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!maps || !memory_.valid()) return;
  for (const target::Mapping& map : *maps) {
    if (is_text(map)) add_mapping(holder, map);
  }
}

void ChangedText::add_mapping(pid_t holder, const target::Mapping& map) {
  const std::vector<bool> copies = copies_in(pages_, map);
  const auto first = std::find(copies.begin(), copies.end(), true);
  if (first == copies.end()) return;
  const FileDescriptor file = open_text_file(holder, map);
  if (!file.valid()) return;
  const std::vector<uint64_t> code_begins = code_begins_in(file);
  for (auto begin = first; begin != copies.end();) {
    const auto end = std::find(begin, copies.end(), false);
    const auto offset = static_cast<uint64_t>(begin - copies.begin()) * kPage;
    add_run({file, code_begins}, map, offset, static_cast<size_t>(end - begin));
    begin = std::find(end, copies.end(), true);
  }
}

void ChangedText::add_run(const OpenText& text, const target::Mapping& map, uint64_t offset,
                          size_t page_count) {
  if (page_count > kPagesMax - page_count_) {
    page_count = kPagesMax - page_count_;
    is_whole_ = false;
  }
  const uint64_t file_offset = map.file_offset + offset;
  const size_t lead = std::min<uint64_t>(file_offset, code::kCodeInFront);
  Run run{.address = map.start + offset,
          .lead = lead,
          .code = std::vector<uint8_t>(lead + page_count * kPage),
          .path = map.path,
          .file_offset = file_offset};
  const ssize_t size = pread(text.file.get(), run.code.data(), run.code.size(),
                             static_cast<off_t>(file_offset - lead));
  if (size <= static_cast<ssize_t>(lead)) return;  // Behind the file's end the last page is zero.
  for (const uint64_t begin : text.code_begins) {
    if (begin >= file_offset - lead) run.code_begins.push_back(begin - (file_offset - lead));
  }
  page_count_ += page_count;
  runs_.push_back(std::move(run));
}

std::vector<TextChange> ChangedText::find(const LeadsToOurs& leads_to_ours) const {
  std::vector<TextChange> found;
  std::vector<uint8_t> here;
  for (const Run& run : runs_) {
    here.resize(run.code.size() - run.lead);
    const ssize_t size =
        pread(memory_.get(), here.data(), here.size(), static_cast<off_t>(run.address));
    if (size != static_cast<ssize_t>(here.size())) continue;  // Unmapped meanwhile.
    const Comparison text(run.address, here, {run.code, run.lead, run.code_begins});
    const size_t before = found.size();
    add_changes(text, Jumps(text, leads_to_ours), found);
    for (size_t i = before; i < found.size(); ++i) {
      found[i].path = run.path;
      found[i].file_offset = run.file_offset + (found[i].address - run.address);
    }
  }
  return found;
}

std::string describe(const TextChange& change) {
  constexpr size_t kShownMax = 16;
  const auto hex = [=](std::span<const uint8_t> bytes) {
    std::string text;
    for (const uint8_t byte : bytes.first(std::min(bytes.size(), kShownMax)))
      text += fmt::format("{}{:02x}", text.empty() ? "" : " ", byte);
    return bytes.size() > kShownMax ? text + " …" : text;
  };
  return fmt::format("{}+{:#x}: {}, not {}", change.path.substr(change.path.rfind('/') + 1),
                     change.file_offset, hex(change.here), hex(change.file));
}

}  // namespace clew::inline_

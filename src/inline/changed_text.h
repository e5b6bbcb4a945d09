// SPDX-License-Identifier: Apache-2.0
// ChangedText: where the code of a process is not that of its files, padding included. What a page
// of code is before somebody writes to it, is the file's: only pages that are the process's own
// copies are compared (/proc/PID/pagemap), so that looking at a process that nobody has touched
// costs next to nothing.
//
// Files are opened and read in the constructor, while the process runs: a file system that does not
// answer must not keep it stopped. Code that is no file's (of just in time compilers, the vdso) and
// files that we may not open are left out.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/file_descriptor.h"
#include "target/process.h"

namespace clew::inline_ {

enum class ChangeKind : uint8_t {
  Jump,       // jmp rel32 that only a session can have left; or with what serves both ways in front
              // of it (code/both_ways.h), together.
  ShortJump,  // jmp rel8 to such a jump.
  Trap,       // int3 over one byte: a uprobe, or a debugger's breakpoint.
  Other,
};

struct TextChange {
  uint64_t address = 0;
  ChangeKind kind = ChangeKind::Other;
  std::vector<uint8_t> here;
  std::vector<uint8_t> file;  // As many.
  uint64_t target = 0;        // Of jumps.
  std::string path;           // As the process knows it,
  uint64_t file_offset = 0;   // and where in it the change is.

  [[nodiscard]] uint64_t end() const { return address + here.size(); }
  [[nodiscard]] bool is_jump() const {
    return kind == ChangeKind::Jump || kind == ChangeKind::ShortJump;
  }
};

// The regular file behind a mapping, for reading: by its place in the process's root; where that is
// another file by now, by the mapping itself, which needs CAP_CHECKPOINT_RESTORE. The holder is of
// target::memory_holder.
FileDescriptor open_text_file(pid_t holder, const target::Mapping& map);

// Is this an address that only a jump of a session can lead to?
using LeadsToOurs = std::function<bool(uint64_t)>;
// An address where nothing is mapped: whoever made it go there is gone.
bool leads_nowhere(std::span<const target::Mapping> maps, uint64_t address);

class ChangedText {
 public:
  explicit ChangedText(pid_t pid);

  // As the process is now; ascending. At most kChangesMax.
  [[nodiscard]] std::vector<TextChange> find(const LeadsToOurs& leads_to_ours) const;
  // False when there were more pages than are kept: the others are not compared.
  [[nodiscard]] bool is_whole() const { return is_whole_; }

  static constexpr size_t kPagesMax = size_t{1} << 16;
  static constexpr size_t kChangesMax = size_t{1} << 18;

 private:
  struct Run {  // Pages of one mapping, one behind the other.
    uint64_t address = 0;
    size_t lead = 0;                       // Bytes of the file in front of them.
    std::vector<uint8_t> code;             // Those, then its bytes of the pages.
    std::vector<size_t> code_begins = {};  // Of sections: where in `code`, ascending.
    std::string path;
    uint64_t file_offset = 0;
  };
  struct OpenText {
    const FileDescriptor& file;
    std::span<const uint64_t> code_begins;  // Offsets.
  };
  void add_mapping(pid_t holder, const target::Mapping& map);
  void add_run(const OpenText& text, const target::Mapping& map, uint64_t offset,
               size_t page_count);

  FileDescriptor memory_;
  FileDescriptor pages_;
  std::vector<Run> runs_;
  size_t page_count_ = 0;
  bool is_whole_ = true;
};

// "libc.so.6+0x1234: e9 10 20 30 40, not 90 90 90 90 90"
std::string describe(const TextChange& change);

}  // namespace clew::inline_

// SPDX-License-Identifier: Apache-2.0
// Where the code of a process is not that of its files: breakpoints of debuggers, uprobes of the
// kernel, whatever others have written. What Clew's own sessions changed is left out.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <sys/types.h>

namespace clew::engine {

struct TextChange {
  uint64_t address = 0;      // The first byte, at run time.
  std::string path;          // Of the file, as the process knows it,
  uint64_t file_offset = 0;  // and where in it.
  // file+0x1130
  [[nodiscard]] std::string place() const;
};

// Each place once, by address; at most 1000 of a file. Nothing where memory may not be read.
std::vector<TextChange> text_changes(pid_t pid);

// A change with whose it is, as far as that can be known ("bpftrace 4711").
struct ForeignPatch {
  uint64_t address = 0;
  std::string place;
  std::string owner;
};
std::vector<ForeignPatch> foreign_patches(pid_t pid);

}  // namespace clew::engine

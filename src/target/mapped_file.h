// SPDX-License-Identifier: Apache-2.0
// How a mapping and its file belong together: which path opens the very file, and where the loader
// put it. Internal to target/.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "target/elf_file.h"
#include "target/process.h"

namespace clew::target {

struct MappedFile {
  std::string open_path;       // Empty: nothing opens it.
  bool is_executable = false;  // The main program's own file.
};

// `executable` is where /proc/PID/exe leads.
MappedFile find_mapped_file(pid_t pid, const Mapping& mapping, std::string_view executable);

// Run-time address minus the file's virtual address; nothing when the mapping is from no segment.
std::optional<uint64_t> load_bias(const ElfFile& file, const Mapping& mapping);

}  // namespace clew::target

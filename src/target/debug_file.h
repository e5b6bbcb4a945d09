// SPDX-License-Identifier: Apache-2.0
// Where the separate debug file of a stripped module is: by build-id, or by .gnu_debuglink (GDB
// manual, "Debugging Information in Separate Files"). Internal to target/.
#pragma once

#include <optional>
#include <string>

#include "target/elf_file.h"

namespace clew::target {

struct DebugFile {
  std::string path;
  ElfFile file;
};

// A file that is really this module's: of the same build-id, or when there is none of the checksum
// that the link gives, and that belongs to root, to us or to the module's owner. In a container
// (`path` below /proc/PID/root) its own directories are tried too. Nothing when there is none.
std::optional<DebugFile> find_debug_file(const ElfFile& file, const std::string& path,
                                         const std::string& debug_directory);

// What to tell a user who lacks one: "no debug symbols for redis-check-rdb (build-id a50d…); …".
std::string missing_debug_file_advice(std::string_view module_name, std::string_view build_id);

}  // namespace clew::target

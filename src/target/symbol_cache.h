// SPDX-License-Identifier: Apache-2.0
// The cache of analysed modules: one file per build-id and module name, so that a program of a
// gigabyte is read once. Its content is the arrays of ImageTables behind a header with a version,
// what the entry was made from, and a checksum.
//
// A file that is of another version, made from other files, damaged, or not written by this user is
// as good as none; nothing here is an error. Entries are written to a temporary file and renamed,
// so a reader never sees half of one. Internal to target/.
#pragma once

#include <optional>
#include <string>

#include "target/image_tables.h"

namespace clew::target {

class SymbolCache {
 public:
  // What an entry depends on: it is used only for the very same files.
  struct Identity {
    std::string build_id;
    std::string module_name;
    uint64_t file_size_bytes = 0;
    int64_t file_modified_ns = 0;
    std::string debug_file = {};  // Path of the separate debug file; empty without one.
    uint64_t debug_size_bytes = 0;
    int64_t debug_modified_ns = 0;
  };

  explicit SymbolCache(std::string directory) : directory_(std::move(directory)) {}

  [[nodiscard]] std::optional<ImageTables> load(const Identity& identity) const;
  // Best effort: a full disk or a read-only home is not the user's problem now.
  void store(const Identity& identity, const ImageTables& tables) const;
  [[nodiscard]] std::string path_of(const Identity& identity) const;

 private:
  std::string directory_;
};

// Whether every index and range in the tables is in bounds, and what must be sorted is.
bool is_consistent(const ImageTables& tables);

}  // namespace clew::target

// SPDX-License-Identifier: Apache-2.0
// The cache of analysed modules: one file per build-id and module name, so that a program of a
// gigabyte is read once. Its content is the arrays of ImageTables behind a header with a version,
// what the entry was made from, and checksums.
//
// A build-id, a name, a size and a time are easily given to another file, and what an entry says
// decides where probes are put. So an entry has a log of all that its analysis read (read_log.h),
// and it is used only when the same reads of the files at hand give the same bytes, by SHA-256. A
// file that is of another version, made from other files, damaged, or not this user's alone
// (cache_folder.h) is as good as none; nothing here is an error. Internal to target/.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "target/cache_folder.h"
#include "target/image_tables.h"
#include "target/read_log.h"

namespace clew::target {

class SymbolCache {
 public:
  // What an entry is about, and the files that it must have been made from.
  struct Entry {
    std::string build_id;
    std::string module_name;
    std::string debug_path;                 // Of the separate debug file; empty without one.
    std::array<const ElfFile*, 2> files{};  // The module's, borrowed, and that one's or null.
  };

  explicit SymbolCache(const std::string& directory) : folder_(directory) {}

  [[nodiscard]] std::optional<ImageTables> load(const Entry& entry) const;
  // `log`: all that was read of the files to make the tables. Best effort: a full disk or a
  // read-only home is not the user's problem now.
  void store(const Entry& entry, ReadLog& log, const ImageTables& tables) const;

 private:
  CacheFolder folder_;
};

// Whether every index and range in the tables is in bounds, and what must be sorted is.
bool is_consistent(const ImageTables& tables);

}  // namespace clew::target

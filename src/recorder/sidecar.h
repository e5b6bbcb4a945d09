// SPDX-License-Identifier: Apache-2.0
// Side files: what a module's file became for the recorder, kept for the next start
// (target/cache_folder.h). One is found by the SHA-256 of the file's bytes, of the recipe, and of
// which program made it: no other file, no other options and no other version of Clew find it. One
// that is damaged, or not this user's alone, is as good as none, and is made anew.
//
// | block      | content                                                              |
// |------------|----------------------------------------------------------------------|
// | head       | magic, version, key                                                  |
// | counts     | InstallableCounts                                                    |
// | copy       | three blocks (copy/kept_copy.h)                                      |
// | unwinding  | UnwindBytes: its distance from the copy, and header; bytes; outward  |
// | ids        | offsets of words                                                     |
// | cursor     | of each place of the map: offset, and home                           |
// | entries    | windows without their instructions, and where their probes end       |
// | probes     | the bytes of all                                                     |
// | entry ids  | EntryId                                                              |
//
// The cursor is a part of the key, as it is the same at each start; the module's first id is not,
// and is put in when it is known.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/error.h"
#include "recorder/installable.h"
#include "recorder/recorded_module.h"
#include "target/cache_folder.h"
#include "target/sha256.h"

namespace clew::recorder {

using SidecarKey = target::Digest;

// Of a file of these bytes. Nothing when it cannot be known which program we are, and where the
// compiler's guards record, as nothing has to be spared then.
std::optional<SidecarKey> sidecar_key(const target::Digest& file, const Recipe& recipe);

class SidecarFile {
 public:
  static void write_head(target::BlockWriter& file, const SidecarKey& key);
  // Before it has got other ids or another place. False when the descriptor cannot be written to.
  static bool write(int fd, const SidecarKey& key, const Installable& module);
  // Errors: Refused, with what is wrong.
  static Expected<Installable> read(int fd, uint64_t size_bytes, const SidecarKey& key);
};

class Sidecars {
 public:
  // Without a folder nothing is kept.
  explicit Sidecars(const std::string& folder) : folder_(folder), is_on_(!folder.empty()) {}

  // Nothing when there is none that can be used. `name`: of the module, for the log.
  [[nodiscard]] std::optional<Installable> find(const SidecarKey& key, std::string_view name) const;
  // Best effort, as the folder's.
  void store(const SidecarKey& key, const Installable& module) const;

 private:
  target::CacheFolder folder_;
  bool is_on_;
};

}  // namespace clew::recorder

// SPDX-License-Identifier: Apache-2.0
// ReadLog: which bytes of which files an analysis was given, and their hash. An analysis whose
// reads give the same bytes again has the same result; so a result that is kept with its log may
// stand for any files that have those bytes in those places, and for no other, whoever made them.
// The bytes are hashed as they are handed out: a file that changes meanwhile changes what is
// hashed, too. Internal to target/.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "target/elf_file.h"
#include "target/sha256.h"

namespace clew::target {

struct ReadRange {
  uint64_t file = 0;  // 0 the module's own, 1 its debug file.
  uint64_t offset = 0;
  uint64_t size_bytes = 0;
  bool operator==(const ReadRange&) const = default;
};

class ReadLog {
 public:
  void add(const ReadRange& range, std::span<const uint8_t> bytes);
  // Something could not be read that is there by the file's size.
  void note_failure() { failed_ = true; }
  [[nodiscard]] bool failed() const { return failed_; }
  [[nodiscard]] const std::vector<ReadRange>& ranges() const { return ranges_; }
  // Once.
  Digest finish() { return hash_.finish(); }

 private:
  std::vector<ReadRange> ranges_;
  Sha256 hash_;
  bool failed_ = false;
};

// The digest of a log whose reads are done again, on these files (null: there is none); nothing
// when they are not possible.
std::optional<Digest> read_again(std::span<const ReadRange> ranges,
                                 std::span<const ElfFile* const> files);

}  // namespace clew::target

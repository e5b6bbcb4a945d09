// SPDX-License-Identifier: Apache-2.0
#include "target/read_log.h"

#include <algorithm>

namespace clew::target {

namespace {

constexpr uint64_t kPieceBytes = uint64_t{1} << 20;

void add_head(Sha256& hash, const ReadRange& range) {
  hash.add({reinterpret_cast<const uint8_t*>(&range), sizeof range});
}

}  // namespace

static_assert(sizeof(ReadRange) == 24);  // No padding, as it is hashed.

void ReadLog::add(const ReadRange& range, std::span<const uint8_t> bytes) {
  ranges_.push_back(range);
  add_head(hash_, range);
  hash_.add(bytes);
}

std::optional<Digest> read_again(std::span<const ReadRange> ranges,
                                 std::span<const ElfFile* const> files) {
  Sha256 hash;
  for (const ReadRange& range : ranges) {
    if (range.file >= files.size() || files[range.file] == nullptr) return std::nullopt;
    add_head(hash, range);
    for (uint64_t at = 0; at < range.size_bytes; at += kPieceBytes) {
      const uint64_t size = std::min(kPieceBytes, range.size_bytes - at);
      const auto piece = files[range.file]->read(range.offset + at, size);
      if (!piece) return std::nullopt;
      hash.add(piece->view());
    }
  }
  return hash.finish();
}

}  // namespace clew::target

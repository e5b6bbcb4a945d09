// SPDX-License-Identifier: Apache-2.0
#include "cluster/chunks.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "collect/crc32c.h"

namespace clew::cluster {

Expected<std::vector<Chunk>> split(std::span<const std::byte> whole) {
  const size_t count = std::max<size_t>(1, (whole.size() + kChunkBytesMax - 1) / kChunkBytesMax);
  if (count > kChunksMax) {
    return fail(ErrorCode::Limit, fmt::format("{} bytes are too many for a bus; {} fit",
                                              whole.size(), kChunksMax * kChunkBytesMax));
  }
  const uint32_t crc = collect::crc32c(whole);
  std::vector<Chunk> chunks;
  for (size_t i = 0; i < count; ++i) {
    const size_t begin = i * kChunkBytesMax;
    const auto part = whole.subspan(begin, std::min(kChunkBytesMax, whole.size() - begin));
    chunks.push_back({.index = static_cast<uint32_t>(i),
                      .count = static_cast<uint32_t>(count),
                      .whole_bytes = whole.size(),
                      .whole_crc = crc,
                      .bytes = Bytes(part.begin(), part.end())});
  }
  return chunks;
}

Expected<std::optional<Bytes>> Joiner::add(Chunk chunk) {
  if (!is_of_this(chunk)) return fail(ErrorCode::Io, "a part is not of the same table as others");
  const uint32_t count = chunk.count;
  const uint64_t whole_bytes = chunk.whole_bytes;
  const uint32_t whole_crc = chunk.whole_crc;
  const size_t size = chunk.bytes.size();
  if (chunks_.emplace(chunk.index, std::move(chunk)).second) bytes_ += size;
  if (chunks_.size() < count) return std::optional<Bytes>();
  Bytes whole;
  whole.reserve(bytes_);
  for (const auto& [index, part] : chunks_)
    whole.insert(whole.end(), part.bytes.begin(), part.bytes.end());
  chunks_.clear();
  bytes_ = 0;
  if (whole.size() == whole_bytes && collect::crc32c(whole) == whole_crc) return whole;
  return fail(ErrorCode::Io, "the parts of a table are not what was taken apart");
}

bool Joiner::is_of_this(const Chunk& chunk) const {
  if (chunk.index >= chunk.count) return false;
  if (chunks_.empty()) return true;
  const Chunk& known = chunks_.begin()->second;
  return chunk.count == known.count && chunk.whole_bytes == known.whole_bytes &&
         chunk.whole_crc == known.whole_crc;
}

}  // namespace clew::cluster

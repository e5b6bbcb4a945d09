// SPDX-License-Identifier: Apache-2.0
// Bytes that are too many for one message, taken apart and joined again, in whatever order and
// however often the parts come.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "base/error.h"
#include "cluster/message.h"

namespace clew::cluster {

// At least one chunk. Limit: they do not fit into kChunksMax.
Expected<std::vector<Chunk>> split(std::span<const std::byte> whole);

// The parts of one whole; memory is in proportion to what has come.
class Joiner {
 public:
  // The whole, with the last part that it lacked. Io: the chunk is not of the same whole as those
  // before, and is left out; or all are there and are not what was taken apart, and all are given
  // up, so that they can come again.
  Expected<std::optional<Bytes>> add(Chunk chunk);
  [[nodiscard]] size_t size_bytes() const { return bytes_; }

 private:
  [[nodiscard]] bool is_of_this(const Chunk& chunk) const;

  std::map<uint32_t, Chunk> chunks_;
  size_t bytes_ = 0;
};

}  // namespace clew::cluster

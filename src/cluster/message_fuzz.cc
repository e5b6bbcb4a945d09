// SPDX-License-Identifier: Apache-2.0
// Fuzzes the reader of messages: what it takes writes back as it was, and its chunk can be joined.
// Byte 0 says which kind they are read as, byte 1 whether the others are the bytes, but for their
// header, or changes to those of an example.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>

#include "base/assert.h"
#include "cluster/chunks.h"
#include "cluster/message.h"
#include "cluster/message_examples.h"
#include "collect/crc32c.h"

namespace {

using clew::cluster::Bytes;

constexpr size_t kCrcOffset = 4;
constexpr size_t kCheckedOffset = 8;
constexpr size_t kMembersOffset = 12;
constexpr uint8_t kKinds = 15;  // All examples.

void join(clew::cluster::Chunk chunk) {
  clew::cluster::Joiner joiner;
  const size_t size = chunk.bytes.size();
  const auto joined = joiner.add(std::move(chunk));
  CLEW_ASSERT(joiner.size_bytes() <= size);
  if (joined && *joined) CLEW_ASSERT((*joined)->size() == size);
}

template <typename T>
void read(const T& example, std::span<const uint8_t> input) {
  const bool is_whole = input[0] % 2 == 0;
  input = input.subspan(1);
  Bytes bytes = to_bytes(example);
  if (is_whole) {
    bytes.resize(kMembersOffset);
    const auto members = std::as_bytes(input);
    bytes.insert(bytes.end(), members.begin(), members.end());
  } else {
    for (size_t at = 0; at + 3 <= input.size(); at += 3) {
      const size_t offset = input[at] + size_t{256} * input[at + 1];
      bytes[offset % bytes.size()] = static_cast<std::byte>(input[at + 2]);
    }
  }
  const uint32_t crc = clew::collect::crc32c(std::span(bytes).subspan(kCheckedOffset));
  std::memcpy(&bytes[kCrcOffset], &crc, sizeof crc);
  const auto message = clew::cluster::read_as<T>(bytes);
  if (!message) return;
  CLEW_ASSERT(to_bytes(*message) == bytes);
  if constexpr (requires { join(message->table); }) join(message->table);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const auto input = std::span(data, size);
  uint8_t kind = 0;
  clew::cluster::for_each_example([&](const auto& example) {
    if (kind++ == input[0] % kKinds) read(example, input.subspan(1));
  });
  return 0;
}

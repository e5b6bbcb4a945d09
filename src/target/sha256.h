// SPDX-License-Identifier: Apache-2.0
// SHA-256 (FIPS 180-4): what a cache's entry was made from is known by it, as nobody can make
// another file with the same one. By the processor's instructions (Intel SDM, SHA256RNDS2) where it
// has them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace clew::target {

using Digest = std::array<uint8_t, 32>;

class Sha256 {
 public:
  // Without the instructions: for tests.
  enum class Way : uint8_t { Fastest, Portable };
  explicit Sha256(Way way = Way::Fastest);

  void add(std::span<const uint8_t> bytes);
  // Once; nothing may be added afterwards.
  Digest finish();

 private:
  static constexpr size_t kBlockBytes = 64;
  void compress(const uint8_t* blocks, size_t count);

  bool has_instructions_;
  std::array<uint32_t, 8> state_;
  std::array<uint8_t, kBlockBytes> pending_{};
  size_t pending_bytes_ = 0;
  uint64_t size_bytes_ = 0;
};

std::string hex_of(std::span<const uint8_t> bytes);

}  // namespace clew::target

// SPDX-License-Identifier: Apache-2.0
#include "target/sha256.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace clew::target {
namespace {

std::string digest_of(std::span<const uint8_t> bytes, Sha256::Way way, size_t piece) {
  Sha256 hash(way);
  while (!bytes.empty()) {
    const size_t size = std::min(piece, bytes.size());
    hash.add(bytes.first(size));
    bytes = bytes.subspan(size);
  }
  return hex_of(hash.finish());
}

std::span<const uint8_t> bytes_of(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

// The examples of FIPS 180-4's appendix (NIST, "SHA256.pdf").
TEST(Sha256Test, KnownTextsHaveTheirKnownDigests) {
  for (const Sha256::Way way : {Sha256::Way::Fastest, Sha256::Way::Portable}) {
    EXPECT_EQ(digest_of({}, way, 1),
              "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    EXPECT_EQ(digest_of(bytes_of("abc"), way, 3),
              "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    EXPECT_EQ(
        digest_of(bytes_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"), way, 5),
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    const std::string many(1'000'000, 'a');
    EXPECT_EQ(digest_of(bytes_of(many), way, 999),
              "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  }
}

TEST(Sha256Test, BothWaysAgreeAtEverySizeAroundABlock) {
  std::vector<uint8_t> bytes(200);
  for (size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<uint8_t>(37 * i + 11);
  for (size_t size = 0; size <= bytes.size(); ++size) {
    const auto part = std::span(bytes).first(size);
    EXPECT_EQ(digest_of(part, Sha256::Way::Fastest, 64), digest_of(part, Sha256::Way::Portable, 7));
  }
}

}  // namespace
}  // namespace clew::target

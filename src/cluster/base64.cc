// SPDX-License-Identifier: Apache-2.0
#include "cluster/base64.h"

#include <cstdint>

namespace clew::cluster {
namespace {

constexpr std::string_view kDigits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr size_t kGroup = 4;  // Characters of three bytes.

}  // namespace

std::optional<Bytes> from_base64(std::string_view text) {
  if (text.size() % kGroup != 0) return std::nullopt;
  size_t padding = 0;
  while (padding < 2 && padding < text.size() && text[text.size() - 1 - padding] == '=')
    ++padding;
  text.remove_suffix(padding);
  Bytes bytes;
  bytes.reserve(text.size() * 3 / kGroup);
  uint32_t bits = 0;
  int kept = 0;
  for (const char one : text) {
    const size_t digit = kDigits.find(one);
    if (digit == std::string_view::npos) return std::nullopt;
    bits = (bits << 6) | static_cast<uint32_t>(digit);
    kept += 6;
    if (kept < 8) continue;
    kept -= 8;
    bytes.push_back(static_cast<std::byte>(bits >> kept));
  }
  const bool has_left_bits = (bits & ((1U << kept) - 1)) != 0;
  if (has_left_bits) return std::nullopt;
  return bytes;
}

}  // namespace clew::cluster

// SPDX-License-Identifier: Apache-2.0
#include "engine/record/manifest.h"

#include <array>
#include <cstring>
#include <utility>

namespace clew::engine {

namespace {

constexpr uint64_t kMagic = 0x3174'6e61'6d57'4c43;  // "CLWmant1", little-endian.

struct ManifestHead {
  uint64_t magic = kMagic;
  uint64_t answers = 0;
  uint64_t size_bytes = 0;
};

}  // namespace

std::vector<uint8_t> manifest_bytes(const Manifest& manifest) {
  recorder::Snap snap;
  snap.modules = manifest.modules;
  const std::vector<uint8_t> modules = recorder::snap_bytes(snap);
  const ManifestHead head = {.answers = manifest.answers, .size_bytes = modules.size()};
  std::vector<uint8_t> bytes(sizeof(head));
  std::memcpy(bytes.data(), &head, sizeof(head));
  bytes.insert(bytes.end(), modules.begin(), modules.end());
  return bytes;
}

std::optional<Manifest> parse_manifest(std::span<const uint8_t> bytes) {
  ManifestHead head;
  if (bytes.size() < sizeof(head)) return std::nullopt;
  std::memcpy(&head, bytes.data(), sizeof(head));
  bytes = bytes.subspan(sizeof(head));
  if (head.magic != kMagic || head.size_bytes > bytes.size()) return std::nullopt;
  auto snap = recorder::parse_snap(bytes.first(head.size_bytes));
  if (!snap) return std::nullopt;
  return Manifest{head.answers, std::move(snap->modules)};
}

}  // namespace clew::engine

// SPDX-License-Identifier: Apache-2.0
#include "inline/copy_way.h"

#include <cstring>

namespace clew::inline_ {
namespace {

constexpr uint8_t kJump = 0xe9;
constexpr uint32_t kJumpBytes = 5;
constexpr uint32_t kPopBytes = 2;  // pop r10, which has been done in front of the jump.

// In one store, where it is not over a border: forked children run the same memory, and not all of
// them may stand.
void store_eight(uint8_t* at, uint64_t word) {
  if (reinterpret_cast<uintptr_t>(at) % 8 == 0) {
    __atomic_store_n(reinterpret_cast<uint64_t*>(at), word, __ATOMIC_RELEASE);
  } else {
    std::memcpy(at, &word, sizeof word);
  }
}

// The other bytes stay.
void put_jump(uint8_t* view, uint64_t address, uint64_t target) {
  uint8_t bytes[kEntryProbeBytesMin];
  std::memcpy(bytes, view, sizeof bytes);
  const auto distance = static_cast<uint32_t>(target - (address + kJumpBytes));
  bytes[0] = kJump;
  std::memcpy(bytes + 1, &distance, sizeof distance);
  uint64_t word = 0;
  std::memcpy(&word, bytes, sizeof word);
  store_eight(view, word);
}

bool is_near(uint64_t from, uint64_t to) {
  const auto distance = static_cast<int64_t>(to - (from + kJumpBytes));
  return distance >= INT32_MIN && distance <= INT32_MAX;
}

}  // namespace

void lead_to_original(const Arena& arena, const CopyWay& way) {
  uint8_t* const view = arena.code_at(way.entry, kEntryProbeBytesMin);
  if (view != nullptr && is_near(way.entry, way.original)) put_jump(view, way.entry, way.original);
}

// At exits a copy has probes as well, in front of its rets and tail jumps: there the one jump leads
// over the probe, and nobody comes to a copy, so there is no other.
void leave_copy(const Arena& arena, const abi::LayerRecord& layer) {
  if (layer.copy_entry == 0) return;
  lead_to_original(arena, {.entry = layer.copy_entry, .original = layer.copy_original});
  if (layer.copy_jump == 0) return;
  const uint64_t jump = layer.address + layer.copy_jump;
  uint8_t* const view = arena.code_at(jump, kEntryProbeBytesMin);
  if (view != nullptr) put_jump(view, jump, jump + kJumpBytes + kPopBytes);
}

}  // namespace clew::inline_

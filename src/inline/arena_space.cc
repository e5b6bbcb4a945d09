// SPDX-License-Identifier: Apache-2.0
// Free address space: where the arena's parts can be mapped without being in the target's way.
#include <algorithm>

#include "inline/arena.h"
#include "inline/arena_layout.h"

namespace clew::inline_ {
namespace {

constexpr uint64_t kLowest = 65536;              // vm.mmap_min_addr is not above that.
constexpr uint64_t kHighest = 0x7fff'ffff'0000;  // End of user space, less a page.
constexpr uint64_t kLowAddressesEnd = uint64_t{1} << 31;
constexpr uint64_t kDistance = uint64_t{1} << 20;  // From a module's first byte.

uint64_t align_down(uint64_t value) {
  return value & ~(kPage - 1);
}

}  // namespace

std::optional<uint64_t> find_gap(std::span<const target::Mapping> maps, const GapRequest& request) {
  std::optional<uint64_t> found;
  uint64_t free_from = round_to_pages(std::max(request.low, kLowest));
  const uint64_t end = align_down(std::min(request.high, kHighest));
  const auto consider = [&](uint64_t free_to) {
    const uint64_t to = std::min(free_to, end);
    if (to < free_from || to - free_from < request.size) return;
    if (request.from_top) {
      found = align_down(to - request.size);
    } else if (!found) {
      found = free_from;
    }
  };
  for (const target::Mapping& map : maps) {
    consider(map.start);
    free_from = std::max(free_from, map.end);
  }
  consider(end);
  return found;
}

// Below the range, near: what the target maps later goes elsewhere, and its heap grows upwards.
// Else above, as far away as possible, to leave the heap its room.
std::optional<uint64_t> find_near(std::span<const target::Mapping> maps, const CodeRange& range,
                                  uint64_t size) {
  const uint64_t bottom = range.high > kReach ? range.high - kReach : 0;
  // Code of programs at a fixed address names places by 31 bits.
  const bool is_low = range.high <= kLowAddressesEnd;
  const uint64_t top = is_low ? std::min(range.low + kReach, kLowAddressesEnd) : range.low + kReach;
  const uint64_t below = range.low > kDistance ? range.low - kDistance : 0;
  const auto found = find_gap(maps, {.low = bottom, .high = below, .size = size, .from_top = true});
  if (found) return found;
  return find_gap(maps, {.low = range.high, .high = top, .size = size, .from_top = true});
}

}  // namespace clew::inline_

// SPDX-License-Identifier: Apache-2.0
// What the files of Arena share: where the parts lie in the file, and how they are looked at.
#pragma once

#include <cstdint>
#include <cstring>

#include "abi/arena.h"
#include "abi/journal.h"
#include "base/page.h"
#include "inline/stopped_target.h"

namespace clew::inline_ {

// In the code file: header, journal, code.
inline constexpr uint64_t kJournalOffset = kPage;
inline constexpr uint64_t kCodeOffset = kJournalOffset + abi::kJournalSizeBytes;
inline constexpr uint64_t kCodeSize = 256ULL << 20;
inline constexpr uint32_t kRegionSizeLog2Max = 26;
inline constexpr uint64_t kExtentSize = 16ULL << 20;
inline constexpr uint64_t kCodeFileSize = kCodeOffset + kCodeSize;
// In the slots file: directory, TargetPage, slots.
inline constexpr uint64_t kTargetPageFileOffset = abi::kDirectorySizeBytes;
inline constexpr uint64_t kSlotsOffset = kTargetPageFileOffset + abi::kTargetPageSizeBytes;
// The end of what user space can map, less a page.
inline constexpr uint64_t kUserEnd = 0x7fff'ffff'f000;
// rel32, with a margin.
inline constexpr uint64_t kReach = (uint64_t{1} << 31) - (uint64_t{1} << 20);

inline uint64_t round_to_pages(uint64_t size) {
  return (size + kPage - 1) & ~(kPage - 1);
}

// madvise in the target. Only matters to core dumps and huge pages: failure is harmless.
void advise(StoppedTarget& target, uint64_t address, uint64_t size, int advice);

// One copy of what the target can write meanwhile.
template <typename Object>
Object copy_once(const Object& shared) {
  Object copy;
  std::memcpy(&copy, &shared, sizeof copy);
  // The compiler may not read `shared` again instead.
  asm volatile("" : "+m"(copy) : : "memory");
  return copy;
}

}  // namespace clew::inline_

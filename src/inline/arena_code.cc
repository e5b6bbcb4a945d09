// SPDX-License-Identifier: Apache-2.0
// The code space of an arena: extents within reach of the modules, each with its copy of the
// runtime, and what is taken of them.
#include <algorithm>
#include <cstring>

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "inline/arena.h"
#include "inline/arena_layout.h"
#include "runtime/blob.h"

namespace clew::inline_ {
namespace {

// The next one, behind `used` bytes of the code area.
bool is_sound(const abi::ExtentRecord& extent, uint64_t used) {
  return extent.file_offset == kCodeOffset + used && extent.size_bytes != 0 &&
         extent.size_bytes <= kCodeSize - used && extent.size_bytes % kPage == 0 &&
         extent.used_bytes <= extent.size_bytes && extent.address % kPage == 0 &&
         extent.address < kUserEnd;
}

bool reaches(uint64_t address, uint64_t size, const CodeRange& range) {
  const uint64_t low = std::min(address, range.low);
  const uint64_t high = std::max(address + size, range.high);
  return high - low <= kReach;
}

}  // namespace

ArenaExtents Arena::extents() const {
  ArenaExtents extents;
  const uint32_t count = __atomic_load_n(&journal().extent_count, __ATOMIC_ACQUIRE);
  uint64_t used = 0;
  while (extents.count < std::min(count, abi::kExtentsMax)) {
    abi::ExtentRecord& extent = extents.records[extents.count];
    extent = copy_once(journal().extents[extents.count]);
    if (!is_sound(extent, used)) break;
    used += extent.size_bytes;
    ++extents.count;
  }
  return extents;
}

uint32_t ArenaExtents::index_of(uint64_t address, uint64_t size) const {
  for (uint32_t i = 0; i < count; ++i) {
    const uint64_t offset = address - records[i].address;
    const bool inside = address >= records[i].address && size <= records[i].size_bytes &&
                        offset <= records[i].size_bytes - size;
    if (inside) return i;
  }
  return count;
}

bool Arena::contains_code(uint64_t address) const {
  const ArenaExtents all = extents();
  return all.index_of(address, 1) != all.count;
}

std::optional<uint32_t> Arena::find_extent(const CodeRange& range, uint64_t size) const {
  const ArenaExtents all = extents();
  for (uint32_t i = 0; i < all.count; ++i) {
    const abi::ExtentRecord& extent = all.records[i];
    if (!reaches(extent.address, extent.size_bytes, range)) continue;
    if (extent.size_bytes - extent.used_bytes >= size + 16) return i;
  }
  return std::nullopt;
}

Expected<uint32_t> Arena::add_extent(StoppedTarget& target, const CodeRange& range, uint64_t size) {
  abi::JournalHeader& log = journal();
  const std::span<const uint8_t> blob = runtime::runtime_blob().bytes;
  const uint64_t wanted = std::max(kExtentSize, round_to_pages(size + blob.size() + kPage));
  const ArenaExtents all = extents();
  uint64_t used = 0;
  for (uint32_t i = 0; i < all.count; ++i)
    used += all.records[i].size_bytes;
  if (all.count == abi::kExtentsMax || used + wanted > kCodeSize) {
    return fail(ErrorCode::Limit,
                fmt::format("the arena of process {} has no room for more code", target.pid()));
  }
  abi::ExtentRecord extent = {.address = shape_.code_address + used,
                              .size_bytes = wanted,
                              .file_offset = kCodeOffset + used,
                              .used_bytes = 0};
  uint8_t* const view = code_.base() + extent.file_offset;
  std::memcpy(view, blob.data(), blob.size());
  const auto low = static_cast<uint32_t>(low_address_);
  std::memcpy(view + runtime::runtime_blob().low_address_offset, &low, sizeof low);
  extent.used_bytes = (blob.size() + 63) & ~uint64_t{63};
  if (!reaches(extent.address, wanted, range)) {
    const auto maps = CLEW_TRY(target::read_memory_map(target.pid()));
    const auto near = find_near(maps, range, wanted);
    if (!near) {
      return fail(ErrorCode::Refused,
                  fmt::format("no free memory within 2 GiB of {:#x} in process {} [no-near-memory]",
                              range.low, target.pid()));
    }
    CLEW_TRY(target.checked_call("mremap", {.number = SYS_mremap,
                                            .arguments = {extent.address, 0, wanted,
                                                          MREMAP_MAYMOVE | MREMAP_FIXED, *near}}));
    extent.address = *near;
    advise(target, *near, wanted, MADV_DONTDUMP);
  }
  log.extents[all.count] = extent;
  __atomic_store_n(&log.extent_count, all.count + 1, __ATOMIC_RELEASE);
  return all.count;
}

uint8_t* Arena::code_at(uint64_t address, uint64_t size) const {
  const ArenaExtents all = extents();
  const uint32_t index = all.index_of(address, size);
  if (index == all.count || !shared()) return nullptr;
  const abi::ExtentRecord& extent = all.records[index];
  return code_.base() + extent.file_offset + (address - extent.address);
}

std::optional<uint64_t> Arena::take_code(uint32_t extent, uint64_t size) {
  const ArenaExtents all = extents();
  const uint64_t wanted = (size + 15) & ~uint64_t{15};
  if (extent >= all.count) return std::nullopt;
  const abi::ExtentRecord& record = all.records[extent];
  if (wanted > record.size_bytes - record.used_bytes) return std::nullopt;
  journal().extents[extent].used_bytes = record.used_bytes + wanted;
  return record.address + record.used_bytes;
}

}  // namespace clew::inline_

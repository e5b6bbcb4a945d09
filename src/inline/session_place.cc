// SPDX-License-Identifier: Apache-2.0
#include "inline/session_place.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include "inline/arena_layout.h"
#include "inline/attachment_state.h"
#include "inline/copy_way.h"
#include "inline/program_counters.h"

namespace clew::inline_ {

uint64_t region_size(const abi::RegionLayout& layout) {
  return (uint64_t{1} << layout.size_log2) + abi::kWindowSlackBytes;
}

bool adopts_copies(const Arena& arena, const OpenOptions& options) {
  return options.adopts_copies && (arena.journal().copied_modules & kRecordersCopies) != 0;
}

namespace {

// First fit between the regions of the sessions that are there; 0 when there is no room.
uint64_t find_region_offset(const Arena& arena, uint64_t size) {
  std::vector<AddressInterval> taken;
  for (uint32_t s = 0; s < abi::kSessionsMax; ++s) {
    const abi::SessionEntry entry = arena.session(s);
    if (entry.state == 0) continue;
    taken.push_back({entry.region_offset, entry.region_offset + region_size(entry.layout)});
  }
  std::sort(taken.begin(), taken.end(),
            [](const AddressInterval& a, const AddressInterval& b) { return a.begin < b.begin; });
  uint64_t offset = abi::kSlotControlSizeBytes;
  for (const AddressInterval& other : taken) {
    if (offset + size <= other.begin) break;
    offset = std::max(offset, (other.end + 63) & ~uint64_t{63});
  }
  return offset + size <= arena.shape().slot_stride ? offset : 0;
}

// What nobody has written is not touched.
void clear_objects(const Arena& arena, uint32_t session) {
  constexpr uint64_t kSize = sizeof(abi::TargetPage::objects[0]);
  const uint64_t offset =
      kTargetPageFileOffset + offsetof(abi::TargetPage, objects) + session * kSize;
  const off_t data = lseek(arena.slots_file(), static_cast<off_t>(offset), SEEK_DATA);
  const bool has_none = data < 0 ? errno == ENXIO : static_cast<uint64_t>(data) >= offset + kSize;
  if (arena.shared() && has_none) return;
  for (abi::ObjectEntry& object : arena.target_page().objects[session])
    object = {};
}

// Zeroes a region in all slots that have pages: its last session has left something there.
void clear_region(const Arena& arena, uint64_t region_offset, uint64_t size) {
  if (!arena.shared()) return;
  const uint64_t stride = arena.shape().slot_stride;
  const uint64_t slots = arena.slots_file_offset();
  for (uint32_t i = 0; i < arena.shape().slot_count; ++i) {
    const auto offset = static_cast<off_t>(slots + i * stride);
    const off_t data = lseek(arena.slots_file(), offset, SEEK_DATA);
    if (data < 0) return;  // No page behind this one.
    const auto slot = (static_cast<uint64_t>(data) - slots) / stride;
    if (slot >= arena.shape().slot_count) return;
    i = static_cast<uint32_t>(slot);
    std::memset(arena.slots() + slot * stride + region_offset, 0, size);
  }
}

}  // namespace

Expected<Geometry> add_session(const Arena& arena, const OpenOptions& options) {
  abi::ArenaHeader& header = arena.header();
  Geometry geometry;
  while (geometry.session < abi::kSessionsMax && header.sessions[geometry.session].state != 0)
    ++geometry.session;
  if (geometry.session == abi::kSessionsMax) {
    return fail(ErrorCode::Limit,
                fmt::format("{} sessions trace this process already", abi::kSessionsMax));
  }
  const uint64_t offset = find_region_offset(arena, region_size(options.region));
  if (offset == 0) {
    return fail(ErrorCode::Limit,
                fmt::format("this session needs {} KiB for each thread of the process, and the "
                            "others on it leave no room for that (of {} KiB): end one of them, or "
                            "start this one first (clew ps)",
                            region_size(options.region) >> 10, arena.shape().slot_stride >> 10));
  }
  abi::SessionEntry& entry = header.sessions[geometry.session];
  entry = {};
  entry.tracer_pid = static_cast<uint32_t>(getpid());
  entry.tracer_start_time = start_time_of(getpid());
  entry.region_offset = static_cast<uint32_t>(offset);
  entry.layout = options.region;
  arena.target_page().loader_requests[geometry.session] = 0;
  arena.target_page().missed_no_slot[geometry.session] = 0;
  arena.target_page().unknown_code[geometry.session] = 0;
  arena.target_page().contexts_lost[geometry.session] = 0;
  arena.target_page().objects_evicted[geometry.session] = 0;
  for (uint32_t& spent : arena.target_page().spent[geometry.session])
    spent = 0;
  if (options.region.contexts.offset != 0) clear_objects(arena, geometry.session);
  header.loader_answers[geometry.session] = 0;
  if (!adopts_copies(arena, options)) clear_region(arena, offset, region_size(options.region));
  __atomic_store_n(&entry.state, 1U, __ATOMIC_RELEASE);
  const auto low = static_cast<uint32_t>(arena.low_address());
  geometry.slot_address = low;
  geometry.window_address = low + entry.region_offset;
  geometry.generation_address = low + abi::kHeaderOffset +
                                static_cast<uint32_t>(offsetof(abi::ArenaHeader, sessions) +
                                                      geometry.session * sizeof(abi::SessionEntry) +
                                                      offsetof(abi::SessionEntry, generation));
  geometry.spent_address = low + abi::kTargetPageOffset +
                           static_cast<uint32_t>(offsetof(abi::TargetPage, spent) +
                                                 size_t{geometry.session} * 4 * abi::kSpentWords);
  return geometry;
}

}  // namespace clew::inline_

// SPDX-License-Identifier: Apache-2.0
#include "collect/session_view.h"

#include <fmt/format.h>

#include "abi/machine/process.h"

namespace clew::collect {
namespace {

// So that no product below overflows 64 bits, and a region stays far below the address space.
constexpr uint32_t kWindowLog2Max = 30;
constexpr uint32_t kEntriesLog2Max = 24;
constexpr uint32_t kWordsMax = 4096;
constexpr uint32_t kEventWordsMax = (abi::kEventSizeMax - abi::kEventHeaderBytes) / 8;

struct Part {
  const char* name;
  uint64_t offset;
  uint64_t size_bytes;
};

Expected<void> fits(const Part& part, uint64_t limit_bytes) {
  if (part.offset % 8 != 0) {
    return fail(ErrorCode::Limit,
                fmt::format("region layout: {} at {} is not 8-aligned", part.name, part.offset));
  }
  if (part.offset < abi::kFrameEnd || part.size_bytes > limit_bytes ||
      part.offset > limit_bytes - part.size_bytes) {
    return fail(ErrorCode::Limit,
                fmt::format("region layout: {} at {} with {} bytes is outside {} to {}", part.name,
                            part.offset, part.size_bytes, abi::kFrameEnd, limit_bytes));
  }
  return {};
}

bool aligned(std::span<std::byte> memory) {
  return reinterpret_cast<uintptr_t>(memory.data()) % 8 == 0;
}

Expected<void> check_memory(const SessionView& view) {
  if (view.header.size() < sizeof(abi::ArenaHeader) || !aligned(view.header)) {
    return fail(ErrorCode::Limit, "arena header: not a whole, aligned page");
  }
  if (view.target.size() < sizeof(abi::TargetPage) || !aligned(view.target)) {
    return fail(ErrorCode::Limit, "page of the target: not a whole, aligned page");
  }
  if (view.session >= abi::kSessionsMax) {
    return fail(ErrorCode::Limit, fmt::format("session {} of {}", view.session, abi::kSessionsMax));
  }
  if (!aligned(view.slots) || view.slot_stride_bytes % 8 != 0 || view.slots_file_offset % 8 != 0 ||
      view.region_offset % 8 != 0) {
    return fail(ErrorCode::Limit, "slots: not 8-aligned");
  }
  if (view.slot_count > abi::kSlotsMax || view.slot_stride_bytes > (uint64_t{1} << 32) ||
      view.slot_count * view.slot_stride_bytes > view.slots.size()) {
    return fail(ErrorCode::Limit,
                fmt::format("slots: {} of {} bytes are not in {} bytes", view.slot_count,
                            view.slot_stride_bytes, view.slots.size()));
  }
  return {};
}

Expected<void> check_window(const SessionView& view) {
  const abi::RegionLayout& layout = view.layout;
  if (layout.size_log2 > kWindowLog2Max) {
    return fail(ErrorCode::Limit,
                fmt::format("region layout: 2^{} bytes are too many", layout.size_log2));
  }
  const uint64_t end =
      view.region_offset + (uint64_t{1} << layout.size_log2) + abi::kWindowSlackBytes;
  if (view.region_offset < abi::kSlotControlSizeBytes || end > view.slot_stride_bytes) {
    return fail(ErrorCode::Limit,
                fmt::format("region layout: bytes {} to {} are not inside a slot of {} bytes",
                            view.region_offset, end, view.slot_stride_bytes));
  }
  if (layout.generations != 1 && layout.generations != 2) {
    return fail(ErrorCode::Limit, fmt::format("region layout: {} generations", layout.generations));
  }
  return {};
}

Expected<void> check_table(const abi::TableLayout& table, const abi::RegionLayout& layout) {
  if (table.entries_log2 == 0) return fail(ErrorCode::Limit, "region layout: table of one entry");
  if (table.entries_log2 > kEntriesLog2Max || table.key_words > kWordsMax ||
      table.cell_words > kWordsMax) {
    return fail(ErrorCode::Limit, "region layout: table too large");
  }
  const uint64_t half = uint64_t{table.entry_size_bytes()} << table.entries_log2;
  return fits({"table", table.offset, 2 * half * layout.generations},
              uint64_t{1} << layout.size_log2);
}

Expected<void> check_fuel(const SessionView& view) {
  const uint64_t end = view.fuel_offset + 8 * (uint64_t{1} + view.fuel_words);
  const bool is_there = view.fuel_words != 0;
  const bool fits = view.fuel_offset % 8 == 0 && view.fuel_offset >= abi::kFrameEnd &&
                    end <= uint64_t{1} << view.layout.size_log2;
  if (!is_there || fits) return {};
  return fail(ErrorCode::Limit, "the counts of fuel do not lie in the window");
}

Expected<void> check_contexts(const SessionView& view) {
  const uint64_t offset = view.layout.contexts.offset;
  const uint64_t in_front = abi::kContextCountersBytes + uint64_t{8} * view.duty_words;
  const bool fits =
      offset >= abi::kFrameEnd + in_front &&
      offset + uint64_t{8} * view.layout.contexts.words() <= uint64_t{1} << view.layout.size_log2;
  if (offset == 0 || fits) return {};
  return fail(ErrorCode::Limit, "the contexts of joins do not lie in the window");
}

Expected<void> check_cells(const SessionView& view) {
  const abi::RegionLayout& layout = view.layout;
  const uint64_t window = uint64_t{1} << layout.size_log2;
  if (uint64_t{view.dense_words} * 8 > layout.cells_half_bytes ||
      layout.cells_half_bytes % 8 != 0) {
    return fail(ErrorCode::Limit, fmt::format("region layout: {} dense words are not in {} bytes",
                                              view.dense_words, layout.cells_half_bytes));
  }
  if (layout.cells_half_bytes != 0) {
    CLEW_TRY(
        fits({"cells", layout.cells_offset, uint64_t{layout.cells_half_bytes} * layout.generations},
             window));
  }
  if (layout.table_count > abi::kTablesMax) {
    return fail(ErrorCode::Limit, fmt::format("region layout: {} tables", layout.table_count));
  }
  for (uint32_t i = 0; i < layout.table_count; ++i) {
    CLEW_TRY(check_table(layout.tables[i], layout));
  }
  return {};
}

// The last record of a ring may run over its end, into the slack.
Expected<void> check_ring(const SessionView& view) {
  const abi::RingLayout& ring = view.layout.ring;
  if (ring.size_log2 == 0) return {};
  if (ring.size_log2 > kWindowLog2Max) {
    return fail(ErrorCode::Limit, "region layout: ring too large");
  }
  const uint32_t slack = view.has_records ? abi::kMachineEventBytesMax : abi::kEventSizeMax;
  const uint64_t size = (uint64_t{1} << ring.size_log2) + slack;
  CLEW_TRY(fits({"ring", ring.offset, size},
                (uint64_t{1} << view.layout.size_log2) + abi::kWindowSlackBytes));
  for (const EventWords& words : view.event_words) {
    if (words.most > kEventWordsMax) {
      return fail(ErrorCode::Limit, fmt::format("an event of {} words is larger than {} bytes",
                                                words.most, abi::kEventSizeMax));
    }
  }
  return {};
}

}  // namespace

Expected<void> check(const SessionView& view) {
  CLEW_TRY(check_memory(view));
  CLEW_TRY(check_window(view));
  CLEW_TRY(check_cells(view));
  CLEW_TRY(check_fuel(view));
  CLEW_TRY(check_contexts(view));
  return check_ring(view);
}

}  // namespace clew::collect

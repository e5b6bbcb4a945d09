// SPDX-License-Identifier: Apache-2.0
#include "engine/session_memory.h"

namespace clew::engine {

collect::SessionView session_memory(const inline_::Attachment& attachment,
                                    const abi::RegionLayout& layout) {
  const inline_::ArenaView arena = attachment.arena();
  const inline_::Geometry& geometry = attachment.geometry();
  collect::SessionView view;
  view.header = {reinterpret_cast<std::byte*>(arena.header), sizeof(abi::ArenaHeader)};
  view.target = {reinterpret_cast<std::byte*>(arena.target), sizeof(abi::TargetPage)};
  view.slot_stride_bytes = arena.slot_stride_bytes;
  view.slot_count = arena.slot_count;
  view.slots = {reinterpret_cast<std::byte*>(arena.slots),
                arena.slot_count * arena.slot_stride_bytes};
  view.memory_file = arena.memory_file;
  view.slots_file_offset = arena.slots_file_offset;
  view.session = geometry.session;
  view.region_offset = geometry.window_address - geometry.slot_address;
  view.layout = layout;
  return view;
}

}  // namespace clew::engine

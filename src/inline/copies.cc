// SPDX-License-Identifier: Apache-2.0
// Copies of whole functions in a command that has not begun.
#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "inline/arena_layout.h"
#include "inline/attachment.h"
#include "inline/attachment_state.h"
#include "inline/text_image.h"
#include "runtime/blob.h"

namespace clew::inline_ {

namespace {

constexpr uint64_t kAlignment = 64;

Expected<uint32_t> extent_with_room(Attachment::State& state, const CodeRange& range,
                                    uint64_t size) {
  if (const auto there = state.arena.find_extent(range, size)) return *there;
  StoppedTarget target = CLEW_TRY(stop_target(state.pid, state.options));
  auto extent = state.arena.add_extent(target, range, size);
  target.resume();
  log_stop(target, "map memory for copies of functions");
  return extent;
}

Expected<void> check_entries(const TextImage& text, std::span<const code::Patch> entries,
                             pid_t pid) {
  for (const code::Patch& entry : entries) {
    if (text.equals(entry.address, std::span(entry.original).first(entry.size_bytes))) continue;
    return fail(ErrorCode::Refused,
                fmt::format("somebody else has changed the text of process {} at {:#x} "
                            "[foreign-patch]",
                            pid, entry.address));
  }
  return {};
}

}  // namespace

Expected<CopyRoom> Attachment::take_copy_room(uint64_t low, uint64_t high, uint64_t size_bytes,
                                              uint64_t residue) {
  const CodeRange range = {.low = low, .high = high};
  const uint64_t size = size_bytes + 2 * kAlignment;
  const uint32_t extent = CLEW_TRY(extent_with_room(*state_, range, size));
  const auto address = state_->arena.take_code(extent, size);
  if (!address) {
    return fail(ErrorCode::Limit,
                fmt::format("the arena of process {} has no room for more code", state_->pid));
  }
  const abi::ExtentRecord record = state_->arena.extents().records[extent];
  const ArenaShape& shape = state_->arena.shape();
  return CopyRoom{.address = *address + (residue - *address) % kAlignment,
                  .size_bytes = size_bytes,
                  .claim = record.address +
                           runtime::stub_call_offset(geometry().session, runtime::StubCall::Claim),
                  .keeps_self_pointer = shape.keeps_self_pointer,
                  .has_base_instructions = shape.bases == abi::SegmentBases::Instructions};
}

Expected<void> Attachment::install_copies(const CopyRoom& room, std::span<const uint8_t> bytes,
                                          std::span<const code::Patch> entries) {
  uint8_t* const view = state_->arena.code_at(room.address, bytes.size());
  if (view == nullptr || bytes.size() > room.size_bytes) {
    return fail(ErrorCode::Limit, "the copies have no room");
  }
  std::memcpy(view, bytes.data(), bytes.size());
  std::vector<TextImage::Range> ranges;
  for (const code::Patch& entry : entries)
    ranges.push_back({entry.address, entry.size_bytes});
  TextImage text(ranges);
  ProcessLock::Hold hold = CLEW_TRY(state_->lock->hold());
  StoppedTarget target = CLEW_TRY(stop_target(state_->pid, state_->options));
  text.load(target);
  CLEW_TRY(check_entries(text, entries, state_->pid));
  ++state_->arena.journal().copied_modules;
  for (const code::Patch& entry : entries)
    text.change(entry.address, std::span(entry.replacement).first(entry.size_bytes));
  CLEW_TRY(text.flush(target));
  target.resume();
  state_->note_stop(target);
  log_stop(target, "lead entries of functions to their copies");
  return {};
}

void Attachment::set_held() {
  state_->options.is_held = true;
}

void Attachment::leave_copies() {
  let_loaders_go(*state_);
  state_->attached = false;
  __atomic_store_n(&state_->session().state, 0U, __ATOMIC_RELEASE);
}

}  // namespace clew::inline_

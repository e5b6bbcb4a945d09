// SPDX-License-Identifier: Apache-2.0
// Copies of whole functions, and how they are come to.
#include <algorithm>
#include <cstring>
#include <iterator>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "base/error_text.h"
#include "base/log.h"
#include "inline/arena_layout.h"
#include "inline/attachment.h"
#include "inline/attachment_state.h"
#include "inline/checks.h"
#include "inline/copy_way.h"
#include "inline/forked_children.h"
#include "inline/led_windows.h"
#include "inline/removal.h"
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

// The jumps of a session that has come meanwhile would not be seen any more.
Expected<void> check_alone(const Attachment::State& state) {
  const uint32_t mine = 1U << state.geometry.session;
  if ((live_sessions(state.arena) & ~mine) == 0) return {};
  return fail(ErrorCode::Refused,
              fmt::format("another session traces process {} [traced]", state.pid));
}

CopyRoom room_in(const Attachment::State& state, const abi::ExtentRecord& extent, uint64_t address,
                 uint64_t size_bytes) {
  const uint32_t session = state.geometry.session;
  const ArenaShape& shape = state.arena.shape();
  return {.address = address,
          .size_bytes = size_bytes,
          .claim = extent.address + runtime::stub_call_offset(session, runtime::StubCall::Claim),
          .keeps_self_pointer = shape.keeps_self_pointer,
          .has_base_instructions = shape.bases == abi::SegmentBases::Instructions};
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
  return room_in(*state_, record, *address + (residue - *address) % kAlignment, size_bytes);
}

Expected<std::optional<Arena>> adopt_arena(StoppedTarget& target, Arena arena) {
  const bool is_own = arena.header().pid == static_cast<uint32_t>(target.pid());
  if (live_sessions(arena) != 0 || !is_own || !arena.shared()) {
    return fail(
        ErrorCode::Refused,
        fmt::format("process {} has copies of its functions, which {} [recorded]", target.pid(),
                    is_own ? "another recorder goes on with" : "its parent was given"));
  }
  CLEW_TRY(target.finish_calls_of_dead_tracers());
  for (uint32_t s = 0; s < abi::kSessionsMax; ++s)
    __atomic_store_n(&arena.header().sessions[s].state, 0U, __ATOMIC_RELEASE);
  SiteJournal journal(arena);
  Removal removal(arena, journal, {.leaving = ~uint32_t{0}});
  CLEW_TRY(removal.take_out_of_text(target));
  removal.forget();
  CLEW_TRY(check_threads(target, &arena));
  return std::optional(std::move(arena));
}

bool Attachment::has_copies() const {
  return (state_->arena.journal().copied_modules & kRecordersCopies) != 0;
}

Expected<CopyRoom> Attachment::room_at(uint64_t address, uint64_t size_bytes) const {
  const ArenaExtents extents = state_->arena.extents();
  for (uint32_t i = 0; i < extents.count; ++i) {
    const abi::ExtentRecord& record = extents.records[i];
    const uint64_t offset = address - record.address;
    if (offset >= record.used_bytes || size_bytes > record.used_bytes - offset) continue;
    return room_in(*state_, record, address, size_bytes);
  }
  return fail(ErrorCode::Refused,
              fmt::format("process {} has no code at {:#x}", state_->pid, address));
}

void Attachment::leads_to_answers(code::LedWindow window) {
  state_->answering.push_back(std::move(window));
}

Expected<void> Attachment::write_copies(const CopyRoom& room, std::span<const uint8_t> bytes) {
  uint8_t* const view = state_->arena.code_at(room.address, bytes.size());
  if (view == nullptr || bytes.size() > room.size_bytes) {
    return fail(ErrorCode::Limit, "the copies have no room");
  }
  std::memcpy(view, bytes.data(), bytes.size());
  return {};
}

Expected<void> Attachment::lead_to_copies(std::vector<code::LedWindow> windows, Leads leads) {
  const ProcessLock::Hold hold = CLEW_TRY(state_->lock->hold());
  StandingPlaces places;
  places.resting = find_resting_frames(state_->pid, state_->gadgets.restorer);
  StoppedTarget target = CLEW_TRY(stop_target(state_->pid, state_->options));
  if (!has_arena(state_->pid, state_->arena)) {
    return fail(ErrorCode::NotFound,
                fmt::format("process {} runs another program now", state_->pid));
  }
  CLEW_TRY(check_alone(*state_));
  places.maps = CLEW_TRY(target::read_memory_map(state_->pid));
  // From the first one on: nobody can say later that no thread is in them.
  uint32_t& copied = state_->arena.journal().copied_modules;
  if (leads == Leads::ToCopies) ++copied;
  Expected<void> led = lead_windows(target, places, windows);
  const bool is_unchanged = !led && led.error().code == ErrorCode::Refused;
  if (leads == Leads::ToCopies && is_unchanged) --copied;
  CLEW_TRY(led);
  target.resume();
  state_->note_stop(target);
  log_stop(target, "lead entries of functions to their copies");
  auto& all = leads == Leads::ToCopies ? state_->led : state_->answering;
  all.insert(all.end(), std::make_move_iterator(windows.begin()),
             std::make_move_iterator(windows.end()));
  return {};
}

Expected<void> Attachment::set_default_slot(uint32_t displacement, uint64_t value) const {
  const std::string path = fmt::format("/proc/{}/mem", target::memory_holder(state_->pid));
  const FileDescriptor memory(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  const auto at = static_cast<off_t>(displacement);
  if (memory.valid() && pwrite(memory.get(), &value, sizeof value, at) == sizeof value) return {};
  return fail(ErrorCode::Io, fmt::format("{}: {}", path, error_text(errno)));
}

void Attachment::set_held() {
  state_->options.is_held = true;
}

std::vector<pid_t> Attachment::children() const {
  return children_with(state_->arena, state_->pid);
}

Expected<void> Attachment::restore_entries(const Restoring& wanted) {
  let_loaders_go(*state_);
  ProcessLock lock(wanted.process);
  const ProcessLock::Hold hold = CLEW_TRY(lock.hold_to_leave());
  StandingPlaces places;
  places.resting = find_resting_frames(wanted.process, state_->gadgets.restorer);
  SiteJournal journal(state_->arena);
  Removal removal(state_->arena, journal, {.leaving = 1U << state_->geometry.session});
  std::vector<code::LedWindow> windows = state_->led;
  if (!wanted.keeps_answers)
    windows.insert(windows.end(), state_->answering.begin(), state_->answering.end());
  StoppedTarget target =
      CLEW_TRY(wanted.is_held ? StoppedTarget::of_held(wanted.process, StoppedTarget::Calls::None)
                              : stop_target(wanted.process, state_->options.stop_timeout));
  places.maps = CLEW_TRY(target::read_memory_map(wanted.process));
  CLEW_TRY(restore_windows(target, places, windows));
  CLEW_TRY(removal.take_out_of_text(target));
  target.resume();
  log_stop(target, "lead no more entries to copies");
  return {};
}

void Attachment::leave_copies() {
  let_loaders_go(*state_);
  state_->attached = false;
  __atomic_store_n(&state_->session().state, 0U, __ATOMIC_RELEASE);
}

}  // namespace clew::inline_

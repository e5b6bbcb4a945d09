// SPDX-License-Identifier: Apache-2.0
#include "recorder/history.h"

#include <algorithm>
#include <array>
#include <utility>

#include "abi/recorder.h"
#include "recorder/guard_walk.h"
#include "recorder/signal_records.h"

namespace clew::recorder {

namespace {

// Of a position in the lobe; nothing when it is in none.
std::optional<size_t> index_of(const SnapLobe& lobe, uint64_t cursor) {
  const uint64_t offset = cursor - lobe.address;
  if (offset >= abi::kLobeBytes || offset % abi::kRecordBytes != 0) return std::nullopt;
  return offset / abi::kRecordBytes;
}

// Of a thread that has the cursor in a register. A handler that has run since has left more in the
// lobe than that knows of, and the cursor in memory; when the thread has written again, its zero
// says so.
std::optional<size_t> newest_by_register(const SnapLobe& lobe, uint64_t cursor) {
  const auto own = index_of(lobe, cursor);
  const auto told = index_of(lobe, lobe.cursor);
  if (!own || !told) return own ? own : told;
  const size_t count = lobe.words.size();
  const bool is_told_older = (*own + count - *told) % count < count / 2;
  return is_told_older || lobe.words[(*own + 1) % count] == 0 ? own : told;
}

// A handler has interrupted the record, and its thread has written no other one since.
size_t with_handler(const std::vector<uint32_t>& ring, size_t newest) {
  std::array<uint32_t, abi::kSignalWords> behind{};
  for (size_t i = 0; i < behind.size(); ++i)
    behind[i] = ring[(newest + 1 + i) % ring.size()];
  if (!is_signal_record(behind)) return newest;
  for (size_t i = 1; i < ring.size(); ++i) {
    if (ring[(newest + i) % ring.size()] == 0) return (newest + i - 1) % ring.size();
  }
  return newest;
}

// Where the thread is, or the call that it has not come back from.
uint64_t copied_pc(const SnapModules& modules, const SnapThread& thread) {
  const uint64_t pc = thread.registers.rip;
  return modules.recorded_in(pc) || thread.called_from == 0 ? pc : thread.called_from - 1;
}

std::optional<WalkedPlace> walked_place(SnapModules& modules, uint64_t pc) {
  const auto module = modules.recorded_in(pc);
  if (!module) return std::nullopt;
  return WalkedPlace{*module, *modules.walked(*module).recorded_at(pc)};
}

// Of those that begin at the address or in front of it.
size_t count_up_to(std::span<const Piece> pieces, uint64_t address) {
  const auto behind = std::find_if(pieces.begin(), pieces.end(), [address](const Piece& piece) {
    return piece.address > address;
  });
  return static_cast<size_t>(behind - pieces.begin());
}

}  // namespace

Records records_of(const SnapModules& modules, const Snap& snap, const SnapThread& thread) {
  const auto lobe = std::find_if(snap.lobes.begin(), snap.lobes.end(),
                                 [&](const SnapLobe& one) { return one.slot == thread.slot; });
  if (lobe == snap.lobes.end()) return {};
  const auto cursor = modules.cursor_in(thread.registers);
  auto newest = cursor ? newest_by_register(*lobe, *cursor) : index_of(*lobe, lobe->cursor);
  if (newest) newest = with_handler(lobe->words, *newest);
  return read_records(unroll(lobe->words, newest));
}

Stop stop_of(SnapModules& modules, Places& places, const SnapThread& thread) {
  const uint64_t pc = thread.registers.rip;
  for (ReadModule& module : modules.all()) {
    const auto recorded = module.recorded_at(pc);
    const auto address = recorded ? recorded : module.original_at(pc);
    if (!address) continue;
    return {.place = places.at(module, *address),
            .address = *address,
            .is_uncertain = recorded.has_value()};
  }
  return {.place = places.nowhere(pc), .address = pc};
}

History::History(SnapModules& modules, Places& places, const Snap& snap, const SnapThread& thread)
    : places_(places), stop_(stop_of(modules, places, thread)) {
  const Records read = records_of(modules, snap, thread);
  ThreadRecords records{.words = read.words,
                        .place_of = [&modules](uint64_t pc) { return walked_place(modules, pc); }};
  const uint64_t walked_to = copied_pc(modules, thread);
  if (const auto place = walked_place(modules, walked_to)) {
    records.stopped_in = place->module;
    records.stopped_at = place->address;
    if (walked_to == thread.registers.rip) records.stopped_stack = thread.registers.rsp;
  }
  walk_ = modules.has_guards() ? walk_guards(modules.walked(), records)
                               : walk(modules.walked(), records);
  stamps_ = read.stamps;
  for (Stamp& stamp : stamps_)
    stamp.record = walk_.step_behind(stamp.record);
  // Else the last records were lost, as those of what a signal's handler interrupts.
  if (walk_.end == PathEnd::Stopped && !walk_.steps.empty()) end_ = records.stopped_at;
  stop_.is_recorded = end_.has_value() && walked_to == thread.registers.rip;
  if (stop_.is_recorded) stop_.is_uncertain = false;
  steps_left_ = walk_.steps.size();
  if (steps_left_ != 0) pieces_left_ = pieces_of(steps_left_ - 1).size();
}

std::optional<Moment> History::at(size_t back) {
  while (back >= moments_.size() && steps_left_ != 0)
    make_one();
  return back < moments_.size() ? std::optional(moments_[back]) : std::nullopt;
}

Span History::began(size_t step) const {
  const auto behind =
      std::upper_bound(stamps_.begin(), stamps_.end(), step,
                       [](size_t wanted, const Stamp& stamp) { return wanted < stamp.record; });
  Span span;
  if (behind != stamps_.begin()) span.after = (behind - 1)->ticks;
  if (behind != stamps_.end()) span.before = behind->ticks;
  return span;
}

// Of the last step only what stands up to the instruction at which the thread stopped, or called.
std::span<const Piece> History::pieces_of(size_t step) {
  auto pieces = places_.pieces_of(walk_.steps[step]);
  if (step + 1 == walk_.steps.size() && end_) pieces = pieces.first(count_up_to(pieces, *end_));
  const auto part =
      std::lower_bound(walk_.parts.begin(), walk_.parts.end(), step,
                       [](const PartOfStep& one, size_t value) { return one.step < value; });
  if (part == walk_.parts.end() || part->step != step) return pieces;
  const size_t count = count_up_to(pieces, part->address);
  if (!part->is_rest) return pieces.first(count);
  return pieces.subspan(count == 0 ? 0 : count - 1);
}

// The step begins where the one in front of it is.
bool History::goes_on(size_t step) {
  const Step& at = walk_.steps[step];
  if (step == 0 || at.marks != 0 || at.is_entry) return false;
  if (walk_.steps[step - 1].depth != at.depth) return false;
  const auto pieces = pieces_of(step);
  if (pieces.empty()) return false;
  const uint32_t place = pieces.front().place;
  const auto before = pieces_of(step - 1);
  return !before.empty() && before.back().place == place;
}

// Goes back by a piece, which may be one of a moment that begins further in front.
void History::make_one() {
  const size_t step = steps_left_ - 1;
  if (pieces_left_ > 1) {
    const Piece& piece = pieces_of(step)[--pieces_left_];
    moments_.push_back({.address = piece.address,
                        .place = piece.place,
                        .depth = walk_.steps[step].depth,
                        .step = step});
    return;
  }
  if (pieces_left_ == 1 && !goes_on(step)) {
    const Piece& piece = pieces_of(step).front();
    moments_.push_back({.address = piece.address,
                        .place = piece.place,
                        .depth = walk_.steps[step].depth,
                        .marks = walk_.steps[step].marks,
                        .is_entry = walk_.steps[step].is_entry,
                        .step = step});
  }
  --steps_left_;
  pieces_left_ = steps_left_ == 0 ? 0 : pieces_of(steps_left_ - 1).size();
}

}  // namespace clew::recorder

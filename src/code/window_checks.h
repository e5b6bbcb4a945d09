// SPDX-License-Identifier: Apache-2.0
// For tests and fuzzers: the invariants of a plan, checked without the planner's own helpers.
#pragma once

#include <algorithm>
#include <map>
#include <string>

#include "code/decode.h"
#include "code/windows.h"

namespace clew::code {

inline uint64_t overwritten_end(const Window& window) {
  const bool hop = window.window_class == WindowClass::ShortJump;
  if (window.window_class == WindowClass::BothWays) return window.address + 10;
  return window.address + (hop ? kShortJumpSizeBytes : kJumpSizeBytes);
}

// An empty string, or the first invariant that a window of its own breaks.
inline std::string broken_window(const ModuleCode& code, const Window& window) {
  if (window.instructions.empty() || window.size_bytes > kWindowSizeMax) return "size";
  const auto text = code.text_from(window.address);
  const uint64_t saved = std::max(window.address + window.size_bytes, overwritten_end(window));
  if (text.size() < saved - window.address) return "leaves the text";
  if (!std::equal(text.begin(), text.begin() + static_cast<long>(saved - window.address),
                  window.original.begin())) {
    return "original bytes";
  }
  unsigned next = 0;
  for (const Displaced& displaced : window.instructions) {
    if (displaced.offset != next) return "a gap between instructions";
    const auto decoded = decode_with_zydis(text.subspan(next));
    if (!decoded || decoded->length != displaced.length) return "not an instruction";
    next += displaced.length;
  }
  if (next != window.size_bytes) return "size is not that of the instructions";
  if (window.window_class == WindowClass::OwnBytes && next < kJumpSizeBytes) {
    return "overwrites a neighbour";
  }
  const unsigned first = window.instructions.front().length;
  if (window.window_class == WindowClass::BothWays && (first < 2 || first > 4)) return "no mark";
  const uint64_t own_end = window.address + next;
  if (own_end < overwritten_end(window) && padding_end(code, own_end) < overwritten_end(window)) {
    return "overwrites what is no padding";
  }
  for (uint64_t byte = window.address + 1; byte < saved; ++byte) {
    if (code.is_target(byte)) return "something leads inside";
  }
  for (uint64_t byte = window.address; byte < window.address + next; ++byte) {
    if (code.range_at(byte) != code.range_at(window.address)) return "crosses a function";
  }
  return "";
}

// Can control be on that side of the instruction?
inline bool has_side(const Displaced& instruction, const Point& point) {
  const bool conditional =
      instruction.form == Form::ConditionalJump || instruction.form == Form::CountJump;
  switch (point.side) {
    case Side::Before:
      return true;
    case Side::Taken:
      return conditional || (instruction.form == Form::Jump && point.tail.size_bytes != 0);
    case Side::Passed:
      return conditional || instruction.form == Form::Plain ||
             instruction.form == Form::RipRelative;
  }
  return false;
}

// An empty string, or what is wrong with the point. `occupied` are the plan's windows and hops, by
// first byte: behind the last.
inline std::string broken_point(const ModuleCode& code, const Plan& plan, const Point& point,
                                const std::map<uint64_t, uint64_t>& occupied) {
  if (point.window >= plan.windows.size()) return "a point without a window";
  const Window& window = plan.windows[point.window];
  if (point.instruction >= window.instructions.size()) return "a point without an instruction";
  const Displaced& instruction = window.instructions[point.instruction];
  for (const Point& other : plan.points_of(point.window)) {
    const bool together = other.instruction == point.instruction && other.side == point.side;
    if (together && other.tail.bytes != point.tail.bytes) return "two tails at one place";
  }
  if (!has_side(instruction, point)) return "a point on no side of its instruction";
  if (point.side != Side::Before && point.kind != PointKind::Exit) return "no exit, but behind";
  const uint64_t at = window.address + instruction.offset;
  if (point.address == at) return "";
  // Behind the first instruction, which is done in its place.
  const auto first = point.kind == PointKind::Exit
                         ? std::nullopt
                         : decode_with_zydis(code.text_from(point.address));
  if (first && point.address + first->length == at) {
    const bool is_first = code.range_starting_at(point.address) || first->flow == Flow::Nop;
    if (!is_first) return "behind what is not the first instruction";
    return code.is_target(at) ? "something leads behind the first instruction" : "";
  }
  // On a way to a return, which stays as it is.
  const auto ret = code.at(point.address);
  if (!ret || ret->flow != Flow::Return) return "a way to what is no return";
  const auto text = code.text_from(point.tail_address());
  if (!std::equal(point.tail.bytes.begin(), point.tail.bytes.begin() + point.tail.size_bytes,
                  text.begin())) {
    return "a tail that is not the text";
  }
  const auto after = occupied.lower_bound(ret->end());
  const bool covered = after != occupied.begin() && std::prev(after)->second > point.tail_address();
  return covered ? "a return that is overwritten, and has ways as well" : "";
}

// An empty string, or what is wrong with the plan as a whole.
inline std::string broken_plan(const ModuleCode& code, const Plan& plan) {
  std::map<uint64_t, uint64_t> occupied;  // By first byte: behind the last.
  for (const Window& window : plan.windows) {
    const std::string broken = broken_window(code, window);
    if (!broken.empty()) return broken;
    occupied[window.address] =
        std::max(window.address + window.size_bytes, overwritten_end(window));
    if (window.window_class != WindowClass::ShortJump) continue;
    const int64_t distance =
        static_cast<int64_t>(window.hop_address - (window.address + kShortJumpSizeBytes));
    if (distance < -128 || distance > 127) return "a hop out of reach";
    occupied[window.hop_address] = window.hop_address + kJumpSizeBytes;
  }
  uint64_t free_from = 0;
  for (const auto& [begin, end] : occupied) {
    if (begin < free_from) return "two windows overlap";
    free_from = end;
  }
  for (const Point& point : plan.points) {
    const std::string broken = broken_point(code, plan, point, occupied);
    if (!broken.empty()) return broken;
  }
  for (const Refusal& refusal : plan.refusals) {
    const auto has_point = [&](const Point& point) { return point.request == refusal.request; };
    if (std::any_of(plan.points.begin(), plan.points.end(), has_point)) return "half a request";
  }
  return "";
}

}  // namespace clew::code

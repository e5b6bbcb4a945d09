// SPDX-License-Identifier: Apache-2.0
#include "inline/led_windows.h"

#include <algorithm>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "base/assert.h"
#include "base/log.h"
#include "code/both_ways.h"
#include "inline/text_image.h"

namespace clew::inline_ {
namespace {

bool serves_both_ways(const code::LedWindow& led) {
  return led.window.window_class == code::WindowClass::BothWays;
}

std::span<const uint8_t> original(const code::Patch& patch) {
  return std::span(patch.original).first(patch.size_bytes);
}
std::span<const uint8_t> replacement(const code::Patch& patch) {
  return std::span(patch.replacement).first(patch.size_bytes);
}

TextImage text_of(std::span<const code::LedWindow> windows, const StoppedTarget& target) {
  std::vector<TextImage::Range> ranges;
  for (const code::LedWindow& led : windows) {
    ranges.push_back({led.address(), led.window.size_bytes});
    for (const code::Patch& patch : led.patches)
      ranges.push_back({patch.address, patch.size_bytes});
  }
  TextImage text(ranges);
  text.load(target);
  return text;
}

// All that is displaced, and all that is written over. A first instruction that stays may have
// somebody's breakpoint.
bool is_the_files(const TextImage& text, const code::LedWindow& led) {
  const uint8_t kept = led.window.kept_bytes;
  const auto displaced = std::span(led.window.original).first(led.window.size_bytes).subspan(kept);
  return text.equals(led.address() + kept, displaced) &&
         std::all_of(led.patches.begin(), led.patches.end(), [&](const code::Patch& patch) {
           return text.equals(patch.address, original(patch));
         });
}

std::vector<const code::LedWindow*> by_address(std::span<const code::LedWindow> windows) {
  std::vector<const code::LedWindow*> ordered;
  ordered.reserve(windows.size());
  for (const code::LedWindow& led : windows)
    ordered.push_back(&led);
  std::sort(ordered.begin(), ordered.end(),
            [](const auto* a, const auto* b) { return a->address() < b->address(); });
  return ordered;
}

// Where a thread goes on that stands in the window, behind its first instruction.
std::optional<uint64_t> copy_of(const code::LedWindow& led, uint64_t pc) {
  for (const code::Boundary& boundary : led.boundaries) {
    if (led.address() + boundary.window_offset == pc) return led.copy + boundary.copy_offset;
  }
  return std::nullopt;
}

struct Move {
  ProgramCounter counter;
  uint64_t to = 0;
};

Expected<std::vector<Move>> ways_out(StoppedTarget& target, const StandingPlaces& places,
                                     std::span<const code::LedWindow> windows) {
  const std::vector<const code::LedWindow*> ordered = by_address(windows);
  std::vector<AddressInterval> insides;
  insides.reserve(ordered.size());
  for (const auto* const led : ordered)
    insides.push_back({led->address() + 1, led->end()});
  std::vector<Move> moves;
  for (const ProgramCounter& counter :
       find_program_counters(target, places.maps, insides, places.resting)) {
    const auto next = std::upper_bound(
        ordered.begin(), ordered.end(), counter.value,
        [](uint64_t pc, const code::LedWindow* led) { return pc < led->address(); });
    CLEW_ASSERT(next != ordered.begin());  // It was looked for in these places alone.
    const auto out = copy_of(**std::prev(next), counter.value);
    if (!out) {
      return fail(ErrorCode::Refused,
                  fmt::format("a thread of process {} stands at {:#x}, where no instruction begins "
                              "[thread-inside]",
                              target.pid(), counter.value));
    }
    moves.push_back({counter, *out});
  }
  return moves;
}

Expected<void> make_moves(StoppedTarget& target, std::span<const Move> moves) {
  for (const Move& one : moves)
    CLEW_TRY(set_program_counter(target, one.counter, one.to));
  return target.write_registers();
}

// Where a thread may stand that is not the program's: dead bytes that take a jump, and the second
// instruction of bytes that serve both ways.
Expected<std::vector<Move>> ways_back(StoppedTarget& target, const StandingPlaces& places,
                                      std::span<const code::LedWindow* const> windows) {
  std::map<uint64_t, const code::LedWindow*> jumps;
  for (const auto* const led : windows) {
    if (serves_both_ways(*led)) jumps[led->address() + code::kMarkSizeBytes] = led;
    if (led->patches.size() > 1) jumps[led->patches.front().address] = led;
  }
  std::vector<AddressInterval> intervals;
  intervals.reserve(jumps.size());
  for (const auto& [at, led] : jumps)
    intervals.push_back({at, at + 1});
  std::vector<Move> moves;
  for (const ProgramCounter& counter :
       find_program_counters(target, places.maps, intervals, places.resting)) {
    const code::LedWindow& led = *jumps.at(counter.value);
    uint64_t out = led.address();
    if (serves_both_ways(led)) {
      const auto flags = flags_of(target, counter);
      if (!flags) return fail(ErrorCode::Io, "a thread in front of an entry has no flags");
      if (code::has_done_first(*flags)) out += led.window.instructions.front().length;
    }
    moves.push_back({counter, out});
  }
  return moves;
}

}  // namespace

Expected<void> lead_windows(StoppedTarget& target, const StandingPlaces& places,
                            std::span<const code::LedWindow> windows) {
  TextImage text = text_of(windows, target);
  for (const code::LedWindow& led : windows) {
    if (is_the_files(text, led)) continue;
    return fail(ErrorCode::Refused,
                fmt::format("somebody else has changed the text of process {} at {:#x} "
                            "[foreign-patch]",
                            target.pid(), led.address()));
  }
  const std::vector<Move> moves = CLEW_TRY(ways_out(target, places, windows));
  CLEW_TRY(make_moves(target, moves));
  for (const code::LedWindow& led : windows) {
    for (const code::Patch& patch : led.patches)
      text.change(patch.address, replacement(patch));
  }
  return text.flush(target);
}

Expected<void> restore_windows(StoppedTarget& target, const StandingPlaces& places,
                               std::span<const code::LedWindow> windows) {
  TextImage text = text_of(windows, target);
  std::vector<const code::LedWindow*> ours;
  for (const code::LedWindow& led : windows) {
    const bool is_ours =
        std::all_of(led.patches.begin(), led.patches.end(), [&](const code::Patch& patch) {
          return text.is_mix_of(patch.address, original(patch), replacement(patch));
        });
    if (is_ours) ours.push_back(&led);
  }
  const std::vector<Move> moves = CLEW_TRY(ways_back(target, places, ours));
  CLEW_TRY(make_moves(target, moves));
  for (const auto* const led : ours) {
    // The jump to a hop goes before what it leads to.
    for (size_t i = led->patches.size(); i-- > 0;) {
      const code::Patch& patch = led->patches[i];
      if (text.equals(patch.address, original(patch))) continue;
      text.change_but_traps(patch.address, original(patch), original(patch));
    }
  }
  log_step(target.pid(), "restored {} of {} entries; the others are not there any more",
           ours.size(), windows.size());
  return text.flush(target);
}

}  // namespace clew::inline_

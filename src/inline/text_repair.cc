// SPDX-License-Identifier: Apache-2.0
#include "inline/text_repair.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "code/both_ways.h"
#include "code/decode.h"
#include "code/opcodes.h"
#include "code/window.h"
#include "inline/program_counters.h"

namespace clew::inline_ {
namespace {

// Bytes between functions (nops, int3, zeros): nobody comes there but by a short jump.
bool is_padding(const TextChange& jump) {
  constexpr std::array<uint8_t, 6> kFirst = {0x90, 0x66, 0x0f, 0x2e, 0xcc, 0x00};
  return std::find(kFirst.begin(), kFirst.end(), jump.file.front()) != kFirst.end();
}

class Repair {
 public:
  Repair(StoppedTarget& target, std::span<const TextChange> jumps)
      : target_(target), jumps_(jumps), stays_(jumps.size(), false) {
    for (size_t i = 0; i < jumps_.size(); ++i) {
      if (jumps_[i].kind == ChangeKind::ShortJump) led_to_by_[jumps_[i].target] = i;
    }
  }

  Expected<void> make_way(std::span<const target::Mapping> maps,
                          std::span<const uint64_t> resting) {
    std::vector<AddressInterval> intervals;
    for (const TextChange& jump : jumps_)
      intervals.push_back({jump.address, jump.end()});
    for (const ProgramCounter& counter : find_program_counters(target_, maps, intervals, resting)) {
      const size_t index = index_of(counter.value);
      const auto out = way_out(index, counter);
      if (!out) {
        stays_[index] = true;
      } else if (*out != counter.value) {
        CLEW_TRY(set_program_counter(target_, counter, *out));
      }
    }
    return target_.write_registers();
  }

  // The jump to another one goes before what it leads to.
  Expected<TextRepair> write() {
    TextRepair result;
    for (const ChangeKind kind : {ChangeKind::ShortJump, ChangeKind::Jump}) {
      for (size_t i = 0; i < jumps_.size(); ++i) {
        if (jumps_[i].kind != kind) continue;
        if (stays_[i] || is_led_to(jumps_[i])) {
          stays_[i] = true;
          result.left.push_back(jumps_[i]);
          continue;
        }
        CLEW_TRY(write_back(jumps_[i]));
        ++result.repaired;
      }
    }
    return result;
  }

 private:
  // A trap is somebody's who writes back the file's byte.
  Expected<void> write_back(const TextChange& jump) {
    const size_t from = jump.here.front() == code::kInt3 ? 1 : 0;
    return target_.write(jump.address + from, std::span(jump.file).subspan(from));
  }

  [[nodiscard]] size_t index_of(uint64_t address) const {
    const auto next = std::upper_bound(
        jumps_.begin(), jumps_.end(), address,
        [](uint64_t wanted, const TextChange& jump) { return wanted < jump.address; });
    return static_cast<size_t>(next - jumps_.begin()) - 1;
  }

  [[nodiscard]] std::optional<uint64_t> way_out(size_t index, const ProgramCounter& counter) const {
    const TextChange& jump = jumps_[index];
    const uint64_t pc = counter.value;
    const bool serves_both = jump.here.size() == code::kBothWaysSizeBytes;
    // Behind the file's first instruction; where the jump is, flags say how to go on.
    const uint64_t at_jump = jump.end() - code::kJumpSizeBytes;
    if (pc > jump.address && pc < at_jump) return pc;
    if (serves_both && pc == at_jump) return way_of_flags(jump, counter);
    if (serves_both && pc == jump.address) return pc;
    if (pc != jump.address) return std::nullopt;
    const auto origin = led_to_by_.find(pc);
    if (origin != led_to_by_.end()) return jumps_[origin->second].address;
    if (jump.kind == ChangeKind::Jump && is_padding(jump)) return std::nullopt;
    return pc;
  }

  [[nodiscard]] std::optional<uint64_t> way_of_flags(const TextChange& jump,
                                                     const ProgramCounter& counter) const {
    const auto flags = flags_of(target_, counter);
    const auto first = code::decode(jump.file);
    if (!flags || !first) return std::nullopt;
    return jump.address + (code::has_done_first(*flags) ? first->length : 0);
  }

  // By a jump that stays.
  [[nodiscard]] bool is_led_to(const TextChange& jump) const {
    const auto origin = led_to_by_.find(jump.address);
    return origin != led_to_by_.end() && stays_[origin->second];
  }

  StoppedTarget& target_;
  std::span<const TextChange> jumps_;
  std::vector<bool> stays_;
  std::map<uint64_t, size_t> led_to_by_;  // Short jumps, by where they lead.
};

}  // namespace

Expected<TextRepair> repair_text(StoppedTarget& target, std::span<const target::Mapping> maps,
                                 std::span<const uint64_t> resting,
                                 std::span<const TextChange> jumps) {
  if (jumps.empty()) return TextRepair{};
  Repair repair(target, jumps);
  CLEW_TRY(repair.make_way(maps, resting));
  return repair.write();
}

}  // namespace clew::inline_

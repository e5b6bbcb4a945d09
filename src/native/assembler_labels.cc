// SPDX-License-Identifier: Apache-2.0
// Labels and the jumps to them, as short as they can be; what is known of registers where the ways
// to a label meet; and what a turn of a loop is charged.
#include <algorithm>
#include <functional>
#include <limits>
#include <map>

#include "abi/calling.h"
#include "base/assert.h"
#include "native/assembler.h"

namespace clew::native {

bool LabelFacts::implies(const LabelFacts& other) const {
  return std::equal(high.begin(), high.end(), other.high.begin(), std::less_equal<>());
}

Label Assembler::label() {
  labels_.emplace_back();
  ways_.emplace_back();
  return Label{static_cast<uint32_t>(labels_.size() - 1)};
}

void Assembler::add_way(Label to) {
  LabelFacts& known = ways_[to.index];
  for (size_t r = 0; r < intervals_.size(); ++r)
    known.high[r] = std::max(known.high[r], intervals_[r].high);
}

// A label behind the last jump is reached by another way, and the code behind it from there.
bool Assembler::falls_through() const {
  const auto here = static_cast<uint32_t>(code_.size());
  return jumps_.size() == jumps_before_label_ || jumps_.back().position != here ||
         jumps_.back().condition >= 0;
}

bool Assembler::expectations_hold() const {
  if (expected_.size() != ways_.size()) return expected_.empty();
  for (size_t i = 0; i < ways_.size(); ++i) {
    if (!ways_[i].implies(expected_[i])) return false;
  }
  return true;
}

// Labels of one place, with nothing between them, share what holds for each: the verifier asks
// every way to the place for all that is declared there.
std::vector<DeclaredFact> Assembler::declared(const std::vector<uint32_t>& jumps_before) const {
  constexpr uint64_t kUseful = std::numeric_limits<uint32_t>::max();  // An address is below it.
  std::map<uint32_t, LabelFacts> places;
  for (size_t i = 0; i < expected_.size(); ++i) {
    const LabelSite& site = labels_[i];
    if (!site.bound) continue;
    LabelFacts& place = places[site.position + jumps_before[site.jumps_before]];
    for (size_t r = 0; r < place.high.size(); ++r)
      place.high[r] = std::max(place.high[r], expected_[i].high[r]);
  }
  std::vector<DeclaredFact> facts;
  for (const auto& [offset, place] : places) {
    for (size_t r = 0; r < place.high.size(); ++r) {
      if (place.high[r] <= kUseful)
        facts.push_back({offset, static_cast<Register>(r), place.high[r]});
    }
  }
  return facts;
}

void Assembler::bind(Label label) {
  LabelSite& site = labels_[label.index];
  CLEW_ASSERT(!site.bound);
  if (falls_through()) add_way(label);
  site.position = static_cast<uint32_t>(code_.size());
  site.jumps_before = static_cast<uint32_t>(jumps_.size());
  site.weight = weight_;
  site.bound = true;
  jumps_before_label_ = jumps_.size();
  intervals_ = {};
  for (uint32_t& count : writes_)
    ++count;
  if (label.index >= expected_.size()) return;
  for (size_t r = 0; r < intervals_.size(); ++r)
    intervals_[r] = Interval::below(expected_[label.index].high[r]);
}

void Assembler::jump(Label target) {
  add_way(target);
  jumps_.push_back({.position = static_cast<uint32_t>(code_.size()),
                    .target = target.index,
                    .condition = -1,
                    .weight = weight_++});
}

void Assembler::jump_if(Condition condition, Label target) {
  add_way(target);
  jumps_.push_back({.position = static_cast<uint32_t>(code_.size()),
                    .target = target.index,
                    .condition = static_cast<int32_t>(condition),
                    .weight = weight_++});
}

void Assembler::call(uint32_t door) {
  byte(0xE8);
  calls_.push_back({static_cast<uint32_t>(code_.size()), door});
  little_endian(0, 4);
  weight_ += abi::kCallFuel;
  const abi::RegisterSet changed = abi::changed_by(door);
  for (unsigned n = 0; n < 16; ++n) {
    const auto r = static_cast<Register>(n);
    if (changed.has(r)) set(r, Interval::unknown());
  }
}

void Assembler::bound(Register r, int32_t limit, Label out) {
  alu_constant(Alu::Compare, r, limit, true);
  jump_if(Condition::Above, out);
  Interval known = interval(r);
  known.high = std::min(known.high, static_cast<uint64_t>(limit));
  known.low = std::min(known.low, known.high);
  intervals_[number(r)] = known;
}

void Assembler::loop_head(Label head, Label exhausted) {
  constexpr int32_t kPlaceholder = std::numeric_limits<int32_t>::max();
  put({.opcode = 0x81,
       .field = static_cast<uint8_t>(Alu::Subtract),
       .immediate_size = 4,
       .immediate = kPlaceholder},
      abi::kFuelRegister);
  set(abi::kFuelRegister, Interval::unknown_32());
  labels_[head.index].head_immediate = static_cast<uint32_t>(code_.size() - 4);
  jump_if(Condition::Negative, exhausted);
}

void Assembler::set_loop_costs() {
  std::vector<uint32_t> costs(labels_.size(), 0);
  for (const JumpSite& jump : jumps_) {
    const LabelSite& target = labels_[jump.target];
    CLEW_ASSERT(target.bound);
    if (!target.head_immediate || jump.weight < target.weight) continue;
    costs[jump.target] = std::max(costs[jump.target], jump.weight + 1 - target.weight);
  }
  for (uint32_t index = 0; index < labels_.size(); ++index) {
    const std::optional<uint32_t> immediate = labels_[index].head_immediate;
    if (!immediate) continue;
    const uint32_t cost = std::max(costs[index], 1U);
    for (uint32_t i = 0; i < 4; ++i) {
      code_[*immediate + i] = static_cast<uint8_t>(cost >> (8 * i));
    }
  }
}

std::vector<uint32_t> Assembler::jump_sizes_before() const {
  std::vector<uint32_t> before(jumps_.size() + 1, 0);
  for (size_t i = 0; i < jumps_.size(); ++i)
    before[i + 1] = before[i] + jumps_[i].size;
  return before;
}

void Assembler::choose_jump_sizes() {
  for (uint32_t i = 0; i < jumps_.size(); ++i) {
    const LabelSite& target = labels_[jumps_[i].target];
    const bool to_next = target.position == jumps_[i].position && target.jumps_before == i + 1;
    if (to_next && jumps_[i].condition < 0) jumps_[i].size = 0;
  }
  bool changed = true;
  while (changed) {  // Sizes only grow, so this ends.
    changed = false;
    const std::vector<uint32_t> before = jump_sizes_before();
    for (uint32_t i = 0; i < jumps_.size(); ++i) {
      const LabelSite& target = labels_[jumps_[i].target];
      const int64_t from = int64_t{jumps_[i].position} + before[i + 1];
      const int64_t to = int64_t{target.position} + before[target.jumps_before];
      if (jumps_[i].size != 2 || fits_byte(static_cast<int32_t>(to - from))) continue;
      jumps_[i].size = jumps_[i].condition < 0 ? 5 : 6;
      changed = true;
    }
  }
}

void Assembler::put_jump(const JumpSite& site, int32_t distance,
                         std::vector<uint8_t>& bytes) const {
  if (site.size == 0) return;
  const auto condition = static_cast<uint8_t>(site.condition);
  if (site.size == 2) {
    bytes.push_back(site.condition < 0 ? uint8_t{0xEB} : static_cast<uint8_t>(0x70U | condition));
    bytes.push_back(static_cast<uint8_t>(distance));
    return;
  }
  if (site.condition < 0) {
    bytes.push_back(0xE9);
  } else {
    bytes.push_back(0x0F);
    bytes.push_back(static_cast<uint8_t>(0x80U | condition));
  }
  for (uint32_t i = 0; i < 4; ++i) {
    bytes.push_back(static_cast<uint8_t>(static_cast<uint32_t>(distance) >> (8 * i)));
  }
}

void Assembler::finish(Code& code) {
  std::vector<uint8_t>& bytes = code.bytes;
  set_loop_costs();
  choose_jump_sizes();
  const std::vector<uint32_t> before = jump_sizes_before();
  bytes.reserve(code_.size() + before.back());
  uint32_t copied = 0;
  size_t next_call = 0;
  const auto copy_until = [&](uint32_t end, uint32_t shift) {
    for (; next_call < calls_.size() && calls_[next_call].offset_bytes < end; ++next_call) {
      code.calls.push_back({calls_[next_call].offset_bytes + shift, calls_[next_call].door});
    }
    bytes.insert(bytes.end(), code_.begin() + copied, code_.begin() + end);
    copied = end;
  };
  for (uint32_t i = 0; i < jumps_.size(); ++i) {
    const JumpSite& jump = jumps_[i];
    copy_until(jump.position, before[i]);
    const LabelSite& target = labels_[jump.target];
    const uint32_t to = target.position + before[target.jumps_before];
    put_jump(jump, static_cast<int32_t>(to - (jump.position + before[i + 1])), bytes);
  }
  copy_until(static_cast<uint32_t>(code_.size()), before.back());
  code.facts = declared(before);
}

}  // namespace clew::native

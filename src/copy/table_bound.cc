// SPDX-License-Identifier: Apache-2.0
// A walk backwards that follows the index through moves, to the comparison that bounds it.
#include "copy/table_bound.h"

#include <algorithm>
#include <span>
#include <utility>

#include "abi/stub.h"
#include "code/decode.h"
#include "code/flag_effect.h"
#include "code/full_decode.h"
#include "code/register_effect.h"

namespace clew::copy {

namespace {

using code::Block;
using code::Flow;
using code::Full;
using code::Instruction;

constexpr unsigned kBlocksMax = 256;
constexpr uint64_t kHalf = 32;  // Bits. Instructions with results of as many clear the others.

// What is compared: a register, or a word of memory as it is written.
struct Place {
  bool is_memory = false;
  uint8_t number = 0;  // Of the register.
  ZydisRegister base = ZYDIS_REGISTER_NONE;
  ZydisRegister index = ZYDIS_REGISTER_NONE;
  uint8_t scale = 0;
  int64_t displacement = 0;

  bool operator==(const Place&) const = default;
};

std::optional<Place> place_of(const ZydisDecodedOperand& operand, uint64_t next) {
  if (operand.type == ZYDIS_OPERAND_TYPE_REGISTER) {
    const ZydisRegister all = code::whole(operand.reg.value);
    // ah, bh, ch and dh are no low parts.
    const bool is_high =
        operand.reg.value >= ZYDIS_REGISTER_AH && operand.reg.value <= ZYDIS_REGISTER_BH;
    if (is_high || ZydisRegisterGetClass(all) != ZYDIS_REGCLASS_GPR64) return std::nullopt;
    return Place{.number = static_cast<uint8_t>(ZydisRegisterGetId(all))};
  }
  if (operand.type != ZYDIS_OPERAND_TYPE_MEMORY) return std::nullopt;
  const auto& memory = operand.mem;
  const bool by_rip = memory.base == ZYDIS_REGISTER_RIP;
  return Place{.is_memory = true,
               .base = memory.base,
               .index = memory.index,
               .scale = memory.scale,
               .displacement = memory.disp.value + (by_rip ? static_cast<int64_t>(next) : 0)};
}

// How a conditional jump behind a comparison with n bounds what was compared, on one of its ways.
enum class Limits : uint8_t { No, ToN, BelowN };
Limits limits(ZydisMnemonic jump, bool taken) {
  switch (jump) {
    case ZYDIS_MNEMONIC_JNBE:
      return taken ? Limits::No : Limits::ToN;
    case ZYDIS_MNEMONIC_JBE:
      return taken ? Limits::ToN : Limits::No;
    case ZYDIS_MNEMONIC_JNB:
      return taken ? Limits::No : Limits::BelowN;
    case ZYDIS_MNEMONIC_JB:
      return taken ? Limits::BelowN : Limits::No;
    default:  // Signed ones, and what is no order.
      return Limits::No;
  }
}

class BoundWalk {
 public:
  explicit BoundWalk(const TableRead& read) : place_{.number = read.index} {}

  // From an instruction to the one in front of it. False when nothing more can be said.
  bool step(const Instruction& at, std::span<const uint8_t> bytes) {
    const auto full = code::decode_full(bytes);
    if (!full) return false;
    if (compare(at, *full) || copies_to_other(at, *full, bytes)) return false;
    if (writes_flags(bytes)) limits_ = Limits::No;
    return follow(at, *full, bytes);
  }

  // Over the edge to a block, from the conditional jump in front of it.
  void enter(ZydisMnemonic jump, bool taken) { limits_ = limits(jump, taken); }

  [[nodiscard]] const std::optional<TableBound>& bound() const { return bound_; }

  bool operator==(const BoundWalk&) const = default;

 private:
  static bool writes_flags(std::span<const uint8_t> bytes) {
    return code::flag_effect(bytes).written != 0;
  }

  bool compare(const Instruction& at, const Full& full) {
    if (full.instruction.mnemonic != ZYDIS_MNEMONIC_CMP || limits_ == Limits::No) return false;
    const std::span<const ZydisDecodedOperand> operands = full.operands();
    if (operands[1].type != ZYDIS_OPERAND_TYPE_IMMEDIATE) return false;
    const std::optional<Place> compared = place_of(operands[0], at.end());
    if (!compared) return false;
    const uint64_t width = operands[0].size;
    const uint64_t mask = width >= 64 ? ~uint64_t{0} : (uint64_t{1} << width) - 1;
    const uint64_t n = operands[1].imm.value.u & mask;
    const uint64_t entries = limits_ == Limits::ToN ? n + 1 : n;
    if (*compared == place_) {
      if (decides(width)) return take(is_in_low_bits(entries) ? low_bits_.entries : entries);
      if (low_bits_.width == 0) low_bits_ = {.width = width, .entries = entries};
      return false;
    }
    if (!compared->is_memory && other_entries_ == 0 && decides(width)) {
      other_ = compared->number;
      other_entries_ = entries;
    }
    return false;
  }

  // Is all of the index in that many bits? A comparison of 32 was made of a register whose upper
  // half was cleared, or of one that could not be an index.
  [[nodiscard]] bool decides(uint64_t width) const { return width >= std::min(width_, kHalf); }

  [[nodiscard]] bool is_in_low_bits(uint64_t entries) const {
    return low_bits_.width != 0 && entries <= uint64_t{1} << low_bits_.width;
  }

  bool take(uint64_t entries) {
    if (!bound_ || entries <= bound_->entries) bound_ = {.entries = entries, .is_checked = true};
    low_bits_ = {};
    return true;
  }

  // A copy of the index was compared, and here it was made.
  bool copies_to_other(const Instruction& at, const Full& full, std::span<const uint8_t> bytes) {
    if (other_entries_ == 0) return false;
    const auto one = static_cast<abi::Register>(other_);
    if (is_call(full) && !is_preserved(one)) other_entries_ = 0;
    if (!code::register_effect(bytes).changed.has(one)) return false;
    const uint64_t entries = std::exchange(other_entries_, 0);
    const bool moves = full.instruction.mnemonic == ZYDIS_MNEMONIC_MOV;
    return moves && place_of(full.operands()[1], at.end()) == place_ && take(entries);
  }

  bool follow(const Instruction& at, const Full& full, std::span<const uint8_t> bytes) {
    if (place_.is_memory) return !may_write_memory(full) && keeps_place(bytes);
    const auto one = static_cast<abi::Register>(place_.number);
    if (is_call(full)) return is_preserved(one);
    if (!code::register_effect(bytes).changed.has(one)) return true;
    const std::span<const ZydisDecodedOperand> operands = full.operands();
    if (operands[0].size < kHalf) return false;  // The rest is something else.
    switch (full.instruction.mnemonic) {
      case ZYDIS_MNEMONIC_MOVZX:
        limit_to(uint64_t{1} << operands[1].size);
        return move_to(operands[1], at);
      case ZYDIS_MNEMONIC_MOV:
      case ZYDIS_MNEMONIC_MOVSXD:
        return move_to(operands[1], at);
      case ZYDIS_MNEMONIC_AND:
        if (operands[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE && operands[1].imm.value.s >= 0) {
          limit_to(operands[1].imm.value.u + 1);
        }
        return false;
      default:  // It is computed.
        return false;
    }
  }

  // It is less than that, whatever it is.
  void limit_to(uint64_t entries) {
    if (is_in_low_bits(entries)) {
      take(low_bits_.entries);
    } else if (!bound_ || entries < bound_->entries) {
      bound_ = {.entries = entries};
    }
  }

  bool move_to(const ZydisDecodedOperand& from, const Instruction& at) {
    const auto place = place_of(from, at.end());
    if (place) place_ = *place;
    width_ = std::min<uint64_t>(width_, from.size);
    return place.has_value();
  }

  [[nodiscard]] static bool may_write_memory(const Full& full) {
    for (const ZydisDecodedOperand& operand : full.operands()) {
      const bool is_written = (operand.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0;
      if (operand.type == ZYDIS_OPERAND_TYPE_MEMORY && is_written) return true;
    }
    return is_call(full);
  }

  [[nodiscard]] static bool is_call(const Full& full) {
    return full.instruction.meta.category == ZYDIS_CATEGORY_CALL;
  }

  [[nodiscard]] static bool is_preserved(abi::Register one) {
    return one == abi::Register::Rbx || one == abi::Register::Rbp || one >= abi::Register::R12;
  }

  // The registers that the word's address is made of.
  [[nodiscard]] bool keeps_place(std::span<const uint8_t> bytes) const {
    const abi::RegisterSet changed = code::register_effect(bytes).changed;
    for (const ZydisRegister part : {place_.base, place_.index}) {
      if (ZydisRegisterGetClass(part) != ZYDIS_REGCLASS_GPR64) continue;
      if (changed.has(static_cast<abi::Register>(ZydisRegisterGetId(part)))) return false;
    }
    return true;
  }

  Place place_;
  struct LowBits {
    uint64_t width = 0;
    uint64_t entries = 0;

    bool operator==(const LowBits&) const = default;
  };

  uint64_t width_ = 64;  // In bits, of what is in the place and becomes the index.
  // What the last narrower comparison says of so many of its bits, and so of it all if it has no
  // others.
  LowBits low_bits_;
  Limits limits_ = Limits::No;
  // A register that was compared, and may turn out to be a copy of the index; 0 entries: none.
  uint8_t other_ = 0;
  uint64_t other_entries_ = 0;
  std::optional<TableBound> bound_;
};

// From there to the block's start. False when nothing more can be said before that.
bool walk_back(const code::ModuleCode& code, const Block& block, uint64_t end, BoundWalk& walk) {
  std::vector<Instruction> way;
  for (auto at = code.at(block.begin); at && at->address < end; at = code.at(at->end()))
    way.push_back(*at);
  for (size_t k = way.size(); k-- > 0;) {
    if (way[k].flow == Flow::Conditional || way[k].flow == Flow::Jump) continue;
    const auto bytes = code.text_from(way[k].address).first(way[k].length);
    if (!walk.step(way[k], bytes)) return false;
  }
  return true;
}

ZydisMnemonic mnemonic_at(const code::ModuleCode& code, uint64_t address) {
  const auto at = code.at(address);
  const auto full =
      at ? code::decode_full(code.text_from(address).first(at->length)) : std::nullopt;
  return full ? full->instruction.mnemonic : ZYDIS_MNEMONIC_INVALID;
}

}  // namespace

BoundFinder::BoundFinder(const Facts& facts, uint32_t function, const code::Blocks& blocks)
    : code_(facts.code),
      blocks_(blocks),
      ways_(blocks.blocks().size()),
      by_switch_(ways_.size()),
      is_start_(ways_.size()) {
  const std::vector<Block>& all = blocks.blocks();
  for (uint32_t i = 0; i < all.size(); ++i) {
    is_start_[i] =
        all[i].begin == code_.functions()[function].address ||
        std::binary_search(facts.landing_pads.begin(), facts.landing_pads.end(), all[i].begin);
    const std::span<const code::Edge> edges = blocks.edges_of(all[i]);
    for (size_t k = 0; k < edges.size(); ++k) {
      const bool switches =
          edges[k].kind == code::EdgeKind::Case || edges[k].kind == code::EdgeKind::Label;
      if (edges[k].block == code::kNoBlock) continue;
      if (switches) {
        by_switch_[edges[k].block] = true;
      } else {
        ways_[edges[k].block].push_back({i, edges[k].kind == code::EdgeKind::Taken});
      }
    }
  }
}

FoundBound BoundFinder::find(const TableRead& read) const {
  struct Work {
    uint32_t block = 0;
    uint64_t end = 0;  // Of what is looked at in the block.
    BoundWalk walk;
  };
  FoundBound found;
  std::vector<Work> pending;
  std::vector<Work> done;
  if (const auto block = blocks_.block_at(read.instruction)) {
    pending.push_back({*block, read.instruction, BoundWalk(read)});
  }
  const auto end_way = [&found](const std::optional<TableBound>& bound) {
    if (bound && (!found.bound || bound->entries > found.bound->entries)) found.bound = bound;
    return bound.has_value();
  };
  while (!pending.empty()) {
    Work work = pending.back();
    pending.pop_back();
    const bool is_known = std::any_of(done.begin(), done.end(), [&](const Work& one) {
      return one.block == work.block && one.end == work.end && one.walk == work.walk;
    });
    if (is_known) continue;
    if (done.size() == kBlocksMax) return {};
    done.push_back(work);
    const Block& here = blocks_.blocks()[work.block];
    if (!walk_back(code_, here, work.end, work.walk)) {
      if (!end_way(work.walk.bound())) return {};
      continue;
    }
    if (by_switch_[work.block]) found.assumed.push_back(here.begin);
    const bool ends = is_start_[work.block] || ways_[work.block].empty();
    if (ends && !end_way(work.walk.bound())) return {};
    for (const Way& way : ways_[work.block]) {
      const Block& from = blocks_.blocks()[way.from];
      BoundWalk walk = work.walk;
      walk.enter(mnemonic_at(code_, from.last), way.taken);
      pending.push_back({way.from, from.end, walk});
    }
  }
  return found;
}

}  // namespace clew::copy

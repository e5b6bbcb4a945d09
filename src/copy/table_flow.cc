// SPDX-License-Identifier: Apache-2.0
// A forward data flow to its fixed point, and one more pass that notes what is done with the
// values.
#include "copy/table_flow.h"

#include <algorithm>
#include <bit>
#include <map>
#include <span>
#include <unordered_map>

#include "abi/stub.h"
#include "code/decode.h"
#include "code/full_decode.h"
#include "code/register_effect.h"

namespace clew::copy {

namespace {

using abi::Register;
using code::Block;
using code::Flow;
using code::Full;
using code::Instruction;

constexpr size_t kRegisters = 16;
using State = std::array<Value, kRegisters>;

constexpr std::array kPreserved = {Register::Rbx, Register::Rbp, Register::R12,
                                   Register::R13, Register::R14, Register::R15};

// Of one function, over all rounds: blocks that are looked at.
constexpr size_t kVisitsMax = size_t{1} << 20;

Value join(const Value& a, const Value& b) {
  if (a == b) return a;
  const CandidateSet from = a.from | b.from;
  const bool same = a.holds == b.holds && a.holds != Holds::Other;
  return {.holds = same ? a.holds : Holds::Mixed, .from = from};
}

std::optional<uint8_t> general(ZydisRegister name) {
  if (ZydisRegisterGetClass(name) != ZYDIS_REGCLASS_GPR64) return std::nullopt;
  return static_cast<uint8_t>(ZydisRegisterGetId(name));
}

std::optional<uint8_t> general(const ZydisDecodedOperand& operand) {
  if (operand.type != ZYDIS_OPERAND_TYPE_REGISTER) return std::nullopt;
  return general(operand.reg.value);
}

bool is_memory(const ZydisDecodedOperand& operand) {
  return operand.type == ZYDIS_OPERAND_TYPE_MEMORY;
}

// The 4 bytes of displacement of an operand, where Zydis found them.
uint8_t displacement_offset(const Full& full) {
  return full.instruction.raw.disp.size == 32 ? full.instruction.raw.disp.offset : uint8_t{0};
}

struct Name {
  uint64_t table = 0;
  bool is_absolute = false;
  uint8_t field_offset = 0;
};

std::optional<Name> name_in(const Instruction& at, const Full& full) {
  const uint8_t offset = displacement_offset(full);
  if (offset == 0) return std::nullopt;
  for (const ZydisDecodedOperand& operand : full.operands()) {
    if (!is_memory(operand)) continue;
    const auto& memory = operand.mem;
    const auto displacement = static_cast<uint64_t>(memory.disp.value);
    const bool by_rip = memory.base == ZYDIS_REGISTER_RIP;
    if (by_rip && full.instruction.mnemonic == ZYDIS_MNEMONIC_LEA) {
      return Name{at.end() + displacement, false, offset};
    }
    const bool is_indexed = memory.index != ZYDIS_REGISTER_NONE && memory.scale == 8;
    if (memory.base == ZYDIS_REGISTER_NONE && is_indexed) return Name{displacement, true, offset};
  }
  return std::nullopt;
}

bool may_be_table(const TableReader& reader, uint64_t table) {
  return !reader.read(TableKind::Offsets, table, 1).targets.empty() ||
         !reader.read(TableKind::Addresses, table, 1).targets.empty();
}

}  // namespace

std::optional<std::vector<Candidate>> find_candidates(const Facts& facts,
                                                      const code::Blocks& blocks,
                                                      const TableReader& reader) {
  std::vector<Candidate> found;
  std::map<uint64_t, size_t> absolute;  // By table: where it is in `found`.
  const code::ModuleCode& code = facts.code;
  for (const Block& block : blocks.blocks()) {
    for (auto at = code.at(block.begin); at && at->address < block.end; at = code.at(at->end())) {
      const auto full = code::decode_full(code.text_from(at->address).first(at->length));
      const auto name = full ? name_in(*at, *full) : std::nullopt;
      if (!name || !may_be_table(reader, name->table)) continue;
      size_t index = found.size();
      if (name->is_absolute) index = absolute.try_emplace(name->table, index).first->second;
      if (index == found.size()) found.push_back({name->table, name->is_absolute, {}});
      found[index].fields.push_back({at->address, name->field_offset});
    }
  }
  if (found.size() > kCandidatesMax) return std::nullopt;
  return found;
}

namespace {

class TableFlow {
 public:
  TableFlow(const Facts& facts, uint32_t function, const code::Blocks& blocks,
            const std::vector<Candidate>& candidates, TableExtents& extents)
      : facts_(facts),
        code_(facts.code),
        entry_(facts.code.functions()[function].address),
        blocks_(blocks),
        candidates_(candidates),
        extents_(extents),
        is_pending_(blocks.blocks().size()) {
    for (size_t i = 0; i < candidates.size(); ++i) {
      for (const NamingField& field : candidates[i].fields)
        by_instruction_.emplace(field.instruction, i);
    }
  }

  FlowResult run() {
    const std::vector<Block>& all = blocks_.blocks();
    for (uint32_t i = 0; i < all.size(); ++i) {
      if (std::binary_search(facts_.landing_pads.begin(), facts_.landing_pads.end(),
                             all[i].begin)) {
        pads_.push_back(i);
      }
    }
    // What is found of a table late, jumps that were passed before have not seen.
    for (has_grown_ = true; has_grown_;) {
      has_grown_ = false;
      states_.assign(all.size(), std::nullopt);
      if (const auto entry = blocks_.block_at(entry_)) reach(*entry, State{});
      if (!settle()) {
        result_.escaped = ~CandidateSet{0};
        return result_;
      }
    }
    is_final_ = true;
    for (uint32_t i = 0; i < all.size(); ++i) {
      if (states_[i]) walk(all[i], *states_[i]);
    }
    return result_;
  }

 private:
  bool settle() {
    while (!pending_.empty() && visits_++ < kVisitsMax) {
      const uint32_t block = pending_.back();
      pending_.pop_back();
      is_pending_[block] = false;
      pass(block);
    }
    return pending_.empty();
  }

  void reach(uint32_t block, const State& state) {
    std::optional<State>& known = states_[block];
    State joined = state;
    if (known) {
      for (size_t i = 0; i < kRegisters; ++i)
        joined[i] = join((*known)[i], state[i]);
      if (joined == *known) return;
    }
    known = joined;
    if (is_pending_[block]) return;
    is_pending_[block] = true;
    pending_.push_back(block);
  }

  void reach_foreign(const State& state) {
    for (uint32_t i = 0; i < states_.size(); ++i) {
      if (blocks_.blocks()[i].foreign) reach(i, state);
    }
  }

  void pass(uint32_t index) {
    const Block& block = blocks_.blocks()[index];
    switched_.reset();
    const State state = walk(block, *states_[index]);
    if (switched_) return pass_switch(*switched_, state);
    for (const code::Edge& edge : blocks_.edges_of(block)) {
      if (edge.kind == code::EdgeKind::Label) reach_foreign(state);
      if (edge.block != code::kNoBlock) reach(edge.block, state);
    }
  }

  // To where that table says, and not to what the function's others do.
  void pass_switch(uint64_t table, const State& state) {
    for (const uint64_t target : extents_.of(table).targets) {
      if (const auto block = blocks_.block_at(target)) reach(*block, state);
    }
  }

  State walk(const Block& block, State state) {
    for (auto at = code_.at(block.begin); at && at->address < block.end; at = code_.at(at->end()))
      step(*at, state);
    return state;
  }

  void step(const Instruction& at, State& state) {
    if (at.flow == Flow::Nop) return;
    const std::span<const uint8_t> bytes = code_.text_from(at.address).first(at.length);
    const bool calls = at.flow == Flow::Call || at.flow == Flow::IndirectCall;
    const bool has_tables = std::any_of(
        state.begin(), state.end(), [](const Value& value) { return value.holds != Holds::Other; });
    const bool names = candidate_at(at.address).has_value();
    if (calls) return call(at, bytes, state);
    if (!has_tables && !names) return;
    if (const auto full = code::decode_full(bytes); full && follow(at, *full, state)) return;
    const code::RegisterEffect effect = code::register_effect(bytes);
    note_reads(at, effect.read, state);
    for (uint8_t i = 0; i < kRegisters; ++i) {
      const auto one = static_cast<Register>(i);
      if (!effect.changed.has(one)) continue;
      state[i] = {};
    }
  }

  // What a callee takes is no table: compilers name one only to read it. It gives back rax, and
  // nobody relies on what is in the others that it may change, but where gcc knows the callee.
  void call(const Instruction& at, std::span<const uint8_t> bytes, State& state) {
    note_reads(at, code::register_effect(bytes).read, state);
    State kept{};
    for (const Register one : kPreserved)
      kept[static_cast<size_t>(one)] = state[static_cast<size_t>(one)];
    if (!is_final_) reach_pads(kept);
    for (size_t i = 0; i < kRegisters; ++i) {
      if (kept[i] == state[i]) continue;
      state[i] = {.holds = Holds::Mixed, .from = state[i].from};
    }
    state[static_cast<size_t>(Register::Rax)] = {};
  }

  // An unwinder may go on at any of the function's pads, with what calls preserve.
  void reach_pads(const State& kept) {
    for (const uint32_t pad : pads_)
      reach(pad, kept);
  }

  // The forms that lead from a name to a jump. False when it is none of them.
  bool follow(const Instruction& at, const Full& full, State& state) {
    const std::span<const ZydisDecodedOperand> operands = full.operands();
    switch (full.instruction.mnemonic) {
      case ZYDIS_MNEMONIC_LEA:
        return follow_lea(at, operands, state);
      case ZYDIS_MNEMONIC_MOV:
        return follow_move(at, operands, state);
      case ZYDIS_MNEMONIC_MOVSXD:
        return read_entry(at, operands, state);
      case ZYDIS_MNEMONIC_ADD:
        return follow_sum(operands, state);
      case ZYDIS_MNEMONIC_JMP:
        return follow_jump(at, operands[0], state);
      default:  // Of some 1,700.
        return false;
    }
  }

  bool follow_lea(const Instruction& at, std::span<const ZydisDecodedOperand> operands,
                  State& state) {
    const auto to = general(operands[0]);
    if (!to) return false;
    if (const auto candidate = candidate_at(at.address)) {
      state[*to] = {.holds = Holds::Table, .from = CandidateSet{1} << *candidate};
      return true;
    }
    const auto& memory = operands[1].mem;
    const auto base = general(memory.base);
    const auto index = general(memory.index);
    if (!base || !index || memory.scale != 1 || memory.disp.value != 0) return false;
    const auto sum = sum_of(state[*base], state[*index]);
    if (sum) state[*to] = *sum;
    return sum.has_value();
  }

  bool follow_move(const Instruction& at, std::span<const ZydisDecodedOperand> operands,
                   State& state) {
    const auto to = general(operands[0]);
    if (!to) return false;
    if (const auto from = general(operands[1])) {
      state[*to] = state[*from];
      return true;
    }
    if (!is_memory(operands[1])) return false;
    const auto value = word_of(at, operands[1], state);
    if (value) state[*to] = *value;
    return value.has_value();
  }

  // movsxd r64, [table + index * 4]
  bool read_entry(const Instruction& at, std::span<const ZydisDecodedOperand> operands,
                  State& state) {
    const auto to = general(operands[0]);
    if (!to || !is_memory(operands[1])) return false;
    const auto& memory = operands[1].mem;
    const auto base = general(memory.base);
    const auto index = general(memory.index);
    if (!base || !index || memory.scale != 4 || memory.disp.value != 0) return false;
    if (state[*base].holds != Holds::Table || state[*index].holds != Holds::Other) return false;
    note_read({at.address, *index, false}, state[*base].from);
    state[*to] = {.holds = Holds::Entry, .from = state[*base].from};
    return true;
  }

  // [table + index * 8], or [index * 8 + the table's address].
  std::optional<Value> word_of(const Instruction& at, const ZydisDecodedOperand& operand,
                               const State& state) {
    const auto& memory = operand.mem;
    const auto index = general(memory.index);
    if (!index || memory.scale != 8 || state[*index].holds != Holds::Other) return std::nullopt;
    Value table;
    if (memory.base == ZYDIS_REGISTER_NONE) {
      const auto candidate = candidate_at(at.address);
      if (!candidate) return std::nullopt;
      table = {.holds = Holds::Table, .from = CandidateSet{1} << *candidate};
    } else if (const auto base = general(memory.base); base && memory.disp.value == 0) {
      table = state[*base];
    }
    if (table.holds != Holds::Table) return std::nullopt;
    note_read({at.address, *index, true}, table.from);
    return Value{.holds = Holds::Target, .from = table.from};
  }

  bool follow_sum(std::span<const ZydisDecodedOperand> operands, State& state) {
    const auto to = general(operands[0]);
    const auto other = general(operands[1]);
    if (!to || !other) return false;
    const auto sum = sum_of(state[*to], state[*other]);
    if (sum) state[*to] = *sum;
    return sum.has_value();
  }

  [[nodiscard]] std::optional<Value> sum_of(const Value& a, const Value& b) const {
    const bool fits = (a.holds == Holds::Table && b.holds == Holds::Entry) ||
                      (a.holds == Holds::Entry && b.holds == Holds::Table);
    if (!fits || !is_one_table(a.from | b.from)) return std::nullopt;
    return Value{.holds = Holds::Target, .from = a.from | b.from};
  }

  [[nodiscard]] bool is_one_table(CandidateSet set) const {
    std::optional<uint64_t> table;
    for (size_t i = 0; i < candidates_.size(); ++i) {
      if ((set >> i & 1) == 0) continue;
      if (table && *table != candidates_[i].table) return false;
      table = candidates_[i].table;
    }
    return true;
  }

  bool follow_jump(const Instruction& at, const ZydisDecodedOperand& operand, State& state) {
    std::optional<Value> value;
    if (const auto target = general(operand)) value = state[*target];
    if (is_memory(operand)) value = word_of(at, operand, state);
    if (!value || value->holds != Holds::Target || !is_one_table(value->from)) return false;
    if (is_final_) result_.jumps.push_back({at.address, value->from});
    switched_ = table_of(value->from);
    return true;
  }

  void note_read(const TableRead& read, CandidateSet from) {
    if (extents_.add(table_of(from), read)) has_grown_ = true;
  }

  [[nodiscard]] uint64_t table_of(CandidateSet from) const {
    return candidates_[static_cast<size_t>(std::countr_zero(from))].table;
  }

  void note_reads(const Instruction& at, abi::RegisterSet read, const State& state) {
    for (uint8_t i = 0; i < kRegisters; ++i) {
      const bool is_pure = state[i].holds != Holds::Mixed;
      if (is_pure && read.has(static_cast<Register>(i))) escape(at, state[i].from);
    }
  }

  void escape(const Instruction& at, CandidateSet from) {
    if (!is_final_ || from == 0) return;
    if (result_.escaped == 0) result_.escaped_at = at.address;
    result_.escaped |= from;
  }

  [[nodiscard]] std::optional<size_t> candidate_at(uint64_t address) const {
    const auto found = by_instruction_.find(address);
    if (found == by_instruction_.end()) return std::nullopt;
    return found->second;
  }

  const Facts& facts_;
  const code::ModuleCode& code_;
  uint64_t entry_;
  const code::Blocks& blocks_;
  const std::vector<Candidate>& candidates_;
  TableExtents& extents_;
  std::unordered_map<uint64_t, size_t> by_instruction_;  // Of the candidates.
  std::vector<uint32_t> pads_;                           // Blocks that unwinders go on at.
  std::vector<std::optional<State>> states_;  // At the starts of blocks; none where not reached.
  std::vector<uint32_t> pending_;
  std::vector<bool> is_pending_;
  std::optional<uint64_t> switched_;  // The table of the jump that the last block ended with.
  bool has_grown_ = false;
  size_t visits_ = 0;
  bool is_final_ = false;
  FlowResult result_;
};

}  // namespace

FlowResult follow_tables(const Facts& facts, uint32_t function, const code::Blocks& blocks,
                         const std::vector<Candidate>& candidates, TableExtents& extents) {
  return TableFlow(facts, function, blocks, candidates, extents).run();
}

}  // namespace clew::copy

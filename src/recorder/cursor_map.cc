// SPDX-License-Identifier: Apache-2.0
#include "recorder/cursor_map.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>

namespace clew::recorder {

using copy::CopiedPc;
using copy::PcKind;

namespace {

// Of those that are homes.
uint64_t value_of(abi::Register home, const user_regs_struct& registers) {
  switch (home) {
    case abi::Register::Rax:
      return registers.rax;
    case abi::Register::Rcx:
      return registers.rcx;
    case abi::Register::Rdx:
      return registers.rdx;
    case abi::Register::Rsi:
      return registers.rsi;
    case abi::Register::Rdi:
      return registers.rdi;
    case abi::Register::R8:
      return registers.r8;
    case abi::Register::R9:
      return registers.r9;
    case abi::Register::R10:
      return registers.r10;
    case abi::Register::R11:
      return registers.r11;
    case abi::Register::Rbx:
    case abi::Register::Rsp:
    case abi::Register::Rbp:
    case abi::Register::R12:
    case abi::Register::R13:
    case abi::Register::R14:
    case abi::Register::R15:
      break;
  }
  return 0;
}

}  // namespace

// What is inserted begins with the move of the cursor that is made there, if one is. Time records
// are written where memory has the cursor: the last ones in front of a call out, and the first ones
// behind it.
class CursorMapper {
 public:
  CursorMapper(const RecordedParts& parts, const Probes& probes, const copy::ModuleCopy& copy)
      : probes_(probes), copy_(copy) {
    for (uint32_t function = 0; function < parts.proof.proved.size(); ++function)
      note(parts, function);
    std::sort(stubs_.begin(), stubs_.end(),
              [](const Block* a, const Block* b) { return a->last < b->last; });
  }

  void run(CursorMap& map) {
    for (const CopiedPc& pc : copy_.pcs) {
      if (pc.kind == PcKind::Instruction) add_instruction(map, pc);
      if (pc.kind == PcKind::Inserted) add_inserted(map, pc);
    }
  }

 private:
  struct Block {
    uint64_t last = 0;
    Home home = kMemory;
    std::optional<CursorMove> start;
    std::optional<CursorMove> taken;
    std::optional<CursorMove> passed;
  };

  void note(const RecordedParts& parts, uint32_t function) {
    const std::vector<code::Block>& blocks = parts.proof.proved[function].blocks.blocks();
    const FunctionHomes& homes = probes_.homes[function];
    const FunctionMoves& moves = probes_.moves[function];
    for (size_t i = 0; i < blocks.size(); ++i) {
      Block& block = blocks_[blocks[i].begin];
      block = {blocks[i].last, homes.at[i], moves.start[i], moves.taken[i], moves.passed[i]};
      if (probes_.insertions.taken.contains(block.last)) stubs_.push_back(&block);
    }
  }

  static void add(CursorMap& map, uint32_t offset, Home home) {
    const bool goes_on = !map.places_.empty() && map.places_.back().home == home;
    if (!goes_on) map.places_.push_back({offset, home});
  }

  void add_move(CursorMap& map, uint32_t offset, const std::optional<CursorMove>& move, Home home) {
    if (move) {
      add(map, offset, move->from);
      add(map, offset + size_of_move(*move), move->to);
    } else {
      add(map, offset, home);
    }
  }

  // The blocks are in the order of their instructions.
  void add_instruction(CursorMap& map, const CopiedPc& pc) {
    enter(pc.original);
    // A register has what was the cursor in front of the Time record.
    const bool is_memory = block_ == nullptr || probes_.times_in_front.contains(pc.original);
    add(map, pc.offset, is_memory ? kMemory : block_->home);
    is_behind_last_ = block_ != nullptr && pc.original == block_->last;
    is_entered_ = false;
  }

  void add_inserted(CursorMap& map, const CopiedPc& pc) {
    if (pc.offset >= stubs_begin()) return add_stub(map, pc);
    if (is_behind_last_ && probes_.insertions.passed.contains(block_->last)) {
      is_behind_last_ = false;
      return add_behind(map, pc);
    }
    if (!is_entered_ && probes_.insertions.entry.contains(pc.original)) {
      is_entered_ = true;
      return add_move(map, pc.offset, CursorMove{kMemory, kPassed}, kMemory);
    }
    const bool begins = enter(pc.original);
    if (block_ == nullptr) return add(map, pc.offset, kMemory);
    add_move(map, pc.offset, begins ? block_->start : std::nullopt, block_->home);
    const auto time = probes_.times_in_front.find(pc.original);
    if (time == probes_.times_in_front.end()) return;
    const size_t size = probes_.insertions.before.at(pc.original).size();
    add(map, pc.offset + static_cast<uint32_t>(size) - time->second, kMemory);
  }

  // A call or jump that runs on.
  void add_behind(CursorMap& map, const CopiedPc& pc) {
    const auto time = probes_.times_behind.find(block_->last);
    if (time == probes_.times_behind.end())
      return add_move(map, pc.offset, block_->passed, block_->home);
    add(map, pc.offset, kMemory);
    if (block_->passed) add_move(map, pc.offset + time->second, block_->passed, kMemory);
  }

  // True where a block begins.
  bool enter(uint64_t original) {
    const auto found = blocks_.find(original);
    if (found == blocks_.end()) return false;
    block_ = &found->second;
    return true;
  }

  void add_stub(CursorMap& map, const CopiedPc& pc) {
    if (stub_ == stubs_.size()) return add(map, pc.offset, kMemory);
    const Block& block = *stubs_[stub_++];
    add_move(map, pc.offset, block.taken, block.home);
  }

  [[nodiscard]] uint32_t stubs_begin() {
    if (stubs_begin_) return *stubs_begin_;
    stubs_begin_ = 0;
    for (auto pc = copy_.pcs.rbegin(); pc != copy_.pcs.rend(); ++pc) {
      if (pc->kind == PcKind::Instruction) {
        stubs_begin_ = pc->offset + 1;
        break;
      }
    }
    return *stubs_begin_;
  }

  const Probes& probes_;
  const copy::ModuleCopy& copy_;
  std::unordered_map<uint64_t, Block> blocks_;  // By where they begin.
  std::vector<const Block*> stubs_;
  std::optional<uint32_t> stubs_begin_;
  size_t stub_ = 0;
  const Block* block_ = nullptr;
  bool is_behind_last_ = false;
  bool is_entered_ = false;
};

CursorMap::CursorMap(const RecordedParts& parts, const Probes& probes,
                     const copy::ModuleCopy& copy) {
  CursorMapper(parts, probes, copy).run(*this);
}

Home CursorMap::home_at(uint32_t offset) const {
  const auto behind =
      std::upper_bound(places_.begin(), places_.end(), offset,
                       [](uint32_t value, const Place& place) { return value < place.offset; });
  return behind == places_.begin() ? kMemory : (behind - 1)->home;
}

std::optional<uint64_t> CursorMap::cursor_in(const user_regs_struct& registers,
                                             const copy::ModuleCopy& copy) const {
  const uint64_t offset = registers.rip - copy.address;
  if (registers.rip < copy.address || offset >= copy.code_size) return std::nullopt;
  const Home home = home_at(static_cast<uint32_t>(offset));
  return home ? std::optional(value_of(*home, registers)) : std::nullopt;
}

}  // namespace clew::recorder

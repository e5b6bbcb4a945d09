// SPDX-License-Identifier: Apache-2.0
#include "recorder/probes.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <initializer_list>
#include <optional>
#include <utility>

#include "abi/recorder.h"
#include "base/assert.h"
#include "code/liveness.h"
#include "recorder/time_probe.h"

namespace clew::recorder {

namespace {

using abi::Register;

// The best first. rsp, rbp, r12 and r13 need longer forms as a base.
constexpr std::array kScratch = {Register::R11, Register::Rax, Register::Rcx, Register::Rdx,
                                 Register::Rsi, Register::Rdi, Register::R8,  Register::R9,
                                 Register::R10, Register::Rbx, Register::R14, Register::R15};
constexpr unsigned kBitsInByte = 8;

class ProbeBytes {
 public:
  // `home`: where the cursor is.
  ProbeBytes(const code::Live& live, Home home, uint32_t cursor)
      : live_(live), home_(home), cursor_(cursor) {
    if (home) live_.registers.add(*home);
  }

  std::vector<uint8_t> moved_to(Home to) {
    CLEW_ASSERT(home_ != to);
    if (!home_) {
      cursor_to(0x8b, *to);
    } else if (!to) {
      cursor_to(0x89, *home_);
    } else {
      put({static_cast<uint8_t>(0x48 | high(*to) << 2 | high(*home_)), 0x8b,
           modrm(3, low(*to), *home_)});
    }
    return end();
  }

  std::vector<uint8_t> head(uint32_t record) {
    const Register r = cursor_register(0);
    put({0x66});
    if (live_.flags == 0) {
      if (high(r) != 0) put({0x41});
      put({0x83, modrm(3, 0, r), abi::kRecordBytes});  // add R16, 4
    } else {
      if (high(r) != 0) put({0x45});
      put({0x8d, modrm(1, low(r), r), abi::kRecordBytes});  // lea R16, [R + 4]
    }
    if (!home_) cursor_to(0x89, r);  // mov gs:[cursor], R
    put({static_cast<uint8_t>(0x48 | high(r)), 0xc7, modrm(0, 0, r)});
    put_word(record);
    return end();
  }

  std::vector<uint8_t> bit(unsigned number) {
    const bool is_free = live_.flags == 0;
    const Register r = cursor_register(is_free ? 0 : 1);
    if (is_free) {
      if (high(r) != 0) put({0x41});
      put({0x80, modrm(1, 1, r), static_cast<uint8_t>(number / kBitsInByte),
           static_cast<uint8_t>(1U << number % kBitsInByte)});
      return end();
    }
    const Register sum = registers_[home_ ? 0 : 1];
    move_word(0x8b, sum, r);  // mov S32, [R]
    put({static_cast<uint8_t>(0x40 | high(sum) << 2 | high(sum)), 0x8d,
         modrm(2, low(sum), sum)});  // lea S32, [S + bit]
    put_word(1U << number);
    move_word(0x89, sum, r);  // mov [R], S32
    return end();
  }

  [[nodiscard]] bool is_spilled() const { return spilled_ != 0; }

 private:
  static uint8_t high(Register r) { return static_cast<uint8_t>(r) >> 3; }
  static uint8_t low(Register r) { return static_cast<uint8_t>(r) & 7; }
  static uint8_t modrm(unsigned mode, unsigned reg, Register rm) {
    return static_cast<uint8_t>(mode << 6 | reg << 3 | low(rm));
  }
  void put(std::initializer_list<uint8_t> bytes) { bytes_.insert(bytes_.end(), bytes); }
  void put_word(uint32_t word) {
    const size_t at = bytes_.size();
    bytes_.resize(at + sizeof(word));
    std::memcpy(bytes_.data() + at, &word, sizeof(word));
  }
  // mov between R and gs:[cursor]
  void cursor_to(uint8_t opcode, Register r) {
    put({0x65, static_cast<uint8_t>(0x48 | high(r) << 2), opcode,
         static_cast<uint8_t>(low(r) << 3 | 4), 0x25});
    put_word(cursor_);
  }
  void move_word(uint8_t opcode, Register r, Register base) {
    put({static_cast<uint8_t>(0x40 | high(r) << 2 | high(base)), opcode, modrm(0, low(r), base)});
  }

  // The register that has the cursor now, and so many others in registers_.
  Register cursor_register(unsigned others) {
    if (home_) {
      begin(others);
      return *home_;
    }
    begin(1 + others);
    cursor_to(0x8b, registers_[0]);  // mov R, gs:[cursor]
    return registers_[0];
  }

  // Finds registers, and pushes those that are live; never the one that has the cursor.
  void begin(unsigned wanted) {
    unsigned found = 0;
    for (const Register r : kScratch) {
      if (found < wanted && !live_.registers.has(r)) registers_[found++] = r;
    }
    for (const Register r : kScratch) {
      if (found == wanted) break;
      if (!live_.registers.has(r) || high(r) != 0 || home_ == r) continue;
      if (spilled_++ == 0) put({0x48, 0x8d, 0x64, 0x24, 0x80});  // lea rsp, [rsp - 128]
      put({static_cast<uint8_t>(0x50 | low(r))});                // push
      pushed_[spilled_ - 1] = r;
      registers_[found++] = r;
    }
    CLEW_ASSERT(found == wanted);
  }

  std::vector<uint8_t> end() {
    for (unsigned i = spilled_; i-- > 0;)
      put({static_cast<uint8_t>(0x58 | low(pushed_[i]))});  // pop
    if (spilled_ != 0) {
      put({0x48, 0x8d, 0xa4, 0x24});  // lea rsp, [rsp + 128]
      put_word(128);
    }
    CLEW_ASSERT(bytes_.size() <= copy::kInsertionBytesMax);
    return std::move(bytes_);
  }

  code::Live live_;
  Home home_;
  uint32_t cursor_;
  std::array<Register, 2> registers_{};
  std::array<Register, 2> pushed_{};
  unsigned spilled_ = 0;
  std::vector<uint8_t> bytes_;
};

class ProbeMaker {
 public:
  ProbeMaker(const RecordedParts& parts, uint32_t first_id, uint32_t cursor)
      : facts_(parts.facts),
        proof_(parts.proof),
        tiling_(parts.tiling),
        copied_(parts.copied),
        stamped_(parts.stamped),
        first_id_(first_id),
        cursor_(cursor) {}

  Probes run() {
    find_functions();
    result_.homes = find_homes(functions_, result_.effects.calls);
    for (size_t i = 0; i < functions_.size(); ++i) {
      const RecordedFunction& function = functions_[i];
      result_.moves.push_back(find_moves(function, result_.homes));
      own_ = &result_.homes[i];
      moves_ = &result_.moves[i];
      add_entry(function);
      add_times_behind(function);
      add_first(function);
      add_probes(function, first_id_ + tiling_.first_dag[i]);
      add_last(function);
      add_times_in_front(function);
    }
    return std::move(result_);
  }

 private:
  void find_functions() {
    std::vector<code::FunctionBlocks> blocks;
    blocks.reserve(proof_.proved.size());
    for (const copy::Proved& proved : proof_.proved)
      blocks.push_back({proved.function, &proved.blocks});
    result_.effects = code::find_call_effects(facts_.code, facts_.flags, blocks);
    flows_.reserve(blocks.size());
    live_.reserve(blocks.size());
    functions_.reserve(blocks.size());
    for (size_t i = 0; i < blocks.size(); ++i) {
      flows_.emplace_back(facts_, proof_.proved[i], copied_);
      live_.push_back(code::Liveness::by_calls(facts_.code, blocks[i], facts_.flags,
                                               result_.effects.calls, result_.effects.blocks[i]));
      functions_.push_back({.facts = facts_,
                            .proved = proof_.proved[i],
                            .copied = copied_,
                            .tiling = tiling_.functions[i],
                            .flow = flows_.back(),
                            .live = live_.back()});
    }
  }

  void add_entry(const RecordedFunction& function) {
    const uint64_t start = facts_.code.functions()[function.proved.function].address;
    result_.insertions.carriers.insert(start);
    if (own_->takes) append(result_.insertions.entry, start, bytes_of({kMemory, kPassed}));
  }

  // What is in front of probes, where both are.
  void add_first(const RecordedFunction& function) {
    const std::vector<code::Block>& blocks = function.proved.blocks.blocks();
    for (uint32_t block = 0; block < blocks.size(); ++block) {
      add_move(result_.insertions.before, blocks[block].begin, moves_->start[block]);
      add_move(result_.insertions.taken, blocks[block].last, moves_->taken[block]);
      add_move(result_.insertions.passed, blocks[block].last, moves_->passed[block]);
    }
  }

  void add_last(const RecordedFunction& function) {
    const std::vector<code::Block>& blocks = function.proved.blocks.blocks();
    for (uint32_t block = 0; block < blocks.size(); ++block) {
      for (const CursorMove& move : moves_->end[block])
        append(result_.insertions.before, blocks[block].last, bytes_of(move));
      add_shortcut(function.leaving(block).last);
    }
  }

  // Behind and in front of calls out memory has the cursor.
  void add_times_behind(const RecordedFunction& function) {
    for (uint32_t block = 0; block < function.size(); ++block) {
      const Node& node = function.flow.nodes()[block];
      if (node.call == CallKind::None || node.behind == kNone) continue;
      const Leaving end = function.leaving(block);
      const StampedImport* const import = stamped(end);
      if (import == nullptr || !is_behind(import->where)) continue;
      const bool is_noted = import->transfer != abi::Transfer::None;
      add_time(result_.insertions.passed, result_.times_behind, end.last.address,
               time_probe(function.live.at_start(node.behind), cursor_, {.is_behind = is_noted}));
    }
  }

  void add_times_in_front(const RecordedFunction& function) {
    for (uint32_t block = 0; block < function.size(); ++block) {
      const Leaving end = function.leaving(block);
      const bool leaves = end.calls || end.last.flow == code::Flow::Jump || end.switches();
      const StampedImport* const import = leaves ? stamped(end) : nullptr;
      if (import == nullptr || !is_in_front(import->where)) continue;
      add_time(result_.insertions.before, result_.times_in_front, end.last.address,
               time_probe(function.live.before(end.last.address), cursor_,
                          {.in_front = import->transfer, .flags = import->flags}));
    }
  }

  [[nodiscard]] const StampedImport* stamped(const Leaving& end) const {
    return end.callee != kNone ? nullptr : stamped_by(stamped_, facts_.code, end.last);
  }

  static void add_time(std::unordered_map<uint64_t, std::vector<uint8_t>>& to,
                       std::unordered_map<uint64_t, uint32_t>& sizes, uint64_t call,
                       const std::vector<uint8_t>& bytes) {
    if (bytes.empty()) return;
    sizes.emplace(call, static_cast<uint32_t>(bytes.size()));
    append(to, call, bytes);
  }

  // Past the PLT's stub.
  void add_shortcut(const code::Instruction& last) {
    const uint32_t entered = copied_.entered_by(facts_.code, last);
    if (entered == kNone) return;
    const uint64_t start = facts_.code.functions()[proof_.proved[entered].function].address;
    if (code::branch_target(facts_.code, last) == start) return;
    result_.insertions.shortcuts.emplace(last.address, start);
  }

  void add_probes(const RecordedFunction& function, uint32_t first_id) {
    const std::vector<code::Block>& blocks = function.proved.blocks.blocks();
    for (const DagHead& head : function.tiling.heads) {
      ProbeBytes bytes(function.live.at_start(head.block), own_->at[head.block], cursor_);
      auto made = bytes.head(abi::dag_record(first_id + head.dag));
      result_.counts.heads_in_memory += own_->at[head.block] == kMemory ? 1 : 0;
      count(bytes, result_.counts.heads);
      append(result_.insertions.before, blocks[head.block].begin, made);
    }
    for (const BitSite& site : function.tiling.bits)
      add_bit(function, site);
    for (const OnceLoop& loop : function.tiling.loops) {
      auto& over = loop.runs_on ? result_.insertions.running_over : result_.insertions.leaping;
      over.insert(blocks[loop.latch].last);
    }
  }

  void add_bit(const RecordedFunction& function, const BitSite& site) {
    const std::vector<code::Block>& blocks = function.proved.blocks.blocks();
    const code::Block& block = blocks[site.block];
    const code::Edge& edge = function.proved.blocks.edges_of(block)[site.edge];
    const bool stays = edge.block != code::kNoBlock;
    ProbeBytes bytes(stays ? function.live.at_start(edge.block) : code::kAllLive,
                     home_of_bit(function, site), cursor_);
    auto made = bytes.bit(site.bit);
    count(bytes, result_.counts.bits);
    if (site.on_target) return append(result_.insertions.before, blocks[edge.block].begin, made);
    // A conditional jump's first edge is the one that is taken.
    auto& way = site.edge == 0 ? result_.insertions.taken : result_.insertions.passed;
    append(way, block.last, made);
  }

  // On the way to another block the cursor is where that one wants it, and where it was.
  [[nodiscard]] Home home_of_bit(const RecordedFunction& function, const BitSite& site) const {
    const Way& way = function.flow.ways_of(site.block)[site.edge];
    if (site.on_target) return own_->at[way.block];
    const Home wanted = wanted_on(way, function, site.block, result_.homes);
    return wanted ? wanted : own_->at[site.block];
  }

  [[nodiscard]] std::vector<uint8_t> bytes_of(const CursorMove& move) const {
    return ProbeBytes(code::kAllLive, move.from, cursor_).moved_to(move.to);
  }

  void add_move(std::unordered_map<uint64_t, std::vector<uint8_t>>& to, uint64_t address,
                const std::optional<CursorMove>& move) {
    if (move) append(to, address, bytes_of(*move));
  }

  static void append(std::unordered_map<uint64_t, std::vector<uint8_t>>& to, uint64_t address,
                     const std::vector<uint8_t>& bytes) {
    std::vector<uint8_t>& all = to[address];
    all.insert(all.end(), bytes.begin(), bytes.end());
  }

  void count(const ProbeBytes& bytes, uint32_t& counter) {
    ++counter;
    result_.counts.spilled += bytes.is_spilled() ? 1 : 0;
  }

  copy::Facts& facts_;
  const copy::ModuleProof& proof_;
  const ModuleTiling& tiling_;
  const Copied& copied_;
  std::span<const StampedImport> stamped_;
  uint32_t first_id_;
  uint32_t cursor_;
  std::vector<Flow> flows_;  // By function, and so are the next two.
  std::vector<code::Liveness> live_;
  std::vector<RecordedFunction> functions_;
  const FunctionHomes* own_ = nullptr;  // Of the function that is looked at, and so the next one.
  const FunctionMoves* moves_ = nullptr;
  Probes result_;
};

}  // namespace

uint32_t size_of_move(const CursorMove& move) {
  return static_cast<uint32_t>(ProbeBytes(code::kAllLive, move.from, 0).moved_to(move.to).size());
}

EntryProbes::EntryProbes(const RecordedParts& parts, const Probes& probes, uint32_t first_id,
                         uint32_t cursor)
    : facts_(parts.facts),
      proof_(parts.proof),
      copied_(parts.copied),
      tiling_(parts.tiling),
      probes_(probes),
      first_id_(first_id),
      cursor_(cursor) {}

std::vector<uint8_t> EntryProbes::bytes(uint64_t function, uint64_t at) const {
  const uint32_t index = copied_.at(function);
  if (index == kNone) return {};
  const copy::Proved& proved = proof_.proved[index];
  const auto block = proved.blocks.block_at(at);
  const auto entry = proved.blocks.block_at(function);
  if (!block || !entry) return {};
  const Home home = probes_.homes[index].at[*block];
  std::vector<uint8_t> bytes;
  if (home) bytes = ProbeBytes(code::kAllLive, kMemory, cursor_).moved_to(home);
  const std::vector<DagHead>& heads = tiling_.functions[index].heads;
  const auto head = std::find_if(heads.begin(), heads.end(),
                                 [&](const DagHead& one) { return one.block == *entry; });
  if (head == heads.end()) return bytes;
  const uint32_t id = first_id_ + tiling_.first_dag[index] + head->dag;
  const auto add = [&bytes](const std::vector<uint8_t>& more) {
    bytes.insert(bytes.end(), more.begin(), more.end());
  };
  // Where a register has the cursor, the probe needs no other one.
  const code::Live live = home ? code::kAllLive : live_at(index, at);
  add(ProbeBytes(live, home, cursor_).head(abi::dag_record(id)));
  // What stands in front of `at` is passed by. Of another block nobody knows that a record is new.
  if (home && block != entry) add(ProbeBytes(code::kAllLive, home, cursor_).moved_to(kMemory));
  if (at != proved.blocks.blocks()[*block].last) return bytes;
  for (const CursorMove& move : probes_.moves[index].end[*block])
    add(ProbeBytes(code::kAllLive, move.from, cursor_).moved_to(move.to));
  return bytes;
}

code::Live EntryProbes::live_at(uint32_t index, uint64_t at) const {
  const copy::Proved& proved = proof_.proved[index];
  return code::Liveness::by_calls(facts_.code, {proved.function, &proved.blocks}, facts_.flags,
                                  probes_.effects.calls, probes_.effects.blocks[index])
      .before(at);
}

Probes make_probes(const RecordedParts& parts, uint32_t first_id, uint32_t cursor) {
  return ProbeMaker(parts, first_id, cursor).run();
}

}  // namespace clew::recorder

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
  // `carries`: r11 is the cursor.
  ProbeBytes(const code::Live& live, bool carries, uint32_t cursor)
      : live_(live), carries_(carries), cursor_(cursor) {
    if (carries) live_.registers.add(Register::R11);
  }

  std::vector<uint8_t> load() {
    cursor_to(0x8b, Register::R11);
    return end();
  }

  std::vector<uint8_t> store() {
    cursor_to(0x89, Register::R11);
    return end();
  }

  std::vector<uint8_t> head(uint32_t record) {
    const Register r = cursor_register(0);
    // lea R16, [R + 4]
    put({0x66});
    if (high(r) != 0) put({0x45});
    put({0x8d, modrm(1, low(r), r), abi::kRecordBytes});
    if (!carries_) cursor_to(0x89, r);  // mov gs:[cursor], R
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
    const Register sum = registers_[carries_ ? 0 : 1];
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
    if (carries_) {
      begin(others);
      return Register::R11;
    }
    begin(1 + others);
    cursor_to(0x8b, registers_[0]);  // mov R, gs:[cursor]
    return registers_[0];
  }

  // Finds registers, and pushes those that are live.
  void begin(unsigned wanted) {
    unsigned found = 0;
    for (const Register r : kScratch) {
      if (found < wanted && !live_.registers.has(r)) registers_[found++] = r;
    }
    for (const Register r : kScratch) {
      if (found == wanted) break;
      if (!live_.registers.has(r) || high(r) != 0) continue;
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
  bool carries_;
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
        first_id_(first_id),
        cursor_(cursor) {}

  Probes run() {
    std::vector<code::FunctionBlocks> functions;
    functions.reserve(proof_.proved.size());
    for (const copy::Proved& proved : proof_.proved)
      functions.push_back({proved.function, &proved.blocks});
    result_.effects = code::find_call_effects(facts_.code, facts_.flags, functions);
    result_.carriers = find_carriers(facts_, proof_, copied_, result_.effects);
    for (size_t i = 0; i < proof_.proved.size(); ++i) {
      carries_ = result_.carriers.carries[i];
      if (carries_) add_landings(proof_.proved[i]);
      add_probes(i);
      if (!carries_) continue;
      ++result_.counts.carriers;
      add_transfers(proof_.proved[i]);
    }
    return std::move(result_);
  }

 private:
  void add_probes(size_t index) {
    const copy::Proved& proved = proof_.proved[index];
    const FunctionTiling& tiling = tiling_.functions[index];
    const code::Liveness liveness =
        code::Liveness::by_calls(facts_.code, {proved.function, &proved.blocks}, facts_.flags,
                                 result_.effects.calls, result_.effects.blocks[index]);
    const std::vector<code::Block>& blocks = proved.blocks.blocks();
    const uint32_t first_id = first_id_ + tiling_.first_dag[index];
    for (const DagHead& head : tiling.heads) {
      ProbeBytes bytes(liveness.at_start(head.block), carries_, cursor_);
      auto made = bytes.head(abi::dag_record(first_id + head.dag));
      count(bytes, result_.counts.heads);
      append(result_.insertions.before, blocks[head.block].begin, made);
    }
    for (const BitSite& site : tiling.bits)
      add_bit(proved, liveness, site);
    for (const OnceLoop& loop : tiling.loops) {
      auto& over = loop.runs_on ? result_.insertions.running_over : result_.insertions.leaping;
      over.insert(blocks[loop.latch].last);
    }
  }

  void add_bit(const copy::Proved& proved, const code::Liveness& liveness, const BitSite& site) {
    const std::vector<code::Block>& blocks = proved.blocks.blocks();
    const code::Block& block = blocks[site.block];
    const code::Edge& edge = proved.blocks.edges_of(block)[site.edge];
    const bool stays = edge.block != code::kNoBlock;
    ProbeBytes bytes(stays ? liveness.at_start(edge.block) : code::kAllLive, carries_, cursor_);
    auto made = bytes.bit(site.bit);
    count(bytes, result_.counts.bits);
    if (site.on_target) return append(result_.insertions.before, blocks[edge.block].begin, made);
    // A conditional jump's first edge is the one that is taken.
    auto& way = site.edge == 0 ? result_.insertions.taken : result_.insertions.passed;
    append(way, block.last, made);
  }

  // In front of what records there.
  void add_landings(const copy::Proved& proved) {
    const std::vector<uint64_t>& pads = facts_.landing_pads;
    for (const code::Block& block : proved.blocks.blocks()) {
      if (!std::binary_search(pads.begin(), pads.end(), block.begin)) continue;
      append(result_.insertions.before, block.begin, transfer().load());
    }
  }

  // Where a carrier's cursor goes to memory, and comes from there.
  void add_transfers(const copy::Proved& proved) {
    const uint64_t start = facts_.code.functions()[proved.function].address;
    result_.insertions.carriers.insert(start);
    append(result_.insertions.entry, start, transfer().load());
    for (const code::Block& block : proved.blocks.blocks()) {
      const std::optional<code::Instruction> last = facts_.code.at(block.last);
      CLEW_ASSERT(last.has_value());
      const bool calls = last->flow == code::Flow::Call || last->flow == code::Flow::IndirectCall;
      if (calls) {
        add_call(proved, block, *last);
      } else if (leaves_memory_behind(proved, block)) {
        append(result_.insertions.before, block.last, transfer().store());
      }
    }
  }

  void add_call(const copy::Proved& proved, const code::Block& block,
                const code::Instruction& call) {
    const uint32_t callee =
        call.flow == code::Flow::Call ? copied_.at(code::branch_target(facts_.code, call)) : kNone;
    const bool carries = callee != kNone && result_.carriers.carries[callee];
    if (!carries) append(result_.insertions.before, block.last, transfer().store());
    const bool comes_back = !proved.blocks.edges_of(block).empty();
    const bool leaves = callee != kNone && result_.carriers.leaves[callee];
    if (comes_back && !leaves) append(result_.insertions.passed, block.last, transfer().load());
  }

  // Is there a way out of the function here, to somebody who does not know of r11?
  [[nodiscard]] bool leaves_memory_behind(const copy::Proved& proved,
                                          const code::Block& block) const {
    for (const code::Edge& edge : proved.blocks.edges_of(block)) {
      if (edge.kind == code::EdgeKind::Return) return true;
      if (edge.kind != code::EdgeKind::TailCall) continue;
      const uint32_t callee = copied_.at(edge.target);
      if (callee == kNone || !result_.carriers.carries[callee]) return true;
    }
    return false;
  }

  [[nodiscard]] ProbeBytes transfer() const { return {code::kAllLive, true, cursor_}; }

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
  uint32_t first_id_;
  uint32_t cursor_;
  bool carries_ = false;  // The function that is looked at.
  Probes result_;
};

}  // namespace

std::vector<uint8_t> load_of_cursor(uint32_t cursor) {
  return ProbeBytes(code::kAllLive, true, cursor).load();
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
  const bool carries = probes_.carriers.carries[index];
  std::vector<uint8_t> bytes;
  if (carries) bytes = load_of_cursor(cursor_);
  const auto entry = proved.blocks.block_at(function);
  const std::vector<DagHead>& heads = tiling_.functions[index].heads;
  const auto head = std::find_if(heads.begin(), heads.end(),
                                 [&](const DagHead& one) { return one.block == entry; });
  if (head == heads.end()) return bytes;
  const code::Liveness liveness =
      code::Liveness::by_calls(facts_.code, {proved.function, &proved.blocks}, facts_.flags,
                               probes_.effects.calls, probes_.effects.blocks[index]);
  const uint32_t id = first_id_ + tiling_.first_dag[index] + head->dag;
  const auto made = ProbeBytes(liveness.before(at), carries, cursor_).head(abi::dag_record(id));
  bytes.insert(bytes.end(), made.begin(), made.end());
  return bytes;
}

Probes make_probes(const RecordedParts& parts, uint32_t first_id, uint32_t cursor) {
  return ProbeMaker(parts, first_id, cursor).run();
}

}  // namespace clew::recorder

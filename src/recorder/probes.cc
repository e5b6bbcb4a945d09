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
  ProbeBytes(const code::Live& live, uint32_t cursor) : live_(live), cursor_(cursor) {}

  std::vector<uint8_t> head(uint32_t record) {
    const Register r = begin(1);
    cursor_to(0x8b, r);  // mov R, gs:[cursor]
    // lea R16, [R + 4]
    put({0x66});
    if (high(r) != 0) put({0x45});
    put({0x8d, modrm(1, low(r), r), abi::kRecordBytes});
    cursor_to(0x89, r);  // mov gs:[cursor], R
    put({static_cast<uint8_t>(0x48 | high(r)), 0xc7, modrm(0, 0, r)});
    put_word(record);
    return end();
  }

  std::vector<uint8_t> bit(unsigned number) {
    const bool is_free = live_.flags == 0;
    const Register r = begin(is_free ? 1 : 2);
    cursor_to(0x8b, r);
    if (is_free) {
      if (high(r) != 0) put({0x41});
      put({0x80, modrm(1, 1, r), static_cast<uint8_t>(number / kBitsInByte),
           static_cast<uint8_t>(1U << number % kBitsInByte)});
      return end();
    }
    const Register sum = registers_[1];
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

  // Finds the registers, and pushes those that are live. Returns the first.
  Register begin(unsigned wanted) {
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
    return registers_[0];
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

  const code::Live live_;
  uint32_t cursor_;
  std::array<Register, 2> registers_{};
  std::array<Register, 2> pushed_{};
  unsigned spilled_ = 0;
  std::vector<uint8_t> bytes_;
};

class ProbeMaker {
 public:
  ProbeMaker(copy::Facts& facts, const code::ModuleEffects& effects, uint32_t cursor)
      : facts_(facts), effects_(effects), cursor_(cursor) {}

  // `index`: in the proof.
  void add(size_t index, const copy::Proved& proved, const FunctionTiling& tiling,
           uint32_t first_id) {
    if (tiling.heads.empty()) return;
    const code::Liveness liveness =
        code::Liveness::by_calls(facts_.code, {proved.function, &proved.blocks}, facts_.flags,
                                 effects_.calls, effects_.blocks[index]);
    const std::vector<code::Block>& blocks = proved.blocks.blocks();
    for (const DagHead& head : tiling.heads) {
      ProbeBytes bytes(liveness.at_start(head.block), cursor_);
      auto made = bytes.head(abi::dag_record(first_id + head.dag));
      count(bytes, result_.counts.heads);
      result_.insertions.before.emplace(blocks[head.block].begin, std::move(made));
    }
    for (const BitSite& site : tiling.bits)
      add_bit(proved, liveness, site);
  }

  Probes take() { return std::move(result_); }

 private:
  void add_bit(const copy::Proved& proved, const code::Liveness& liveness, const BitSite& site) {
    const std::vector<code::Block>& blocks = proved.blocks.blocks();
    const code::Block& block = blocks[site.block];
    const code::Edge& edge = proved.blocks.edges_of(block)[site.edge];
    const bool stays = edge.block != code::kNoBlock;
    ProbeBytes bytes(stays ? liveness.at_start(edge.block) : code::kAllLive, cursor_);
    auto made = bytes.bit(site.bit);
    count(bytes, result_.counts.bits);
    if (site.on_target) {
      result_.insertions.before.emplace(blocks[edge.block].begin, std::move(made));
      return;
    }
    // A conditional jump's first edge is the one that is taken.
    auto& way = site.edge == 0 ? result_.insertions.taken : result_.insertions.passed;
    way.emplace(block.last, std::move(made));
  }

  void count(const ProbeBytes& bytes, uint32_t& counter) {
    ++counter;
    result_.counts.spilled += bytes.is_spilled() ? 1 : 0;
  }

  copy::Facts& facts_;
  const code::ModuleEffects& effects_;
  uint32_t cursor_;
  Probes result_;
};

}  // namespace

EntryProbes::EntryProbes(const RecordedParts& parts, const code::ModuleEffects& effects,
                         uint32_t first_id, uint32_t cursor)
    : facts_(parts.facts),
      proof_(parts.proof),
      tiling_(parts.tiling),
      effects_(effects),
      first_id_(first_id),
      cursor_(cursor) {
  for (size_t i = 0; i < proof_.proved.size(); ++i)
    by_address_.emplace(facts_.code.functions()[proof_.proved[i].function].address, i);
}

std::vector<uint8_t> EntryProbes::bytes(uint64_t function, uint64_t at) const {
  const auto found = by_address_.find(function);
  if (found == by_address_.end()) return {};
  const copy::Proved& proved = proof_.proved[found->second];
  const auto entry = proved.blocks.block_at(function);
  const std::vector<DagHead>& heads = tiling_.functions[found->second].heads;
  const auto head = std::find_if(heads.begin(), heads.end(),
                                 [&](const DagHead& one) { return one.block == entry; });
  if (head == heads.end()) return {};
  const code::Liveness liveness =
      code::Liveness::by_calls(facts_.code, {proved.function, &proved.blocks}, facts_.flags,
                               effects_.calls, effects_.blocks[found->second]);
  const uint32_t id = first_id_ + tiling_.first_dag[found->second] + head->dag;
  return ProbeBytes(liveness.before(at), cursor_).head(abi::dag_record(id));
}

Probes make_probes(copy::Facts& facts, const copy::ModuleProof& proof, const ModuleTiling& tiling,
                   uint32_t first_id, uint32_t cursor) {
  std::vector<code::FunctionBlocks> functions;
  for (const copy::Proved& proved : proof.proved)
    functions.push_back({proved.function, &proved.blocks});
  code::ModuleEffects effects = code::find_call_effects(facts.code, facts.flags, functions);
  ProbeMaker maker(facts, effects, cursor);
  for (size_t i = 0; i < proof.proved.size(); ++i)
    maker.add(i, proof.proved[i], tiling.functions[i], first_id + tiling.first_dag[i]);
  Probes probes = maker.take();
  probes.effects = std::move(effects);
  return probes;
}

}  // namespace clew::recorder

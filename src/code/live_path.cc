// SPDX-License-Identifier: Apache-2.0
// Making the way, running it, comparing.
#include "code/live_path.h"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <optional>

#include "base/page.h"
#include "code/decode.h"
#include "code/differ.h"
#include "code/full_decode.h"
#include "code/opcodes.h"

namespace clew::code {
namespace {

constexpr size_t kBytesMax = 3000;
constexpr unsigned kBlocksMax = 12;
constexpr auto kStackPointer = static_cast<unsigned>(abi::Register::Rsp);
constexpr int64_t kUserAddresses = 0x7fff'ffff'ffff;

// System V ABI for x86-64, figure 3.4.
constexpr Live kAtReturn = {abi::RegisterSet(0xf03d), 0};  // rax rdx rbx rsp rbp r12..r15
constexpr Live kAtCall = {abi::RegisterSet(0xf7ff), 0};    // All but r11.

// jcc rel8 and rel32: its condition; nothing for loop and jrcxz.
std::optional<uint8_t> condition_of(std::span<const uint8_t> bytes) {
  const unsigned at = opcode_offset(bytes);
  if ((bytes[at] & 0xf0) == 0x70) return static_cast<uint8_t>(bytes[at] & 15);
  if (bytes[at] == 0x0f) return static_cast<uint8_t>(bytes[at + 1] & 15);
  return std::nullopt;
}

Window window_of(const Instruction& instruction, std::span<const uint8_t> bytes) {
  Window window;
  window.size_bytes = instruction.length;
  window.instructions = {{.offset = 0, .length = instruction.length}};
  std::copy(bytes.begin(), bytes.end(), window.original.begin());
  return window;
}

// Through them the test's own thread is reached, but for the word that guards stacks.
bool uses_thread_memory(const Full& full) {
  constexpr int64_t kStackGuard = 0x28;
  const auto operands = full.operands();
  return std::any_of(operands.begin(), operands.end(), [](const ZydisDecodedOperand& operand) {
    const ZydisRegister segment = operand.mem.segment;
    return operand.type == ZYDIS_OPERAND_TYPE_MEMORY &&
           (segment == ZYDIS_REGISTER_FS || segment == ZYDIS_REGISTER_GS) &&
           operand.mem.disp.value != kStackGuard;
  });
}

int64_t& value_of(Registers& registers, unsigned number) {
  return registers.general[static_cast<size_t>(kContextIndex[number])];
}

bool same_live(Registers a, Registers b, const Live& live) {
  for (unsigned number = 0; number < kContextIndex.size(); ++number) {
    if (!live.registers.has(static_cast<abi::Register>(number))) continue;
    if (value_of(a, number) != value_of(b, number)) return false;
  }
  return ((a.flags ^ b.flags) & live.flags) == 0;
}

}  // namespace

bool LivePath::make(uint64_t start) {
  start_ = start;
  bytes_.clear();
  instructions_.clear();
  stops_ = {{kAllLive, 0}};
  std::optional<uint32_t> block = blocks_.block_at(start);
  for (unsigned i = 0; i < kBlocksMax && block && *block != kNoBlock; ++i) {
    uint64_t at = i == 0 ? start : blocks_.blocks()[*block].begin;
    stops_[0].live = liveness_.before(at);
    if (bytes_.size() > kBytesMax || !put_block(blocks_.blocks()[*block], at)) break;
    const std::optional<Instruction> last = code_.at(at);
    block = last ? put_last(blocks_.blocks()[*block], *last) : kNoBlock;
  }
  put_stops();
  return !instructions_.empty();
}

// All but the last instruction; `at` is then there, or where it had to stop.
bool LivePath::put_block(const Block& block, uint64_t& at) {
  for (; at < block.last; at += code_.at(at)->length) {
    if (put_instruction(*code_.at(at))) continue;
    stops_[0].live = liveness_.before(at);
    return false;
  }
  stops_[0].live = liveness_.before(at);
  return true;
}

// With operands that the sandbox has.
bool LivePath::put_instruction(const Instruction& instruction) {
  const bool runs_on = instruction.flow == Flow::Next || instruction.flow == Flow::Nop;
  const auto text = code_.text_from(instruction.address).first(instruction.length);
  if (!runs_on || !is_repeatable(window_of(instruction, text))) return false;
  const std::optional<Decoded> decoded = decode_with_zydis(text);
  const std::optional<Full> full = decode_full(text);
  if (!decoded || !full || uses_thread_memory(*full)) return false;
  const size_t at = bytes_.size();
  instructions_.emplace_back(at, instruction);
  bytes_.insert(bytes_.end(), text.begin(), text.end());
  if (!decoded->rip_relative) return true;
  const uint64_t target = sandbox_.data_address() + kPage / 2 + (random_() & 0x3c0);
  const auto field = static_cast<uint32_t>(target - (base() + bytes_.size()));
  std::memcpy(&bytes_[at + decoded->displacement_offset], &field, sizeof field);
  return true;
}

// The next block of the way, or none: then the way ends there.
uint32_t LivePath::put_last(const Block& block, const Instruction& last) {
  if (last.flow == Flow::Conditional) return put_conditional(block, last);
  const std::span<const Edge> edges = blocks_.edges_of(block);
  const bool calls = last.flow == Flow::Call || last.flow == Flow::IndirectCall;
  const bool runs_on = last.flow == Flow::Next || last.flow == Flow::Nop;
  if (runs_on && !put_instruction(last)) return kNoBlock;
  const bool ends = edges.empty() || (calls && random_() % 4 == 0);
  const Edge edge = ends ? Edge{} : edges[random_() % edges.size()];
  const bool goes_on =
      runs_on || calls || last.flow == Flow::Jump || last.flow == Flow::IndirectJump;
  if (goes_on && edge.block != kNoBlock) return edge.block;
  if (!runs_on) stops_[0].live = at_end(last);
  if (runs_on) stops_[0].live = kAllLive;
  return kNoBlock;
}

uint32_t LivePath::put_conditional(const Block& block, const Instruction& branch) {
  const std::span<const Edge> edges = blocks_.edges_of(block);
  const auto condition = condition_of(code_.text_from(branch.address).first(branch.length));
  if (edges.size() != 2 || !condition) return kNoBlock;
  const size_t chosen = random_() & 1;
  const bool is_taken =
      edges[chosen].kind == EdgeKind::Taken || edges[chosen].target == branch_target(code_, branch);
  const auto opcode = static_cast<uint8_t>(0x80 | (is_taken ? *condition ^ 1 : *condition));
  instructions_.emplace_back(bytes_.size(), branch);
  bytes_.insert(bytes_.end(), {0x0f, opcode, 0, 0, 0, 0});
  stops_.push_back({along(edges[1 - chosen], branch), bytes_.size() - 4});
  stops_[0].live = along(edges[chosen], branch);
  return edges[chosen].block;
}

// What must be the same behind a branch that goes there.
Live LivePath::along(const Edge& edge, const Instruction& last) const {
  if (edge.block != kNoBlock) return liveness_.at_start(edge.block);
  return at_end(last);
}

Live LivePath::at_end(const Instruction& last) const {
  switch (last.flow) {
    case Flow::Return:
      return kAtReturn;
    case Flow::Call:
    case Flow::IndirectCall:
    case Flow::Jump:
    case Flow::Conditional:
    case Flow::IndirectJump:
      return kAtCall;
    case Flow::Next:
    case Flow::Nop:
    case Flow::Int3:
    case Flow::Trap:
    case Flow::System:
    case Flow::Bad:
      break;
  }
  return kAllLive;
}

void LivePath::put_stops() {
  stops_begin_ = bytes_.size();
  for (const Stop& stop : stops_) {
    if (stop.field != 0) {
      const auto distance = static_cast<uint32_t>(bytes_.size() - (stop.field + 4));
      std::memcpy(&bytes_[stop.field], &distance, sizeof distance);
    }
    bytes_.push_back(kInt3);
  }
}

std::string LivePath::run() {
  std::vector<uint8_t> data(kSandboxDataSize);
  const bool pointers = (random_() & 1) != 0;
  for (size_t i = 0; i < data.size(); i += 8) {
    const uint64_t word = pointers ? static_cast<uint64_t>(data_middle()) : random_();
    std::memcpy(&data[i], &word, sizeof word);
  }
  const Registers registers = random_registers();
  const Outcome expected = run_from(registers, data);
  const std::vector<uint8_t> expected_data(sandbox_.data(), sandbox_.data() + kSandboxDataSize);
  Registers scrambled = registers;
  const Live live = liveness_.before(start_);
  for (unsigned number = 0; number < kContextIndex.size(); ++number) {
    if (!live.registers.has(static_cast<abi::Register>(number)))
      value_of(scrambled, number) = random_value();
  }
  // Some machines come back from a signal with no other value in it: they fault at once.
  value_of(scrambled, kStackPointer) &= kUserAddresses;
  scrambled.flags ^= random_() & kStatusFlags & ~live.flags;
  const Outcome actual = run_from(scrambled, data);
  came_to_trap_ = expected.signal == SIGTRAP;
  if (actual.signal != expected.signal) return "another signal";
  if (actual.address != expected.address) return "stops elsewhere";
  if (!same_live(expected.registers, actual.registers, live_at_stop(expected))) return "registers";
  if (actual.registers.extended != expected.registers.extended) return "vectors";
  return std::equal(expected_data.begin(), expected_data.end(), sandbox_.data()) ? "" : "memory";
}

Outcome LivePath::run_from(const Registers& registers, const std::vector<uint8_t>& data) {
  std::memset(sandbox_.code(), kInt3, kSandboxCodeSize);
  std::memcpy(reinterpret_cast<void*>(base()), bytes_.data(), bytes_.size());
  std::memcpy(sandbox_.data(), data.data(), data.size());
  return sandbox_.run(base(), registers);
}

// Behind a trap, or at an instruction that faults.
Live LivePath::live_at_stop(const Outcome& outcome) const {
  const uint64_t offset = outcome.address - base();
  const uint64_t stop = offset - 1 - stops_begin_;
  if (outcome.signal == SIGTRAP && stop < stops_.size()) return stops_[stop].live;
  for (const auto& [at, instruction] : instructions_) {
    if (at == offset) return liveness_.before(instruction.address);
  }
  return {};
}

uint64_t LivePath::base() const {
  return sandbox_.code_address() + 2 * kPage;
}

int64_t LivePath::data_middle() {
  return static_cast<int64_t>(sandbox_.data_address() + kSandboxDataSize / 2 + (random_() & 0xc0));
}

int64_t LivePath::random_value() {
  if ((random_() & 1) != 0) return static_cast<int64_t>(random_());
  return (random_() & 1) != 0 ? static_cast<int64_t>(random_() & 15) : data_middle();
}

Registers LivePath::random_registers() {
  Registers registers;
  for (int64_t& value : registers.general)
    value = random_value();
  registers.flags = random_() & Sandbox::kFlagsMask;
  registers.extended = sandbox_.extended();
  for (const std::span<uint8_t> part : Sandbox::extended_registers(registers.extended)) {
    std::generate(part.begin(), part.end(), [this] { return static_cast<uint8_t>(random_()); });
  }
  for (size_t i = instructions_.size(); i-- > 0;)
    aim(instructions_[i].second, registers);
  value_of(registers, kStackPointer) = data_middle() + int64_t{kPage};
  return registers;
}

// So that operands are in the data, if nothing on the way changes their registers; of two that do
// not fit together the first one is.
void LivePath::aim(const Instruction& instruction, Registers& registers) {
  const auto full = decode_full(code_.text_from(instruction.address).first(instruction.length));
  if (!full) return;
  const auto set = [&](ZydisRegister part, int64_t value) {
    const ZydisRegister all = whole(part);
    if (ZydisRegisterGetClass(all) != ZYDIS_REGCLASS_GPR64) return;
    value_of(registers, static_cast<unsigned>(ZydisRegisterGetId(all))) = value;
  };
  for (const ZydisDecodedOperand& operand : full->operands()) {
    if (operand.type != ZYDIS_OPERAND_TYPE_MEMORY) continue;
    set(operand.mem.index, static_cast<int64_t>((random_() & 15) * 16));
    set(operand.mem.base, data_middle() - operand.mem.disp.value);
  }
}

}  // namespace clew::code

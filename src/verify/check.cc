// SPDX-License-Identifier: Apache-2.0
// The rules. One decoding pass, one pass over the branches, one over the facts; no paths, no joins.
//
// R1  Single decoding. A linear sweep; every byte belongs to one instruction. At most 64 KiB.
// R2  Whitelist, by encoding: the table of decode.cc, and Zydis must read the same instruction.
//     rdtsc only where the policy says that the time is readable, rdtscp where the CPU's number is.
// R3  Prefixes: F0, 65, 66, REX as that table takes them, none without effect.
// R4  Branch targets are instruction starts of the blob or its end.
// R5  No indirect control flow, no return: the body ends by reaching its last byte + 1 (R11).
// R6  Memory operands, size s, window [W, W + 2^n) and kWindowSlackBytes after it:
//       M1 gs:[d]          W <= d, d + s <= W + 2^n + slack
//       M2 gs:[r*k + d]    r in [lo, hi] < 2^32 by R7; lo*k + d >= W, hi*k + d + s <= W + 2^n +
//                          slack
//       M4 [rsp + d]       load only, 0 <= d, d + s <= stack_readable_bytes; behind a check of the
//                          page (stack_page.h) where d + s > stack_mapped_bytes
//       M5 gs:[d]          load only, inside SlotControl
//       M6 [d]             one form: 4-byte load of the generation word
//       M7 [d]             G <= d, d + s <= G + globals_bytes: the globals of a D session, or
//                          what the threads of a query share
//     lea reads no memory; its operand is [register + d], rsp allowed.
// R7  Facts: range.h. Behind `cmp r64, imm ; ja` r <= imm, if the policy has branch_guards: such a
//     fact does not hold under speculation.
// R8  At a label (the target of any branch) nothing is known but the policy's declared facts, each
// of
//     which must hold at every branch to the label and at the end of what stands before it.
// R9  rsp is never written, and read only as the base of M4 and lea. No stack instruction exists.
// R10 Fuel, in bodies with a backward branch: the first instruction is `mov r13d, imm`, imm <=
//     fuel_max; the target of every backward branch is `sub r13d, cost ; js out`; no branch leads
//     to that js; cost >= the weight (1 per instruction, kCallFuel per call) from there to the end
//     of the branch; out lies behind the last backward branch; nothing else writes r13. So the
//     weight executed is at most fuel + the weight of the body.
// R11 Exit: the end of the bytes, nothing else. The stub's epilogue lies there.
// R12 Calls go to exact entries of the accessor table, from stubs that save what these read.
// R13 A locked operand is aligned to its size (gs bases are multiples of 4096), so that it never
//     splits a cache line.
// R14 The caller checks bytes that nobody can write any more, or writes what check() returns.
// R15 Registers outside `clobbers` and r10 are not written.
#include <algorithm>
#include <limits>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "abi/calling.h"
#include "abi/region.h"
#include "abi/slot.h"
#include "verify/range.h"
#include "verify/stack_page.h"
#include "verify/verified_code.h"

namespace clew::verify {
namespace {

constexpr size_t kSizeMax = 65536;
constexpr uint8_t kSignCondition = 8;  // js
constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();

class Checker {
 public:
  Checker(std::span<const uint8_t> bytes, const Policy& policy) : bytes_(bytes), policy_(policy) {}
  Expected<void> run();

 private:
  Expected<void> check_policy();
  Expected<void> decode_all();
  Expected<void> check_branches();
  Expected<void> check_branch(uint32_t index);
  Expected<void> check_call(uint32_t index);
  Expected<void> check_fuel();
  Expected<void> check_fuel_start();
  Expected<void> check_head(uint32_t source, uint32_t head);
  Expected<void> check_instructions();
  [[nodiscard]] std::span<const DeclaredFact> facts_at(uint64_t label) const;
  [[nodiscard]] Expected<void> check_facts(uint32_t index, uint64_t label) const;
  void enter_label(uint64_t offset);
  Expected<void> check_registers(uint32_t index);
  Expected<void> check_memory(uint32_t index);
  Expected<void> check_gs(uint32_t index);
  Expected<void> check_stack(uint32_t index);
  Expected<void> check_absolute(uint32_t index);
  Expected<void> check_alignment(uint32_t index);

  [[nodiscard]] tl::unexpected<Error> refuse(uint32_t offset, std::string_view rule,
                                             std::string_view why) const {
    return fail(ErrorCode::Refused, fmt::format("verify: byte 0x{:x}: {}: {}", offset, rule, why));
  }
  [[nodiscard]] uint32_t end_of(uint32_t index) const {
    return offsets_[index] + code_[index].length_bytes;
  }
  [[nodiscard]] bool is_jump(uint32_t index) const {
    return code_[index].operation == Operation::Jump || code_[index].operation == Operation::JumpIf;
  }
  [[nodiscard]] int64_t target(uint32_t index) const {
    return int64_t{end_of(index)} + code_[index].branch;
  }
  [[nodiscard]] const Callee* callee(uint32_t index) const;
  [[nodiscard]] abi::RegisterSet written_by(uint32_t index) const;
  [[nodiscard]] bool is_backward(uint32_t index) const {
    return is_jump(index) && target(index) <= offsets_[index];
  }
  [[nodiscard]] int64_t window_end() const {
    return int64_t{policy_.window_address} + (int64_t{1} << policy_.window_size_log2) +
           abi::kWindowSlackBytes;
  }

  std::span<const uint8_t> bytes_;
  const Policy& policy_;
  std::vector<Instruction> code_;
  std::vector<uint32_t> offsets_;   // Of the instructions.
  std::vector<uint32_t> index_at_;  // By offset: the instruction that starts there, or kNone.
  std::vector<bool> is_label_;      // By offset, the end included.
  std::vector<uint32_t> heads_;     // Instructions that backward branches lead to.
  std::vector<uint64_t> weights_;   // Sum of the weights of the instructions before each.
  Ranges ranges_;
  StackPage stack_page_;
};

bool reads_memory_only(const Instruction& i) {
  const bool compares = i.operation == Operation::Compare || i.operation == Operation::Test;
  const bool swaps = i.operation == Operation::Exchange || i.operation == Operation::ExchangeAdd ||
                     i.operation == Operation::CompareExchange;
  return compares || (!swaps && i.second.kind == Operand::Kind::Memory);
}

bool writes_first(const Instruction& i) {
  return i.first.kind == Operand::Kind::Register && i.operation != Operation::Compare &&
         i.operation != Operation::Test;
}

bool has_memory(const Instruction& i) {
  return i.first.kind == Operand::Kind::Memory || i.second.kind == Operand::Kind::Memory;
}

bool reads_time(const Instruction& i) {
  return i.operation == Operation::ReadTime || i.operation == Operation::ReadTimeAndCpu;
}

// The processor's registers that not every process, nor every processor, lets programs read.
bool may_read(const Instruction& i, const Policy& policy) {
  if (i.operation == Operation::ReadTimeAndCpu) return policy.cpu_is_readable;
  return i.operation != Operation::ReadTime || policy.time_is_readable;
}

// Of anything but a call.
abi::RegisterSet written_registers(const Instruction& i) {
  abi::RegisterSet set;
  if (writes_first(i)) set.add(i.first.in);
  const bool exchanges =
      i.operation == Operation::Exchange || i.operation == Operation::ExchangeAdd;
  if (exchanges && i.second.kind == Operand::Kind::Register) set.add(i.second.in);
  const bool writes_rax = reads_time(i) || i.operation == Operation::CompareExchange;
  if (writes_rax) set.add(Register::Rax);
  if (reads_time(i)) set.add(Register::Rdx);
  if (i.operation == Operation::ReadTimeAndCpu) set.add(Register::Rcx);
  return set;
}

bool locks(const Instruction& i) {
  return i.lock || i.operation == Operation::Exchange;
}

uint64_t weight(const Instruction& i) {
  return i.operation == Operation::Call ? abi::kCallFuel : 1;
}

// Null for a call of something else.
const Callee* Checker::callee(uint32_t index) const {
  const uint64_t address = policy_.address + static_cast<uint64_t>(target(index));
  const auto found = std::find_if(policy_.callees.begin(), policy_.callees.end(),
                                  [&](const Callee& one) { return one.address == address; });
  return found != policy_.callees.end() ? &*found : nullptr;
}

abi::RegisterSet Checker::written_by(uint32_t index) const {
  if (code_[index].operation != Operation::Call) return written_registers(code_[index]);
  return callee(index)->changes;
}

Expected<void> Checker::check_policy() {
  constexpr int64_t kReach = std::numeric_limits<int32_t>::max();
  const bool window_fits = policy_.window_size_log2 <= 30 && window_end() <= kReach;
  const int64_t slot_end = int64_t{policy_.slot_address} + abi::kSlotControlSizeBytes;
  const bool apart =
      slot_end <= policy_.window_address || int64_t{policy_.slot_address} >= window_end();
  const bool slot_fits = slot_end <= kReach && apart;
  const bool fuel_fits = policy_.fuel_max <= static_cast<uint64_t>(kReach);
  const bool generation_fits = policy_.generation_address <= kReach - 4;
  const int64_t globals_end = int64_t{policy_.globals_address} + policy_.globals_bytes;
  const bool stack_fits = policy_.stack_mapped_bytes <= policy_.stack_readable_bytes;
  const bool facts_fit =
      std::is_sorted(policy_.facts.begin(), policy_.facts.end(),
                     [](const auto& a, const auto& b) { return a.offset_bytes < b.offset_bytes; });
  const bool globals_fit =
      policy_.globals_bytes == 0 || (policy_.globals_address != 0 && globals_end <= kReach);
  const bool numbers_fit = fuel_fits && generation_fits && stack_fits && facts_fit;
  if (window_fits && slot_fits && globals_fit && numbers_fit) return {};
  return fail(ErrorCode::Refused, "verify: the policy is out of range");
}

Expected<void> Checker::decode_all() {
  if (bytes_.size() > kSizeMax) return refuse(kSizeMax, "R1", "longer than 65536 bytes");
  index_at_.assign(bytes_.size() + 1, kNone);
  is_label_.assign(bytes_.size() + 1, false);
  uint32_t offset = 0;
  while (offset < bytes_.size()) {
    const auto ours = decode(bytes_.subspan(offset));
    const auto theirs = decode_by_zydis(bytes_.subspan(offset));
    if (!ours) return refuse(offset, "R2", "not a whitelisted instruction");
    if (!theirs || *ours != *theirs) return refuse(offset, "R2", "the two decoders disagree");
    if (!may_read(*ours, policy_)) return refuse(offset, "R2", "the time may not be read here");
    index_at_[offset] = static_cast<uint32_t>(code_.size());
    offsets_.push_back(offset);
    weights_.push_back(weights_.empty() ? 0 : weights_.back() + weight(code_.back()));
    code_.push_back(*ours);
    offset += ours->length_bytes;
  }
  if (!code_.empty()) weights_.push_back(weights_.back() + weight(code_.back()));
  return {};
}

Expected<void> Checker::check_branch(uint32_t index) {
  const int64_t to = target(index);
  if (to < 0 || to > static_cast<int64_t>(bytes_.size())) {
    return refuse(offsets_[index], "R4", "branch out of the body");
  }
  const auto place = static_cast<uint32_t>(to);
  if (place < bytes_.size() && index_at_[place] == kNone) {
    return refuse(offsets_[index], "R4", "branch into the middle of an instruction");
  }
  is_label_[place] = true;
  if (is_backward(index)) heads_.push_back(index_at_[place]);
  return {};
}

Expected<void> Checker::check_call(uint32_t index) {
  const Callee* const called = callee(index);
  if (called == nullptr) {
    return refuse(offsets_[index], "R12", "call of something that is no accessor");
  }
  const auto with_r10 = [](abi::RegisterSet set) {  // Which is saved in any case.
    set.add(abi::Register::R10);
    return set;
  };
  const bool is_any = called->saved == abi::RegisterSet();
  if (is_any || with_r10(called->saved) == with_r10(policy_.clobbers)) return {};
  return refuse(offsets_[index], "R12", "call of what reads registers that are not saved so");
}

Expected<void> Checker::check_branches() {
  for (uint32_t index = 0; index < code_.size(); ++index) {
    if (is_jump(index)) CLEW_TRY(check_branch(index));
    if (code_[index].operation == Operation::Call) CLEW_TRY(check_call(index));
  }
  return {};
}

Expected<void> Checker::check_fuel_start() {
  const Instruction& first = code_[0];
  const bool sets_fuel = first.operation == Operation::Move && first.has_immediate &&
                         first.size_bytes == 4 && first.first.kind == Operand::Kind::Register &&
                         first.first.in == abi::kFuelRegister;
  if (!sets_fuel) return refuse(0, "R10", "a body with loops must begin with mov r13d, fuel");
  if (first.immediate > policy_.fuel_max) return refuse(0, "R10", "more fuel than allowed");
  return {};
}

Expected<void> Checker::check_head(uint32_t source, uint32_t head) {
  const Instruction& charge = code_[head];
  const bool charges = charge.operation == Operation::Subtract && charge.has_immediate &&
                       charge.size_bytes == 4 && charge.first.kind == Operand::Kind::Register &&
                       charge.first.in == abi::kFuelRegister;
  const bool followed = head + 1 < code_.size() && code_[head + 1].operation == Operation::JumpIf &&
                        code_[head + 1].condition == kSignCondition;
  if (!charges || !followed) {
    return refuse(offsets_[head], "R10", "the target of a backward branch must charge fuel");
  }
  if (is_label_[offsets_[head + 1]]) {
    return refuse(offsets_[head + 1], "R10", "branch between the charge and its test");
  }
  const uint64_t span = weights_[source + 1] - weights_[head];
  const bool enough =
      charge.immediate >= span && charge.immediate <= uint64_t{std::numeric_limits<int32_t>::max()};
  if (!enough) return refuse(offsets_[head], "R10", "a loop is charged too little fuel");
  return {};
}

Expected<void> Checker::check_fuel() {
  if (heads_.empty()) return {};
  CLEW_TRY(check_fuel_start());
  uint32_t last_source = 0;
  for (uint32_t index = 0; index < code_.size(); ++index) {
    if (!is_backward(index)) continue;
    last_source = index;
    CLEW_TRY(check_head(index, index_at_[static_cast<uint32_t>(target(index))]));
  }
  std::sort(heads_.begin(), heads_.end());
  for (const uint32_t head : heads_) {
    if (target(head + 1) < end_of(last_source)) {
      return refuse(offsets_[head + 1], "R10", "the way out of a loop leads into loops");
    }
  }
  return {};
}

Expected<void> Checker::check_registers(uint32_t index) {
  const Instruction& i = code_[index];
  const auto is_rsp = [](const Operand& operand) {
    return operand.kind == Operand::Kind::Register && operand.in == Register::Rsp;
  };
  if (is_rsp(i.first) || is_rsp(i.second)) {
    return refuse(offsets_[index], "R9", "rsp as an operand");
  }
  const abi::RegisterSet written = written_by(index);
  const bool charge = std::binary_search(heads_.begin(), heads_.end(), index) || index == 0;
  if (!heads_.empty() && written.has(abi::kFuelRegister) && !charge) {
    return refuse(offsets_[index], "R10", "a write of the fuel register");
  }
  for (uint32_t r = 0; r < 16; ++r) {
    const auto reg = static_cast<Register>(r);
    const bool allowed = policy_.clobbers.has(reg) || reg == Register::R10;
    if (written.has(reg) && !allowed) {
      return refuse(offsets_[index], "R15", "a write of a register that is not saved");
    }
  }
  return {};
}

Expected<void> Checker::check_stack(uint32_t index) {
  const Instruction& i = code_[index];
  const int64_t from = i.memory.displacement;
  if (i.memory.index) return refuse(offsets_[index], "R6", "an indexed stack operand");
  if (i.operation == Operation::AddressOf) return {};
  if (!reads_memory_only(i)) return refuse(offsets_[index], "R6", "a store to the stack");
  const uint32_t size = i.source_size_bytes != 0 ? i.source_size_bytes : i.size_bytes;
  if (from < 0 || from + size > policy_.stack_readable_bytes) {
    return refuse(offsets_[index], "R6", "a load outside the readable stack");
  }
  const int64_t mapped_end = policy_.stack_mapped_bytes;
  if (from + size > mapped_end && !stack_page_.holds(from, from + size, mapped_end)) {
    return refuse(offsets_[index], "R6", "a load of stack that may not be there");
  }
  return {};
}

Expected<void> Checker::check_alignment(uint32_t index) {
  const Instruction& i = code_[index];
  const auto displacement = static_cast<uint64_t>(int64_t{i.memory.displacement});
  bool aligned = displacement % i.size_bytes == 0;
  const auto reg = i.memory.base ? i.memory.base : i.memory.index;
  if (reg) {
    const uint64_t step = uint64_t{1} << std::min(ranges_.of(*reg).zero_bits, 32U);
    aligned = aligned && step * i.memory.scale % i.size_bytes == 0;
  }
  if (!aligned) return refuse(offsets_[index], "R13", "a locked operand that may be misaligned");
  return {};
}

Expected<void> Checker::check_gs(uint32_t index) {
  const Instruction& i = code_[index];
  const Memory& m = i.memory;
  const int64_t displacement = m.displacement;
  const uint32_t size = i.source_size_bytes != 0 ? i.source_size_bytes : i.size_bytes;
  if (m.base && m.index) return refuse(offsets_[index], "R6", "two registers in an address");
  const auto reg = m.base ? m.base : m.index;
  if (reg && *reg == Register::Rsp) return refuse(offsets_[index], "R9", "rsp as an operand");
  if (!reg) {
    const int64_t in_slot = displacement - policy_.slot_address;
    const bool slot = in_slot >= 0 && in_slot + size <= abi::kSlotControlSizeBytes;
    if (slot && reads_memory_only(i)) return {};
  }
  const Range range = reg ? ranges_.of(*reg) : Range{0, 0, 0};
  if (range.high > std::numeric_limits<uint32_t>::max()) {
    return refuse(offsets_[index], "R6", "an address in a register without a known range");
  }
  const int64_t scale = m.index ? m.scale : 1;
  const int64_t first = static_cast<int64_t>(range.low) * scale + displacement;
  const int64_t last = static_cast<int64_t>(range.high) * scale + displacement + size;
  if (first < policy_.window_address || last > window_end()) {
    return refuse(offsets_[index], "R6",
                  reads_memory_only(i) ? "load outside the window" : "store outside the window");
  }
  return locks(i) ? check_alignment(index) : Expected<void>{};
}

Expected<void> Checker::check_memory(uint32_t index) {
  const Instruction& i = code_[index];
  const Memory& m = i.memory;
  if (!has_memory(i)) return {};
  if (m.base == Register::Rsp && !m.gs) return check_stack(index);
  if (i.operation == Operation::AddressOf) {
    const bool plain = m.base && !m.index && !m.gs;
    if (!plain) return refuse(offsets_[index], "R6", "an address of another form");
    return {};
  }
  if (m.gs) return check_gs(index);
  if (!m.base && !m.index) return check_absolute(index);
  return refuse(offsets_[index], "R6", "a memory operand of another form");
}

Expected<void> Checker::check_absolute(uint32_t index) {
  const Instruction& i = code_[index];
  const int64_t first = i.memory.displacement;
  const bool generation = i.operation == Operation::Move &&
                          i.second.kind == Operand::Kind::Memory && i.size_bytes == 4 &&
                          policy_.generation_address != 0 &&
                          first == int64_t{policy_.generation_address};
  if (generation) return {};
  const uint32_t size = i.source_size_bytes != 0 ? i.source_size_bytes : i.size_bytes;
  const int64_t in_globals = first - int64_t{policy_.globals_address};
  if (in_globals < 0 || in_globals + size > int64_t{policy_.globals_bytes}) {
    return refuse(offsets_[index], "R6", "an absolute address outside the globals");
  }
  return locks(i) ? check_alignment(index) : Expected<void>{};
}

std::span<const DeclaredFact> Checker::facts_at(uint64_t label) const {
  const auto before = [](const DeclaredFact& fact, uint64_t offset) {
    return fact.offset_bytes < offset;
  };
  const auto begin = std::lower_bound(policy_.facts.begin(), policy_.facts.end(), label, before);
  const auto end = std::lower_bound(begin, policy_.facts.end(), label + 1, before);
  return {begin, end};
}

// What is declared at the label holds here, at instruction `index`, from where it is reached.
Expected<void> Checker::check_facts(uint32_t index, uint64_t label) const {
  for (const DeclaredFact& fact : facts_at(label)) {
    if (ranges_.of(fact.in).high <= fact.high) continue;
    return refuse(offsets_[index], "R8",
                  fmt::format("what is declared at byte 0x{:x} does not hold here", label));
  }
  return {};
}

void Checker::enter_label(uint64_t offset) {
  ranges_.forget_all();
  stack_page_.forget_all();
  for (const DeclaredFact& fact : facts_at(offset))
    ranges_.declare(fact.in, fact.high);
}

Expected<void> Checker::check_instructions() {
  bool falls_through = true;  // Into the first instruction with nothing known.
  for (uint32_t index = 0; index < code_.size(); ++index) {
    const uint32_t offset = offsets_[index];
    if (is_label_[offset]) {
      if (falls_through) CLEW_TRY(check_facts(index, offset));
      enter_label(offset);
    }
    CLEW_TRY(check_registers(index));
    CLEW_TRY(check_memory(index));
    if (is_jump(index)) CLEW_TRY(check_facts(index, static_cast<uint64_t>(target(index))));
    if (policy_.branch_guards) ranges_.apply_not_taken(code_[index]);
    stack_page_.apply_not_taken(code_[index]);
    ranges_.apply(code_[index]);
    if (code_[index].operation == Operation::Call) ranges_.forget(written_by(index));
    stack_page_.apply(code_[index], written_by(index));
    falls_through = code_[index].operation != Operation::Jump;
  }
  return {};
}

Expected<void> Checker::run() {
  CLEW_TRY(check_policy());
  CLEW_TRY(decode_all());
  CLEW_TRY(check_branches());
  CLEW_TRY(check_fuel());
  return check_instructions();
}

}  // namespace

Expected<VerifiedCode> check(std::span<const uint8_t> bytes, const Policy& policy) {
  CLEW_TRY(Checker(bytes, policy).run());
  return VerifiedCode(policy.address, std::vector<uint8_t>(bytes.begin(), bytes.end()),
                      policy.clobbers);
}

}  // namespace clew::verify

// SPDX-License-Identifier: Apache-2.0
#include "code/value_use.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "code/register_effect.h"

namespace clew::code {

namespace {

// Whether the instruction may have r8 to r15 as an operand: those need a prefix (Intel SDM vol. 2,
// 2.2.1, 2.3, 2.7.1; AMD's XOP, Intel's REX2). Decoding takes ten times as long.
bool may_name_high(std::span<const uint8_t> bytes) {
  return std::any_of(bytes.begin(), bytes.end(), [](uint8_t byte) {
    const bool is_rex = (byte & 0xf0) == 0x40 && (byte & 7) != 0;
    return is_rex || byte == 0xc4 || byte == 0xc5 || byte == 0x62 || byte == 0x8f || byte == 0xd5;
  });
}

RegisterEffect effect_of(const ModuleCode& code, const Instruction& at, abi::Register r) {
  const auto bytes = code.text_from(at.address).first(at.length);
  if (r >= abi::Register::R8 && !may_name_high(bytes)) return {};
  return register_effect(bytes);
}

class ValueFollower {
 public:
  ValueFollower(const ModuleCode& code, uint32_t owner, abi::Register r, const UseOfCalls& calls)
      : code_(code), owner_(owner), register_(r), calls_(calls) {}

  void follow_from(uint64_t address) {
    go_to(address);
    while (!pending_.empty()) {
      const uint64_t next = pending_.back();
      pending_.pop_back();
      follow(next);
    }
  }

  [[nodiscard]] bool is_lost() const { return is_lost_; }
  [[nodiscard]] bool is_pushed() const { return is_pushed_; }
  [[nodiscard]] bool is_returned() const { return is_returned_; }
  [[nodiscard]] bool is_passed_on() const { return is_passed_on_; }
  [[nodiscard]] const std::unordered_set<uint64_t>& reads() const { return reads_; }

 private:
  void go_to(uint64_t address) {
    const auto range = code_.range_at(address);
    if (seen_.size() >= kValueUseMax || !range || code_.owner_of(*range) != owner_) {
      is_lost_ = true;
    } else if (seen_.insert(address).second) {
      pending_.push_back(address);
    }
  }

  void follow(uint64_t address) {
    const auto at = code_.at(address);
    const Flow flow = at ? at->flow : Flow::Bad;
    if (flow == Flow::Bad || flow == Flow::System || flow == Flow::Int3) {
      is_lost_ = true;
      return;
    }
    if (flow == Flow::Trap) return;
    const RegisterEffect effect = effect_of(code_, *at, register_);
    const bool is_read = flow != Flow::Nop && effect.read.has(register_);
    if (is_read && is_push(*at)) {
      is_pushed_ = true;
    } else if (is_read) {
      reads_.insert(address);
    }
    if (flow == Flow::Next && effect.written.has(register_)) return;
    leave(*at);
  }

  // A push of it: compilers align the stack so, with whatever is there.
  [[nodiscard]] bool is_push(const Instruction& at) const {
    const auto bytes = code_.text_from(at.address).first(at.length);
    return bytes.size() == 2 && bytes[0] == 0x41 && (bytes[1] & 0xf8) == 0x50;
  }

  void leave(const Instruction& at) {
    switch (at.flow) {
      case Flow::Return:
        is_returned_ = true;
        return;
      case Flow::Jump:
        return jump(at);
      case Flow::Conditional:
        jump(at);
        return go_to(at.end());
      case Flow::IndirectJump:
        return jump_by_table(at);
      case Flow::Call:
      case Flow::IndirectCall:
        if (calls(at) != CallUse::Overwrites) go_to(at.end());
        return;
      case Flow::Next:
      case Flow::Nop:
        return go_to(at.end());
      case Flow::Int3:
      case Flow::Trap:
      case Flow::System:
      case Flow::Bad:
        return;  // Nobody comes here with one.
    }
  }

  CallUse calls(const Instruction& at) {
    const CallUse use = calls_(at);
    is_passed_on_ = is_passed_on_ || use == CallUse::Reads;
    return use;
  }

  void jump(const Instruction& at) {
    const uint64_t target = branch_target(code_, at);
    const auto other = code_.function_starting_at(target);
    if (!other || *other == owner_) return go_to(target);
    calls(at);
    is_returned_ = true;  // By that one, if it keeps it.
  }

  void jump_by_table(const Instruction& at) {
    const auto targets = code_.table_targets(at.address);
    if (targets.empty()) is_lost_ = true;
    for (const uint64_t target : targets)
      go_to(target);
  }

  const ModuleCode& code_;
  uint32_t owner_;
  abi::Register register_;
  const UseOfCalls& calls_;
  std::vector<uint64_t> pending_;
  std::unordered_set<uint64_t> seen_;
  std::unordered_set<uint64_t> reads_;
  bool is_lost_ = false;
  bool is_pushed_ = false;
  bool is_returned_ = false;
  bool is_passed_on_ = false;
};

// Of what the function itself writes there.
std::unordered_set<uint64_t> find_own_reads(const ModuleCode& code, uint32_t function,
                                            abi::Register r, const UseOfCalls& calls) {
  ValueFollower own(code, function, r, calls);
  for (const AddressRange& part : code.parts_of(function)) {
    for (auto at = code.at(part.begin); at && at->address < part.end; at = code.at(at->end())) {
      if (at->flow != Flow::Next) continue;
      const RegisterEffect effect = effect_of(code, *at, r);
      if (effect.written.has(r) && !effect.read.has(r)) own.follow_from(at->end());
    }
  }
  return own.reads();
}

}  // namespace

ValueUses::ValueUses(const ModuleCode& code, uint32_t function, abi::Register r, UseOfCalls calls)
    : code_(code), function_(function), register_(r), calls_(std::move(calls)) {}

ValueUse ValueUses::of_value_at(uint64_t address, AtReturn at_return) {
  ValueFollower found(code_, function_, register_, calls_);
  found.follow_from(address);
  const bool is_returned = found.is_returned() && at_return == AtReturn::Read;
  if (found.is_passed_on() || is_returned) return ValueUse::Read;
  if (found.reads().empty() && !found.is_pushed())
    return found.is_lost() ? ValueUse::Unknown : ValueUse::None;
  if (!own_reads_) own_reads_ = find_own_reads(code_, function_, register_, calls_);
  // Who never writes it has no other value to push.
  if (found.is_pushed() && own_reads_->empty()) return ValueUse::Read;
  if (found.reads().empty()) return found.is_lost() ? ValueUse::Unknown : ValueUse::None;
  const bool is_beside = std::all_of(found.reads().begin(), found.reads().end(),
                                     [this](uint64_t read) { return own_reads_->contains(read); });
  if (!is_beside) return ValueUse::Read;
  return found.is_lost() ? ValueUse::Unknown : ValueUse::Beside;
}

}  // namespace clew::code

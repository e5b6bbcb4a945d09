// SPDX-License-Identifier: Apache-2.0
// What an instruction does is found once for each block and summed up; then the sums are applied
// along the edges until nothing is added.
#include "code/liveness.h"

#include <algorithm>
#include <initializer_list>
#include <optional>

#include "code/decode.h"
#include "code/register_effect.h"
#include "code/stack_depth.h"

namespace clew::code {

namespace {

using abi::Register;
using abi::RegisterSet;

// Of one function, over all rounds. Compiled functions need some ten for each edge.
constexpr uint64_t kEdgeVisitsMax = uint64_t{1} << 26;

constexpr RegisterSet set_of(std::initializer_list<Register> registers) {
  RegisterSet set;
  for (const Register one : registers)
    set.add(one);
  return set;
}

constexpr RegisterSet kOfCaller =
    set_of({Register::Rbx, Register::Rbp, Register::R12, Register::R13, Register::R14,
            Register::R15, Register::Rsp});
constexpr RegisterSet kResults = set_of({Register::Rax, Register::Rdx});
constexpr RegisterSet kR11 = set_of({Register::R11});

constexpr RegisterSet operator|(RegisterSet a, RegisterSet b) {
  return RegisterSet(static_cast<uint16_t>(a.bits() | b.bits()));
}
constexpr RegisterSet without(RegisterSet a, RegisterSet b) {
  return RegisterSet(static_cast<uint16_t>(a.bits() & ~b.bits()));
}
constexpr Live operator|(const Live& a, const Live& b) {
  return {a.registers | b.registers, a.flags | b.flags};
}

// What code reads of what it is reached with, and overwrites in any case.
struct Effect {
  Live read;
  Live written;
  RegisterSet changed;  // Wholly or in part, and perhaps.

  [[nodiscard]] Live before(const Live& behind) const {
    return {read.registers | without(behind.registers, written.registers),
            read.flags | (behind.flags & ~written.flags)};
  }
};

// `first`, then `second`.
Effect both(const Effect& first, const Effect& second) {
  return {.read = first.before(second.read),
          .written = first.written | second.written,
          .changed = first.changed | second.changed};
}

// Of an instruction, whatever it calls or jumps to.
Effect effect_of(const ModuleCode& code, const Instruction& at) {
  switch (at.flow) {
    case Flow::Nop:
      return {};
    case Flow::Int3:
    case Flow::Trap:
    case Flow::System:
    case Flow::Bad:
      return {.read = kAllLive, .written = {}, .changed = {}};
    case Flow::Next:
    case Flow::IndirectCall:
    case Flow::IndirectJump:
    case Flow::Call:
    case Flow::Jump:
    case Flow::Conditional:
    case Flow::Return:
      break;
  }
  const std::span<const uint8_t> bytes = code.text_from(at.address).first(at.length);
  const RegisterEffect registers = register_effect(bytes);
  Effect effect = {
      .read = {registers.read, 0}, .written = {registers.written, 0}, .changed = registers.changed};
  if (is_plainly_neutral(bytes)) return effect;
  const FlagEffect flags = flag_effect(bytes);
  effect.read.flags = flags.read & kStatusFlags;
  effect.written.flags = flags.written & kStatusFlags;
  return effect;
}

// Does control leave the module there: through a word that the loader fills, or a pointer?
bool leads_to_import(const ModuleCode& code, const Instruction& branch) {
  if (branch.flow == Flow::IndirectCall || branch.flow == Flow::IndirectJump) return true;
  const uint64_t target = branch_target(code, branch);
  if (code.range_at(target)) return false;
  std::optional<Instruction> stub = code.at(target);
  // endbr64 is the only instruction that stands in front of a stub's jump.
  if (stub && stub->flow == Flow::Next) stub = code.at(stub->end());
  if (!stub || stub->flow != Flow::IndirectJump) return false;
  const auto jump = decode(code.text_from(stub->address));
  return jump && jump->rip_relative;
}

}  // namespace

class LivenessFinder {
 public:
  // Without flags nothing is assumed of other code.
  LivenessFinder(const ModuleCode& code, const Blocks& blocks, uint32_t function, FlagValues* flags,
                 const CallEffects* effects)
      : code_(code),
        blocks_(blocks),
        function_(function),
        flags_(flags),
        effects_(effects),
        result_(code, blocks) {}

  Liveness run() {
    const std::vector<Block>& all = blocks_.blocks();
    for (const Block& block : all)
      sums_.push_back(sum_of(block));
    for (const Block& block : all)
      ends_.push_back(at_end(block));
    result_.at_start_.resize(all.size());
    result_.behind_.resize(all.size());
    bool changes = true;
    while (changes && visits_ < kEdgeVisitsMax) {
      changes = false;
      for (size_t i = all.size(); i-- > 0;)
        changes |= visit(i);
    }
    if (changes) give_up();
    return std::move(result_);
  }

 private:
  // Notes what the function itself changes, as its callers may have seen it.
  Effect sum_of(const Block& block) {
    Effect sum;
    for (auto at = code_.at(block.begin); at && at->address < block.end; at = code_.at(at->end())) {
      sum = both(sum, effect_of(code_, *at));
      if (overwrites_by_abi(*at)) sum.changed = kAllRegisters;
    }
    changed_ = changed_ | sum.changed;
    return sum;
  }

  // A call of which no compiler knows more than the ABI says. `call *(%rax)` may be that of a TLS
  // descriptor, which leaves all but rax alone.
  [[nodiscard]] bool overwrites_by_abi(const Instruction& at) const {
    if (at.flow != Flow::Call && at.flow != Flow::IndirectCall) return false;
    const std::span<const uint8_t> bytes = code_.text_from(at.address).first(at.length);
    const bool is_descriptor =
        at.length >= 2 && bytes[at.length - 2U] == 0xff && bytes.back() == 0x10;
    return !is_descriptor && leads_to_import(code_, at);
  }

  // Live behind the block's last instruction, but for what other blocks of the function want.
  Live at_end(const Block& block) {
    const std::optional<Instruction> last = code_.at(block.last);
    const std::span<const Edge> edges = blocks_.edges_of(block);
    if (!last) return kAllLive;
    const bool calls = last->flow == Flow::Call || last->flow == Flow::IndirectCall;
    if (!calls && edges.empty()) return kAllLive;
    Live live = calls ? at_call(*last) : Live{};
    for (const Edge& edge : edges)
      live = live | of_edge(edge, *last);
    return live | Live{set_of({Register::Rsp}), 0};
  }

  Live of_edge(const Edge& edge, const Instruction& last) {
    switch (edge.kind) {
      case EdgeKind::Next:
      case EdgeKind::Taken:
      case EdgeKind::Case:
      case EdgeKind::CallReturn:
        return edge.block == kNoBlock ? kAllLive : Live{};
      case EdgeKind::Return:
        return is_return(last) ? at_return({.address = last.address}) : kAllLive;
      case EdgeKind::TailCall:
        return at_tail_call(edge, last);
      case EdgeKind::Elsewhere:
      case EdgeKind::StackSwitch:
      case EdgeKind::Label:
      case EdgeKind::Unknown:
        return kAllLive;
    }
    return kAllLive;
  }

  // With another stack, or an address pushed on it, it is a jump, and takes what it likes:
  // setcontext.
  bool is_return(const Instruction& ret) {
    if (flags_ == nullptr) return false;
    if (!depths_) depths_.emplace(code_, function_);
    return depths_->at(ret.address) == 0;
  }

  Live at_call(const Instruction& call) {
    if (flags_ == nullptr) return kAllLive;
    if (leads_to_import(code_, call)) return {without(kAllRegisters, kR11), 0};
    const uint64_t callee = branch_target(code_, call);
    return {kOfCaller | reads_of(callee), takes_flags(callee) ? kStatusFlags : 0};
  }

  // What the callee preserves is left to its caller, and to unwinders.
  [[nodiscard]] RegisterSet reads_of(uint64_t callee) const {
    const std::optional<uint32_t> function =
        effects_ == nullptr ? std::nullopt : code_.function_starting_at(callee);
    return function ? effects_->reads[*function] : kAllRegisters;
  }

  bool takes_flags(uint64_t callee) {
    const std::optional<uint32_t> range = code_.range_at(callee);
    return !range || flags_->live_at_entry(callee, code_.owner_of(*range));
  }

  Live at_return(const Exit& exit) {
    if (flags_ == nullptr) return kAllLive;
    const bool gives_flags = flags_->live_at_exit(exit, function_);
    const RegisterSet changed = effects_ == nullptr ? changed_ : effects_->changes[function_];
    return {kOfCaller | kResults | without(kAllRegisters, changed),
            gives_flags ? kStatusFlags : 0};
  }

  // Running on into another function is rare: all is live there.
  Live at_tail_call(const Edge& edge, const Instruction& last) {
    const bool is_direct = last.flow == Flow::Jump || last.flow == Flow::Conditional;
    const bool jumps =
        last.flow == Flow::IndirectJump || (is_direct && branch_target(code_, last) == edge.target);
    if (flags_ == nullptr || !jumps) return kAllLive;
    const RegisterSet taken = leads_to_import(code_, last) ? without(kAllRegisters, kR11)
                                                           : reads_of(branch_target(code_, last));
    return at_return({.address = last.address, .tail_call = true}) | Live{taken, 0};
  }

  bool visit(size_t block) {
    Live& behind = result_.behind_[block];
    behind = ends_[block];
    for (const Edge& edge : blocks_.edges_of(blocks_.blocks()[block])) {
      ++visits_;
      if (edge.block != kNoBlock) behind = behind | result_.at_start_[edge.block];
    }
    const Live start = sums_[block].before(behind);
    if (start == result_.at_start_[block]) return false;
    result_.at_start_[block] = start;
    return true;
  }

  void give_up() {
    std::fill(result_.at_start_.begin(), result_.at_start_.end(), kAllLive);
    std::fill(result_.behind_.begin(), result_.behind_.end(), kAllLive);
  }

  const ModuleCode& code_;
  const Blocks& blocks_;
  uint32_t function_;
  FlagValues* flags_;
  const CallEffects* effects_;
  RegisterSet changed_;
  std::optional<StackDepths> depths_;
  std::vector<Effect> sums_;  // By block, and so is the next one.
  std::vector<Live> ends_;
  uint64_t visits_ = 0;
  Liveness result_;
};

Liveness Liveness::by_abi(const ModuleCode& code, uint32_t function, const Blocks& blocks,
                          FlagValues& flags, const CallEffects* effects) {
  return LivenessFinder(code, blocks, function, &flags, effects).run();
}

Liveness Liveness::assuming_nothing(const ModuleCode& code, const Blocks& blocks) {
  return LivenessFinder(code, blocks, 0, nullptr, nullptr).run();
}

Live Liveness::before(uint64_t address) const {
  const std::optional<uint32_t> index = blocks_.block_at(address);
  if (!index || !code_.at(address)) return kAllLive;
  std::vector<Instruction> way;
  const Block& block = blocks_.blocks()[*index];
  for (auto at = code_.at(address); at && at->address < block.end; at = code_.at(at->end()))
    way.push_back(*at);
  Live live = behind_[*index];
  for (size_t i = way.size(); i-- > 0;)
    live = effect_of(code_, way[i]).before(live);
  return live;
}

}  // namespace clew::code

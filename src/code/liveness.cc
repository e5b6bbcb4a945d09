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

constexpr Live operator|(const Live& a, const Live& b) {
  return {a.registers | b.registers, a.flags | b.flags};
}

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

constexpr RegisterSet kResults = set_of({Register::Rax, Register::Rdx});
// Which LLVM's own conventions have results in, too (RetCC_X86Common).
constexpr RegisterSet kMoreResults = set_of({Register::Rcx, Register::R8});
constexpr RegisterSet kOnlyR11 = set_of({Register::R11});

constexpr RegisterSet without(RegisterSet a, RegisterSet b) {
  return RegisterSet(static_cast<uint16_t>(a.bits() & ~b.bits()));
}

// No compiler keeps a value in r11 for whoever handles the signal.
constexpr Live kAtTrap = {without(kAllRegisters, kOnlyR11), kStatusFlags};

Live before(const Effect& effect, const Live& behind) {
  return {effect.read.registers | without(behind.registers, effect.written.registers),
          effect.read.flags | (behind.flags & ~effect.written.flags)};
}

// `first`, then `second`.
Effect both(const Effect& first, const Effect& second) {
  return {.read = before(first, second.read),
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

// A call of which no compiler knows more than the ABI says. `call *(%rax)` may be that of a TLS
// descriptor, which leaves all but rax alone.
bool overwrites_by_abi(const ModuleCode& code, const Instruction& at) {
  if (at.flow != Flow::Call && at.flow != Flow::IndirectCall) return false;
  const std::span<const uint8_t> bytes = code.text_from(at.address).first(at.length);
  const bool is_descriptor =
      at.length >= 2 && bytes[at.length - 2U] == 0xff && bytes.back() == 0x10;
  return !is_descriptor && leads_to_import(code, at);
}

}  // namespace

namespace {

Returns returns_at(const StackDepths& depths, uint64_t ret) {
  const std::optional<int64_t> depth = depths.at(ret);
  if (!depth) return Returns::IfAsCompiled;
  return *depth == 0 ? Returns::Surely : Returns::No;
}

}  // namespace

BlockEffects block_effects(const ModuleCode& code, uint32_t function, const Blocks& blocks,
                           bool is_compiled) {
  BlockEffects effects;
  std::optional<StackDepths> depths;
  for (const Block& block : blocks.blocks()) {
    Effect sum;
    for (auto at = code.at(block.begin); at && at->address < block.end; at = code.at(at->end())) {
      const bool traps = is_compiled && (at->flow == Flow::Trap || at->flow == Flow::Int3);
      sum = both(sum, traps ? Effect{.read = kAtTrap, .written = {}, .changed = {}}
                            : effect_of(code, *at));
      if (overwrites_by_abi(code, *at)) sum.changed = kAllRegisters;
    }
    effects.changed = effects.changed | sum.changed;
    effects.sums.push_back(sum);
    const std::optional<Instruction> last = code.at(block.last);
    const bool has_ret = last && last->flow == Flow::Return;
    if (has_ret && !depths) depths.emplace(code, function);
    effects.returns.push_back(has_ret ? returns_at(*depths, block.last) : Returns::No);
  }
  return effects;
}

class LivenessFinder {
 public:
  // Without flags nothing is assumed of other code.
  LivenessFinder(const ModuleCode& code, const FunctionBlocks& function, FlagValues* flags,
                 const CallEffects* calls, const BlockEffects& effects)
      : code_(code),
        blocks_(*function.blocks),
        function_(function.function),
        flags_(flags),
        calls_(calls),
        effects_(effects),
        result_(code, *function.blocks) {}

  Liveness run() {
    const std::vector<Block>& all = blocks_.blocks();
    for (uint32_t i = 0; i < all.size(); ++i) {
      ends_.push_back(at_end(i));
      if (all[i].foreign) labels_.push_back(i);
    }
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
  // Live behind the block's last instruction, but for what other blocks of the function want.
  Live at_end(uint32_t index) {
    const Block& block = blocks_.blocks()[index];
    const std::optional<Instruction> last = code_.at(block.last);
    const std::span<const Edge> edges = blocks_.edges_of(block);
    if (!last) return kAllLive;
    const bool calls = last->flow == Flow::Call || last->flow == Flow::IndirectCall;
    if (!calls && edges.empty()) return calls_ == nullptr ? kAllLive : kAtTrap;
    Live live = calls ? at_call(*last) : Live{};
    for (const Edge& edge : edges)
      live = live | of_edge(edge, *last, effects_.returns[index]);
    return live | Live{set_of({Register::Rsp}), 0};
  }

  Live of_edge(const Edge& edge, const Instruction& last, Returns returns) {
    switch (edge.kind) {
      case EdgeKind::Case:
        if (edge.block == kNoBlock && calls_ != nullptr) return at_case_outside(edge, last);
        [[fallthrough]];
      case EdgeKind::Next:
      case EdgeKind::Taken:
      case EdgeKind::CallReturn:
        return edge.block == kNoBlock ? kAllLive : Live{};
      case EdgeKind::Return:
        return at_ret(last, returns);
      case EdgeKind::TailCall:
        return at_tail_call(edge, last);
      case EdgeKind::Elsewhere:
      case EdgeKind::StackSwitch:
        return kAllLive;
      case EdgeKind::Label:
      case EdgeKind::Unknown:
        return leads_to_labels(edge, last) ? Live{} : kAllLive;  // visit() adds what they want.
    }
    return kAllLive;
  }

  // A whole function's jump that is no tail call stays in it.
  [[nodiscard]] bool leads_to_labels(const Edge& edge, const Instruction& last) const {
    if (calls_ == nullptr || last.flow != Flow::IndirectJump) return false;
    return edge.kind == EdgeKind::Label || edge.kind == EdgeKind::Unknown;
  }

  // A ret that is a jump takes what it likes, but no compiler's takes r11.
  Live at_ret(const Instruction& ret, Returns returns) {
    if (flags_ == nullptr) return kAllLive;
    const bool is_return =
        returns == Returns::Surely || (returns == Returns::IfAsCompiled && calls_ != nullptr);
    if (is_return) return at_return({.address = ret.address});
    return calls_ == nullptr ? kAllLive : kAtTrap;
  }

  Live at_call(const Instruction& call) {
    if (flags_ == nullptr) return kAllLive;
    if (leads_to_import(code_, call)) return {without(kAllRegisters, kOnlyR11), 0};
    const uint64_t callee = branch_target(code_, call);
    return {kOfCaller | reads_of(callee), takes_flags(callee) ? kStatusFlags : 0};
  }

  // What the callee preserves is left to its caller, and to unwinders.
  [[nodiscard]] RegisterSet reads_of(uint64_t callee) const {
    const std::optional<uint32_t> function =
        calls_ == nullptr ? std::nullopt : code_.function_starting_at(callee);
    return function ? calls_->reads[*function] : kAllRegisters;
  }

  bool takes_flags(uint64_t callee) {
    const std::optional<uint32_t> range = code_.range_at(callee);
    return !range || flags_->live_at_entry(callee, code_.owner_of(*range));
  }

  Live at_return(const Exit& exit) {
    if (flags_ == nullptr) return kAllLive;
    const bool gives_flags = flags_->live_at_exit(exit, function_);
    const RegisterSet wanted =
        calls_ == nullptr ? without(kAllRegisters, effects_.changed) : calls_->wanted[function_];
    const RegisterSet results = calls_ == nullptr ? kResults : kResults | kMoreResults;
    return {kOfCaller | results | wanted, gives_flags ? kStatusFlags : 0};
  }

  // A tail call by a table.
  Live at_case_outside(const Edge& edge, const Instruction& last) {
    return at_return({.address = last.address, .tail_call = true}) | Live{reads_of(edge.target), 0};
  }

  // Running on into another function is rare: all is live there.
  Live at_tail_call(const Edge& edge, const Instruction& last) {
    const bool is_direct = last.flow == Flow::Jump || last.flow == Flow::Conditional;
    const bool jumps =
        last.flow == Flow::IndirectJump || (is_direct && branch_target(code_, last) == edge.target);
    if (flags_ == nullptr || !jumps) return kAllLive;
    const RegisterSet taken = leads_to_import(code_, last) ? without(kAllRegisters, kOnlyR11)
                                                           : reads_of(branch_target(code_, last));
    return at_return({.address = last.address, .tail_call = true}) | Live{taken, 0};
  }

  bool visit(size_t block) {
    Live& behind = result_.behind_[block];
    behind = ends_[block];
    const Block& block_here = blocks_.blocks()[block];
    const std::optional<Instruction> last = code_.at(block_here.last);
    bool leads = false;
    for (const Edge& edge : blocks_.edges_of(block_here)) {
      ++visits_;
      if (edge.block != kNoBlock) behind = behind | along(edge, block_here);
      leads = leads || (last && leads_to_labels(edge, *last));
    }
    if (leads) behind = behind | at_labels();
    const Live start = before(effects_.sums[block], behind);
    if (start == result_.at_start_[block]) return false;
    result_.at_start_[block] = start;
    return true;
  }

  [[nodiscard]] Live along(const Edge& edge, const Block& from) const {
    Live live = result_.at_start_[edge.block];
    const bool is_over = edge.kind == EdgeKind::CallReturn && calls_ != nullptr &&
                         calls_->over_r11.contains(from.last);
    if (is_over) live.registers = without(live.registers, kOnlyR11);
    return live;
  }

  [[nodiscard]] Live at_labels() const {
    Live live;
    for (const size_t label : labels_)
      live = live | result_.at_start_[label];
    return live;
  }

  void give_up() {
    std::fill(result_.at_start_.begin(), result_.at_start_.end(), kAllLive);
    std::fill(result_.behind_.begin(), result_.behind_.end(), kAllLive);
  }

  const ModuleCode& code_;
  const Blocks& blocks_;
  uint32_t function_;
  FlagValues* flags_;
  const CallEffects* calls_;
  const BlockEffects& effects_;
  std::vector<Live> ends_;      // By block.
  std::vector<size_t> labels_;  // Blocks that others may lead to, by a way that nobody knows.
  uint64_t visits_ = 0;
  Liveness result_;
};

Liveness Liveness::by_abi(const ModuleCode& code, uint32_t function, const Blocks& blocks,
                          FlagValues& flags) {
  const BlockEffects effects = block_effects(code, function, blocks, false);
  return LivenessFinder(code, {function, &blocks}, &flags, nullptr, effects).run();
}

Liveness Liveness::by_calls(const ModuleCode& code, const FunctionBlocks& function,
                            FlagValues& flags, const CallEffects& calls,
                            const BlockEffects& effects) {
  return LivenessFinder(code, function, &flags, &calls, effects).run();
}

Liveness Liveness::assuming_nothing(const ModuleCode& code, const Blocks& blocks) {
  const BlockEffects effects = block_effects(code, 0, blocks, false);
  return LivenessFinder(code, {0, &blocks}, nullptr, nullptr, effects).run();
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
    live = code::before(effect_of(code_, way[i]), live);
  return live;
}

}  // namespace clew::code

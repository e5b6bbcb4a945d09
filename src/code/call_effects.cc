// SPDX-License-Identifier: Apache-2.0
// Two fixed points over the graph of calls: what is read grows from callees to callers, and what is
// wanted behind calls from callers to callees.
#include "code/call_effects.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>

#include "code/register_effect.h"
#include "code/value_use.h"

namespace clew::code {

namespace {

using abi::RegisterSet;

constexpr RegisterSet kAllButR11 = RegisterSet(0xf7ff);

// A call or tail jump of one given function to another one.
struct Call {
  uint64_t address = 0;
  uint32_t caller = 0;  // In the list of functions, and so the callee.
  uint32_t callee = 0;
  uint32_t behind = kNoBlock;  // The block that a call comes back to; none for jumps.
  bool is_jump = false;
};

// One from code that is in none of the given functions' blocks.
struct Lead {
  uint32_t owner = 0;   // Of code.functions().
  uint32_t callee = 0;  // In the list of functions.
  uint64_t behind = 0;  // The instruction behind the call or jump.
  bool is_jump = false;
};

RegisterSet without_r11(RegisterSet registers) {
  return RegisterSet(static_cast<uint16_t>(registers.bits() & kAllButR11.bits()));
}

class EffectsFinder {
 public:
  EffectsFinder(const ModuleCode& code, FlagValues& flags,
                std::span<const FunctionBlocks> functions)
      : code_(code), flags_(flags), functions_(functions) {
    CallEffects& calls = result_.calls;
    calls.reads.assign(code.functions().size(), kAllRegisters);
    calls.wanted = calls.reads;
    for (uint32_t i = 0; i < functions.size(); ++i) {
      index_.emplace(functions[i].function, i);
      calls.reads[functions[i].function] = {};
      calls.wanted[functions[i].function] = {};
    }
    calls_of_.resize(functions.size());
    callers_.resize(functions.size());
  }

  ModuleEffects run() {
    for (uint32_t i = 0; i < functions_.size(); ++i)
      look_at(i);
    find_overwriting();
    find_leads();
    free_r11_for_strangers();
    // What only passes through, as somebody wants it behind, nobody reads: so this comes first.
    settle([this](uint32_t i) { return grow_reads(i) ? callers_[i] : std::vector<uint32_t>(); });
    if (is_r11_an_argument()) {
      for (const uint32_t stranger : without_r11_)
        result_.calls.reads[stranger].add(abi::Register::R11);
      settle([this](uint32_t i) { return grow_reads(i) ? callers_[i] : std::vector<uint32_t>(); });
    }
    note_strangers();
    settle([this](uint32_t i) { return grow_wanted(i); });
    return std::move(result_);
  }

 private:
  // Looks at each function, and at those that it says must be looked at again. Callees tend to come
  // first in files, and so do they here.
  template <typename Look>
  void settle(Look look) {
    std::vector<uint32_t> pending;
    std::vector<bool> is_pending(functions_.size(), true);
    for (auto i = static_cast<uint32_t>(functions_.size()); i-- > 0;)
      pending.push_back(i);
    while (!pending.empty()) {
      const uint32_t i = pending.back();
      pending.pop_back();
      is_pending[i] = false;
      for (const uint32_t next : look(i)) {
        if (is_pending[next]) continue;
        is_pending[next] = true;
        pending.push_back(next);
      }
    }
  }

  void look_at(uint32_t index) {
    const FunctionBlocks& function = functions_[index];
    result_.blocks.push_back(block_effects(code_, function.function, *function.blocks, true));
    for (const Block& block : function.blocks->blocks()) {
      const std::optional<Instruction> last = code_.at(block.last);
      uint32_t behind = kNoBlock;
      for (const Edge& edge : function.blocks->edges_of(block)) {
        if (edge.kind == EdgeKind::CallReturn) behind = edge.block;
        if (edge.kind == EdgeKind::TailCall)
          note({block.last, index, 0, kNoBlock, true}, edge.target);
      }
      if (!last || last->flow != Flow::Call) continue;
      note({block.last, index, 0, behind, false}, branch_target(code_, *last));
    }
  }

  void note(Call call, uint64_t target) {
    const std::optional<uint32_t> callee = known_at(target);
    if (!callee) return;
    call.callee = *callee;
    calls_of_[call.caller].push_back(call);
    callers_[call.callee].push_back(call.caller);
  }

  [[nodiscard]] std::optional<uint32_t> known_at(uint64_t target) const {
    const std::optional<uint32_t> function = code_.function_starting_at(target);
    const auto known = function ? index_.find(*function) : index_.end();
    return known == index_.end() ? std::nullopt : std::optional(known->second);
  }

  // Compilers pass nothing in r11. Functions that are not given take it, too, only if one of them
  // reads what it is called with, or if a given one takes it.
  void free_r11_for_strangers() {
    for (uint32_t i = 0; i < code_.functions().size(); ++i) {
      const uint32_t owner = code_.owner_of(i);
      if (index_.contains(owner) || owner != i) continue;
      without_r11_.push_back(owner);
      if (!may_take_r11(owner)) continue;
      without_r11_.clear();
      return;
    }
    for (const uint32_t stranger : without_r11_)
      result_.calls.reads[stranger] = kAllButR11;
  }

  bool may_take_r11(uint32_t function) { return reads_r11(function) && !takes_no_r11(function); }

  [[nodiscard]] bool reads_r11(uint32_t function) const {
    for (const AddressRange& part : code_.parts_of(function)) {
      for (auto at = code_.at(part.begin); at && at->address < part.end; at = code_.at(at->end())) {
        const auto effect = register_effect(code_.text_from(at->address).first(at->length));
        if (at->flow != Flow::Nop && effect.read.has(abi::Register::R11)) return true;
      }
    }
    return false;
  }

  bool takes_no_r11(uint32_t function) {
    const ValueUse use =
        use_of_r11(function, code_.functions()[function].address, AtReturn::Dropped);
    return use == ValueUse::None || (use == ValueUse::Beside && !is_given_r11(function));
  }

  // Somebody calls it, or jumps there, and has written r11 for nobody else.
  [[nodiscard]] bool is_given_r11(uint32_t function) const {
    const auto sites = sites_.find(function);
    if (sites == sites_.end()) return false;
    return std::any_of(sites->second.begin(), sites->second.end(),
                       [this](uint64_t site) { return is_r11_written_for(site); });
  }

  [[nodiscard]] bool is_r11_written_for(uint64_t site) const {
    for (auto at = code_.before(site); at; at = code_.before(at->address)) {
      if (at->flow == Flow::Nop) continue;
      if (at->flow != Flow::Next) return false;
      const auto effect = register_effect(code_.text_from(at->address).first(at->length));
      if (effect.read.has(abi::Register::R11)) return false;
      if (effect.changed.has(abi::Register::R11)) return true;
    }
    return false;
  }

  // Of a function of code.functions().
  ValueUse use_of_r11(uint32_t function, uint64_t address, AtReturn at_return) {
    const auto by = [this](const Instruction& at) { return use_of_r11_by(at); };
    const auto [uses, is_new] =
        uses_of_r11_.try_emplace(function, code_, function, abi::Register::R11, by);
    return uses->second.of_value_at(address, at_return);
  }

  [[nodiscard]] CallUse use_of_r11_by(const Instruction& at) const {
    if (at.flow != Flow::IndirectCall) {
      const uint64_t target = branch_target(code_, at);
      const auto range = code_.range_at(target);
      // Of who begins in the middle of another function nothing is known.
      if (range && !code_.function_starting_at(target)) return CallUse::Reads;
      if (range && result_.calls.reads[code_.owner_of(*range)].has(abi::Register::R11))
        return CallUse::Reads;
    }
    return overwrites(at) ? CallUse::Overwrites : CallUse::Keeps;
  }

  [[nodiscard]] bool is_r11_an_argument() const {
    return std::any_of(functions_.begin(), functions_.end(), [this](const FunctionBlocks& one) {
      return result_.calls.reads[one.function].has(abi::Register::R11);
    });
  }

  // What code that is in none of the functions' blocks may want behind its calls, and those who
  // called it, where it jumps: any register that its function reads somewhere; and of those that
  // calls may overwrite the others, too, unless something that the function calls may overwrite all
  // of these, and so it keeps none.
  void note_strangers() {
    for (const FunctionRange& range : code_.functions()) {
      const auto stranger = strangers_.find(owner_of(range));
      if (stranger == strangers_.end()) continue;
      const uint64_t end = range.address + range.size_bytes;
      for (auto at = code_.at(range.address); at && at->address < end; at = code_.at(at->end())) {
        const auto effect = register_effect(code_.text_from(at->address).first(at->length));
        stranger->second.reads = stranger->second.reads | effect.read;
        stranger->second.keeps_none = stranger->second.keeps_none || overwrites(*at);
      }
    }
    for (const Lead& lead : leads_) {
      RegisterSet& wanted = result_.calls.wanted[functions_[lead.callee].function];
      wanted = wanted | wanted_by(lead);
    }
  }

  RegisterSet wanted_by(const Lead& lead) {
    const Stranger& stranger = strangers_.at(lead.owner);
    if (!stranger.keeps_none) return kAllRegisters;
    const RegisterSet wanted = stranger.reads | kOfCaller;
    return is_r11_over(lead) ? without_r11(wanted) : wanted;
  }

  // Nobody keeps r11 over a call of what calls may overwrite it in, and no compiler has results
  // there; those of hand-written code are read behind the call, and not at the end of some jump.
  bool is_r11_over(const Lead& lead) {
    if (lead.is_jump) return false;
    const ValueUse use = use_of_r11(lead.owner, lead.behind, AtReturn::Dropped);
    return use == ValueUse::None || (use != ValueUse::Read && overwriting_[lead.callee]);
  }

  void find_leads() {
    for (const FunctionRange& range : code_.functions()) {
      const uint64_t end = range.address + range.size_bytes;
      for (auto at = code_.at(range.address); at && at->address < end; at = code_.at(at->end())) {
        const bool leads =
            at->flow == Flow::Call || at->flow == Flow::Jump || at->flow == Flow::Conditional;
        if (!leads) continue;
        const uint64_t target = branch_target(code_, *at);
        if (const auto function = code_.function_starting_at(target))
          sites_[*function].push_back(at->address);
        if (is_known_code(at->address)) continue;
        const auto callee = known_at(target);
        if (!callee) continue;
        leads_.push_back({owner_of(range), *callee, at->end(), at->flow != Flow::Call});
        strangers_.try_emplace(owner_of(range));
      }
    }
  }

  [[nodiscard]] uint32_t owner_of(const FunctionRange& range) const {
    return code_.owner_of(static_cast<uint32_t>(&range - code_.functions().data()));
  }

  // Functions that call through imports or pointers, or others that do.
  void find_overwriting() {
    overwriting_.assign(functions_.size(), false);
    settle([this](uint32_t i) {
      const bool calls_such =
          std::any_of(calls_of_[i].begin(), calls_of_[i].end(),
                      [this](const Call& call) { return overwriting_[call.callee]; });
      const bool is_such = calls_such || result_.blocks[i].changed == kAllRegisters;
      const bool is_new = is_such && !overwriting_[i];
      overwriting_[i] = is_such;
      return is_new ? callers_[i] : std::vector<uint32_t>();
    });
  }

  // `call *(%rax)` may be that of a TLS descriptor, which leaves all but rax alone.
  [[nodiscard]] bool overwrites(const Instruction& call) const {
    if (call.flow == Flow::IndirectCall) {
      const auto bytes = code_.text_from(call.address).first(call.length);
      return call.length < 2 || bytes[call.length - 2U] != 0xff || bytes.back() != 0x10;
    }
    if (call.flow != Flow::Call) return false;
    const uint64_t target = branch_target(code_, call);
    const auto callee = known_at(target);
    return callee ? overwriting_[*callee] : !code_.range_at(target);
  }

  [[nodiscard]] bool is_known_code(uint64_t address) const {
    const std::optional<uint32_t> range = code_.range_at(address);
    const auto known = range ? index_.find(code_.owner_of(*range)) : index_.end();
    if (known == index_.end()) return false;
    return functions_[known->second].blocks->block_at(address).has_value();
  }

  [[nodiscard]] Liveness liveness_of(uint32_t index) const {
    return Liveness::by_calls(code_, functions_[index], flags_, result_.calls,
                              result_.blocks[index]);
  }

  bool grow_reads(uint32_t index) {
    const FunctionBlocks& function = functions_[index];
    const auto entry = function.blocks->block_at(code_.functions()[function.function].address);
    const RegisterSet reads = entry ? liveness_of(index).at_start(*entry).registers : kAllRegisters;
    RegisterSet& known = result_.calls.reads[function.function];
    const bool is_free = reads.has(abi::Register::R11) && takes_no_r11(function.function);
    const RegisterSet all = known | (is_free ? without_r11(reads) : reads);
    return std::exchange(known, all) != all;
  }

  // Calls of what calls may overwrite r11 in, if nobody reads it behind them as a result.
  void find_over_r11(uint32_t index) {
    const FunctionBlocks& function = functions_[index];
    const bool is_result = result_.calls.wanted[function.function].has(abi::Register::R11);
    for (const Call& call : calls_of_[index]) {
      if (call.behind == kNoBlock || !overwriting_[call.callee]) continue;
      const ValueUse use =
          use_of_r11(function.function, function.blocks->blocks()[call.behind].begin,
                     is_result ? AtReturn::Read : AtReturn::Dropped);
      if (use == ValueUse::Read) {
        result_.calls.over_r11.erase(call.address);
      } else {
        result_.calls.over_r11.insert(call.address);
      }
    }
  }

  // The callees of whom more is wanted than before.
  std::vector<uint32_t> grow_wanted(uint32_t index) {
    std::vector<uint32_t> grown;
    if (calls_of_[index].empty()) return grown;
    find_over_r11(index);
    const Liveness liveness = liveness_of(index);
    for (const Call& call : calls_of_[index]) {
      RegisterSet wanted;
      if (call.is_jump) wanted = result_.calls.wanted[functions_[index].function];
      if (call.behind != kNoBlock) wanted = liveness.at_start(call.behind).registers;
      if (result_.calls.over_r11.contains(call.address)) wanted = without_r11(wanted);
      RegisterSet& known = result_.calls.wanted[functions_[call.callee].function];
      const RegisterSet all = known | wanted;
      if (all != known) grown.push_back(call.callee);
      known = all;
    }
    return grown;
  }

  const ModuleCode& code_;
  FlagValues& flags_;
  std::span<const FunctionBlocks> functions_;
  std::unordered_map<uint32_t, uint32_t> index_;  // Of code.functions(): in functions_.
  std::vector<std::vector<Call>> calls_of_;       // By caller.
  std::vector<std::vector<uint32_t>> callers_;    // By callee.
  struct Stranger {
    RegisterSet reads;
    bool keeps_none = false;
  };
  std::unordered_map<uint32_t, Stranger> strangers_;  // By function, of code.functions().
  std::vector<Lead> leads_;
  std::unordered_map<uint32_t, std::vector<uint64_t>>
      sites_;                                            // Calls and jumps, by their function.
  std::unordered_map<uint32_t, ValueUses> uses_of_r11_;  // By function, of code.functions().
  std::vector<bool> overwriting_;                        // By function.
  std::vector<uint32_t> without_r11_;  // Of code.functions(): strangers that do not take it.
  ModuleEffects result_;
};

}  // namespace

ModuleEffects find_call_effects(const ModuleCode& code, FlagValues& flags,
                                std::span<const FunctionBlocks> functions) {
  return EffectsFinder(code, flags, functions).run();
}

}  // namespace clew::code

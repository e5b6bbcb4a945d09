// SPDX-License-Identifier: Apache-2.0
// Two fixed points over the graph of calls: what is read grows from callees to callers, and what is
// wanted behind calls from callers to callees.
#include "code/call_effects.h"

#include <optional>
#include <unordered_map>
#include <utility>

#include "code/register_effect.h"

namespace clew::code {

namespace {

using abi::RegisterSet;

constexpr RegisterSet operator|(RegisterSet a, RegisterSet b) {
  return RegisterSet(static_cast<uint16_t>(a.bits() | b.bits()));
}

// A call or tail jump of one given function to another one.
struct Call {
  uint32_t caller = 0;  // In the list of functions, and so the callee.
  uint32_t callee = 0;
  uint32_t behind = kNoBlock;  // The block that a call comes back to; none for jumps.
  bool is_jump = false;
};

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
    // What only passes through, as somebody wants it behind, nobody reads: so this comes first.
    settle([this](uint32_t i) { return grow_reads(i) ? callers_[i] : std::vector<uint32_t>(); });
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
        if (edge.kind == EdgeKind::TailCall) note({index, 0, kNoBlock, true}, edge.target);
      }
      if (!last || last->flow != Flow::Call) continue;
      note({index, 0, behind, false}, branch_target(code_, *last));
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

  // Code that is in none of the functions may want anything behind its calls, and so may those who
  // called it, where it jumps.
  void note_strangers() {
    for (const FunctionRange& range : code_.functions()) {
      const uint64_t end = range.address + range.size_bytes;
      for (auto at = code_.at(range.address); at && at->address < end; at = code_.at(at->end())) {
        const bool leads =
            at->flow == Flow::Call || at->flow == Flow::Jump || at->flow == Flow::Conditional;
        if (!leads || is_known_code(at->address)) continue;
        if (const auto callee = known_at(branch_target(code_, *at))) {
          result_.calls.wanted[functions_[*callee].function] = kAllRegisters;
        }
      }
    }
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
    return std::exchange(known, known | reads) != (known | reads);
  }

  // The callees of whom more is wanted than before.
  std::vector<uint32_t> grow_wanted(uint32_t index) {
    std::vector<uint32_t> grown;
    if (calls_of_[index].empty()) return grown;
    const Liveness liveness = liveness_of(index);
    for (const Call& call : calls_of_[index]) {
      RegisterSet wanted;
      if (call.is_jump) wanted = result_.calls.wanted[functions_[index].function];
      if (call.behind != kNoBlock) wanted = liveness.at_start(call.behind).registers;
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
  ModuleEffects result_;
};

}  // namespace

ModuleEffects find_call_effects(const ModuleCode& code, FlagValues& flags,
                                std::span<const FunctionBlocks> functions) {
  return EffectsFinder(code, flags, functions).run();
}

}  // namespace clew::code

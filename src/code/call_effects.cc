// SPDX-License-Identifier: Apache-2.0
// Two fixed points over the graph of calls.
#include "code/call_effects.h"

#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "code/register_effect.h"

namespace clew::code {

namespace {

using abi::RegisterSet;

constexpr RegisterSet operator|(RegisterSet a, RegisterSet b) {
  return RegisterSet(static_cast<uint16_t>(a.bits() | b.bits()));
}

class EffectsFinder {
 public:
  EffectsFinder(const ModuleCode& code, FlagValues& flags, std::span<const FunctionBlocks> functions)
      : code_(code), flags_(flags), functions_(functions) {
    result_.reads.assign(code.functions().size(), kAllRegisters);
    result_.changes = result_.reads;
    for (uint32_t i = 0; i < functions.size(); ++i)
      index_.emplace(functions[i].function, i);
    callers_.resize(functions.size());
  }

  CallEffects run() {
    for (uint32_t i = 0; i < functions_.size(); ++i)
      result_.changes[functions_[i].function] = own_changes(i);
    settle([this](uint32_t i) { return grow_changes(i); });
    for (const FunctionBlocks& function : functions_)
      result_.reads[function.function] = {};
    settle([this](uint32_t i) { return grow_reads(i); });
    return std::move(result_);
  }

 private:
  // Looks at each function, and at the callers of each that has grown. Callees tend to come first
  // in files, and so do they here.
  template <typename Grow>
  void settle(Grow grow) {
    std::vector<uint32_t> pending;
    std::vector<bool> is_pending(functions_.size(), true);
    for (auto i = static_cast<uint32_t>(functions_.size()); i-- > 0;)
      pending.push_back(i);
    while (!pending.empty()) {
      const uint32_t i = pending.back();
      pending.pop_back();
      is_pending[i] = false;
      if (!grow(i)) continue;
      for (const uint32_t caller : callers_[i]) {
        if (is_pending[caller]) continue;
        is_pending[caller] = true;
        pending.push_back(caller);
      }
    }
  }

  // Notes who calls whom on the way.
  RegisterSet own_changes(uint32_t index) {
    RegisterSet changed;
    const Blocks& blocks = *functions_[index].blocks;
    for (const Block& block : blocks.blocks()) {
      for (auto at = code_.at(block.begin); at && at->address < block.end;
           at = code_.at(at->end())) {
        changed = changed | register_effect(code_.text_from(at->address).first(at->length)).changed;
        if (at->flow == Flow::IndirectCall) changed = kAllRegisters;
        if (at->flow == Flow::Call) changed = changed | note_call(index, branch_target(code_, *at));
      }
      for (const Edge& edge : blocks.edges_of(block)) {
        if (edge.kind == EdgeKind::TailCall) changed = changed | note_call(index, edge.target);
      }
    }
    return changed;
  }

  // All, when nothing is known of what is called there.
  RegisterSet note_call(uint32_t caller, uint64_t target) {
    const std::optional<uint32_t> callee = code_.function_starting_at(target);
    const auto known = callee ? index_.find(*callee) : index_.end();
    if (known == index_.end()) return kAllRegisters;
    callers_[known->second].push_back(caller);
    callees_.emplace(caller, known->second);
    return {};
  }

  bool grow_changes(uint32_t index) {
    RegisterSet& changes = result_.changes[functions_[index].function];
    RegisterSet all = changes;
    const auto [from, to] = callees_.equal_range(index);
    for (auto callee = from; callee != to; ++callee)
      all = all | result_.changes[functions_[callee->second].function];
    const bool grows = !(all == changes) || !has_changes_told(index);
    changes = all;
    return grows;
  }

  // The first look tells callers in any case.
  bool has_changes_told(uint32_t index) {
    if (told_.empty()) told_.resize(functions_.size());
    const bool has_told = told_[index];
    told_[index] = true;
    return has_told;
  }

  bool grow_reads(uint32_t index) {
    const FunctionBlocks& function = functions_[index];
    const Liveness liveness =
        Liveness::by_abi(code_, function.function, *function.blocks, flags_, &result_);
    const auto entry = function.blocks->block_at(code_.functions()[function.function].address);
    const RegisterSet reads = entry ? liveness.at_start(*entry).registers : kAllRegisters;
    RegisterSet& known = result_.reads[function.function];
    if (reads == known) return false;
    known = known | reads;
    return true;
  }

  const ModuleCode& code_;
  FlagValues& flags_;
  std::span<const FunctionBlocks> functions_;
  std::unordered_map<uint32_t, uint32_t> index_;  // Of code.functions(): in functions_.
  std::vector<std::vector<uint32_t>> callers_;    // By index in functions_, and so all of these.
  std::unordered_multimap<uint32_t, uint32_t> callees_;
  std::vector<bool> told_;
  CallEffects result_;
};

}  // namespace

CallEffects find_call_effects(const ModuleCode& code, FlagValues& flags,
                              std::span<const FunctionBlocks> functions) {
  return EffectsFinder(code, flags, functions).run();
}

}  // namespace clew::code

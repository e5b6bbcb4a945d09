// SPDX-License-Identifier: Apache-2.0
#include "recorder/homes.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/assert.h"
#include "code/register_effect.h"

namespace clew::recorder {

namespace {

using abi::Register;
using abi::RegisterSet;

// What a call may overwrite, the best first.
constexpr std::array kCandidates = {Register::R11, Register::R10, Register::R9,
                                    Register::R8,  Register::Rcx, Register::Rsi,
                                    Register::Rdi, Register::Rdx, Register::Rax};
constexpr unsigned kSweeps = 3;

RegisterSet touched_by(const code::ModuleCode& code, const code::Instruction& at) {
  const auto effect = code::register_effect(code.text_from(at.address).first(at.length));
  return RegisterSet(static_cast<uint16_t>(effect.read.bits() | effect.changed.bits()));
}

// Of one function; what others take and leave is found before.
class HomesFinder {
 public:
  HomesFinder(const RecordedFunction& function, std::span<const FunctionHomes> homes)
      : function_(function),
        all_(homes),
        size_(function.size()),
        sources_(size_),
        needs_(size_),
        used_(size_) {
    for (uint32_t block = 0; block < size_; ++block)
      ends_.push_back(function.leaving(block));
  }

  void run(FunctionHomes& homes) {
    find_sources();
    find_needs(homes.leaves);
    find_used();
    homes.at.assign(size_, kMemory);
    for (uint32_t block = 0; block < size_; ++block)
      if (is_free(block, Register::R11)) homes.at[block] = Register::R11;
    for (unsigned i = 0; i < kSweeps; ++i) {
      for (uint32_t block = 0; block < size_; ++block)
        homes.at[block] = best_home(block, homes);
    }
    const uint32_t entry = function_.flow.entry();
    homes.takes = homes.takes && homes.at[entry] != kMemory;
    for (uint32_t block = 0; block < size_; ++block)
      homes.arrives.push_back(arrival(block, homes));
  }

 private:
  [[nodiscard]] bool is_free(uint32_t block, Register r) const {
    return needs_[block] && !used_[block].has(r);
  }

  // Blocks that lead to each, but by calls.
  void find_sources() {
    for (uint32_t block = 0; block < size_; ++block) {
      const Node& node = function_.flow.nodes()[block];
      if (ends_[block].calls) {
        for (const Way& way : function_.flow.ways_of(block))
          if (way.block != kNone) calls_.push_back({way.block, block});
        if (node.behind != kNone) calls_.push_back({node.behind, block});
        continue;
      }
      for (const Way& way : function_.flow.ways_of(block))
        if (way.block != kNone) sources_[way.block].push_back(block);
    }
    std::sort(calls_.begin(), calls_.end());
  }

  // Where a probe follows, or who wants r11, before memory has the cursor anyway.
  void find_needs(bool leaves) {
    std::vector<uint32_t> pending;
    const auto note = [&](uint32_t block) {
      if (needs_[block]) return;
      needs_[block] = true;
      pending.push_back(block);
    };
    for (const DagHead& head : function_.tiling.heads)
      note(head.block);
    for (const BitSite& bit : function_.tiling.bits) {
      const Way& way = function_.flow.ways_of(bit.block)[bit.edge];
      note(bit.on_target ? way.block : bit.block);
    }
    for (uint32_t block = 0; block < size_; ++block) {
      const auto ways = function_.flow.ways_of(block);
      const bool has_tail = std::any_of(ways.begin(), ways.end(),
                                        [](const Way& way) { return way.kind == WayKind::Tail; });
      if (ends_[block].callee != kNone || (ends_[block].returns && leaves) || has_tail) note(block);
    }
    while (!pending.empty()) {
      const uint32_t block = pending.back();
      pending.pop_back();
      for (const uint32_t source : sources_[block])
        note(source);
    }
  }

  // What is live at the start, or touched.
  void find_used() {
    const code::ModuleCode& code = function_.facts.code;
    const std::vector<code::Block>& blocks = function_.proved.blocks.blocks();
    for (uint32_t block = 0; block < size_; ++block) {
      if (!needs_[block]) continue;
      if (function_.is_passed_by(block)) {
        used_[block] = code::kAllRegisters;
        continue;
      }
      unsigned used = function_.live.at_start(block).registers.bits();
      for (auto at = code.at(blocks[block].begin); at && at->address < blocks[block].end;
           at = code.at(at->end())) {
        used |= touched_by(code, *at).bits();
      }
      used_[block] = RegisterSet(static_cast<uint16_t>(used));
    }
  }

  // That of most neighbours; among equals the one that it has, then the best of all.
  [[nodiscard]] Home best_home(uint32_t block, const FunctionHomes& homes) const {
    std::array<unsigned, 16> votes{};
    const auto vote = [&](Home home) {
      if (home) votes[static_cast<size_t>(*home)] += 2;
    };
    for (const uint32_t source : sources_[block])
      vote(homes.at[source]);
    for (const Way& way : function_.flow.ways_of(block)) {
      if (!ends_[block].calls && way.block != kNone) vote(homes.at[way.block]);
      if (way.kind == WayKind::Tail) vote(kPassed);
    }
    if (ends_[block].callee != kNone || ends_[block].returns) vote(kPassed);
    if (block == function_.flow.entry()) vote(kPassed);
    vote_behind_calls(block, vote);
    if (homes.at[block]) ++votes[static_cast<size_t>(*homes.at[block])];
    Home best = kMemory;
    for (const Register r : kCandidates) {
      if (!is_free(block, r)) continue;
      if (!best || votes[static_cast<size_t>(r)] > votes[static_cast<size_t>(*best)]) best = r;
    }
    return best;
  }

  template <typename Vote>
  void vote_behind_calls(uint32_t block, const Vote& vote) const {
    auto call = std::lower_bound(calls_.begin(), calls_.end(), std::pair(block, 0U));
    for (; call != calls_.end() && call->first == block; ++call) {
      const uint32_t callee = ends_[call->second].callee;
      if (callee != kNone && all_[callee].leaves) vote(kPassed);
    }
  }

  [[nodiscard]] Home arrival(uint32_t block, const FunctionHomes& homes) const {
    if (block == function_.flow.entry()) return homes.takes ? kPassed : kMemory;
    const auto& pads = function_.flow.landing_pads();
    const auto call = std::lower_bound(calls_.begin(), calls_.end(), std::pair(block, 0U));
    const bool is_called_back = call != calls_.end() && call->first == block;
    if (std::binary_search(pads.begin(), pads.end(), block)) return kMemory;
    if (!is_called_back && sources_[block].empty()) return kMemory;  // By a way that nobody sees.
    const auto& sources = sources_[block];
    const bool is_one_home =
        !is_called_back && std::all_of(sources.begin(), sources.end(), [&](uint32_t source) {
          return homes.at[source] == homes.at[sources.front()] &&
                 !function_.goes_round(source, block);
        });
    if (is_one_home) return homes.at[sources.front()];
    const Home home = homes.at[block];
    const bool all_bring = std::all_of(sources.begin(), sources.end(), [&](uint32_t source) {
      return home == kMemory || homes.at[source] == home || !ends_[source].switches() ||
             function_.is_free_at_end(source, *home);
    });
    return all_bring ? home : kMemory;
  }

  const RecordedFunction& function_;
  std::span<const FunctionHomes> all_;
  uint32_t size_;
  std::vector<Leaving> ends_;  // By block, and so is the next one.
  std::vector<std::vector<uint32_t>> sources_;
  std::vector<std::pair<uint32_t, uint32_t>> calls_;  // Blocks behind calls, and those that call.
  std::vector<bool> needs_;                           // By block, and so is the next one.
  std::vector<RegisterSet> used_;                     // Where it needs a register.
};

// Does it return with r11 free, wherever it does so itself? Where else it goes is noted: callee,
// function.
bool may_leave(const RecordedFunction& function,
               std::vector<std::pair<uint32_t, uint32_t>>& tails) {
  bool may = true;
  for (uint32_t block = 0; block < function.size() && may; ++block) {
    for (const Way& way : function.flow.ways_of(block)) {
      if (way.kind == WayKind::Block) continue;
      const Leaving end = function.leaving(block);
      if (way.kind == WayKind::Tail) tails.emplace_back(way.function, function.flow.function());
      may = may && (way.kind == WayKind::Tail
                        ? !end.switches()
                        : end.returns && function.is_free_at_end(block, Register::R11));
    }
  }
  return may;
}

void find_leaving(std::span<const RecordedFunction> functions, std::vector<FunctionHomes>& homes) {
  std::vector<std::pair<uint32_t, uint32_t>> tails;
  for (size_t i = 0; i < functions.size(); ++i)
    homes[i].leaves = homes[i].leaves && may_leave(functions[i], tails);
  for (bool changes = true; changes;) {
    changes = false;
    for (const auto& [callee, function] : tails) {
      if (!homes[function].leaves || homes[callee].leaves) continue;
      homes[function].leaves = false;
      changes = true;
    }
  }
}

}  // namespace

Leaving RecordedFunction::leaving(uint32_t block) const {
  const auto last = facts.code.at(proved.blocks.blocks()[block].last);
  CLEW_ASSERT(last.has_value());
  Leaving end{.last = *last};
  end.calls = last->flow == code::Flow::Call || last->flow == code::Flow::IndirectCall;
  end.returns = last->flow == code::Flow::Return;
  if (last->flow == code::Flow::Call) end.callee = copied.entered_by(facts.code, *last);
  return end;
}

bool RecordedFunction::is_free_at_end(uint32_t block, abi::Register r) const {
  if (is_passed_by(block)) return false;
  const uint64_t last = proved.blocks.blocks()[block].last;
  const auto at = facts.code.at(last);
  return at && !live.before(last).registers.has(r) && !touched_by(facts.code, *at).has(r);
}

bool RecordedFunction::is_passed_by(uint32_t block) const {
  const code::Block& own = proved.blocks.blocks()[block];
  return own.begin == own.last &&
         std::any_of(tiling.loops.begin(), tiling.loops.end(),
                     [block](const OnceLoop& loop) { return loop.head == block; });
}

bool RecordedFunction::goes_round(uint32_t block, uint32_t to) const {
  const auto loop =
      std::lower_bound(tiling.loops.begin(), tiling.loops.end(), block,
                       [](const OnceLoop& one, uint32_t value) { return one.latch < value; });
  return loop != tiling.loops.end() && loop->latch == block && loop->head == to;
}

std::vector<FunctionHomes> find_homes(std::span<const RecordedFunction> functions,
                                      const code::CallEffects& calls) {
  std::vector<FunctionHomes> homes(functions.size());
  for (size_t i = 0; i < functions.size(); ++i) {
    const RecordedFunction& one = functions[i];
    const bool is_wanted = calls.wanted[one.proved.function].has(Register::R11);
    homes[i].takes =
        !is_wanted && !one.live.at_start(one.flow.entry()).registers.has(Register::R11);
    homes[i].leaves = !is_wanted;
  }
  find_leaving(functions, homes);
  for (size_t i = 0; i < functions.size(); ++i)
    HomesFinder(functions[i], homes).run(homes[i]);
  return homes;
}

Home wanted_on(const Way& way, const RecordedFunction& from, uint32_t block,
               std::span<const FunctionHomes> homes) {
  const Leaving end = from.leaving(block);
  const FunctionHomes& own = homes[from.flow.function()];
  switch (way.kind) {
    case WayKind::Return:
      return end.returns && own.leaves ? kPassed : kMemory;
    case WayKind::Tail:
      return !end.switches() && homes[way.function].takes ? kPassed : kMemory;
    case WayKind::TailOut:
      return kMemory;
    case WayKind::Block:
      break;
  }
  if (from.goes_round(block, way.block)) return own.at[way.block];
  // A table leads in front of what brings the cursor from memory.
  if (end.switches() && way.block == from.flow.entry()) return kMemory;
  return own.arrives[way.block];
}

}  // namespace clew::recorder

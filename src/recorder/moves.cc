// SPDX-License-Identifier: Apache-2.0
#include "recorder/moves.h"

#include <algorithm>

#include "base/assert.h"

namespace clew::recorder {

namespace {

class MovesFinder {
 public:
  MovesFinder(const RecordedFunction& function, std::span<const FunctionHomes> homes)
      : function_(function),
        homes_(homes),
        own_(homes[function.flow.function()]),
        size_(function.size()),
        is_head_(size_),
        calls_(size_),
        stores_(size_),
        is_current_(size_, true) {
    for (const DagHead& head : function.tiling.heads)
      is_head_[head.block] = true;
    moves_.start.resize(size_);
    moves_.end.resize(size_);
    moves_.taken.resize(size_);
    moves_.passed.resize(size_);
  }

  FunctionMoves run() {
    for (uint32_t block = 0; block < size_; ++block) {
      if (own_.arrives[block] != own_.at[block])
        moves_.start[block] = CursorMove{own_.arrives[block], own_.at[block]};
      leave(block);
    }
    find_current();
    for (uint32_t block = 0; block < size_; ++block) {
      auto& start = moves_.start[block];
      if (start && start->to == kMemory && is_current_[block]) start.reset();
      if (stores_[block] && !is_current_at_end(block))
        moves_.end[block].insert(moves_.end[block].begin(), CursorMove{own_.at[block], kMemory});
    }
    return std::move(moves_);
  }

 private:
  void leave(uint32_t block) {
    const Leaving end = function_.leaving(block);
    const auto ways = function_.flow.ways_of(block);
    calls_[block] = end.calls;
    if (end.calls) return call(block, end);
    for (size_t i = 0; i < ways.size(); ++i)
      go(block, ways[i], i);
  }

  void call(uint32_t block, const Leaving& end) {
    if (end.callee != kNone && homes_[end.callee].takes) {
      if (own_.at[block] != kPassed) moves_.end[block].push_back({own_.at[block], kPassed});
    } else {
      stores_[block] = own_.at[block] != kMemory;
    }
    const Home from = end.callee != kNone && homes_[end.callee].leaves ? kPassed : kMemory;
    const Home to = behind(block);
    if (to != kMemory && to != from) moves_.passed[block] = CursorMove{from, to};
  }

  // Where a call's block wants the cursor behind the call.
  [[nodiscard]] Home behind(uint32_t block) const {
    const Node& node = function_.flow.nodes()[block];
    if (node.behind != kNone) return own_.arrives[node.behind];
    const auto ways = function_.flow.ways_of(block);
    if (!ways.empty()) return wanted_on(ways[0], function_, block, homes_);
    const auto& blocks = function_.proved.blocks;
    const auto edges = blocks.edges_of(blocks.blocks()[block]);
    const uint32_t other = edges.empty() ? kNone : function_.copied.at(edges[0].target);
    return other != kNone && homes_[other].takes ? kPassed : kMemory;
  }

  void go(uint32_t block, const Way& way, size_t side) {
    const Home from = own_.at[block];
    const Home to = wanted_on(way, function_, block, homes_);
    const bool returns = way.kind == WayKind::Return;
    if (from != kMemory && (to == kMemory || returns)) stores_[block] = true;
    if (to == kMemory || to == from) return;
    const CursorMove move = {from, to};
    auto& at_end = moves_.end[block];
    if (std::find(at_end.begin(), at_end.end(), move) != at_end.end()) return;
    const code::Flow last = function_.leaving(block).last.flow;
    // Behind a jump nothing can be done, and it touches no register.
    if (last == code::Flow::Jump || function_.is_free_at_end(block, *to)) {
      return at_end.push_back(move);
    }
    CLEW_ASSERT(!returns && last != code::Flow::IndirectJump);
    const bool is_taken = function_.flow.nodes()[block].is_branch && side == 0;
    (is_taken ? moves_.taken : moves_.passed)[block] = move;
  }

  // Where memory has the cursor that the block's start has: the most that fits.
  void find_current() {
    const uint32_t entry = function_.flow.entry();
    if (own_.takes) is_current_[entry] = false;
    for (bool changes = true; changes;) {
      changes = false;
      for (uint32_t block = 0; block < size_; ++block) {
        if (calls_[block] || stores_[block] || is_current_at_end(block)) continue;
        for (const Way& way : function_.flow.ways_of(block)) {
          if (way.block == kNone || !is_current_[way.block]) continue;
          is_current_[way.block] = false;
          changes = true;
        }
      }
    }
  }

  // In front of what is stored there.
  [[nodiscard]] bool is_current_at_end(uint32_t block) const {
    if (own_.at[block] == kMemory) return true;
    return !is_head_[block] && (is_current_[block] || own_.arrives[block] == kMemory);
  }

  const RecordedFunction& function_;
  std::span<const FunctionHomes> homes_;
  const FunctionHomes& own_;
  uint32_t size_;
  FunctionMoves moves_;
  std::vector<bool> is_head_;
  std::vector<bool> calls_;
  std::vector<bool> stores_;  // At its end memory must have the cursor.
  std::vector<bool> is_current_;
};

}  // namespace

FunctionMoves find_moves(const RecordedFunction& function, std::span<const FunctionHomes> homes) {
  return MovesFinder(function, homes).run();
}

}  // namespace clew::recorder

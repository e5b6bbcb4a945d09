// SPDX-License-Identifier: Apache-2.0
#include "recorder/futures.h"

#include <algorithm>
#include <iterator>

namespace clew::recorder {

namespace {

// The record of a copied function's entry, and those of other heads by their block. A function that
// jumps to its own first instruction writes the same record as one that calls itself.
constexpr uint32_t kEntryBit = 1U << 31;

struct OpenCall {
  uint32_t block = 0;
  uint32_t way = 0;
};

}  // namespace

void Next::add(const Next& other) {
  any = any || other.any;
  std::vector<uint32_t> sum;
  if (!any) {
    std::set_union(records.begin(), records.end(), other.records.begin(), other.records.end(),
                   std::back_inserter(sum));
    any = sum.size() > kNextMax;
  }
  if (any) sum.clear();
  records = std::move(sum);
}

bool Next::surely_differs_from(const Next& other) const {
  if (any || other.any) return false;
  std::vector<uint32_t> both;
  std::set_intersection(records.begin(), records.end(), other.records.begin(), other.records.end(),
                        std::back_inserter(both));
  return both.empty();
}

Futures::Futures(const Flow& flow, const std::vector<bool>& is_head,
                 const std::vector<Cycle>& cycles)
    : flow_(flow),
      is_head_(is_head),
      next_(flow.nodes().size()),
      cycle_next_(flow.nodes().size(), kNone),
      needs_bit_(flow.nodes().size()),
      decides_(flow.nodes().size()) {
  for (const Cycle& cycle : cycles) {
    for (size_t i = 0; i < cycle.size(); ++i)
      cycle_next_[cycle[i]] = cycle[(i + 1) % cycle.size()];
  }
  sort_blocks();
  for (const uint32_t block : order_)
    find(block);
  for (const Cycle& cycle : cycles)
    decide_exits(cycle);
  std::reverse(order_.begin(), order_.end());
}

// Depth first, what is done first first.
void Futures::sort_blocks() {
  std::vector<bool> seen(flow_.nodes().size());
  std::vector<OpenCall> open;
  for (uint32_t root = 0; root < seen.size(); ++root) {
    if (seen[root]) continue;
    seen[root] = true;
    open.push_back({root});
    while (!open.empty()) {
      OpenCall& top = open.back();
      const auto ways = flow_.ways_of(top.block);
      if (top.way == ways.size()) {
        order_.push_back(top.block);
        open.pop_back();
        continue;
      }
      const uint32_t to = ways[top.way++].block;
      if (to == kNone || is_head_[to] || seen[to]) continue;
      seen[to] = true;
      open.push_back({to});
    }
  }
}

Next Futures::next_of(const Way& way) const {
  switch (way.kind) {
    case WayKind::Return:
    case WayKind::TailOut:
      return {true, {}};
    case WayKind::Tail:
      return {false, {way.function | kEntryBit}};
    case WayKind::Block:
      break;
  }
  if (!is_head_[way.block]) return next_[way.block];
  if (way.block == flow_.entry()) return {false, {flow_.function() | kEntryBit}};
  return {false, {way.block}};
}

bool Futures::is_undecided(uint32_t block) const {
  if (!flow_.nodes()[block].is_branch || cycle_next_[block] != kNone) return false;
  const auto ways = flow_.ways_of(block);
  return ways[0] != ways[1] && !next_of(ways[0]).surely_differs_from(next_of(ways[1]));
}

void Futures::find(uint32_t block) {
  const Node& node = flow_.nodes()[block];
  Next& next = next_[block];
  if (node.call == CallKind::Copied) {
    next.records = {node.callee | kEntryBit};
    return;
  }
  const auto ways = flow_.ways_of(block);
  next.any = ways.empty();
  needs_bit_[block] = is_undecided(block);
  decides_[block] = needs_bit_[block];
  for (const Way& way : ways) {
    if (is_in_cycle(block, way) && is_head_[way.block]) continue;
    next.add(next_of(way));
    if (way.block != kNone && !is_head_[way.block] && decides_[way.block]) decides_[block] = true;
  }
}

// The loop goes on until it is left, so its exits stand against each other: those need no bit whose
// next records all others surely do not have, and one more.
void Futures::decide_exits(const Cycle& cycle) {
  std::vector<uint32_t> blocks;
  std::vector<Next> exits;
  for (const uint32_t block : cycle) {
    for (const Way& way : flow_.ways_of(block)) {
      if (is_in_cycle(block, way)) continue;
      blocks.push_back(block);
      exits.push_back(next_of(way));
    }
  }
  bool has_one = false;
  for (size_t i = exits.size(); i-- > 0;) {
    const bool differs = std::all_of(exits.begin(), exits.end(), [&](const Next& other) {
      return &other == &exits[i] || other.surely_differs_from(exits[i]);
    });
    if (differs) continue;
    needs_bit_[blocks[i]] = has_one;
    has_one = true;
  }
}

}  // namespace clew::recorder

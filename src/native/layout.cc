// SPDX-License-Identifier: Apache-2.0
// Depth-first search with an explicit stack: programs may be 65536 instructions long.
#include "native/layout.h"

#include <algorithm>
#include <limits>

#include "base/assert.h"

namespace clew::native {
namespace {

using Kind = OperationKind;

bool ends_block(const Operation& op, const Facts& facts) {
  if (op.kind == Kind::Exit || op.kind == Kind::Jump) return true;
  return op.kind == Kind::Branch && facts.needed;
}

class Layout {
 public:
  Layout(std::span<const Operation> operations, std::span<Facts> facts)
      : operations_(operations), facts_(facts), state_(operations.size(), State::New) {}

  std::vector<Block> run();

 private:
  enum class State : uint8_t { New, Open, Done };
  struct Visit {
    Block block;
    uint32_t next_successor = 0;
  };

  [[nodiscard]] Block block_at(uint32_t first) const;
  // Successor 0 is the target of a conditional branch, 1 the continuation; size() for none.
  [[nodiscard]] uint32_t successor(const Block& block, uint32_t which) const;
  void search();
  void mark();

  std::span<const Operation> operations_;
  std::span<Facts> facts_;
  std::vector<State> state_;  // Of the block that starts at an operation.
  std::vector<Block> order_;
};

Block Layout::block_at(uint32_t first) const {
  uint32_t last = first;
  while (!ends_block(operations_[last], facts_[last])) {
    CLEW_ASSERT(last + 1 < operations_.size());  // The last one ends a block.
    if (facts_[last + 1].is_target) break;
    ++last;
  }
  return {first, last};
}

uint32_t Layout::successor(const Block& block, uint32_t which) const {
  const Operation& op = operations_[block.last];
  if (which == 1) return continuation(operations_, facts_, block);
  const Facts& facts = facts_[block.last];
  const bool conditional = op.kind == Kind::Branch && facts.needed && !facts.always_taken;
  return conditional ? op.target : static_cast<uint32_t>(operations_.size());
}

// Postorder, reversed at the end. The branch target is visited first, so it comes out later.
void Layout::search() {
  std::vector<Visit> stack = {{.block = block_at(0)}};
  state_[0] = State::Open;
  while (!stack.empty()) {
    Visit& visit = stack.back();
    if (visit.next_successor == 2) {
      state_[visit.block.first] = State::Done;
      order_.push_back(visit.block);
      stack.pop_back();
      continue;
    }
    const uint32_t next = successor(visit.block, visit.next_successor++);
    if (next >= operations_.size() || state_[next] != State::New) continue;
    state_[next] = State::Open;
    stack.push_back({.block = block_at(next)});
  }
  std::reverse(order_.begin(), order_.end());
}

void Layout::mark() {
  std::vector<uint32_t> position(operations_.size() + 1, std::numeric_limits<uint32_t>::max());
  for (uint32_t i = 0; i < order_.size(); ++i)
    position[order_[i].first] = i;
  for (uint32_t i = 0; i < order_.size(); ++i) {
    for (const uint32_t which : {0U, 1U}) {
      const uint32_t next = successor(order_[i], which);
      if (next >= operations_.size()) continue;
      if (position[next] != i + 1) facts_[next].needs_label = true;
      if (position[next] <= i) facts_[next].is_loop_head = true;
    }
  }
}

std::vector<Block> Layout::run() {
  CLEW_ASSERT(facts_.size() >= operations_.size());
  search();
  mark();
  return std::move(order_);
}

}  // namespace

uint32_t continuation(std::span<const Operation> operations, std::span<const Facts> facts,
                      const Block& block) {
  const Operation& op = operations[block.last];
  if (op.kind == Kind::Exit) return static_cast<uint32_t>(operations.size());
  const bool jumps =
      op.kind == Kind::Jump || (op.kind == Kind::Branch && facts[block.last].always_taken);
  return jumps ? op.target : block.last + 1;
}

std::vector<Block> lay_out(std::span<const Operation> operations, std::span<Facts> facts) {
  return Layout(operations, facts).run();
}

}  // namespace clew::native

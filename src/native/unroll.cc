// SPDX-License-Identifier: Apache-2.0
#include "native/unroll.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace clew::native {
namespace {

using Kind = OperationKind;

constexpr uint32_t kLoopMax = 12;  // Operations, those that do nothing left out.

// From the target of the way back to that branch.
struct Loop {
  uint32_t head = 0;
  uint32_t last = 0;

  [[nodiscard]] uint32_t size() const { return last + 1 - head; }
  [[nodiscard]] bool contains(uint32_t index) const { return index >= head && index <= last; }
};

bool has_target(const Operation& op) {
  return op.kind == Kind::Branch || op.kind == Kind::Jump;
}

bool may_be_twice(const std::vector<Operation>& operations, const Loop& loop) {
  const Operation& back = operations[loop.last];
  if (back.kind == Kind::Branch && !isa::is_compare(back.jump)) return false;
  uint32_t count = 0;
  for (uint32_t i = loop.head; i <= loop.last; ++i) {
    const Operation& op = operations[i];
    if (op.kind == Kind::Call && !is_inline(op.accessor)) return false;
    if (op.kind != Kind::Nothing) ++count;
  }
  if (count > kLoopMax) return false;
  for (uint32_t i = 0; i < operations.size(); ++i) {
    if (!has_target(operations[i]) || i == loop.last || !loop.contains(operations[i].target))
      continue;
    const bool from_inside = loop.contains(i);
    const bool to_head = operations[i].target == loop.head;
    if (from_inside ? operations[i].target <= i : !to_head) return false;
  }
  return true;
}

std::vector<Operation> twice(const std::vector<Operation>& operations, const Loop& loop) {
  std::vector<Operation> result(operations.begin(), operations.begin() + loop.last + 1);
  for (Operation& op : result) {
    if (has_target(op) && op.target > loop.last) op.target += loop.size();
  }
  std::vector<Operation> second(operations.begin() + loop.head, operations.end());
  for (uint32_t i = 0; i < second.size(); ++i) {
    Operation& op = second[i];
    if (!has_target(op) || loop.head + i == loop.last) continue;
    const bool moves = op.target > loop.last || (i < loop.size() && op.target > loop.head);
    if (moves) op.target += loop.size();
  }
  Operation& first_back = result[loop.last];
  if (first_back.kind == Kind::Branch) {
    first_back.jump = isa::opposite(first_back.jump);
    first_back.target = loop.last + 1 + loop.size();
  } else {
    first_back = {};
  }
  result.insert(result.end(), second.begin(), second.end());
  return result;
}

}  // namespace

std::vector<Operation> unroll(std::vector<Operation> operations) {
  for (uint32_t i = 0; i < operations.size(); ++i) {
    const Operation& op = operations[i];
    const Loop loop = {.head = op.target, .last = i};
    if (!has_target(op) || op.target > i || !may_be_twice(operations, loop)) continue;
    operations = twice(operations, loop);
    i += loop.size();
  }
  return operations;
}

}  // namespace clew::native

// SPDX-License-Identifier: Apache-2.0
// The order in which basic blocks are laid out: reverse postorder, so that in a program without
// loops every branch goes forward, wherever its author has put the slow paths. Only true loops then
// cost fuel. The fall-through side of a branch follows it directly where that is possible.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "native/analysis.h"
#include "native/operation.h"

namespace clew::native {

struct Block {
  uint32_t first = 0;  // Operations first..last; the program's order inside a block is kept.
  uint32_t last = 0;
};

// Marks in `facts` which operations need a label, and which are targets of backward branches.
std::vector<Block> lay_out(std::span<const Operation> operations, std::span<Facts> facts);

// The operation that `block` goes on to when its branch, if it has one, is not taken: by falling
// through or by an unconditional jump. operations.size() after an exit.
uint32_t continuation(std::span<const Operation> operations, std::span<const Facts> facts,
                      const Block& block);

}  // namespace clew::native

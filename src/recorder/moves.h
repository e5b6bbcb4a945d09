// SPDX-License-Identifier: Apache-2.0
// What moves the cursor between the homes of a function's blocks, and to and from those that it
// calls, returns and jumps to:
//
//   entry from outside     mov r11, gs:[cursor]           of functions that take it in r11
//   calls, jumps           mov r11, R                     to those
//   others, returns        mov gs:[cursor], R             unless memory has it already
//   behind calls           mov R, r11                     of functions that leave it there
//                          mov R, gs:[cursor]             of others
//   between blocks         mov R, R'; to and from memory
//
// None of them destroys what was moved: until the next record both places have the cursor.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "recorder/homes.h"

namespace clew::recorder {

struct CursorMove {
  Home from = kMemory;
  Home to = kMemory;

  bool operator==(const CursorMove&) const = default;
};

// By block, all of them.
struct FunctionMoves {
  std::vector<std::optional<CursorMove>> start;  // In front of all else there.
  std::vector<std::vector<CursorMove>> end;      // In front of the last instruction.
  std::vector<std::optional<CursorMove>>
      taken;  // When the branch at the end is taken, and else, or
  std::vector<std::optional<CursorMove>> passed;  // behind a call or where control runs on.
};

FunctionMoves find_moves(const RecordedFunction& function, std::span<const FunctionHomes> homes);

}  // namespace clew::recorder

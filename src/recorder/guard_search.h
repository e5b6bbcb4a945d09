// SPDX-License-Identifier: Apache-2.0
// Which way an activation went between two of its guards, from the machine code: among all ways
// that pass no other guard, and that make the calls which were seen to be made meanwhile, what they
// have in common. So what is found has run, whatever else has.
//
// A state is a block, or the call at its end, with how many of the activation's callees have been
// there. Control may go on behind a call, where an exception of it lands, and behind what may
// return twice (setjmp). A callee's place in the stack tells whether the call entered it itself, or
// something that is not recorded did.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "recorder/guard_paths.h"

namespace clew::recorder {

struct GuardCallee {
  uint32_t module = 0;
  uint32_t function = 0;
  std::optional<int64_t> frame{};  // Where the stack pointer was at its entry.
};

enum class GuardGoal : uint8_t {
  Site,    // To the block `block`, which ends with a guard's call.
  Call,    // Into the last of the callees, which has not come back.
  Stop,    // To where it stands now, in `block`.
  Return,  //
  Tail,    // Into `next`, by a jump.
};

// How a callee ended, as its caller says.
enum class GuardEnd : uint8_t {
  Unknown,
  Returned,
  Jumped,  // Into the callee behind it.
  Runs,    // It has not.
};

struct GuardQuery {
  std::span<const GuardPaths* const> modules;
  uint32_t module = 0;
  uint32_t function = 0;
  std::optional<int64_t> frame{};
  std::optional<uint32_t> behind{};  // Behind the guard of that block; nothing: from the entry.
  std::vector<GuardCallee> callees{};
  GuardGoal goal = GuardGoal::Site;
  uint32_t block = kNone;
  GuardCallee next{};
};

struct GuardItem {
  bool is_callee = false;
  uint32_t number = 0;       // A block, or in GuardQuery::callees.
  bool is_doubtful = false;  // In front of it something may be missing.
  GuardEnd end = GuardEnd::Unknown;
};

// In order, up to the goal, with all callees; Stop and Site end with the goal's block.
struct GuardWay {
  std::vector<GuardItem> items;
  bool ends_in_doubt = false;  // Between the last of them and the goal something may be missing.
};

// Nothing when no way leads there, or more states or steps between them would have to be looked at
// than these.
inline constexpr size_t kGuardStatesMax = size_t{1} << 15;
inline constexpr size_t kGuardEdgesMax = size_t{1} << 18;
std::optional<GuardWay> find_way(const GuardQuery& query);

// What ran behind that place in any case, and nothing else is known: blocks up to the first that
// calls or decides.
std::vector<uint32_t> sure_blocks(const GuardQuery& query);

}  // namespace clew::recorder

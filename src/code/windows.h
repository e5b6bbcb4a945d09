// SPDX-License-Identifier: Apache-2.0
// From wanted sites to windows. The answer is a function of the module and of the set of requests:
// their order does not matter. Ladder, each step tried only when the one before fails:
//   (a) a jump in the function's own bytes;
//   (b) own bytes and proven padding behind them: nop or int3 only, nothing leads there;
//   (c) a 2-byte jump to 5 dead bytes within 127 bytes;
//   (d) a return stays as it is, and its calls are caught at the jumps that lead to it and behind
//       the instruction in front of it, when there is no other way to it. What stands between the
//       jumps' target and the return, fewer bytes than a jump, runs from copies there;
//   (f) refused.
// An exit's window may begin at whole instructions before the exit. Windows that would overlap are
// merged into one. A function's exits are all taken or all refused.
//
// The first instruction of a function stays where that can be (kept_instruction.h): the trampoline
// does it again, or it is done once, in front of the window, when the probe does not read what it
// changes. Or bytes that serve both ways stand over it (both_ways.h). Whether a jump may stand over
// it else is for who asks to say.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "code/flag_use.h"
#include "code/module_code.h"
#include "code/probe_reads.h"
#include "code/window.h"

namespace clew::code {

enum class RequestKind : uint8_t {
  Entry,   // One point at the function that starts at `address`.
  Exits,   // One point at each exit of the function that starts at `address`; may be none.
  Offset,  // One point before the instruction at `address` (behind it, when it is endbr64).
};

struct Request {
  RequestKind kind = RequestKind::Entry;
  uint64_t address = 0;  // Link time.
  // By the probe. Of use where `address` is a function's.
  ProbeReads reads = kReadsEverything;
  // By bytes that serve both ways (both_ways.h), if it must be: hits may be lost and counted.
  bool may_serve_both = true;
};

// May a window be one that a uprobe makes deadly, which somebody else sets later at a function's
// first byte (later_uprobe.h)? Or cover the place of a static probe, where that uprobe may come as
// well? Else what needs such a one is refused with LaterUprobe.
enum class LateUprobeDanger : uint8_t { Allowed, AtStaticProbes, Refused };

struct Refusal {
  uint32_t request = 0;  // Index in the requests.
  RefusalReason reason = RefusalReason::TooShort;
  uint64_t address = 0;  // The instruction that cannot be taken: the site, or one of the exits.
};

struct Plan {
  std::vector<Window> windows;    // By address.
  std::vector<Point> points;      // By window, instruction, kind.
  std::vector<Refusal> refusals;  // By request.

  [[nodiscard]] std::span<const Point> points_of(uint32_t window) const;
};

// Is the point behind the first instruction, which is done in its place?
bool is_behind_first(const Plan& plan, const Point& point);

// `installed` are windows already in the process: a site inside one of them is planned as a point
// of an equal window; what would overlap one otherwise is refused with WindowInUse.
Plan plan_windows(const ModuleCode& code, std::span<const Request> requests,
                  std::span<const Window> installed = {},
                  LateUprobeDanger danger = LateUprobeDanger::Allowed);
// The same for who plans more than once in this code: its callers are looked through once.
Plan plan_windows(const ModuleCode& code, FlagValues& flags, std::span<const Request> requests,
                  std::span<const Window> installed, LateUprobeDanger danger);

}  // namespace clew::code

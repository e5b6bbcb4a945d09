// SPDX-License-Identifier: Apache-2.0
// Why a function is not copied. The names are stable: programs and users' scripts read them.
#pragma once

#include <cstdint>
#include <string_view>

namespace clew::copy {

enum class Reason : uint8_t {
  NoCode,          // no-code
  Undecodable,     // undecodable
  Overlaps,        // overlaps
  UnresolvedJump,  // unresolved-jump
  TableEscapes,    // table-escapes
  UnboundedTable,  // unbounded-table
  IntoMiddle,      // into-middle
  LabelEscapes,    // label-escapes
  ReadsOwnPlace,   // reads-own-place
  SystemCall,      // system-call
  Trap,            // trap
  StackSwitch,     // stack-switch
  Rseq,            // rseq
  Resolver,        // resolver
  Unsupported,     // unsupported
  AsksCaller,      // asks-caller
};
inline constexpr unsigned kReasons = 16;

struct Refusal {
  Reason reason = Reason::NoCode;
  uint64_t address = 0;  // The instruction that it is about; the function's when it is about none.
};

// The stable name, as in the comments above.
std::string_view name(Reason reason);

// One sentence for a human: lower case, no final stop.
std::string_view sentence(Reason reason);

}  // namespace clew::copy

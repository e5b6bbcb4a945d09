// SPDX-License-Identifier: Apache-2.0
// Where an activation may be since its last guard, when some of its callees are known: which of its
// calls, so that a callee's caller is found among those that may have gone on without a guard.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "recorder/guard_search.h"

namespace clew::recorder {

struct GuardFront {
  uint32_t module = 0;
  uint32_t function = 0;
  std::optional<int64_t> frame{};
  std::optional<uint32_t> behind{};     // The block of its last guard; nothing: at its entry.
  std::vector<uint32_t> calls{};        // Blocks; its last callee was in the call of one of them.
  std::optional<GuardCallee> callee{};  // That one.
  bool is_unknown = false;              // It may be anywhere.
};

// What may be next, without a guard of its own. `callee`: nothing is asked about one.
struct GuardNext {
  std::vector<uint32_t> calls{};  // Those that may have led to the callee.
  bool may_end = false;           // It may return, or jump to another function.
  bool may_unwind = false;        // It may be in a call, out of which exceptions come.
  bool may_stop = false;          // It may come to the block `stop`.
};

GuardNext next_of(std::span<const GuardPaths* const> modules, const GuardFront& front,
                  const GuardCallee* callee, uint32_t stop);

}  // namespace clew::recorder

// SPDX-License-Identifier: Apache-2.0
// A session's place in an arena: its entry there, and its region in each slot.
#pragma once

#include <cstdint>

#include "abi/region.h"
#include "base/error.h"
#include "inline/arena.h"
#include "inline/attachment.h"

namespace clew::inline_ {

// In each slot, with the slack behind the window.
uint64_t region_size(const abi::RegionLayout& layout);

// Whether the session goes on with the copies that a recorder has left there.
bool adopts_copies(const Arena& arena, const OpenOptions& options);

// The caller holds the arena's lock. Errors: Limit, when there is no entry, or no room in the
// slots.
Expected<Geometry> add_session(const Arena& arena, const OpenOptions& options);

}  // namespace clew::inline_

// SPDX-License-Identifier: Apache-2.0
// Names of addresses as D's output shows them: "vmlinux`vfs_read+0x12".
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "query/d/functions.h"
#include "target/symbolizer.h"

namespace clew::output::d {

// How much of a place is shown.
enum class PlaceDetail : uint8_t {
  Offset,  // m`f+0x1
  Symbol,  // m`f
  Module,  // m
};

// What sym(), mod(), uaddr() and their kin show of an address.
PlaceDetail detail_of(query::d::Action action);

// "0x…" when nothing is known; "module`0x…" when no function is.
std::string place_text(const std::optional<target::SymbolPlace>& place, uint64_t address,
                       PlaceDetail detail);

}  // namespace clew::output::d

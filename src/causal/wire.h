// SPDX-License-Identifier: Apache-2.0
// Baggage as bytes, and back. What is read may be anybody's: it is refused, or baggage within all
// limits that has exactly these bytes when written. Nothing is allocated for it.
//
//     u8 version 1 · u8 flags (1 bags lost, 2 sums emitted, 4 ran twice) · u16 size, of all this
//     u32 key epoch, 0: not authenticated · u64 request · u32 expires (s since 1970)
//     varint n
//     u8 intervals ≤ 16 { u8 depth · prefix }
//     u8 steps ≤ 48 { u8 depth · prefix · varint height }          0 intervals, 0 steps: no sums
//     u8 bags ≤ 64 { u32 query · u16 plan · u8 kind, 128: overflowed · u8 keep · u8 priority
//                    u16 size · body (causal/set.h, causal/sum.h) }
//     what causal/authenticate.h puts behind it
//
// Little endian. A prefix is the first `depth` bits of a place on the line, in as few bytes as hold
// them: of where an interval starts, and of where a step starts, whose depth is the least possible.
// Empty baggage is no bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "causal/baggage.h"

namespace clew::causal {

inline constexpr uint8_t kWireVersion = 1;

// Why bytes are not taken as baggage; causal/authenticate.h has the last four.
enum class Refusal : uint8_t {
  None,
  Size,           // Larger than any, or not as many bytes as it says.
  Version,        // Not ours.
  Damaged,        // It has the right size, and no sense.
  UnknownKey,     // No key of that epoch, or none at all.
  Forged,         // Not authenticated by that key.
  ForeignTenant,  // By a key of somebody else.
  Expired,
};
inline constexpr size_t kRefusals = 8;
using Refusals = std::array<uint64_t, kRefusals>;  // How many of each.

[[nodiscard]] size_t wire_bytes(const Baggage::Contents& contents);
// A number that is easier to have.
[[nodiscard]] size_t wire_bytes_at_most(const Baggage::Contents& contents);

// Room for all: kBaggageBytesMax. Gives how many bytes were written.
[[nodiscard]] size_t write_wire(const Baggage& baggage, uint32_t key_epoch,
                                std::span<std::byte> room);

// Reads what did not leave this machine. If refused, `baggage` is empty.
[[nodiscard]] Refusal read_wire(std::span<const std::byte> bytes, Baggage& baggage);

// Of bytes whose size is right.
[[nodiscard]] uint32_t key_epoch_of(std::span<const std::byte> bytes);

}  // namespace clew::causal

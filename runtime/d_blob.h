// SPDX-License-Identifier: Apache-2.0
// The D runtime as the host embeds it: a second blob, copied beside the first one only for sessions
// of D that have probes in the process. Each session has copies of its own, one in each extent.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "abi/machine/process.h"

namespace clew::runtime {

inline constexpr uint32_t kDThunkSizeBytes = 16;

// Valid for ever. May lie at any address that is a multiple of 16.
std::span<const uint8_t> d_blob();

// Makes a copy of the blob the session's.
void set_place(std::span<uint8_t> copy, const abi::MachinePlace& place);

// Offset in the blob of the entry of an accessor: kMachineAccessorBase <= number <
// kMachineProcessAccessorsEnd.
constexpr uint32_t d_accessor_offset(uint32_t number) {
  return (number - abi::kMachineAccessorBase) * kDThunkSizeBytes;
}

// What a body of D may call, by number: the common accessors, then those of D but the destructive
// ones, instead of which one is called that does nothing. `thunks`: address of the session's row in
// the first blob; `copy`: of its copy of this one.
std::array<uint64_t, abi::kMachineProcessAccessorsEnd> d_accessor_entries(uint64_t thunks,
                                                                          uint64_t copy);

}  // namespace clew::runtime

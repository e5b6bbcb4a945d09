// SPDX-License-Identifier: Apache-2.0
// Hands out the embedded blob. d_runtime_offsets.h and the bytes are generated from the linked one.
#include "runtime/d_blob.h"

#include <cstddef>

#include "abi/arena.h"
#include "d_runtime_offsets.h"
#include "runtime/blob.h"

extern "C" const uint8_t clew_d_runtime_blob_begin[];
extern "C" const uint8_t clew_d_runtime_blob_end[];

namespace clew::runtime {

static_assert(kOffset_clew_d_thunks == 0);
// process/entry.S
static_assert(abi::kHeaderOffset == 266240);
static_assert(offsetof(abi::SlotControl, index) == 32);
static_assert(kOffset_clew_d_thunks_end == d_accessor_offset(abi::kMachineProcessAccessorsEnd));

std::span<const uint8_t> d_blob() {
  return {clew_d_runtime_blob_begin, clew_d_runtime_blob_end};
}

void set_place(std::span<uint8_t> copy, const abi::MachinePlace& place) {
  if (copy.size() < kOffset_clew_d_place + sizeof place) return;
  __builtin_memcpy(copy.data() + kOffset_clew_d_place, &place, sizeof place);
}

std::array<uint64_t, abi::kMachineProcessAccessorsEnd> d_accessor_entries(uint64_t thunks,
                                                                          uint64_t copy) {
  std::array<uint64_t, abi::kMachineProcessAccessorsEnd> entries;
  entries.fill(thunks);  // Numbers between the two kinds are an accessor that does nothing.
  for (uint32_t k = 0; k < abi::kAccessorCount; ++k)
    entries[k] = thunks + uint64_t{k} * kThunkSizeBytes;
  for (uint32_t k = abi::kMachineAccessorBase; k < abi::kMachineProcessAccessorsEnd; ++k)
    entries[k] = copy + d_accessor_offset(k);
  // Scripts that change the program or the machine run in the kernel alone.
  for (const abi::MachineAccessor changes :
       {abi::MachineAccessor::CopyOut, abi::MachineAccessor::Raise, abi::MachineAccessor::Chill})
    entries[static_cast<uint32_t>(changes)] = thunks;
  return entries;
}

}  // namespace clew::runtime

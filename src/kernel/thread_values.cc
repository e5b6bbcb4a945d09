// SPDX-License-Identifier: Apache-2.0
#include "kernel/thread_values.h"

#include <cstring>

#include "abi/machine/dynamic.h"

namespace clew::kernel {
namespace {

uint64_t word_at(std::span<const uint8_t> bytes, uint64_t offset) {
  return __atomic_load_n(reinterpret_cast<const uint64_t*>(bytes.data() + offset),
                         __ATOMIC_ACQUIRE);
}

bool is_live(uint64_t state) {
  return abi::state_of(state) == abi::MachineEntryState::Live;
}

}  // namespace

std::vector<ThreadValue> read_thread_values(const abi::MachineProcess& numbers,
                                            std::span<const uint8_t> table, uint32_t variable) {
  std::vector<ThreadValue> values;
  const uint64_t entry_bytes = numbers.dynamic_entry_bytes;
  const uint64_t value_at = abi::kMachineEntryHeadBytes + numbers.dynamic_key_bytes;
  const uint64_t bucket_bytes = abi::dynamic_bucket_bytes(entry_bytes);
  for (uint64_t i = 0; i < numbers.dynamic_buckets * abi::kMachineWays; ++i) {
    const uint64_t offset = i / abi::kMachineWays * bucket_bytes + abi::kMachineBucketHeadBytes +
                            i % abi::kMachineWays * entry_bytes;
    if (offset + entry_bytes > table.size()) break;
    const std::span<const uint8_t> entry = table.subspan(offset, entry_bytes);
    const uint64_t state = word_at(entry, offsetof(abi::MachineEntryHead, state));
    const uint64_t identity = word_at(entry, offsetof(abi::MachineEntryHead, identity));
    if (!is_live(state) || identity >> 32 != uint64_t{variable} + 1) continue;
    ThreadValue value{.thread = static_cast<uint32_t>(identity), .words = {}};
    value.words.resize((entry_bytes - value_at) / 8);
    std::memcpy(value.words.data(), entry.data() + value_at, 8 * value.words.size());
    const bool stood_still = word_at(entry, offsetof(abi::MachineEntryHead, state)) == state;
    if (stood_still) values.push_back(std::move(value));
  }
  return values;
}

}  // namespace clew::kernel

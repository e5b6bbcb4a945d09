// SPDX-License-Identifier: Apache-2.0
// Calls that move bytes from or to a descriptor, or close it, as a thread's records have them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "abi/recorder.h"
#include "recorder/records.h"

namespace clew::recorder {

struct TransferCall {
  size_t record = 0;  // Behind the records in front of this one, and what they led to.
  abi::Transfer transfer = abi::Transfer::None;
  uint32_t descriptor = 0;
  std::optional<int32_t> result{};  // Nothing: it has not come back, or that is not known.
  uint64_t began = 0;               // By the time stamp counter.
  uint64_t ended = UINT64_MAX;
};

// Oldest first. Calls come back in the order in which handlers have interrupted them; what has run
// since one began, without a handler, says that it came back, or never will, without a record.
std::vector<TransferCall> transfers_of(const Records& records);

constexpr bool moves_bytes(abi::Transfer transfer) {
  return transfer != abi::Transfer::None && transfer != abi::Transfer::Closes &&
         transfer != abi::Transfer::Connects && transfer != abi::Transfer::Accepts;
}
constexpr bool is_sending(abi::Transfer transfer) {
  return transfer == abi::Transfer::Sends || transfer == abi::Transfer::SendsSome;
}

}  // namespace clew::recorder

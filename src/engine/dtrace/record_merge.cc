// SPDX-License-Identifier: Apache-2.0
#include "engine/dtrace/record_merge.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/assert.h"

namespace clew::engine {

void RecordMerge::add(std::span<const uint8_t> record) {
  abi::MachineRecordHeader header{};
  CLEW_ASSERT(record.size() >= sizeof header);
  std::memcpy(&header, record.data(), sizeof header);
  waiting_.push_back({header.time_ns, {record.begin(), record.end()}});
}

// Records of one firing have one time, and stay in the order in which they were made.
void RecordMerge::take(uint64_t limit_ns, const Take& take) {
  std::stable_sort(waiting_.begin(), waiting_.end(),
                   [](const Waiting& a, const Waiting& b) { return a.time_ns < b.time_ns; });
  const auto end =
      std::upper_bound(waiting_.begin(), waiting_.end(), limit_ns,
                       [](uint64_t limit, const Waiting& one) { return limit < one.time_ns; });
  // What takes a record may read and add more.
  std::vector<Waiting> ready(std::make_move_iterator(waiting_.begin()),
                             std::make_move_iterator(end));
  waiting_.erase(waiting_.begin(), end);
  for (const Waiting& one : ready)
    take(one.bytes);
}

}  // namespace clew::engine

// SPDX-License-Identifier: Apache-2.0
#include "engine/dtrace/followed_records.h"

#include <cstring>
#include <iterator>
#include <map>

#include "base/assert.h"

namespace clew::engine {

using abi::MachineRecordHeader;

MachineRecordHeader header_of(std::span<const uint8_t> record) {
  MachineRecordHeader header{};
  CLEW_ASSERT(record.size() >= sizeof header);
  std::memcpy(&header, record.data(), sizeof header);
  return header;
}

void follow(std::span<const FollowedRecords::Record> records, size_t count,
            const FollowedRecords::Take& take) {
  std::vector<const MachineRecordHeader*> nexts(records.size());
  std::vector<MachineRecordHeader> headers(records.size());
  std::map<uint32_t, const MachineRecordHeader*> by_cpu;
  for (size_t i = records.size(); i-- > 0;) {
    headers[i] = header_of(records[i]);
    if (headers[i].kind != abi::MachineRecordKind::Data) continue;
    const MachineRecordHeader*& next = by_cpu[headers[i].cpu];
    nexts[i] = next;
    next = &headers[i];
  }
  for (size_t i = 0; i < count && i < records.size(); ++i)
    take(records[i], nexts[i]);
}

void FollowedRecords::take(size_t count, const Take& take) {
  // What takes a record may add more.
  std::vector<Record> records = std::move(waiting_);
  waiting_.clear();
  follow(records, count, take);
  if (count >= records.size()) return;
  waiting_.insert(waiting_.begin(),
                  std::make_move_iterator(records.begin() + static_cast<ptrdiff_t>(count)),
                  std::make_move_iterator(records.end()));
}

}  // namespace clew::engine

// SPDX-License-Identifier: Apache-2.0
#include "collect/open_records.h"

#include <span>

#include "collect/reader.h"
#include "collect/shared_words.h"

namespace clew::collect {

// A slot that was taken from its dead owner holds records of calls that ended with it.
std::vector<OpenRecord> Reader::read_open_records() {
  std::vector<OpenRecord> all;
  if (view_.layout.records.payload_words == 0) return all;
  for (const uint32_t slot : find_used()) {
    const uint32_t tid = load_half(slot_at(slot) + offsetof(abi::SlotControl, tid));
    if (tid != 0 && tid != abi::kTidReserved) read_slot_records(slot, all);
  }
  return all;
}

void Reader::read_slot_records(uint32_t slot, std::vector<OpenRecord>& all) {
  const abi::RecordLayout& layout = view_.layout.records;
  const SlotIdentity identity = identity_of(slot);
  const uint64_t size = layout.record_size_bytes();
  const uint64_t begin = slot * view_.slot_stride_bytes + view_.region_offset + layout.offset;
  const uint64_t records = uint64_t{1} << layout.records_log2;
  std::vector<uint64_t> words(1 + layout.payload_words);
  for (const PageRange& range : present_.within(begin, begin + records * size)) {
    const uint64_t end = (range.end - begin + size - 1) / size;
    for (uint64_t i = (range.begin - begin + size - 1) / size; i < end; ++i) {
      load_words(words, view_.slots.data() + begin + i * size);
      if (words[0] == 0) continue;
      all.push_back({.process = identity.process,
                     .tid = identity.tid,
                     .frame = words[0] & ((uint64_t{1} << abi::kFunctionIdShift) - 1),
                     .function_number = words[0] >> abi::kFunctionIdShift,
                     .payload = {words.begin() + 1, words.end()}});
    }
  }
}

}  // namespace clew::collect

// SPDX-License-Identifier: Apache-2.0
#include "recorder/transfers.h"

#include <algorithm>

#include "recorder/signal_records.h"

namespace clew::recorder {

namespace {

// Whether a call that began in front of `begin` may come back in front of `end`.
bool may_come_back(const Records& records, size_t begin, size_t end) {
  const auto words = std::span(records.words).subspan(begin, end - begin);
  if (std::find(words.begin(), words.end(), kTorn) != words.end()) return false;
  return words.empty() ||
         is_signal_record(words.first(std::min<size_t>(words.size(), abi::kSignalWords)));
}

}  // namespace

std::vector<TransferCall> transfers_of(const Records& records) {
  std::vector<TransferCall> calls;
  std::vector<size_t> open;
  for (const Note& note : records.notes) {
    while (!open.empty() && !may_come_back(records, calls[open.back()].record, note.record))
      open.pop_back();
    if ((note.note & abi::kNoteOfResult) == 0) {
      const TransferCall call{.record = note.record,
                              .transfer = abi::transfer_of(note.note),
                              .descriptor = abi::descriptor_of(note.note),
                              .began = note.ticks};
      if (call.transfer == abi::Transfer::None) continue;
      if (call.transfer != abi::Transfer::Closes) open.push_back(calls.size());
      calls.push_back(call);
    } else if (!open.empty()) {
      calls[open.back()].result = abi::result_of(note.note);
      calls[open.back()].ended = note.ticks;
      open.pop_back();
    }
  }
  return calls;
}

}  // namespace clew::recorder

// SPDX-License-Identifier: Apache-2.0
#include "recorder/transfers.h"

namespace clew::recorder {

std::vector<TransferCall> transfers_of(std::span<const Note> notes) {
  std::vector<TransferCall> calls;
  std::vector<size_t> open;
  for (const Note& note : notes) {
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

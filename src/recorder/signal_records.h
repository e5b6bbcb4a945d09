// SPDX-License-Identifier: Apache-2.0
// Words as records, of DAGs and of signals; those of time are gone already (records.h). Words are
// hostile: what is no whole record is a gap, word by word. At the front the rest of a record that
// was written over is left out.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "abi/recorder.h"

namespace clew::recorder {

enum class RecordKind : uint8_t { Dag, Signal, Gap };

struct Record {
  RecordKind kind = RecordKind::Gap;
  uint32_t word = 0;   // The first one.
  uint64_t place = 0;  // Of a signal: an address in a copy, or 0.
  uint32_t words = 1;  // So many it has.

  // What the thread writes behind the handler may go into the handler's last record.
  [[nodiscard]] bool is_in_memory() const {
    return (abi::extended_value(word) & abi::kCursorInMemory) != 0;
  }
};

// Oldest first.
std::vector<Record> parse_records(std::span<const uint32_t> words);
size_t words_in(std::span<const Record> records);

// Whether a whole one begins there.
bool is_signal_record(std::span<const uint32_t> words);

// `value` and `place`: see abi/recorder.h.
std::array<uint32_t, abi::kSignalWords> signal_record(uint16_t value, uint64_t place);

}  // namespace clew::recorder

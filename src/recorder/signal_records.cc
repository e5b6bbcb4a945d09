// SPDX-License-Identifier: Apache-2.0
#include "recorder/signal_records.h"

#include <algorithm>

namespace clew::recorder {

namespace {

constexpr uint64_t kWordMask = abi::kExtendedBit - 1;

bool is_edge(uint32_t word) {
  return abi::is_extended(word) && abi::extended_type(word) == abi::ExtendedRecord::Signal &&
         abi::extended_words(word) == abi::kSignalWords;
}

// Empty when no whole one begins there.
std::span<const uint32_t> signal_at(std::span<const uint32_t> words) {
  if (words.size() < abi::kSignalWords) return {};
  words = words.first(abi::kSignalWords);
  const bool is_whole = is_edge(words.front()) && words.back() == words.front() &&
                        std::all_of(words.begin(), words.end(), abi::is_extended);
  return is_whole ? words : std::span<const uint32_t>();
}

uint64_t place_of(std::span<const uint32_t> signal) {
  return (signal[1] & kWordMask) | (signal[2] & kWordMask) << abi::kExtendedWordBits;
}

// So many words, the last of which ends a signal's record.
size_t rest_at_front(std::span<const uint32_t> words) {
  for (size_t i = 0; i + 1 < abi::kSignalWords && i < words.size(); ++i) {
    if (!abi::is_extended(words[i])) return 0;
    if (is_edge(words[i]) && signal_at(words.subspan(i)).empty()) return i + 1;
  }
  return 0;
}

}  // namespace

std::vector<Record> parse_records(std::span<const uint32_t> words) {
  std::vector<Record> records;
  records.reserve(words.size());
  size_t at = rest_at_front(words);
  while (at < words.size()) {
    const uint32_t word = words[at];
    if (const auto signal = signal_at(words.subspan(at)); !signal.empty()) {
      records.push_back({RecordKind::Signal, word, place_of(signal), abi::kSignalWords});
      at += signal.size();
      continue;
    }
    records.push_back({abi::is_dag_record(word) ? RecordKind::Dag : RecordKind::Gap, word});
    ++at;
  }
  return records;
}

bool is_signal_record(std::span<const uint32_t> words) {
  return !signal_at(words).empty();
}

size_t words_in(std::span<const Record> records) {
  size_t count = 0;
  for (const Record& one : records)
    count += one.words;
  return count;
}

std::array<uint32_t, abi::kSignalWords> signal_record(uint16_t value, uint64_t place) {
  const uint32_t edge = abi::extended_word(abi::ExtendedRecord::Signal, abi::kSignalWords, value);
  return {edge, abi::kExtendedBit | static_cast<uint32_t>(place & kWordMask),
          abi::kExtendedBit | static_cast<uint32_t>(place >> abi::kExtendedWordBits & kWordMask),
          edge};
}

}  // namespace clew::recorder

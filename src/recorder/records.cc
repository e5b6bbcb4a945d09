// SPDX-License-Identifier: Apache-2.0
#include "recorder/records.h"

#include <algorithm>
#include <cstddef>
#include <iterator>

#include "recorder/signal_records.h"

namespace clew::recorder {

namespace {

constexpr uint32_t kTimeHighMax =
    (uint32_t{1} << (64 - abi::kTimeLowBits - abi::kTimeMiddleBits)) - 1;

struct TimeRecord {
  uint64_t ticks = 0;
  uint32_t note = 0;
};

// Of the words of one; nothing when two moments have written them.
std::optional<TimeRecord> time_of(std::span<const uint32_t> words) {
  const uint32_t header = words.front();
  const bool is_whole =
      header == words.back() && abi::extended_type(header) == abi::ExtendedRecord::Time &&
      abi::extended_words(header) == abi::kTimeWords && abi::is_extended(words[1]) &&
      abi::is_extended(words[2]) && abi::is_extended(words[3]);
  const uint32_t high = words[2] & ~abi::kExtendedBit;
  if (!is_whole || high > kTimeHighMax) return std::nullopt;
  const uint64_t middle = words[1] & ~abi::kExtendedBit;
  const uint64_t ticks = uint64_t{high} << (abi::kTimeLowBits + abi::kTimeMiddleBits) |
                         middle << abi::kTimeLowBits | abi::extended_value(header);
  return TimeRecord{ticks, words[3]};
}

bool is_start(uint32_t word) {
  return abi::is_extended(word) && abi::extended_type(word) == abi::ExtendedRecord::Start &&
         abi::extended_words(word) == 2;
}

// From the newest word back.
class RecordsReader {
 public:
  explicit RecordsReader(std::span<const uint32_t> words) : left_(words) {}

  Records run() {
    while (!left_.empty()) {
      if (!abi::is_extended(left_.back()) || abi::is_frame(left_.back())) {
        take(left_.back());
      } else if (is_start(left_.back())) {
        if (!is_torn_) result_.notes_from = 0;
        break;
      } else if (!take_time() && !take_signal()) {
        take_torn();
      }
    }
    std::reverse(result_.words.begin(), result_.words.end());
    std::reverse(result_.stamps.begin(), result_.stamps.end());
    std::reverse(result_.notes.begin(), result_.notes.end());
    for (Stamp& stamp : result_.stamps)
      stamp.record = result_.words.size() - stamp.record;
    for (Note& note : result_.notes)
      note.record = result_.words.size() - note.record;
    return std::move(result_);
  }

 private:
  void take(uint32_t word) {
    result_.words.push_back(word);
    left_ = left_.first(left_.size() - 1);
  }

  bool take_time() {
    if (left_.size() < abi::kTimeWords) return false;
    const auto time = time_of(left_.last(abi::kTimeWords));
    if (!time) return false;
    if (result_.stamps.empty() || time->ticks <= result_.stamps.back().ticks)
      result_.stamps.push_back({result_.words.size(), time->ticks});
    if (time->note != abi::kExtendedBit)
      result_.notes.push_back({result_.words.size(), time->ticks, time->note});
    if (!is_torn_) result_.notes_from = time->ticks;
    left_ = left_.first(left_.size() - abi::kTimeWords);
    return true;
  }

  // Stays as it is.
  bool take_signal() {
    if (left_.size() < abi::kSignalWords || !is_signal_record(left_.last(abi::kSignalWords)))
      return false;
    for (uint32_t i = 0; i < abi::kSignalWords; ++i)
      take(left_.back());
    return true;
  }

  // Newer records have been written over the oldest one, which may have been an extended one.
  void take_torn() {
    const bool is_oldest = left_.size() < abi::kTimeWords &&
                           std::all_of(left_.begin(), left_.end(), [](uint32_t word) {
                             return abi::is_extended(word) && !is_start(word);
                           });
    const bool goes_on = !result_.words.empty() && result_.words.back() == kTorn;
    if (is_oldest) {
      left_ = {};
      return;
    }
    if (!goes_on) result_.words.push_back(kTorn);
    is_torn_ = true;
    left_ = left_.first(left_.size() - 1);
  }

  std::span<const uint32_t> left_;
  bool is_torn_ = false;  // Newer records than those that are left.
  Records result_;
};

// Words of a Time record that is being written stand behind the newest one, between two zeros: the
// one that was there, and its own. When all are there the first zero is gone.
void drop_unfinished(std::vector<uint32_t>& words) {
  constexpr ptrdiff_t kWritten = abi::kTimeWords + 1;
  if (words.size() < kWritten) return;
  const auto own = words.begin() + kWritten - 1;
  const bool is_unfinished = *own == 0 && std::any_of(words.begin(), own, [](uint32_t word) {
    return abi::is_extended(word);
  });
  if (is_unfinished) words.erase(words.begin(), own);
}

// What a handler has left that has returned to a thread with its cursor in a register stands behind
// the newest record, up to a zero. It ran later than all else there. A zero among the newer words
// is of a record that a handler has interrupted.
void drop_stale(std::vector<uint32_t>& words) {
  const auto half = words.begin() + static_cast<ptrdiff_t>(words.size() / 2);
  const auto last = std::find(std::make_reverse_iterator(half), words.rend(), 0U);
  words.erase(words.begin(), last.base());
}

}  // namespace

std::vector<uint32_t> unroll(std::span<const uint32_t> ring, std::optional<size_t> newest) {
  const auto zero = std::find(ring.begin(), ring.end(), 0U);
  if (!newest && zero == ring.end()) newest = ring.size() - 1;
  const auto from =
      newest ? ring.begin() + static_cast<ptrdiff_t>(*newest) + 1 : zero;  // The oldest one.
  std::vector<uint32_t> words(from, ring.end());
  words.insert(words.end(), ring.begin(), from);
  drop_unfinished(words);
  drop_stale(words);
  std::erase(words, 0U);
  return words;
}

Records read_records(std::span<const uint32_t> words) {
  return RecordsReader(words).run();
}

}  // namespace clew::recorder

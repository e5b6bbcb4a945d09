// SPDX-License-Identifier: Apache-2.0
// A lobe's words as records: those of DAGs, and the moments that Time records say. All words are
// hostile, and a record may be torn: the thread was killed while it wrote, or a handler wrote
// there.
//
// Words are read from the newest one back, as that end is known: an extended record's last word
// says where its first one is. What stands in front of the thread's Start is of one that had its
// lobe before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "abi/recorder.h"

namespace clew::recorder {

// The time stamp counter at a moment: behind the records in front of `record`, and what they led
// to; in front of that one.
struct Stamp {
  size_t record = 0;
  uint64_t ticks = 0;

  bool operator==(const Stamp&) const = default;
};

// What stood at that moment in a Time record's note (abi/recorder.h), other than nothing.
struct Note {
  size_t record = 0;
  uint64_t ticks = 0;
  uint32_t note = 0;

  bool operator==(const Note&) const = default;
};

struct Records {
  // Oldest first. What is none of a DAG and no Time record stays as it is; but a stretch of
  // words of torn ones is one kTorn. Of the oldest record a part may be gone: it is left out.
  std::vector<uint32_t> words;
  // Oldest first; one that has more ticks than a later one is left out.
  std::vector<Stamp> stamps;
  std::vector<Note> notes;  // Oldest first.
  // Notes of later moments are all there: 0 when no record is missing since the thread's Start.
  uint64_t notes_from = UINT64_MAX;
};

// No record of a DAG, and a part of none that is whole.
inline constexpr uint32_t kTorn = abi::kExtendedBit;

// A ring's words, oldest first, to the newest; where that is not known it stands in front of a
// zero. Without those that were never written, and without a Time record that was not finished.
std::vector<uint32_t> unroll(std::span<const uint32_t> ring, std::optional<size_t> newest);

// `words`: as unroll() gives them.
Records read_records(std::span<const uint32_t> words);

}  // namespace clew::recorder

// SPDX-License-Identifier: Apache-2.0
// The lines of all threads in one order. Between two Time records nothing is known of the order of
// threads, and little of what lies closer than the counter can tell. So lines are in *stretches*,
// each between two neighbouring moments of its thread, and those are ordered by where they begin.
// Of two stretches one ran behind the other only if it begins where that one has ended; else they
// are concurrent, and nothing is said of how their lines lie to each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "recorder/show.h"

namespace clew::recorder {

// Processors run ahead of what they wait for: a moment that is read in front of a call may be that
// much older than the last access of what stands in front of it.
inline constexpr int64_t kCloseNs = 200;

struct Stretch {
  size_t thread = 0;  // In Shown::threads.
  size_t begin = 0;   // Of its lines,
  size_t end = 0;     // and behind the last one.
  SpanNs span{};      // In which all of them began.
  // Threads with lines that may have begun meanwhile; in Shown::threads, ascending.
  std::vector<size_t> concurrent{};
};

// All of one surely began in front of all of the other.
bool is_in_front(const SpanNs& one, const SpanNs& other);

// By the beginning; those without one are first, and concurrent with all that is not behind them.
std::vector<Stretch> side_by_side(const Shown& shown);

}  // namespace clew::recorder

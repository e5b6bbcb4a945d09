// SPDX-License-Identifier: Apache-2.0
// Script -> the thread-local variables that only probes of named processes name. Where all of these
// run inline in one process, such a variable can be a word of the thread's own window instead of an
// entry of the table that processes and the kernel share.
//
// In many scripts they, and all times, are no more than what lies between two firings:
//
//     pid$target:a.out:f:entry  { self->ts = timestamp; }
//     pid$target:a.out:f:return /self->ts/ { @ = avg(timestamp - self->ts); self->ts = 0; }
//
// There they can be ticks of the processor's counter, which become nanoseconds where they are
// subtracted. One time that is seen or comes from another clock makes all of them the machine's:
// the two clocks may differ by some parts in a million, and differences of differences show that.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>

#include "query/d/script.h"

namespace clew::plan::d {

// Variables and clauses by their indexes in the script.
struct PrivateVariables {
  static constexpr size_t kWordsMax = 32;  // A script with more has none.

  std::map<uint32_t, uint32_t> words;  // Scalars: variable -> the number of its word.
  std::set<uint32_t> times;            // Those that are ticks.
  std::set<uint32_t> clauses;          // That name any.
};

PrivateVariables find_private(const query::d::Script& script);

// The variable of `timestamp - self->ts`, and that of `self->ts = timestamp`; self->ts is a scalar.
std::optional<uint32_t> elapsed_since(const query::d::Script& script, const query::d::Node& node);
std::optional<uint32_t> noted_time(const query::d::Script& script, const query::d::Node& node);

}  // namespace clew::plan::d

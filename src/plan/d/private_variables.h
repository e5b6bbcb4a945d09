// SPDX-License-Identifier: Apache-2.0
// Script -> the thread-local variables that only probes of named processes use. Where all of these
// run inline in one process, such a variable can be a word of the thread's own window instead of an
// entry of the table that processes and the kernel share.
//
// Some of them are no more than times between two firings:
//
//     pid$target:a.out:f:entry  { self->ts = timestamp; }
//     pid$target:a.out:f:return /self->ts/ { @ = avg(timestamp - self->ts); self->ts = 0; }
//
// These can be ticks of the processor's counter, which become nanoseconds where they are
// subtracted: nobody can tell, as no time is compared with another clock's.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>

#include "query/d/script.h"

namespace clew::plan::d {

// Variables and clauses by their indexes in the script.
struct PrivateVariables {
  std::set<uint32_t> words;            // All of them; scalars.
  std::set<uint32_t> times;            // Those that are ticks.
  std::set<uint32_t> clauses;          // That name any.
  std::map<uint32_t, uint32_t> reads;  // By clause: how often it reads the counter.

  [[nodiscard]] bool is_word(uint32_t variable) const { return words.contains(variable); }
  [[nodiscard]] bool is_time(uint32_t variable) const { return times.contains(variable); }
};

PrivateVariables find_private(const query::d::Script& script);

// self->ts, and nothing else: the index of the thread-local scalar.
std::optional<uint32_t> thread_variable(const query::d::Script& script, const query::d::Node& node);
bool is_timestamp(const query::d::Node& node);

}  // namespace clew::plan::d

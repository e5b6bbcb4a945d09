// SPDX-License-Identifier: Apache-2.0
// The query of single events that all streams and carriers of a query with joins become: who asks
// what of which event, and the columns in which it comes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/error.h"
#include "plan/joined.h"
#include "query/diagnostic.h"
#include "query/query.h"

namespace clew::plan {

// Of all streams and all carriers.
inline constexpr size_t kEventSourcesMax = 512;

// Events of one stream, or of one carrier.
struct Emitter {
  std::vector<query::Source> sources;
  std::vector<query::Expression> leaves;   // What is asked of its events, each once.
  std::vector<query::Expression> filters;  // In the probe.
  std::vector<size_t> columns;             // Of each leaf, in a row of `events`.
  JoinRole role;
  bool shares = false;  // A source of it is another stream's, too.
  // What happens at one hit in this order: a thread goes on in a request, there is an event, and it
  // hands over.
  enum class Turn : uint8_t { Before, Event, Behind } turn = Turn::Event;
  // Who asks for other bytes has a probe for itself, which is over soon where these are not its
  // own.
  query::Medium medium = query::Medium::Tcp;

  size_t leaf(const query::Expression& expression) {
    const auto found = std::find(leaves.begin(), leaves.end(), expression);
    if (found != leaves.end()) return static_cast<size_t>(found - leaves.begin());
    leaves.push_back(expression);
    return leaves.size() - 1;
  }
};

// What a column has at a source that is not asked for it: 0, no text, or no stack.
query::Expression nothing(const query::Type& type);

// Whether events of any source have it: the tracer names it, so it is a column by itself, but for
// stacks, which are walked where they are asked for alone.
bool is_common_field(const query::Expression& expression);

// Whether both ask one probe, where they name the same place.
bool is_one_probe(const Emitter& one, const Emitter& other);

// Whether one hit is an event of both.
bool have_common_source(const Emitter& one, const Emitter& other);

// Makes `events` and `roles` of the query, and the columns of the emitters; and those of the fields
// `also`, where all events have them.
Expected<void> make_events(std::vector<Emitter>& emitters, const std::vector<query::Field>& also,
                           const query::Reporter& report, Joined& joined);

}  // namespace clew::plan

// SPDX-License-Identifier: Apache-2.0
// Where answers can be read that were given: a root's store (store_answers.h), or the bus, on which
// the root that leads reads it for us (remote_answers.h).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "cluster/message.h"

namespace clew::cluster {

// Of the tables of one part, but for the last of them.
inline constexpr size_t kPartBytes = 1 << 20;

// Intervals are counted from 1 on, which is `begun`, and may be more than there are. Those that are
// not kept any more have their numbers still; the range may be empty.
inline PaneRange panes_of_intervals(Pane begun, const PaneRange& given, uint64_t first,
                                    uint64_t last) {
  const uint64_t count = static_cast<uint64_t>(given.last - begun) + 1;
  const auto pane_of = [&](uint64_t interval) {
    return begun + static_cast<Pane>(std::clamp<uint64_t>(interval, 1, count + 1) - 1);
  };
  return {.first = std::max(pane_of(first), given.first),
          .last = std::min(pane_of(last), given.last)};
}

class Answers {
 public:
  Answers() = default;
  Answers(const Answers&) = delete;
  Answers& operator=(const Answers&) = delete;
  virtual ~Answers() = default;

  virtual Expected<std::vector<AnswerSummary>> list() = 0;
  // Intervals `first` to `last` of a query, counted from 1 on, or the first ones of them. NotFound:
  // there is no such query.
  virtual Expected<AnswerPart> read(const std::string& query, uint64_t first, uint64_t last) = 0;
};

}  // namespace clew::cluster

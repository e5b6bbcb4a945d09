// SPDX-License-Identifier: Apache-2.0
// From the time stamp counter, which Time records have, to nanoseconds, by the two moments of a
// snap at which both clocks were read.
#pragma once

#include <cstdint>
#include <optional>

#include "recorder/history.h"
#include "recorder/snap.h"

namespace clew::recorder {

// Relative to the moment of the snap: negative in front of it.
struct SpanNs {
  std::optional<int64_t> after{};
  std::optional<int64_t> before{};

  bool operator==(const SpanNs&) const = default;
};

class SnapClock {
 public:
  // Without sense in the two moments, which anybody may have written, no time is known.
  explicit SnapClock(const Snap& snap);

  [[nodiscard]] std::optional<int64_t> ns_at(std::optional<uint64_t> ticks) const;
  [[nodiscard]] SpanNs ns_of(const Span& span) const {
    return {ns_at(span.after), ns_at(span.before)};
  }

 private:
  uint64_t taken_ = 0;
  double ns_per_tick_ = 0;  // 0: not known.
};

}  // namespace clew::recorder

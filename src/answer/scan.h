// SPDX-License-Identifier: Apache-2.0
// Events as rows: their captures, decoded. The first operator behind the merge.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "aggregate/value.h"
#include "answer/decode.h"
#include "collect/event_batch.h"
#include "plan/capture.h"
#include "plan/lower.h"

namespace clew::answer {

class Scan {
 public:
  // Borrows all of them.
  Scan(const plan::Captured& captured, const plan::Clock& clock, Decoder& decoder)
      : captures_(captured.captures), clock_(clock), decoder_(decoder) {}

  [[nodiscard]] size_t width() const { return captures_.size(); }
  // As many values as captures; null where the event's words do not reach.
  void read(const collect::Event& event, std::span<aggregate::Value> into);

 private:
  const std::vector<query::Expression>& captures_;
  const plan::Clock& clock_;
  Decoder& decoder_;
};

}  // namespace clew::answer

// SPDX-License-Identifier: Apache-2.0
// Events as rows: their captures, decoded. The first operator behind the merge.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "aggregate/value.h"
#include "answer/decode.h"
#include "collect/event_batch.h"
#include "plan/capture.h"
#include "plan/lower.h"

namespace clew::answer {

class Scan {
 public:
  // Borrows all of them.
  Scan(const plan::Captured& captured, const plan::Clock& clock, Decoder& decoder);

  [[nodiscard]] size_t width() const { return places_.size(); }
  // As many values as captures; null where the event's words do not reach.
  void read(const collect::Event& event, std::span<aggregate::Value> into);

 private:
  // Where a capture stands: behind those before it.
  struct Place {
    const query::Expression& capture;
    size_t words = 0;         // At least.
    bool has_length = false;  // The first of them says in bytes how much follows.
    bool is_time = false;     // Of the event itself.
  };
  static std::optional<std::span<const uint64_t>> take(const Place& place,
                                                       std::span<const uint64_t>& rest);

  std::vector<Place> places_;
  const plan::Clock& clock_;
  Decoder& decoder_;
};

}  // namespace clew::answer

// SPDX-License-Identifier: Apache-2.0
#include "answer/scan.h"

#include "base/assert.h"
#include "plan/coder.h"

namespace clew::answer {

Scan::Scan(const plan::Captured& captured, const plan::Clock& clock, Decoder& decoder)
    : clock_(clock), decoder_(decoder) {
  places_.reserve(captured.captures.size());
  for (const query::Expression& capture : captured.captures) {
    const bool is_field = capture.kind == query::ExpressionKind::Field;
    places_.push_back({.capture = capture,
                       .words = plan::words_in_event(capture).least,
                       .has_length = plan::has_own_length(capture),
                       .is_time = is_field && capture.field == query::Field::Time});
  }
}

// The words of a capture, off the front of the rest; none when they are not there.
std::optional<std::span<const uint64_t>> Scan::take(const Place& place,
                                                    std::span<const uint64_t>& rest) {
  size_t count = place.words;
  if (place.has_length && !rest.empty()) count += rest[0] / 8;
  if (count > rest.size()) {
    rest = {};
    return std::nullopt;
  }
  const std::span<const uint64_t> words = rest.first(count);
  rest = rest.subspan(count);
  CLEW_ASSERT(!place.has_length || place.words != 0);  // The length has a word.
  return place.has_length ? words.subspan(1) : words;
}

void Scan::read(const collect::Event& event, std::span<aggregate::Value> into) {
  CLEW_ASSERT(into.size() == places_.size());
  std::span<const uint64_t> rest = event.words;
  for (size_t i = 0; i < places_.size(); ++i) {
    const Place& place = places_[i];
    const std::optional<std::span<const uint64_t>> words = take(place, rest);
    if (place.is_time) {
      into[i] = static_cast<int64_t>(clock_.monotonic_ns(event.time));
    } else if (words) {
      decoder_.decode(place.capture, *words, collect::process_of(event), into[i]);
    } else {
      into[i] = {};
    }
  }
}

}  // namespace clew::answer

// SPDX-License-Identifier: Apache-2.0
#include "answer/scan.h"

#include <optional>

#include "plan/coder.h"

namespace clew::answer {
namespace {

using query::Expression;
using Words = std::span<const uint64_t>;

// The words of a capture, off the front of the rest; none when they are not there.
std::optional<Words> take_place(const Expression& capture, Words& rest) {
  size_t count = plan::words_in_event(capture).least;
  const bool has_length = plan::has_own_length(capture);
  if (has_length && !rest.empty()) count += rest[0] / 8;
  if (count > rest.size()) {
    rest = {};
    return std::nullopt;
  }
  const Words words = rest.first(count);
  rest = rest.subspan(count);
  return has_length ? words.subspan(1) : words;
}

bool is_time(const Expression& capture) {
  return capture.kind == query::ExpressionKind::Field && capture.field == query::Field::Time;
}

}  // namespace

void Scan::read(const collect::Event& event, std::span<aggregate::Value> into) {
  Words rest = event.words;
  for (size_t i = 0; i < captures_.size(); ++i) {
    const Expression& capture = captures_[i];
    const std::optional<Words> words = take_place(capture, rest);
    if (is_time(capture)) {
      into[i] = static_cast<int64_t>(clock_.monotonic_ns(event.time));
    } else if (words) {
      decoder_.decode(capture, *words, event.process, into[i]);
    } else {
      into[i] = {};
    }
  }
}

}  // namespace clew::answer

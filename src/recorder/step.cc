// SPDX-License-Identifier: Apache-2.0
#include "recorder/step.h"

#include <algorithm>
#include <charconv>

#include "base/assert.h"

namespace clew::recorder {

namespace {

bool ends_with_part(std::string_view name, std::string_view wanted, std::string_view separator) {
  if (!name.ends_with(wanted)) return false;
  name.remove_suffix(wanted.size());
  return name.empty() || name.ends_with(separator);
}

std::optional<uint32_t> number_of(std::string_view text) {
  uint32_t number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_all = read.ec == std::errc() && read.ptr == text.data() + text.size();
  return is_all ? std::optional(number) : std::nullopt;
}

}  // namespace

std::optional<Location> parse_location(std::string_view text, std::string_view file) {
  if (const auto line = number_of(text)) {
    if (file.empty()) return std::nullopt;
    return Location{.function = "", .file = std::string(file), .line = *line};
  }
  const size_t colon = text.rfind(':');
  if (colon != std::string_view::npos && colon != 0 && text[colon - 1] != ':') {
    if (const auto line = number_of(text.substr(colon + 1)))
      return Location{.function = "", .file = std::string(text.substr(0, colon)), .line = *line};
  }
  return Location{.function = std::string(text), .file = "", .line = 0};
}

bool is_at(const Frame& frame, const Location& location) {
  if (location.function.empty())
    return frame.line == location.line && ends_with_part(frame.file, location.file, "/");
  const std::string_view name = frame.function;
  return ends_with_part(name, location.function, "::") ||
         ends_with_part(name.substr(0, name.find('(')), location.function, "::");
}

Cursor::Cursor(Moments& moments) : moments_(moments) {
  const bool has_moments = go_to(0);
  CLEW_ASSERT(has_moments);
}

bool Cursor::go_to(size_t back) {
  const auto moment = moments_.at(back);
  if (!moment) return false;
  back_ = back;
  now_ = *moment;
  return true;
}

Move Cursor::go_to_oldest() {
  while (go_to(back_ + 1)) {
  }
  return {};
}

// Of two moments with no beginning of an activation of that depth between them.
Cursor::Relation Cursor::relation(const Moment& seen, const Moment& from) const {
  if (seen.depth != from.depth) return seen.depth > from.depth ? Relation::Inner : Relation::Outer;
  const auto& inner = moments_.place(seen.place).frames;
  const auto& own = moments_.place(from.place).frames;
  if (inner.size() < own.size()) return Relation::Outer;
  // What is further out than the frame is the same, also the calls.
  const size_t deeper = inner.size() - own.size();
  const bool is_within =
      std::equal(own.begin() + 1, own.end(), inner.begin() + static_cast<ptrdiff_t>(deeper) + 1) &&
      inner[deeper].function == own.front().function;
  if (!is_within) return Relation::Outer;
  return deeper == 0 ? Relation::Same : Relation::Inner;
}

bool Cursor::is_same_line(const Moment& one, const Moment& other) const {
  return moments_.place(one.place).frames.front() == moments_.place(other.place).frames.front();
}

bool Cursor::is_there(const Moment& moment, const Location& location) const {
  const auto& frames = moments_.place(moment.place).frames;
  return std::any_of(frames.begin(), frames.end(),
                     [&](const Frame& frame) { return is_at(frame, location); });
}

// The nearest older moment of the same frame, or activation.
std::optional<size_t> Cursor::before(size_t back, bool in_frame) {
  const Moment from = *moments_.at(back);
  Moment seen = from;
  for (size_t i = back + 1; i <= back + kLookBackMax; ++i) {
    const bool has_begun = seen.is_entry && seen.depth <= from.depth;
    if (has_begun || (seen.marks & kMissing) != 0) return std::nullopt;
    const auto older = moments_.at(i);
    if (!older || older->depth < from.depth) return std::nullopt;
    seen = *older;
    if (seen.depth > from.depth) continue;
    if (!in_frame) return i;
    const Relation is = relation(seen, from);
    if (is != Relation::Inner) return is == Relation::Same ? std::optional(i) : std::nullopt;
  }
  return std::nullopt;
}

size_t Cursor::first_of_statement(size_t back) {
  const Moment from = *moments_.at(back);
  for (auto older = before(back, true); older; older = before(back, true)) {
    if (!is_same_line(*moments_.at(*older), from)) break;
    back = *older;
  }
  return back;
}

bool Cursor::begins_visit(size_t back, const Location& location) {
  if (!is_there(*moments_.at(back), location)) return false;
  const auto older = before(back, false);
  return !older || !is_there(*moments_.at(*older), location);
}

// By one moment. False: there is none, and the move's end says so.
bool Cursor::move(Direction way, Move& move) {
  if (way == Direction::Forward) {
    if (back_ == 0) {
      move.end = MoveEnd::Newest;
      return false;
    }
    (void)go_to(back_ - 1);
    return true;
  }
  const uint8_t marks = now_.marks;
  if (!go_to(back_ + 1)) {
    move.end = MoveEnd::Oldest;
    return false;
  }
  move.passed |= marks;
  return true;
}

// Until a moment that `until` takes, which gets its relation to where the move began.
template <typename Until>
Move Cursor::go_forward(Until until) {
  const Moment from = now_;
  Move done;
  while (move(Direction::Forward, done)) {
    if ((now_.marks & kMissing) != 0) {
      done.end = MoveEnd::Missing;
      return done;
    }
    const bool is_another = now_.is_entry && now_.depth == from.depth;
    if (until(is_another ? Relation::Outer : relation(now_, from))) return done;
    done.passed |= now_.marks;
  }
  return done;
}

template <typename Until>
Move Cursor::go_backward(Until until) {
  const Moment from = now_;
  bool has_begun = false;
  Move done;
  for (size_t moments = 0;; ++moments) {
    if (moments != 0 && (now_.marks & kMissing) != 0) {
      done.end = MoveEnd::Missing;
      return done;
    }
    has_begun = (now_.is_entry && now_.depth == from.depth) || (now_.marks & kMissing) != 0;
    if (!move(Direction::Backward, done)) return done;
    if (until(has_begun ? Relation::Outer : relation(now_, from))) return done;
  }
}

Move Cursor::step(Direction way) {
  Move done;
  if (move(way, done) && way == Direction::Forward && (now_.marks & kMissing) != 0)
    done.end = MoveEnd::Missing;
  return done;
}

Move Cursor::next(Direction way) {
  const Moment from = now_;
  if (way == Direction::Forward) {
    return go_forward([&](Relation is) {
      return is == Relation::Outer || (is == Relation::Same && !is_same_line(now_, from));
    });
  }
  Move done;
  const size_t first = first_of_statement(back_);
  if (first == back_) {
    Relation came_to = Relation::Outer;
    done = go_backward([&came_to](Relation is) {
      came_to = is;
      return is != Relation::Inner;
    });
    if (done.end != MoveEnd::Arrived || came_to != Relation::Same) return done;
  }
  const size_t aim = first_of_statement(back_);
  while (back_ != aim)
    (void)move(Direction::Backward, done);
  return done;
}

Move Cursor::finish(Direction way) {
  const auto is_outside = [](Relation is) { return is == Relation::Outer; };
  return way == Direction::Forward ? go_forward(is_outside) : go_backward(is_outside);
}

Move Cursor::until() {
  const uint32_t line = place().frames.front().line;
  return go_forward([&](Relation is) {
    return is == Relation::Outer || (is == Relation::Same && place().frames.front().line > line);
  });
}

Move Cursor::advance(const Location& location) {
  return go_forward(
      [&](Relation is) { return is == Relation::Outer || begins_visit(back_, location); });
}

Move Cursor::run(Direction way, std::span<const Location> locations) {
  const auto is_visit = [&](Relation) {
    return std::any_of(locations.begin(), locations.end(),
                       [&](const Location& one) { return begins_visit(back_, one); });
  };
  return way == Direction::Forward ? go_forward(is_visit) : go_backward(is_visit);
}

Stack Cursor::stack(size_t frames_max) {
  Stack stack;
  bool is_certain = true;
  const auto add = [&](size_t back, const Moment& moment) {
    const size_t levels = moments_.place(moment.place).frames.size();
    for (size_t level = 0; level < levels && stack.frames.size() < frames_max; ++level)
      stack.frames.push_back({.back = back, .level = level, .is_certain = is_certain});
  };
  Moment seen = now_;
  int32_t depth = now_.depth;
  add(back_, seen);
  for (size_t i = back_ + 1; stack.frames.size() < frames_max; ++i) {
    if ((seen.marks & kMissing) != 0) is_certain = false;
    const auto older = moments_.at(i);
    if (!older) break;
    if (seen.is_entry && seen.depth == depth) stack.is_whole = true;
    seen = *older;
    if (seen.depth >= depth) continue;
    depth = seen.depth;
    stack.is_whole = false;
    add(i, seen);
  }
  stack.is_whole = stack.is_whole && is_certain;
  return stack;
}

std::vector<size_t> Cursor::visits(const Location& location) {
  size_t count = 0;
  while (moments_.at(count))
    ++count;
  std::vector<size_t> found;
  for (size_t back = count; back-- > 0;) {
    if (begins_visit(back, location)) found.push_back(back);
  }
  return found;
}

}  // namespace clew::recorder

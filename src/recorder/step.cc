// SPDX-License-Identifier: Apache-2.0
#include "recorder/step.h"

#include <algorithm>
#include <charconv>

#include "base/assert.h"
#include "recorder/short_name.h"

namespace clew::recorder {

namespace {

// Where the kernel and the loader let a program begin.
constexpr std::string_view kProgramStart = "_start";

bool ends_with_part(std::string_view name, std::string_view wanted, std::string_view separator) {
  if (!name.ends_with(wanted)) return false;
  name.remove_suffix(wanted.size());
  return name.empty() || name.ends_with(separator);
}

bool is_named(std::string_view name, std::string_view wanted) {
  return ends_with_part(name, wanted, "::") ||
         ends_with_part(name.substr(0, name.find('(')), wanted, "::");
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
  return is_named(frame.function, location.function) ||
         (is_short_name(location.function) &&
          is_named(short_name(frame.function), location.function));
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
  level_ = 0;
  return true;
}

Move Cursor::go_to_oldest() {
  while (go_to(back_ + 1)) {
  }
  return {};
}

// Of two moments with no beginning of an activation of that depth between them.
Cursor::Relation Cursor::relation(const Moment& seen, const Standpoint& from) const {
  if (seen.depth != from.moment.depth)
    return seen.depth > from.moment.depth ? Relation::Inner : Relation::Outer;
  const auto& inner = moments_.place(seen.place).frames;
  const auto own = std::span(moments_.place(from.moment.place).frames).subspan(from.level);
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

// The outermost frame that is there.
std::optional<size_t> Cursor::level_there(const Moment& moment, const Location& location) const {
  const auto& frames = moments_.place(moment.place).frames;
  for (size_t level = frames.size(); level-- > 0;) {
    if (is_at(frames[level], location)) return level;
  }
  return std::nullopt;
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
    const Relation is = relation(seen, {from});
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

// The level of the frame that is there. Where something may be missing in front of the moment, it
// may have been entered long before.
std::optional<size_t> Cursor::begins_visit(size_t back, const Location& location) {
  const Moment moment = *moments_.at(back);
  const auto level = level_there(moment, location);
  if (!level) return std::nullopt;
  const auto older = before(back, false);
  if (older && level_there(*moments_.at(*older), location)) return std::nullopt;
  const bool is_certain = older || (moment.is_entry && (moment.marks & kMissing) == 0);
  return is_certain ? *level : 0;
}

// By one moment. False: there is none, and the move's end says so.
bool Cursor::move(Direction way, Move& move) {
  if (way == Direction::Forward) {
    if (back_ == 0) {
      level_ = 0;
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
  const Standpoint from{now_, level_};
  Move done;
  while (move(Direction::Forward, done)) {
    if ((now_.marks & kMissing) != 0) {
      done.end = MoveEnd::Missing;
      return done;
    }
    const bool is_another = now_.is_entry && now_.depth == from.moment.depth;
    if (until(is_another ? Relation::Outer : relation(now_, from))) return done;
    done.passed |= now_.marks;
  }
  return done;
}

template <typename Until>
Move Cursor::go_backward(Until until) {
  const Standpoint from{now_, level_};
  bool has_begun = false;
  Move done;
  for (size_t moments = 0;; ++moments) {
    if (moments != 0 && (now_.marks & kMissing) != 0) {
      done.end = MoveEnd::Missing;
      return done;
    }
    has_begun = (now_.is_entry && now_.depth == from.moment.depth) || (now_.marks & kMissing) != 0;
    if (!move(Direction::Backward, done)) return done;
    if (until(has_begun ? Relation::Outer : relation(now_, from))) return done;
  }
}

Move Cursor::step(Direction way) {
  Move done;
  if (way == Direction::Forward && level_ != 0) {
    --level_;
    return done;
  }
  if (move(way, done) && way == Direction::Forward && (now_.marks & kMissing) != 0)
    done.end = MoveEnd::Missing;
  return done;
}

Move Cursor::next(Direction way) {
  const Frame from = frame();
  if (way == Direction::Forward) {
    return go_forward([&](Relation is) {
      return is == Relation::Outer || (is == Relation::Same && frame() != from);
    });
  }
  Move done;
  // In front of a call that was inlined, its statement begins.
  const size_t first = level_ != 0 ? back_ : first_of_statement(back_);
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

// Of an activation of that depth that began behind the moment: is its caller the beginning of the
// program? Others may have ended in between, as constructors have in front of main.
bool Cursor::is_outermost(size_t back, int32_t depth) {
  for (size_t i = back; i < back + kLookBackMax; ++i) {
    const auto older = moments_.at(i);
    if (!older) return false;
    if (older->depth < depth)
      return moments_.place(older->place).frames.back().function == kProgramStart;
    if ((older->marks & kMissing) != 0) return false;
  }
  return false;
}

Move Cursor::finish(Direction way) {
  const auto is_outside = [](Relation is) { return is == Relation::Outer; };
  if (way == Direction::Forward) return go_forward(is_outside);
  const int32_t depth = now_.depth;
  const size_t frames = place().frames.size() - level_;  // From the one that is left on.
  Move done = go_backward(is_outside);
  if (done.end != MoveEnd::Arrived) return done;
  const Moment behind = *moments_.at(back_ - 1);
  const bool has_begun = now_.depth < depth || (behind.is_entry && behind.depth == depth);
  if (!has_begun || !is_outermost(back_, depth)) return done;
  (void)go_to(back_ - 1);
  if (frames == 1) done.end = MoveEnd::Outermost;
  const size_t outermost = place().frames.size() - 1;
  level_ = std::min(outermost + 2 - frames, outermost);
  return done;
}

Move Cursor::until() {
  const uint32_t line = frame().line;
  return go_forward([&](Relation is) {
    return is == Relation::Outer || (is == Relation::Same && frame().line > line);
  });
}

// Until a moment for which `until` has a level.
template <typename Until>
Move Cursor::run_until(Direction way, Until until) {
  size_t level = 0;
  const auto is_there = [&](Relation is) {
    const std::optional<size_t> found = until(is);
    level = found.value_or(0);
    return found.has_value();
  };
  const Move done = way == Direction::Forward ? go_forward(is_there) : go_backward(is_there);
  level_ = done.end == MoveEnd::Arrived ? level : 0;
  return done;
}

Move Cursor::advance(const Location& location) {
  return run_until(Direction::Forward, [&](Relation is) {
    return is == Relation::Outer ? std::optional<size_t>(0) : begins_visit(back_, location);
  });
}

Move Cursor::run(Direction way, std::span<const Location> locations) {
  return run_until(way, [&](Relation) {
    std::optional<size_t> innermost;
    for (const Location& one : locations) {
      const auto level = begins_visit(back_, one);
      if (level) innermost = std::min(*level, innermost.value_or(*level));
    }
    return innermost;
  });
}

Stack Cursor::stack(size_t frames_max) {
  Stack stack;
  bool is_certain = true;
  const auto add = [&](size_t back, const Moment& moment, size_t from) {
    const size_t levels = moments_.place(moment.place).frames.size();
    for (size_t level = from; level < levels && stack.frames.size() < frames_max; ++level)
      stack.frames.push_back({.back = back, .level = level, .is_certain = is_certain});
  };
  Moment seen = now_;
  int32_t depth = now_.depth;
  add(back_, seen, level_);
  for (size_t i = back_ + 1; stack.frames.size() < frames_max; ++i) {
    if ((seen.marks & kMissing) != 0) is_certain = false;
    const auto older = moments_.at(i);
    if (!older) break;
    if (seen.is_entry && seen.depth == depth) stack.is_whole = true;
    seen = *older;
    if (seen.depth >= depth) continue;
    depth = seen.depth;
    stack.is_whole = false;
    add(i, seen, 0);
  }
  stack.is_whole = stack.is_whole && is_certain;
  return stack;
}

std::vector<Visit> Cursor::visits(const Location& location) {
  size_t count = 0;
  while (moments_.at(count))
    ++count;
  std::vector<Visit> found;
  for (size_t back = count; back-- > 0;) {
    if (const auto level = begins_visit(back, location)) found.push_back({back, *level});
  }
  return found;
}

}  // namespace clew::recorder

// SPDX-License-Identifier: Apache-2.0
// A cursor that steps through the moments of a thread, both ways, as a debugger does.
//
// A *frame* is an activation, or a function that was inlined into one. A frame's *statement* is a
// run of its moments of one line, with the calls between them: behind a call control comes back
// into the statement. All moves are of whole moments:
//   - `step` goes to the neighbour: step and reverse-step undo each other.
//   - `next` goes to the frame's next statement, over calls; where the frame ends, to the moment
//     that control goes on at. Backwards it goes to the first moment of the statement, and if that
//     is where it is, to the first one of the statement before; from the first statement of a frame
//     to the call. From a first moment, `next` and then reverse-next lead back to it if no frame
//     ended.
//   - `finish` goes to the moment behind the frame; backwards to the call, in front of it.
//   - A *visit* of a line or function is a run of an activation's moments there, with what is
//     inlined there and the calls between them. `run` goes to the first moment of one. Where that
//     is one of a function that was inlined there, the cursor stands in front of that call, as gdb
//     does: the frames further in are not entered yet, and a step enters one of them.
//   - `_start` is in front of all functions: who is called by it alone has no call that one could
//     go back to.
// A move ends at a moment in front of which something may be missing, in both directions: depths on
// the two sides of it need not be those of one stack.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "recorder/history.h"

namespace clew::recorder {

// Moves end at moments with marks of kMissing.
// Moments that are looked back at for the beginning of a statement or visit.
inline constexpr size_t kLookBackMax = size_t{1} << 16;

enum class Direction : uint8_t { Forward, Backward };

struct Location {
  std::string function;  // Empty: a line.
  std::string file;      // Matches from the right at a '/'.
  uint32_t line = 0;
};

// FILE:LINE, LINE (of that file), or a function. Nothing: a line, and no file is known.
std::optional<Location> parse_location(std::string_view text, std::string_view file);
// A frame is there. A function is named in full, without its scope or parameters, or as it is
// shown (short_name.h).
bool is_at(const Frame& frame, const Location& location);

enum class MoveEnd : uint8_t {
  Arrived,
  Missing,    // Something may be missing in front of the moment.
  Oldest,     // Nothing is in front of it.
  Newest,     // Nothing is behind it.
  Outermost,  // There is no call to go to: this is where the outermost function begins.
};

struct Move {
  MoveEnd end = MoveEnd::Arrived;
  // Marks that were passed. Going forward, those where it ended are not among them.
  uint8_t passed = 0;
};

struct StackFrame {
  size_t back = 0;   // The moment: of the current one, or of the call.
  size_t level = 0;  // In its place's frames.
  bool is_certain = true;
};

// Where a visit begins.
struct Visit {
  size_t back = 0;
  size_t level = 0;  // In its place's frames.

  bool operator==(const Visit&) const = default;
};

struct Stack {
  std::vector<StackFrame> frames;  // The innermost first.
  // The outermost one was called by code that is not recorded. Else that is not known.
  bool is_whole = false;
};

class Cursor {
 public:
  // Borrows them; there is at least one. Begins at the last one.
  explicit Cursor(Moments& moments);

  [[nodiscard]] size_t back() const { return back_; }
  [[nodiscard]] const Moment& now() const { return now_; }
  [[nodiscard]] const Place& place() const { return moments_.place(now_.place); }
  // In the place's frames: those in front of it are not entered yet.
  [[nodiscard]] size_t level() const { return level_; }
  [[nodiscard]] const Frame& frame() const { return place().frames[level_]; }

  Move step(Direction way);
  Move next(Direction way);
  Move finish(Direction way);
  // To a later line of the frame, or where it ends: out of loops.
  Move until();
  // To the next visit that begins, or to where the frame ends.
  Move advance(const Location& location);
  // To the beginning of a visit of one of them.
  Move run(Direction way, std::span<const Location> locations);
  // False: there are not so many.
  bool go_to(size_t back);
  Move go_to_oldest();

  // At most so many frames.
  Stack stack(size_t frames_max);
  // All visits, the oldest first.
  std::vector<Visit> visits(const Location& location);

 private:
  enum class Relation : uint8_t { Inner, Same, Outer };
  // A moment, and the frame of it that something is compared with.
  struct Standpoint {
    Moment moment;
    size_t level = 0;
  };

  [[nodiscard]] Relation relation(const Moment& seen, const Standpoint& from) const;
  [[nodiscard]] bool is_same_line(const Moment& one, const Moment& other) const;
  [[nodiscard]] std::optional<size_t> level_there(const Moment& moment,
                                                  const Location& location) const;
  [[nodiscard]] std::optional<size_t> begins_visit(size_t back, const Location& location);
  [[nodiscard]] std::optional<size_t> before(size_t back, bool in_frame);
  [[nodiscard]] size_t first_of_statement(size_t back);
  [[nodiscard]] bool is_outermost(size_t back, int32_t depth);
  template <typename Until>
  Move go_forward(Until until);
  template <typename Until>
  Move go_backward(Until until);
  template <typename Until>
  Move run_until(Direction way, Until until);
  bool move(Direction way, Move& move);

  Moments& moments_;
  size_t back_ = 0;
  Moment now_;
  size_t level_ = 0;
};

}  // namespace clew::recorder

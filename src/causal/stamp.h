// SPDX-License-Identifier: Apache-2.0
// Interval tree clocks: which part of a request a branch is, and what of the request it has seen.
// The algorithm is that of Almeida, Baquero and Fonte, "Interval Tree Clocks: A Logical Clock for
// Dynamic Systems" (OPODIS 2008). Its trees are kept flat, so that nothing here recurses: the tree
// of an id is the list of its leaves, that of an event the steps of the function that it stands
// for, over the line from 0 to 2^48.
//
//   id       the intervals that the branch owns; no other branch owns any point of them
//   heights  how many events there were at each point, as far as the branch has seen
//
// Only the owner of a point raises its height, so the heights of a point are in the order of cause,
// and a branch has seen an event if its heights are at least those that the event left behind.
// An event raises the first interval of the id alone: to its highest point, which makes it flat, or
// by one if it is flat already. (The paper lets any part of the id grow, by the least cost.)
// Everything has a limit: to pass those of depth, steps and height is a result, not an error, and
// leaves the stamp as it was; of too many intervals some are given up.
#pragma once

#include <cstdint>
#include <span>

#include "causal/fixed_list.h"

namespace clew::causal {

inline constexpr unsigned kDepthMax = 48;
inline constexpr uint64_t kLineEnd = uint64_t{1} << kDepthMax;
inline constexpr size_t kIntervalsMax = 16;
inline constexpr size_t kStepsMax = 48;
inline constexpr uint32_t kHeightMax = UINT32_MAX;

// A leaf of an id's tree: 2^-depth of the line. `start` is a multiple of its size.
struct Interval {
  uint64_t start;
  uint8_t depth;

  [[nodiscard]] uint64_t size() const { return kLineEnd >> depth; }
  [[nodiscard]] uint64_t end() const { return start + size(); }
  friend bool operator==(const Interval&, const Interval&) = default;
};

// The intervals of a branch: sorted, disjoint, and no two of them are the halves of a third one.
// Without any it is anonymous: it can see events, and has none itself.
class Id {
 public:
  static Id whole();

  // Gives a part away: of the largest interval 2^-levels, or a smaller interval that is not smaller
  // than that. Anonymous: there is none, and it keeps all.
  [[nodiscard]] Id split(unsigned levels = 1);
  // Takes what does not overlap. Of more intervals than it can have the smallest ones are nobody's
  // from then on, which is a loss of room and nothing else.
  void unite(const Id& other);
  [[nodiscard]] bool overlaps(const Id& other) const;

  [[nodiscard]] bool is_anonymous() const { return intervals_.empty(); }
  [[nodiscard]] std::span<const Interval> intervals() const { return intervals_.values(); }
  [[nodiscard]] const Interval& first() const { return intervals_[0]; }
  // The least depth; of an anonymous one the greatest that there is.
  [[nodiscard]] unsigned depth() const;

  // Takes the next interval of an id that somebody wrote down. False: it does not follow the others
  // as it does in a list of this kind.
  [[nodiscard]] bool append(const Interval& next);

  friend bool operator==(const Id&, const Id&) = default;

 private:
  [[nodiscard]] Id cut_off(size_t index, size_t cuts);

  FixedList<Interval, kIntervalsMax> intervals_;
};

// From `start` on the height is `height`, up to the next step.
struct Step {
  uint64_t start;
  uint32_t height;

  friend bool operator==(const Step&, const Step&) = default;
};

// A function over the line: 0 in front of the first step, and each step changes it.
class Heights {
 public:
  // Raises an interval, as above. False: too many steps, or too high.
  [[nodiscard]] bool raise(const Interval& interval);
  // The higher of both, everywhere. False: too many steps.
  [[nodiscard]] bool join(const Heights& other);

  // Nowhere higher than `other`: all events seen here are seen there.
  [[nodiscard]] bool is_within(const Heights& other) const;
  [[nodiscard]] uint32_t lowest(const Interval& interval) const;
  [[nodiscard]] std::span<const Step> steps() const { return steps_.values(); }

  // As that of an id.
  [[nodiscard]] bool append(const Step& next);

  friend bool operator==(const Heights&, const Heights&) = default;

 private:
  [[nodiscard]] bool push_change(uint64_t start, uint32_t height);

  FixedList<Step, kStepsMax> steps_;
};

struct Stamp {
  Id id;
  Heights heights;

  static Stamp seed() { return {.id = Id::whole(), .heights = {}}; }

  // Of a branch that owns something. False: past a limit.
  [[nodiscard]] bool event() { return heights.raise(id.first()); }
  // Has seen the same, and owns nothing.
  [[nodiscard]] Stamp peek() const { return {.id = {}, .heights = heights}; }
  // A part of this one, which has seen the same; `levels` are those of Id::split. Anonymous: past a
  // limit.
  [[nodiscard]] Stamp fork(unsigned levels = 1) {
    return {.id = id.split(levels), .heights = heights};
  }
  // Takes what another one owns, which must not overlap, and has seen. False: past a limit.
  [[nodiscard]] bool join(const Stamp& other);

  friend bool operator==(const Stamp&, const Stamp&) = default;
};

}  // namespace clew::causal

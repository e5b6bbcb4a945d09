// SPDX-License-Identifier: Apache-2.0
// Bags that add up: groups of cells, one number each. Merging one twice would count it twice, so a
// bag has parts, *instances*:
//
//   active   what its branch adds to. No other branch has any of it.
//   frozen   what an active instance was when its branch made another one (causal/baggage.h), never
//            changed since. Its name is the event by which that branch froze it: the interval that
//            the event raised, and to which height.
//
// The value of a bag is the sum over all its instances. Of every frozen instance whose event a
// branch has seen, the branch has the cells: in that instance, or in a later one that its maker
// added to. So of two bags that meet
//
//   - both active instances stay: they become one;
//   - a frozen one that both have stays once;
//   - one that only one of them has stays if the other has not seen its event. If it has, then the
//     other's cells are in a later instance that it brings along.
//
// These are the rules of an observed-remove set without tombstones (Bieniusa et al., "An Optimized
// Conflict-free Replicated Set", 2012), with the intervals of a clock in the place of replicas. The
// maker of an instance keeps the active one, so a branch that never comes back leaves nothing
// behind.
//
//     u8 words ≤ 16 · words × u8 operation
//     u8 instances ≤ 33 { varint height, 0: active · of the others u8 depth, prefix
//                         u8 groups { u8 size · key · words × zigzag varint } }
//
// The active instance comes first, the others by (start, depth, height), groups by key; none is
// empty, and who has an instance has seen its event. A prefix is the first `depth` bits of where
// the interval starts, in as few bytes as hold them. As with sets, `is_sum` says what is one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "causal/bag.h"
#include "causal/bytes.h"
#include "causal/stamp.h"

namespace clew::causal {

inline constexpr size_t kWordsMax = 16;      // Of a group.
inline constexpr size_t kInstancesMax = 32;  // Frozen ones.
inline constexpr size_t kGroupsMax = 64;     // Of the value of a bag.

enum class CellOperation : uint8_t { Add, Least, Greatest, Or };
inline constexpr uint8_t kCellOperations = 4;

// The event that froze an instance. Height 0: none, it is active.
struct Freezing {
  Interval interval{};
  uint32_t height = 0;

  friend bool operator==(const Freezing&, const Freezing&) = default;
};

// A group of an instance, or of the value of a bag. Key and cells are borrowed.
struct Group {
  std::span<const std::byte> key;
  std::span<const int64_t> cells;
};

// Groups by key, ascending, with their cells. They point into the list and to the bytes of a bag.
class Groups {
 public:
  Groups() = default;
  Groups(const Groups&) = delete;
  Groups& operator=(const Groups&) = delete;
  ~Groups() = default;

  // Combines a group with that of the same key, or adds it. False: too many.
  [[nodiscard]] bool add(std::span<const CellOperation> operations, const Group& group);
  [[nodiscard]] size_t size() const { return groups_.size(); }
  [[nodiscard]] std::span<const Group> groups() const { return groups_.values(); }

 private:
  FixedList<Group, kGroupsMax> groups_;
  // In the order of arrival.
  std::array<int64_t, kGroupsMax * kWordsMax> cells_;
};

// One bag that is a sum and what its branch has seen.
struct SeenSum {
  std::span<const std::byte> bytes;  // Empty: no bag of that name.
  const Heights& seen;
};

// The bytes, which may be anybody's, are a sum, and of each frozen instance the event was seen.
[[nodiscard]] bool is_sum(std::span<const std::byte> bytes, const Heights& seen);

// Adds to the active instance of a sum, or begins one in an empty body. False: other operations
// than those of the sum, or more than 256 bytes; then no sum is left behind.
[[nodiscard]] bool add_to_sum(Body& sum, std::span<const CellOperation> operations,
                              const Group& group);

// Makes a frozen instance of the active one. False: too many, or too large.
[[nodiscard]] bool freeze_sum(Body& sum, const Freezing& freezing);

// False: other operations, or as above.
[[nodiscard]] bool merge_sums(const SeenSum& a, const SeenSum& b, Body& merged);

// The value of a bag. False: more groups than 64.
[[nodiscard]] bool value_of_sum(std::span<const std::byte> sum, Groups& value);

// Of the interval that an instance has, and of ids and steps (causal/wire.h).
void put_interval(ByteWriter& writer, const Interval& interval);
[[nodiscard]] Interval take_interval(ByteReader& reader);

}  // namespace clew::causal

// SPDX-License-Identifier: Apache-2.0
// A bag: what one query has packed into a request. Its head says how two of them become one, so
// that whoever knows no query can do that. There are two forms, and either is kept as the bytes
// that the wire has:
//
//   sets   (causal/set.h) tuples, each with its place in the request, (n, tie). What is kept of
//          them is a matter of that order, so merging twice is merging once: sets need no stamps.
//   sums   (causal/sum.h) cells that add up, for which merging twice is wrong: their parts are
//          told apart by stamps (causal/stamp.h).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <tuple>

#include "causal/fixed_list.h"

namespace clew::causal {

inline constexpr size_t kBodyBytesMax = 256;
inline constexpr size_t kTuplesMax = 64;

enum class BagKind : uint8_t {
  First,       // The first `keep` tuples.
  MostRecent,  // The last `keep` tuples.
  All,         // Every tuple.
  Least,       // Of the tuples with the same fields behind the first one, that whose first field,
               // a number, is least.
  Greatest,    // The same, greatest.
  Sum,         // Cells of several groups.
};
inline constexpr uint8_t kBagKinds = 6;

// Who asks, and which version of its plan: bags of the same query and plan are the same bag.
struct BagName {
  uint32_t query;
  uint16_t plan;

  friend auto operator<=>(const BagName&, const BagName&) = default;
};

struct Bag {
  BagName name{};
  BagKind kind = BagKind::All;
  uint8_t keep = 0;  // First and MostRecent: 1 to kTuplesMax. Others: 0.
  // The bags of the lowest one go first where there is too little room.
  uint8_t priority = 0;
  // It lost something, so it holds nothing, and its query gets the request's tuples another way.
  bool overflowed = false;

  friend bool operator==(const Bag&, const Bag&) = default;
};

[[nodiscard]] constexpr bool is_valid(const Bag& bag) {
  const bool keeps_some = bag.kind == BagKind::First || bag.kind == BagKind::MostRecent;
  const bool is_kept = keeps_some ? bag.keep >= 1 && bag.keep <= kTuplesMax : bag.keep == 0;
  return static_cast<uint8_t>(bag.kind) < kBagKinds && is_kept;
}

using Body = FixedList<std::byte, kBodyBytesMax>;

}  // namespace clew::causal

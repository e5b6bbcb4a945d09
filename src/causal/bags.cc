// SPDX-License-Identifier: Apache-2.0
#include "causal/bags.h"

namespace clew::causal {

Bags::Place Bags::find(const BagName& name) const {
  Place place;
  for (const Head& head : heads_) {
    if (head.bag.name >= name) {
      place.is_there = head.bag.name == name;
      return place;
    }
    place.offset += head.size_bytes;
    ++place.index;
  }
  return place;
}

Bags::Place Bags::next(const Place& place) const {
  const size_t index = place.index + 1;
  return {.index = index,
          .offset = place.offset + heads_[place.index].size_bytes,
          .is_there = index < count()};
}

void Bags::set(const Place& place, const Bag& bag, std::span<const std::byte> body) {
  const Head head{.bag = bag, .size_bytes = static_cast<uint16_t>(body.size())};
  const size_t old_bytes = place.is_there ? heads_[place.index].size_bytes : 0;
  CLEW_ASSERT(bodies_.replace(place.offset, old_bytes, body));
  CLEW_ASSERT(heads_.replace(place.index, place.is_there ? 1 : 0, {&head, 1}));
}

void Bags::append(const Bag& bag, std::span<const std::byte> body) {
  set({.index = count(), .offset = bytes()}, bag, body);
}

void Bags::remove(const Place& place) {
  CLEW_ASSERT(bodies_.replace(place.offset, heads_[place.index].size_bytes, {}));
  CLEW_ASSERT(heads_.replace(place.index, 1, {}));
}

}  // namespace clew::causal

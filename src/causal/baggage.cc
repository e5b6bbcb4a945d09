// SPDX-License-Identifier: Apache-2.0
#include "causal/baggage.h"

#include <algorithm>

#include "causal/wire.h"

namespace clew::causal {
namespace {

Body body_of(std::span<const std::byte> bytes) {
  Body body;
  CLEW_ASSERT(body.append(bytes));
  return body;
}

bool are_alike(const Bag& a, const Bag& b) {
  return a.kind == b.kind && a.keep == b.keep;
}

}  // namespace

// How another branch is to ours.
enum class Baggage::Meeting : uint8_t {
  Plain,     // Neither has sums.
  Fresh,     // It brings what we have not seen.
  Stale,     // We have seen all of it.
  Twice,     // Both say that they are the same branch.
  EmitOnly,  // One of them has given up its sums.
};

Baggage::Baggage(const Request& request) {
  CLEW_ASSERT(request.id != 0);
  contents_.request = request.id;
  contents_.expires_s = request.expires_s;
  if (request.has_sums) contents_.stamp = Stamp::seed();
}

Baggage::Baggage(const Contents& contents)
    : contents_(contents), depth_(contents.stamp.id.depth()) {}

size_t Baggage::size_bytes() const {
  return wire_bytes(contents_);
}

// --- packing -------------------------------------------------------------------------------------

Outcome Baggage::pack(const Bag& bag, uint32_t tie, std::span<const std::byte> fields,
                      Faults& faults) {
  CLEW_ASSERT(!is_empty() && is_valid(bag) && !bag.overflowed && bag.kind != BagKind::Sum);
  contents_.n = std::min(contents_.n + 1, kNumberMax);
  const Bags::Place place = contents_.bags.find(bag.name);
  if (!can_pack(place, bag)) return pack_into(place, bag, false, {}, faults);
  Body body;
  if (place.is_there) body = body_of(contents_.bags.body(place));
  const bool fits = pack_into_set(bag, body, {.n = contents_.n, .tie = tie, .fields = fields});
  return pack_into(place, bag, fits, body, faults);
}

Outcome Baggage::add(const Bag& bag, std::span<const CellOperation> operations, const Group& group,
                     Faults& faults) {
  CLEW_ASSERT(!is_empty() && is_valid(bag) && !bag.overflowed && bag.kind == BagKind::Sum);
  const Bags::Place place = contents_.bags.find(bag.name);
  if (!has_stamp() || !can_pack(place, bag)) return pack_into(place, bag, false, {}, faults);
  Body body;
  if (place.is_there) body = body_of(contents_.bags.body(place));
  const bool fits = add_to_sum(body, operations, group);
  frozen_ = {};
  return pack_into(place, bag, fits, body, faults);
}

bool Baggage::can_pack(const Bags::Place& place, const Bag& bag) const {
  if (!place.is_there) return !contents_.lost_bags;
  const Bag& known = contents_.bags.bag(place);
  return !known.overflowed && are_alike(known, bag);
}

Outcome Baggage::pack_into(const Bags::Place& place, const Bag& bag, bool fits, const Body& body,
                           Faults& faults) {
  if (fits) {
    contents_.bags.set(place, bag, body.values());
  } else {
    // The head alone, so that all who come behind know.
    if (!place.is_there) contents_.bags.set(place, bag, {});
    overflow({.index = place.index, .offset = place.offset, .is_there = true}, faults);
  }
  trim({.soft_bytes = kBaggageBytesMax}, faults);
  const Bags::Place now = contents_.bags.find(bag.name);
  return now.is_there && !contents_.bags.bag(now).overflowed ? Outcome::Done : Outcome::EmitOnly;
}

Outcome Baggage::unpack(const BagName& name, TupleReader& tuples) const {
  tuples = TupleReader();
  const Bags::Place place = contents_.bags.find(name);
  if (!place.is_there) return contents_.lost_bags ? Outcome::EmitOnly : Outcome::Done;
  const Bag& bag = contents_.bags.bag(place);
  if (bag.overflowed || bag.kind == BagKind::Sum) return Outcome::EmitOnly;
  tuples = TupleReader(contents_.bags.body(place));
  return Outcome::Done;
}

Outcome Baggage::unpack(const BagName& name, Groups& value) const {
  const Bags::Place place = contents_.bags.find(name);
  if (!place.is_there) {
    const bool is_known = !contents_.lost_bags && !contents_.emits_sums;
    return is_known ? Outcome::Done : Outcome::EmitOnly;
  }
  const Bag& bag = contents_.bags.bag(place);
  if (bag.overflowed || bag.kind != BagKind::Sum) return Outcome::EmitOnly;
  return value_of_sum(contents_.bags.body(place), value) ? Outcome::Done : Outcome::EmitOnly;
}

// --- branches ------------------------------------------------------------------------------------

Baggage Baggage::branch(Faults& faults) {
  Baggage child(contents_);
  if (!has_stamp()) return child;
  const bool fits = fork_into(child);
  if (fits) child.freeze_sums(frozen_, faults);
  if (!fits) child.give_up_sums(faults);
  return child;
}

// The child's event makes it one that nobody has seen until it joins. Ours is needed only if there
// is something that the last one did not freeze.
bool Baggage::fork_into(Baggage& child) {
  Stamp& stamp = contents_.stamp;
  if (frozen_.height == 0) {
    if (!stamp.event()) return false;
    frozen_ = {.interval = stamp.id.first(), .height = stamp.heights.lowest(stamp.id.first())};
  }
  depth_ = std::min(depth_, stamp.id.depth());
  child.contents_.stamp = stamp.fork(1 + stamp.id.depth() - depth_);
  child.depth_ = child.contents_.stamp.id.depth();
  return child.has_stamp() && child.contents_.stamp.event();
}

void Baggage::freeze_sums(const Freezing& freezing, Faults& faults) {
  Bags& bags = contents_.bags;
  for (Bags::Place place = bags.first(); place.is_there; place = bags.next(place)) {
    const Bag bag = bags.bag(place);
    if (bag.kind != BagKind::Sum || bag.overflowed) continue;
    Body body = body_of(bags.body(place));
    const bool fits = freeze_sum(body, freezing);
    if (fits) bags.set(place, bag, body.values());
    if (!fits) overflow(place, faults);
  }
  trim({.soft_bytes = kBaggageBytesMax}, faults);
}

Baggage Baggage::hand_over(Faults& faults) {
  if (has_stamp() && !contents_.stamp.event()) give_up_sums(faults);
  Baggage gone = *this;
  discard();
  return gone;
}

void Baggage::receive(const Baggage& other, Faults& faults) {
  if (other.is_empty()) return;
  if (is_empty()) {
    *this = other;
    return;
  }
  if (other.contents_.request != contents_.request) {
    ++faults.other_request;
    return;
  }
  const Meeting meeting = meet(other);
  merge_bags(other, meeting, faults);
  contents_.n = std::max(contents_.n, other.contents_.n);
  contents_.lost_bags = contents_.lost_bags || other.contents_.lost_bags;
  contents_.ran_twice = contents_.ran_twice || other.contents_.ran_twice;
  if (meeting == Meeting::Stale) ++faults.stale;
  if (meeting == Meeting::Twice) {
    ++faults.ran_twice;
    contents_.ran_twice = true;
  }
  const bool fits = meeting != Meeting::Fresh || contents_.stamp.join(other.contents_.stamp);
  if (!fits || meeting == Meeting::EmitOnly) give_up_sums(faults);
  if (meeting != Meeting::Stale) frozen_ = {};
  trim({.soft_bytes = kBaggageBytesMax}, faults);
}

Baggage::Meeting Baggage::meet(const Baggage& other) const {
  if (contents_.emits_sums || other.contents_.emits_sums) return Meeting::EmitOnly;
  if (has_stamp() != other.has_stamp()) return Meeting::EmitOnly;
  if (!has_stamp()) return Meeting::Plain;
  const Stamp& theirs = other.contents_.stamp;
  if (theirs.heights.is_within(contents_.stamp.heights)) return Meeting::Stale;
  return contents_.stamp.id.overlaps(theirs.id) ? Meeting::Twice : Meeting::Fresh;
}

void Baggage::merge_bags(const Baggage& other, Meeting meeting, Faults& faults) {
  Bags& bags = contents_.bags;
  if (other.contents_.lost_bags) {
    for (Bags::Place place = bags.first(); place.is_there; place = bags.next(place)) {
      if (!other.contents_.bags.find(bags.bag(place).name).is_there) overflow(place, faults);
    }
  }
  const Bags& theirs = other.contents_.bags;
  for (Bags::Place place = theirs.first(); place.is_there; place = theirs.next(place))
    merge_bag(place, other, meeting, faults);
}

void Baggage::merge_bag(const Bags::Place& theirs, const Baggage& other, Meeting meeting,
                        Faults& faults) {
  Bags& bags = contents_.bags;
  const Bag& bag = other.contents_.bags.bag(theirs);
  const auto body = other.contents_.bags.body(theirs);
  Bags::Place place = bags.find(bag.name);
  const bool is_sum = bag.kind == BagKind::Sum;
  if (is_sum && (meeting == Meeting::Twice || meeting == Meeting::Stale)) return;
  if (!place.is_there) {
    bags.set(place, bag, body);
    place.is_there = true;
    if (contents_.lost_bags) overflow(place, faults);
    return;
  }
  Bag merged_bag = bags.bag(place);
  merged_bag.priority = std::max(merged_bag.priority, bag.priority);
  const auto our_body = bags.body(place);
  Body merged;
  bool fits = are_alike(merged_bag, bag) && !bag.overflowed && !merged_bag.overflowed;
  if (fits && is_sum && meeting == Meeting::Fresh) {
    fits = merge_sums({.bytes = our_body, .seen = contents_.stamp.heights},
                      {.bytes = body, .seen = other.contents_.stamp.heights}, merged);
  } else if (fits && !is_sum) {
    fits = merge_sets(bag, our_body, body, merged);
  }
  if (!fits) merged.clear();
  bags.set(place, merged_bag, merged.values());
  if (!fits) overflow(place, faults);
}

// --- room ----------------------------------------------------------------------------------------

void Baggage::overflow(const Bags::Place& place, Faults& faults) {
  Bag bag = contents_.bags.bag(place);
  if (!bag.overflowed) ++faults.overflowed;
  bag.overflowed = true;
  contents_.bags.set(place, bag, {});
}

void Baggage::give_up_sums(Faults& faults) {
  contents_.emits_sums = true;
  contents_.stamp = {};
  Bags& bags = contents_.bags;
  for (Bags::Place place = bags.first(); place.is_there; place = bags.next(place)) {
    if (bags.bag(place).kind == BagKind::Sum) overflow(place, faults);
  }
}

void Baggage::trim(const Room& room, Faults& faults) {
  const bool fits = wire_bytes_at_most(contents_) <= std::min(room.soft_bytes, room.hard_bytes);
  if (fits && contents_.bags.count() <= kBagsMax) return;
  while (size_bytes() > room.soft_bytes && drop_lowest(kHighPriority, faults)) {
  }
  while (size_bytes() > room.hard_bytes && drop_lowest(UINT8_MAX + 1, faults)) {
  }
  while (contents_.bags.count() > kBagsMax)
    remove_lowest();
}

// The last one of the lowest priority that has something. False: none below `priority_end` has.
bool Baggage::drop_lowest(unsigned priority_end, Faults& faults) {
  Bags& bags = contents_.bags;
  Bags::Place lowest;
  unsigned priority = priority_end;
  for (Bags::Place place = bags.first(); place.is_there; place = bags.next(place)) {
    const Bag& bag = bags.bag(place);
    if (bag.overflowed || bag.priority >= priority_end || bag.priority > priority) continue;
    lowest = place;
    priority = bag.priority;
  }
  if (lowest.is_there) overflow(lowest, faults);
  return lowest.is_there;
}

void Baggage::remove_lowest() {
  Bags& bags = contents_.bags;
  Bags::Place lowest = bags.first();
  for (Bags::Place place = lowest; place.is_there; place = bags.next(place)) {
    if (bags.bag(place).priority <= bags.bag(lowest).priority) lowest = place;
  }
  bags.remove(lowest);
  contents_.lost_bags = true;
}

}  // namespace clew::causal

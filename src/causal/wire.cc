// SPDX-License-Identifier: Apache-2.0
#include "causal/wire.h"

#include <bit>

namespace clew::causal {
namespace {

constexpr size_t kEpochOffset = 4;
constexpr size_t kHeaderBytes = 20;
constexpr size_t kHeadBytes = 11;

constexpr uint8_t kLostBags = 1;
constexpr uint8_t kEmitsSums = 2;
constexpr uint8_t kRanTwice = 4;
constexpr uint8_t kAllFlags = kLostBags | kEmitsSums | kRanTwice;

constexpr uint8_t kOverflowed = 128;

// Where a step starts, as an interval: the largest one that starts there.
Interval place_of(const Step& step) {
  if (step.start == 0) return {.start = 0, .depth = 0};
  const auto zeros = static_cast<unsigned>(std::countr_zero(step.start));
  return {.start = step.start, .depth = static_cast<uint8_t>(kDepthMax - zeros)};
}

size_t interval_bytes(const Interval& interval) {
  return 1 + (size_t{interval.depth} + 7) / 8;
}

// --- writing -------------------------------------------------------------------------------------

uint8_t flags_of(const Baggage::Contents& contents) {
  uint8_t flags = 0;
  if (contents.lost_bags) flags |= kLostBags;
  if (contents.emits_sums) flags |= kEmitsSums;
  if (contents.ran_twice) flags |= kRanTwice;
  return flags;
}

void put_stamp(ByteWriter& writer, const Stamp& stamp) {
  writer.put(stamp.id.intervals().size(), 1);
  for (const Interval& interval : stamp.id.intervals())
    put_interval(writer, interval);
  writer.put(stamp.heights.steps().size(), 1);
  for (const Step& step : stamp.heights.steps()) {
    put_interval(writer, place_of(step));
    writer.put_varint(step.height);
  }
}

void put_bags(ByteWriter& writer, const Bags& bags) {
  writer.put(bags.count(), 1);
  for (Bags::Place place = bags.first(); place.is_there; place = bags.next(place)) {
    const Bag& bag = bags.bag(place);
    const auto body = bags.body(place);
    writer.put(bag.name.query, 4);
    writer.put(bag.name.plan, 2);
    writer.put(static_cast<uint8_t>(bag.kind) | (bag.overflowed ? kOverflowed : 0U), 1);
    writer.put(bag.keep, 1);
    writer.put(bag.priority, 1);
    writer.put(body.size(), 2);
    writer.put_bytes(body);
  }
}

// --- reading -------------------------------------------------------------------------------------

void take_flags(ByteReader& reader, Baggage::Contents& contents) {
  const uint8_t flags = reader.take_byte();
  if ((flags & ~kAllFlags) != 0) reader.fail();
  contents.lost_bags = (flags & kLostBags) != 0;
  contents.emits_sums = (flags & kEmitsSums) != 0;
  contents.ran_twice = (flags & kRanTwice) != 0;
}

void take_stamp(ByteReader& reader, Baggage::Contents& contents) {
  Stamp& stamp = contents.stamp;
  const size_t intervals = reader.take_byte();
  for (size_t i = 0; i < intervals && !reader.failed(); ++i) {
    if (!stamp.id.append(take_interval(reader))) reader.fail();
  }
  const size_t steps = reader.take_byte();
  for (size_t i = 0; i < steps && !reader.failed(); ++i) {
    const Interval place = take_interval(reader);
    const uint64_t height = reader.take_varint();
    const Step step{.start = place.start, .height = static_cast<uint32_t>(height)};
    const bool is_sound = height <= kHeightMax && place == place_of(step);
    if (!is_sound || !stamp.heights.append(step)) reader.fail();
  }
  const bool has_heights = steps > 0;
  const bool is_sound = intervals > 0 ? !contents.emits_sums : !has_heights;
  if (!is_sound) reader.fail();
}

// The body of a bag of these contents is what the bag says.
bool is_body(const Bag& bag, std::span<const std::byte> body, const Baggage::Contents& contents) {
  if (bag.overflowed) return body.empty();
  if (bag.kind != BagKind::Sum) return is_set(bag, body, contents.n);
  return !contents.stamp.id.is_anonymous() && is_sum(body, contents.stamp.heights);
}

void take_bag(ByteReader& reader, Baggage::Contents& contents) {
  Bag bag;
  bag.name.query = static_cast<uint32_t>(reader.take(4));
  bag.name.plan = static_cast<uint16_t>(reader.take(2));
  const uint8_t kind = reader.take_byte();
  bag.kind = static_cast<BagKind>(kind & ~kOverflowed);
  bag.overflowed = (kind & kOverflowed) != 0;
  bag.keep = reader.take_byte();
  bag.priority = reader.take_byte();
  const auto body = reader.take_bytes(reader.take(2));
  if (reader.failed() || !is_valid(bag) || !is_body(bag, body, contents)) {
    reader.fail();
    return;
  }
  const Bags::Place place = contents.bags.find(bag.name);
  const bool follows = place.index == contents.bags.count();
  if (follows) contents.bags.append(bag, body);
  if (!follows) reader.fail();
}

void take_bags(ByteReader& reader, Baggage::Contents& contents) {
  const size_t count = reader.take_byte();
  if (count > kBagsMax) reader.fail();
  for (size_t i = 0; i < count && !reader.failed(); ++i)
    take_bag(reader, contents);
}

}  // namespace

size_t wire_bytes(const Baggage::Contents& contents) {
  if (contents.request == 0) return 0;
  size_t bytes = kHeaderBytes + varint_bytes(contents.n) + 3;  // And three counts.
  for (const Interval& interval : contents.stamp.id.intervals())
    bytes += interval_bytes(interval);
  for (const Step& step : contents.stamp.heights.steps())
    bytes += interval_bytes(place_of(step)) + varint_bytes(step.height);
  return bytes + contents.bags.count() * kHeadBytes + contents.bags.bytes();
}

size_t wire_bytes_at_most(const Baggage::Contents& contents) {
  constexpr size_t kIntervalBytesMax = 7;
  constexpr size_t kStepBytesMax = kIntervalBytesMax + 5;
  return kHeaderBytes + kVarintBytesMax + 3 +
         contents.stamp.id.intervals().size() * kIntervalBytesMax +
         contents.stamp.heights.steps().size() * kStepBytesMax +
         contents.bags.count() * kHeadBytes + contents.bags.bytes();
}

size_t write_wire(const Baggage& baggage, uint32_t key_epoch, std::span<std::byte> room) {
  const Baggage::Contents& contents = baggage.contents();
  if (baggage.is_empty()) return 0;
  ByteWriter writer(room);
  writer.put(kWireVersion, 1);
  writer.put(flags_of(contents), 1);
  writer.put(wire_bytes(contents), 2);
  writer.put(key_epoch, 4);
  writer.put(contents.request, 8);
  writer.put(contents.expires_s, 4);
  writer.put_varint(contents.n);
  put_stamp(writer, contents.stamp);
  put_bags(writer, contents.bags);
  CLEW_ASSERT(!writer.failed());
  CLEW_ASSERT(writer.size() == wire_bytes(contents));
  return writer.size();
}

Refusal read_wire(std::span<const std::byte> bytes, Baggage& baggage) {
  baggage = Baggage();
  if (bytes.empty()) return Refusal::None;
  if (bytes.size() < kHeaderBytes || bytes.size() > kBaggageBytesMax) return Refusal::Size;
  Baggage::Contents contents;
  ByteReader reader(bytes);
  if (reader.take_byte() != kWireVersion) return Refusal::Version;
  take_flags(reader, contents);
  if (reader.take(2) != bytes.size()) return Refusal::Size;
  reader.take(4);  // The epoch of a key.
  contents.request = reader.take(8);
  contents.expires_s = static_cast<uint32_t>(reader.take(4));
  contents.n = reader.take_varint();
  if (contents.request == 0 || contents.n > kNumberMax) reader.fail();
  take_stamp(reader, contents);
  take_bags(reader, contents);
  if (reader.failed() || !reader.at_end()) return Refusal::Damaged;
  baggage = Baggage(contents);
  return Refusal::None;
}

uint32_t key_epoch_of(std::span<const std::byte> bytes) {
  ByteReader reader(bytes);
  reader.take(kEpochOffset);
  return static_cast<uint32_t>(reader.take(4));
}

}  // namespace clew::causal

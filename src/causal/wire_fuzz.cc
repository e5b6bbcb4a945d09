// SPDX-License-Identifier: Apache-2.0
// Fuzzes the reader of baggage: what it takes has the same bytes again, and can be packed into,
// branched and joined with another one within all limits. The first two bytes of the input say how
// many of the others are the first of two baggages; their sizes and requests are made right.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "base/assert.h"
#include "causal/baggage.h"
#include "causal/wire.h"

namespace {

using clew::causal::Bag;
using clew::causal::Baggage;
using clew::causal::BagKind;
using clew::causal::Faults;
using clew::causal::Groups;
using clew::causal::Refusal;
using clew::causal::TupleReader;

constexpr size_t kSizeOffset = 2;
constexpr size_t kRequestOffset = 8;
constexpr size_t kHeaderBytes = 20;

void make_right(std::span<std::byte> bytes) {
  if (bytes.size() < kHeaderBytes || bytes.size() > UINT16_MAX) return;
  const auto size_bytes = static_cast<uint16_t>(bytes.size());
  std::memcpy(&bytes[kSizeOffset], &size_bytes, sizeof size_bytes);
  const uint64_t request = 1;
  std::memcpy(&bytes[kRequestOffset], &request, sizeof request);
}

void check(const Baggage& baggage, std::span<const std::byte> as_read = {}) {
  std::array<std::byte, clew::causal::kBaggageBytesMax> room;
  const uint32_t epoch = as_read.empty() ? 0 : clew::causal::key_epoch_of(as_read);
  const size_t size = write_wire(baggage, epoch, room);
  const auto written = std::span(room).first(size);
  if (!as_read.empty()) CLEW_ASSERT(std::ranges::equal(written, as_read));
  Baggage again;
  CLEW_ASSERT(clew::causal::read_wire(written, again) == Refusal::None);
  const auto& bags = baggage.contents().bags;
  for (auto place = bags.first(); place.is_there; place = bags.next(place)) {
    TupleReader tuples;
    (void)baggage.unpack(bags.bag(place).name, tuples);
    for (clew::causal::Tuple tuple; tuples.next(tuple);) {
    }
    CLEW_ASSERT(!tuples.is_damaged() || tuples.count() == 0);
    Groups value;
    (void)baggage.unpack(bags.bag(place).name, value);
  }
}

// Into each bag that there is, and into another one.
void pack(Baggage& baggage, Faults& faults) {
  constexpr std::array kFields = {std::byte{2}, std::byte{0}};
  constexpr std::array kOperations = {clew::causal::CellOperation::Add};
  constexpr std::array<int64_t, 1> kCells = {1};
  const auto bags = baggage.contents().bags;
  for (auto place = bags.first(); place.is_there; place = bags.next(place)) {
    Bag bag = bags.bag(place);
    bag.overflowed = false;
    if (bag.kind == BagKind::Sum)
      (void)baggage.add(bag, kOperations, {.key = {}, .cells = kCells}, faults);
    else
      (void)baggage.pack(bag, 1, kFields, faults);
  }
  (void)baggage.pack({.name = {1, 1}, .kind = BagKind::First, .keep = 1}, 1, kFields, faults);
}

void use(Baggage& one, Baggage& other) {
  Faults faults;
  Baggage branch = one.branch(faults);
  check(branch);
  pack(one, faults);
  pack(branch, faults);
  check(one);
  check(branch);
  one.receive(other, faults);
  check(one);
  branch.receive(one, faults);
  check(branch);
  one.join(branch, faults);
  one.trim({.soft_bytes = 100, .hard_bytes = 400}, faults);
  check(one);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const auto input = std::as_bytes(std::span(data, size)).subspan(2);
  const size_t first_size = std::min<size_t>(input.size(), data[0] + 256U * data[1]);
  std::vector<std::byte> first(input.begin(), input.begin() + static_cast<int64_t>(first_size));
  std::vector<std::byte> second(input.begin() + static_cast<int64_t>(first_size), input.end());
  make_right(first);
  make_right(second);
  Baggage one;
  Baggage other;
  if (clew::causal::read_wire(first, one) != Refusal::None || one.is_empty()) return 0;
  check(one, first);
  if (clew::causal::read_wire(second, other) == Refusal::None && !other.is_empty())
    check(other, second);
  use(one, other);
  return 0;
}

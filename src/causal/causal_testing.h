// SPDX-License-Identifier: Apache-2.0
// Words for tests about baggage: tuples and groups as text, bytes as strings.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "causal/baggage.h"
#include "causal/wire.h"

namespace clew::causal {

inline std::span<const std::byte> as_bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

inline std::string as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

inline std::string wire_text(const Baggage& baggage) {
  std::string bytes(kBaggageBytesMax, 0);
  bytes.resize(write_wire(baggage, 0, std::as_writable_bytes(std::span(bytes))));
  return bytes;
}

inline Refusal read_text(std::string_view bytes, Baggage& baggage) {
  return read_wire(as_bytes_of(bytes), baggage);
}

// One number and one text.
inline std::string fields_of(int64_t number, std::string_view text) {
  std::array<std::byte, kBodyBytesMax> room;
  ByteWriter writer(room);
  CLEW_ASSERT(put_number(writer, number) && put_text(writer, as_bytes_of(text)));
  return as_text(std::span(room).first(writer.size()));
}

// "1:a 2:b", or "emit".
inline std::string tuples_in(const Baggage& baggage, const BagName& name) {
  TupleReader tuples;
  if (baggage.unpack(name, tuples) == Outcome::EmitOnly) return "emit";
  std::vector<std::string> texts;
  for (Tuple tuple; tuples.next(tuple);) {
    ByteReader reader(tuple.fields);
    const int64_t number = take_number(reader);
    texts.push_back(fmt::format("{}:{}", number, as_text(take_text(reader))));
  }
  return fmt::format("{}", fmt::join(texts, " "));
}

// "a:3 b:4,5", or "emit".
inline std::string groups_in(const Baggage& baggage, const BagName& name) {
  Groups value;
  if (baggage.unpack(name, value) == Outcome::EmitOnly) return "emit";
  std::vector<std::string> texts;
  for (const Group& group : value.groups())
    texts.push_back(fmt::format("{}:{}", as_text(group.key), fmt::join(group.cells, ",")));
  return fmt::format("{}", fmt::join(texts, " "));
}

// A request as tests make them, with the faults of all its branches.
class TestRequest {
 public:
  explicit TestRequest(bool has_sums = true)
      : root({.id = 0x1122334455667788, .expires_s = 1000, .has_sums = has_sums}) {}

  // Each with a tie of its own.
  Outcome pack(Baggage& branch, const Bag& bag, int64_t number, std::string_view text = "") {
    return branch.pack(bag, ++tie_, as_bytes_of(fields_of(number, text)), faults);
  }
  Outcome add(Baggage& branch, const Bag& bag, int64_t number, std::string_view key = "") {
    static constexpr std::array kAdd = {CellOperation::Add};
    return branch.add(bag, kAdd, {.key = as_bytes_of(key), .cells = {&number, 1}}, faults);
  }

  Baggage root;
  Faults faults;

 private:
  uint32_t tie_ = 0;
};

inline constexpr Bag kFirstBag{.name = {1, 0}, .kind = BagKind::First, .keep = 1};
inline constexpr Bag kFirstTwoBag{.name = {2, 0}, .kind = BagKind::First, .keep = 2};
inline constexpr Bag kRecentBag{.name = {3, 0}, .kind = BagKind::MostRecent, .keep = 1};
inline constexpr Bag kRecentTwoBag{.name = {4, 0}, .kind = BagKind::MostRecent, .keep = 2};
inline constexpr Bag kAllBag{.name = {5, 0}, .kind = BagKind::All};
inline constexpr Bag kLeastBag{.name = {6, 0}, .kind = BagKind::Least};
inline constexpr Bag kGreatestBag{.name = {7, 0}, .kind = BagKind::Greatest};
inline constexpr Bag kSumBag{.name = {8, 0}, .kind = BagKind::Sum};

}  // namespace clew::causal

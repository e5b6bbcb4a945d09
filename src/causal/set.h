// SPDX-License-Identifier: Apache-2.0
// Bags that are sets: bytes
//
//     u8 tuples ≤ 64 { varint n · u32 tie · u8 size · fields }
//
// in ascending order of (n, tie, fields); of Least and Greatest, whose tuples are no two of the
// same key (the fields behind the first), in that of the keys.
//
// n is a Lamport number: greater than that of every tuple packed before, by cause. Ties are between
// branches that do not know of each other, and whoever packs gives each of them another number.
// Two tuples that are alike in all three are one that came twice.
//
// A set is any span of bytes that `is_set` takes; the functions here need that. Those that make one
// give false if it would have more than 64 tuples or 256 bytes, and leave no set behind.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "causal/bag.h"
#include "causal/bytes.h"

namespace clew::causal {

struct Tuple {
  uint64_t n = 0;
  uint32_t tie = 0;
  std::span<const std::byte> fields{};  // Borrowed; 255 bytes at most.
};

// The tuples of a set, one after the other.
class TupleReader {
 public:
  TupleReader() = default;
  explicit TupleReader(std::span<const std::byte> set);
  // False behind the last.
  [[nodiscard]] bool next(Tuple& tuple);
  // Of those that are still to come.
  [[nodiscard]] size_t count() const { return count_; }
  // Ended early, or with something behind.
  [[nodiscard]] bool is_damaged() const { return reader_.failed() || !reader_.at_end(); }

 private:
  ByteReader reader_;
  size_t count_ = 0;
};

// The bytes, which may be anybody's, are a set of this kind, and no tuple's n is above `n_max`.
[[nodiscard]] bool is_set(const Bag& bag, std::span<const std::byte> bytes, uint64_t n_max);

// Adds a tuple behind all others: its n is greater than theirs. Least and Greatest: its first field
// must be a number.
[[nodiscard]] bool pack_into_set(const Bag& bag, Body& set, const Tuple& tuple);

[[nodiscard]] bool merge_sets(const Bag& bag, std::span<const std::byte> a,
                              std::span<const std::byte> b, Body& merged);

// --- fields --------------------------------------------------------------------------------------
// A number is a zigzag varint, a text its size in a byte and its bytes. What a field is only its
// query knows.

[[nodiscard]] inline bool put_number(ByteWriter& writer, int64_t value) {
  writer.put_varint(zigzag(value));
  return !writer.failed();
}
// False: longer than 255 bytes, or no room.
[[nodiscard]] inline bool put_text(ByteWriter& writer, std::span<const std::byte> text) {
  if (text.size() > UINT8_MAX) return false;
  writer.put(text.size(), 1);
  writer.put_bytes(text);
  return !writer.failed();
}
inline int64_t take_number(ByteReader& reader) {
  return of_zigzag(reader.take_varint());
}
inline std::span<const std::byte> take_text(ByteReader& reader) {
  return reader.take_bytes(reader.take_byte());
}

}  // namespace clew::causal

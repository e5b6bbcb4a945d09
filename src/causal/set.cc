// SPDX-License-Identifier: Apache-2.0
#include "causal/set.h"

#include <algorithm>
#include <compare>

namespace clew::causal {
namespace {

constexpr size_t kTieBytes = 4;

// As long as two sets are being merged.
using Tuples = FixedList<Tuple, 2 * kTuplesMax>;

bool is_extreme(BagKind kind) {
  return kind == BagKind::Least || kind == BagKind::Greatest;
}

// A tuple of Least or Greatest.
struct Extreme {
  int64_t value;
  std::span<const std::byte> key;
};

// False: it does not begin with a number.
bool read_extreme(const Tuple& tuple, Extreme& extreme) {
  ByteReader reader(tuple.fields);
  extreme.value = take_number(reader);
  if (reader.failed()) return false;
  extreme.key = tuple.fields.subspan(varint_bytes(zigzag(extreme.value)));
  return true;
}

Extreme extreme_of(const Tuple& tuple) {
  Extreme extreme{};
  CLEW_ASSERT(read_extreme(tuple, extreme));
  return extreme;
}

std::strong_ordering compare_bytes(std::span<const std::byte> a, std::span<const std::byte> b) {
  return std::lexicographical_compare_three_way(a.begin(), a.end(), b.begin(), b.end());
}

// The order of cause, continued to a total one.
std::strong_ordering compare_place(const Tuple& a, const Tuple& b) {
  if (const auto order = a.n <=> b.n; is_neq(order)) return order;
  if (const auto order = a.tie <=> b.tie; is_neq(order)) return order;
  return compare_bytes(a.fields, b.fields);
}

// The order of a set's bytes; equal are those of which one is kept.
std::strong_ordering compare_in(BagKind kind, const Tuple& a, const Tuple& b) {
  if (!is_extreme(kind)) return compare_place(a, b);
  return compare_bytes(extreme_of(a).key, extreme_of(b).key);
}

// Of two with the same key; of the same value the earlier one.
const Tuple& better_of(BagKind kind, const Tuple& a, const Tuple& b) {
  auto order = std::strong_ordering::equal;
  if (kind == BagKind::Least) order = extreme_of(a).value <=> extreme_of(b).value;
  if (kind == BagKind::Greatest) order = extreme_of(b).value <=> extreme_of(a).value;
  if (is_eq(order)) order = compare_place(a, b);
  return is_lteq(order) ? a : b;
}

Tuples tuples_of(std::span<const std::byte> set) {
  Tuples tuples;
  TupleReader reader(set);
  for (Tuple tuple; reader.next(tuple);)
    CLEW_ASSERT(tuples.push(tuple));
  return tuples;
}

Tuples united(BagKind kind, std::span<const Tuple> a, std::span<const Tuple> b) {
  Tuples all;
  while (!a.empty() || !b.empty()) {
    auto order = std::strong_ordering::less;
    if (a.empty()) order = std::strong_ordering::greater;
    if (!a.empty() && !b.empty()) order = compare_in(kind, a.front(), b.front());
    Tuple next = is_lteq(order) ? a.front() : b.front();
    if (is_eq(order)) next = better_of(kind, a.front(), b.front());
    CLEW_ASSERT(all.push(next));
    if (is_lteq(order)) a = a.subspan(1);
    if (is_gteq(order)) b = b.subspan(1);
  }
  return all;
}

std::span<const Tuple> kept(const Bag& bag, std::span<const Tuple> tuples) {
  const size_t count = std::min<size_t>(bag.keep, tuples.size());
  if (bag.kind == BagKind::First) return tuples.first(count);
  if (bag.kind == BagKind::MostRecent) return tuples.last(count);
  return tuples;
}

void put_tuple(ByteWriter& writer, const Tuple& tuple) {
  writer.put_varint(tuple.n);
  writer.put(tuple.tie, kTieBytes);
  writer.put(tuple.fields.size(), 1);
  writer.put_bytes(tuple.fields);
}

bool write_set(std::span<const Tuple> tuples, Body& set) {
  if (tuples.size() > kTuplesMax) return false;
  ByteWriter writer(set.room());
  writer.put(tuples.size(), 1);
  for (const Tuple& tuple : tuples)
    put_tuple(writer, tuple);
  set.set_size(writer.size());
  return !writer.failed();
}

// Where the first tuple ends.
size_t first_end(std::span<const std::byte> set) {
  ByteReader reader(set.subspan(1));
  const size_t n_bytes = varint_bytes(reader.take_varint());
  reader.take(kTieBytes);
  return 1 + n_bytes + kTieBytes + 1 + reader.take_byte();
}

}  // namespace

TupleReader::TupleReader(std::span<const std::byte> set) : reader_(set) {
  count_ = reader_.take_byte();
}

bool TupleReader::next(Tuple& tuple) {
  if (count_ == 0) return false;
  --count_;
  tuple.n = reader_.take_varint();
  tuple.tie = static_cast<uint32_t>(reader_.take(kTieBytes));
  tuple.fields = reader_.take_bytes(reader_.take_byte());
  return !reader_.failed();
}

bool is_set(const Bag& bag, std::span<const std::byte> bytes, uint64_t n_max) {
  TupleReader reader(bytes);
  const size_t most = bag.keep == 0 ? kTuplesMax : bag.keep;
  if (bytes.size() > kBodyBytesMax || reader.count() == 0 || reader.count() > most) return false;
  Tuple last;
  bool is_first = true;
  for (Tuple tuple; reader.next(tuple); last = tuple, is_first = false) {
    Extreme extreme{};
    if (is_extreme(bag.kind) && !read_extreme(tuple, extreme)) return false;
    const bool follows = is_first || is_lt(compare_in(bag.kind, last, tuple));
    if (!follows || tuple.n > n_max) return false;
  }
  return !reader.is_damaged();
}

bool pack_into_set(const Bag& bag, Body& set, const Tuple& tuple) {
  if (tuple.fields.size() > UINT8_MAX) return false;
  if (is_extreme(bag.kind)) {
    const Body before = set;
    const Tuples old = before.empty() ? Tuples() : tuples_of(before.values());
    return write_set(united(bag.kind, old.values(), {&tuple, 1}).values(), set);
  }
  if (set.empty()) return write_set({&tuple, 1}, set);
  const auto count = static_cast<size_t>(set[0]);
  const bool is_full = bag.keep != 0 && count == bag.keep;
  if (is_full && bag.kind == BagKind::First) return true;
  if (!is_full && count == kTuplesMax) return false;
  if (is_full) CLEW_ASSERT(set.replace(1, first_end(set.values()) - 1, {}));
  if (!is_full) set[0] = static_cast<std::byte>(count + 1);
  ByteWriter writer(set.room().subspan(set.size()));
  put_tuple(writer, tuple);
  set.set_size(set.size() + writer.size());
  return !writer.failed();
}

bool merge_sets(const Bag& bag, std::span<const std::byte> a, std::span<const std::byte> b,
                Body& merged) {
  if (std::ranges::equal(a, b)) return merged.append(a);
  const Tuples tuples_a = tuples_of(a);
  const Tuples tuples_b = tuples_of(b);
  const Tuples all = united(bag.kind, tuples_a.values(), tuples_b.values());
  return write_set(kept(bag, all.values()), merged);
}

}  // namespace clew::causal

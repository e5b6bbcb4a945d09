// SPDX-License-Identifier: Apache-2.0
#include "causal/sum.h"

#include <algorithm>
#include <compare>
#include <tuple>

namespace clew::causal {
namespace {

using Operations = FixedList<CellOperation, kWordsMax>;

// One instance as it is in a sum.
struct Instance {
  Freezing freezing{};
  std::span<const std::byte> groups{};  // From their count on.
};

// The frozen instances of a sum, or of two that are being merged.
using Frozen = FixedList<Instance, 2 * kInstancesMax>;

auto order_of(const Freezing& freezing) {
  return std::tuple(freezing.interval.start, freezing.interval.depth, freezing.height);
}

std::strong_ordering compare_keys(std::span<const std::byte> a, std::span<const std::byte> b) {
  return std::lexicographical_compare_three_way(a.begin(), a.end(), b.begin(), b.end());
}

int64_t combined(CellOperation operation, int64_t a, int64_t b) {
  switch (operation) {
    case CellOperation::Add:
      return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
    case CellOperation::Least:
      return std::min(a, b);
    case CellOperation::Greatest:
      return std::max(a, b);
    case CellOperation::Or:
      return a | b;
  }
  return 0;
}

// --- reading -------------------------------------------------------------------------------------

// Passes over the groups of an instance, from their count on. What is damaged fails the reader.
class GroupReader {
 public:
  GroupReader(ByteReader& reader, size_t words)
      : reader_(reader), words_(words), left_(reader.take_byte()) {
    if (left_ == 0) reader_.fail();
  }

  // False behind the last. The group's cells are this reader's, up to the next one.
  bool next(Group& group) {
    if (left_ == 0 || reader_.failed()) return false;
    const auto key = reader_.take_bytes(reader_.take_byte());
    const bool follows = !has_last_ || compare_keys(last_key_, key) < 0;
    if (!follows) reader_.fail();
    for (size_t word = 0; word < words_; ++word)
      cells_[word] = of_zigzag(reader_.take_varint());
    --left_;
    has_last_ = true;
    last_key_ = key;
    group = {.key = key, .cells = std::span(cells_).first(words_)};
    return !reader_.failed();
  }

 private:
  ByteReader& reader_;
  size_t words_;
  size_t left_;
  bool has_last_ = false;
  std::span<const std::byte> last_key_;
  std::array<int64_t, kWordsMax> cells_{};
};

// Passes over the instances of a sum.
class SumReader {
 public:
  explicit SumReader(std::span<const std::byte> sum) : reader_(sum) {
    const size_t words = reader_.take_byte();
    if (words == 0 || words > kWordsMax) reader_.fail();
    for (size_t word = 0; word < words && !reader_.failed(); ++word)
      take_operation();
    left_ = reader_.take_byte();
    if (left_ == 0 || left_ > kInstancesMax + 1) reader_.fail();
  }

  // False behind the last.
  bool next(Instance& instance) {
    if (left_ == 0 || reader_.failed()) return false;
    --left_;
    instance.freezing = take_freezing();
    const auto before = reader_.rest();
    GroupReader groups(reader_, operations_.size());
    for (Group group{}; groups.next(group);) {
    }
    instance.groups = before.first(before.size() - reader_.rest().size());
    return !reader_.failed();
  }

  [[nodiscard]] const Operations& operations() const { return operations_; }
  [[nodiscard]] bool is_damaged() const { return reader_.failed() || !reader_.at_end(); }

 private:
  void take_operation() {
    const uint8_t operation = reader_.take_byte();
    if (operation >= kCellOperations) reader_.fail();
    CLEW_ASSERT(operations_.push(static_cast<CellOperation>(operation)));
  }
  Freezing take_freezing() {
    Freezing freezing;
    const uint64_t height = reader_.take_varint();
    if (height > kHeightMax) reader_.fail();
    freezing.height = static_cast<uint32_t>(height);
    if (height > 0) freezing.interval = take_interval(reader_);
    return freezing;
  }

  ByteReader reader_;
  Operations operations_;
  size_t left_ = 0;
};

// A sum, taken apart. `is_there` is false of no bytes.
struct Parts {
  explicit Parts(std::span<const std::byte> sum) : is_there(!sum.empty()) {
    if (!is_there) return;
    SumReader reader(sum);
    operations = reader.operations();
    for (Instance instance; reader.next(instance);) {
      if (instance.freezing.height == 0)
        active = instance.groups;
      else
        CLEW_ASSERT(frozen.push(instance));
    }
  }

  bool is_there;
  Operations operations;
  std::span<const std::byte> active;
  Frozen frozen;
};

bool add_groups(Groups& to, const Operations& operations, std::span<const std::byte> groups) {
  if (groups.empty()) return true;
  ByteReader reader(groups);
  GroupReader group_reader(reader, operations.size());
  for (Group group{}; group_reader.next(group);) {
    if (!to.add(operations.values(), group)) return false;
  }
  return true;
}

// --- writing -------------------------------------------------------------------------------------

void put_groups(ByteWriter& writer, const Groups& groups) {
  writer.put(groups.size(), 1);
  for (const Group& group : groups.groups()) {
    writer.put(group.key.size(), 1);
    writer.put_bytes(group.key);
    for (const int64_t cell : group.cells)
      writer.put_varint(zigzag(cell));
  }
}

bool write_sum(const Operations& operations, const Groups& active, std::span<const Instance> frozen,
               Body& sum) {
  const size_t instances = frozen.size() + (active.size() > 0 ? 1 : 0);
  if (instances == 0 || frozen.size() > kInstancesMax) return false;
  ByteWriter writer(sum.room());
  writer.put(operations.size(), 1);
  for (const CellOperation operation : operations)
    writer.put(static_cast<uint8_t>(operation), 1);
  writer.put(instances, 1);
  if (active.size() > 0) {
    writer.put_varint(0);
    put_groups(writer, active);
  }
  for (const Instance& instance : frozen) {
    writer.put_varint(instance.freezing.height);
    put_interval(writer, instance.freezing.interval);
    writer.put_bytes(instance.groups);
  }
  sum.set_size(writer.size());
  return !writer.failed();
}

// Those of both that stay. An instance that only one has is gone if the other has seen its event.
Frozen still_frozen(const Parts& a, const Heights& seen_a, const Parts& b, const Heights& seen_b) {
  Frozen stay;
  auto left = a.frozen.values();
  auto right = b.frozen.values();
  const auto keep_unseen = [&stay](const Instance& instance, const Heights& seen) {
    const bool is_seen = seen.lowest(instance.freezing.interval) >= instance.freezing.height;
    if (!is_seen) CLEW_ASSERT(stay.push(instance));
  };
  while (!left.empty() || !right.empty()) {
    const bool takes_left =
        right.empty() ||
        (!left.empty() && order_of(left.front().freezing) <= order_of(right.front().freezing));
    const bool takes_right =
        left.empty() ||
        (!right.empty() && order_of(right.front().freezing) <= order_of(left.front().freezing));
    if (takes_left && takes_right) CLEW_ASSERT(stay.push(left.front()));
    if (takes_left && !takes_right) keep_unseen(left.front(), seen_b);
    if (takes_right && !takes_left) keep_unseen(right.front(), seen_a);
    if (takes_left) left = left.subspan(1);
    if (takes_right) right = right.subspan(1);
  }
  return stay;
}

}  // namespace

// --- groups --------------------------------------------------------------------------------------

bool Groups::add(std::span<const CellOperation> operations, const Group& group) {
  Group* const at = std::lower_bound(
      groups_.begin(), groups_.end(), group,
      [](const Group& a, const Group& b) { return compare_keys(a.key, b.key) < 0; });
  const bool is_there = at != groups_.end() && compare_keys(at->key, group.key) == 0;
  if (is_there) {
    int64_t* const cells = &cells_[static_cast<size_t>(at->cells.data() - cells_.data())];
    for (size_t word = 0; word < operations.size(); ++word)
      cells[word] = combined(operations[word], cells[word], group.cells[word]);
    return true;
  }
  if (groups_.size() == kGroupsMax) return false;
  const auto room = std::span(cells_).subspan(groups_.size() * kWordsMax, operations.size());
  std::copy_n(group.cells.data(), operations.size(), room.data());
  const Group added{.key = group.key, .cells = room};
  return groups_.replace(static_cast<size_t>(at - groups_.begin()), 0, {&added, 1});
}

// --- sums ----------------------------------------------------------------------------------------

bool is_sum(std::span<const std::byte> bytes) {
  if (bytes.size() > kBodyBytesMax) return false;
  SumReader reader(bytes);
  Freezing last;
  bool is_first = true;
  for (Instance instance; reader.next(instance); is_first = false) {
    const Freezing& freezing = instance.freezing;
    const bool is_active = freezing.height == 0;
    const bool follows = last.height == 0 || order_of(last) < order_of(freezing);
    if (!is_first && (is_active || !follows)) return false;
    last = freezing;
  }
  return !reader.is_damaged();
}

bool add_to_sum(Body& sum, std::span<const CellOperation> operations, const Group& group) {
  CLEW_ASSERT(!operations.empty() && operations.size() <= kWordsMax);
  CLEW_ASSERT(operations.size() == group.cells.size());
  const Body before = sum;
  Parts parts(before.values());
  if (!parts.is_there) CLEW_ASSERT(parts.operations.append(operations));
  const bool is_alike = std::ranges::equal(parts.operations, operations);
  if (!is_alike || group.key.size() > UINT8_MAX) return false;
  Groups active;
  const bool fits =
      add_groups(active, parts.operations, parts.active) && active.add(operations, group);
  return fits && write_sum(parts.operations, active, parts.frozen.values(), sum);
}

bool freeze_sum(Body& sum, const Freezing& freezing) {
  const Body before = sum;
  Parts parts(before.values());
  if (parts.active.empty()) return true;
  const Instance instance{.freezing = freezing, .groups = parts.active};
  const Instance* const at =
      std::find_if(parts.frozen.begin(), parts.frozen.end(), [&freezing](const Instance& other) {
        return order_of(freezing) <= order_of(other.freezing);
      });
  const auto index = static_cast<size_t>(at - parts.frozen.begin());
  const bool fits = parts.frozen.replace(index, 0, {&instance, 1});
  return fits && write_sum(parts.operations, Groups(), parts.frozen.values(), sum);
}

bool merge_sums(const SeenSum& a, const SeenSum& b, Body& merged) {
  const Parts parts_a(a.bytes);
  const Parts parts_b(b.bytes);
  const Operations& operations = parts_a.is_there ? parts_a.operations : parts_b.operations;
  const bool are_both = parts_a.is_there && parts_b.is_there;
  if (are_both && !(parts_a.operations == parts_b.operations)) return false;
  Groups active;
  const bool fits = add_groups(active, operations, parts_a.active) &&
                    add_groups(active, operations, parts_b.active);
  const Frozen frozen = still_frozen(parts_a, a.seen, parts_b, b.seen);
  return fits && write_sum(operations, active, frozen.values(), merged);
}

bool value_of_sum(std::span<const std::byte> sum, Groups& value) {
  const Parts parts(sum);
  bool fits = add_groups(value, parts.operations, parts.active);
  for (const Instance& instance : parts.frozen)
    fits = fits && add_groups(value, parts.operations, instance.groups);
  return fits;
}

// --- intervals -----------------------------------------------------------------------------------

void put_interval(ByteWriter& writer, const Interval& interval) {
  const unsigned depth = interval.depth;
  writer.put(depth, 1);
  writer.put(interval.start >> (kDepthMax - depth), (depth + 7) / 8);
}

Interval take_interval(ByteReader& reader) {
  const uint8_t depth = reader.take_byte();
  if (depth > kDepthMax) reader.fail();
  if (reader.failed()) return {};
  const uint64_t prefix = reader.take((size_t{depth} + 7) / 8);
  if (prefix >> depth != 0) reader.fail();
  return {.start = prefix << (kDepthMax - depth), .depth = depth};
}

}  // namespace clew::causal

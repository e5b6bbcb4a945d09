// SPDX-License-Identifier: Apache-2.0
#include "causal/sum.h"

#include <algorithm>
#include <compare>
#include <tuple>

namespace clew::causal {
namespace {

// A height, a depth and a prefix.
constexpr size_t kFreezingBytesMax = 5 + 1 + 6;

using Operations = FixedList<CellOperation, kWordsMax>;

// One instance as it is in a sum.
struct Instance {
  Freezing freezing{};
  std::span<const std::byte> groups{};  // From their count on.
  std::span<const std::byte> bytes{};   // All of it.
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
    const bool follows = !has_last_ || is_lt(compare_keys(last_key_, key));
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

// Passes over the instances of a sum, but does not look into their groups.
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
    const auto all = reader_.rest();
    instance.freezing = take_freezing();
    const auto before = reader_.rest();
    for (size_t groups = reader_.take_byte(); groups > 0 && !reader_.failed(); --groups)
      skip_group();
    instance.groups = before.first(before.size() - reader_.rest().size());
    instance.bytes = all.first(all.size() - reader_.rest().size());
    return !reader_.failed();
  }

  // How many are still to come.
  [[nodiscard]] size_t left() const { return left_; }
  [[nodiscard]] const Operations& operations() const { return operations_; }
  [[nodiscard]] bool is_damaged() const { return reader_.failed() || !reader_.at_end(); }

 private:
  void take_operation() {
    const uint8_t operation = reader_.take_byte();
    if (operation >= kCellOperations) reader_.fail();
    CLEW_ASSERT(operations_.push(static_cast<CellOperation>(operation)));
  }
  void skip_group() {
    (void)reader_.take_bytes(reader_.take_byte());
    for (size_t word = 0; word < operations_.size(); ++word)
      reader_.skip_varint();
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
      const bool is_active = instance.freezing.height == 0;
      if (is_active) active = instance.groups;
      if (!is_active) CLEW_ASSERT(frozen.push(instance));
    }
  }

  bool is_there;
  Operations operations;
  std::span<const std::byte> active;
  Frozen frozen;
};

bool are_groups(std::span<const std::byte> bytes, size_t words) {
  ByteReader reader(bytes);
  GroupReader groups(reader, words);
  for (Group group{}; groups.next(group);) {
  }
  return !reader.failed() && reader.at_end();
}

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
  for (const Instance& instance : frozen)
    writer.put_bytes(instance.bytes);
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
      [](const Group& a, const Group& b) { return is_lt(compare_keys(a.key, b.key)); });
  const bool is_there = at != groups_.end() && is_eq(compare_keys(at->key, group.key));
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

bool is_sum(std::span<const std::byte> bytes, const Heights& seen) {
  if (bytes.size() > kBodyBytesMax) return false;
  SumReader reader(bytes);
  Freezing last;
  bool is_first = true;
  for (Instance instance; reader.next(instance); is_first = false) {
    const Freezing& freezing = instance.freezing;
    const bool is_active = freezing.height == 0;
    const bool follows = last.height == 0 || order_of(last) < order_of(freezing);
    const bool is_placed = is_first || (!is_active && follows);
    const bool is_seen = is_active || seen.lowest(freezing.interval) >= freezing.height;
    if (!is_placed || !is_seen || !are_groups(instance.groups, reader.operations().size()))
      return false;
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

// The active instance moves behind the frozen ones that come before it, in place, and gets a name.
bool freeze_sum(Body& sum, const Freezing& freezing) {
  SumReader reader(sum.values());
  Instance active;
  if (!reader.next(active) || active.freezing.height != 0) return true;
  if (reader.left() == kInstancesMax) return false;
  const auto begin = sum.begin() + (active.bytes.data() - sum.begin());
  const auto end_of = [&sum](const Instance& instance) {
    return sum.begin() + (instance.bytes.data() + instance.bytes.size() - sum.begin());
  };
  auto* const groups_end = end_of(active);
  auto* end = groups_end;
  for (Instance next; reader.next(next) && order_of(next.freezing) < order_of(freezing);)
    end = end_of(next);
  std::array<std::byte, kFreezingBytesMax> room;
  ByteWriter writer(room);
  writer.put_varint(freezing.height);
  put_interval(writer, freezing.interval);
  const auto moved = static_cast<size_t>(std::rotate(begin, groups_end, end) - sum.begin());
  return sum.replace(moved, 1, std::span(room).first(writer.size()));
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

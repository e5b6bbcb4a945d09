// SPDX-License-Identifier: Apache-2.0
// What an aggregation holds, and its rows in the order in which they are printed.
#include "output/d/aggregations.h"

#include <algorithm>
#include <cstring>

#include "abi/buckets.h"
#include "base/assert.h"

namespace clew::output::d {
namespace {

using abi::AggregateFunction;
using query::d::Action;
using query::d::FieldKind;
using query::d::RecordField;

uint64_t word_at(std::span<const uint8_t> bytes, size_t offset_bytes) {
  uint64_t word = 0;
  if (offset_bytes + 8 <= bytes.size()) std::memcpy(&word, &bytes[offset_bytes], sizeof word);
  return word;
}

template <typename T>
int compare(const T& a, const T& b) {
  if (a < b) return -1;
  return b < a ? 1 : 0;
}

bool has_words(FieldKind kind) {
  return kind == FieldKind::KernelStack || kind == FieldKind::UserStack ||
         kind == FieldKind::KernelAddress;
}

// Words of stacks and addresses, of processes the address before the pid; else byte by byte.
int compare_field(const Datum& a, const Datum& b) {
  if (a.kind == FieldKind::Integer) return compare(unsigned_of(a), unsigned_of(b));
  if (a.kind == FieldKind::UserAddress) {
    const int by_address = compare(word_at(a.bytes, 8), word_at(b.bytes, 8));
    return by_address != 0 ? by_address : compare(word_at(a.bytes, 0), word_at(b.bytes, 0));
  }
  if (!has_words(a.kind)) {
    const int order =
        std::memcmp(a.bytes.data(), b.bytes.data(), std::min(a.bytes.size(), b.bytes.size()));
    return order != 0 ? order : compare(a.bytes.size(), b.bytes.size());
  }
  for (size_t at = 0; at + 8 <= std::min(a.bytes.size(), b.bytes.size()); at += 8) {
    const int order = compare(word_at(a.bytes, at), word_at(b.bytes, at));
    if (order != 0) return order;
  }
  return 0;
}

}  // namespace

Aggregations::Aggregations(const query::d::Script& script, std::vector<query::d::KeyLayout> layouts,
                           const target::Symbolizer& symbols, const PrintOptions& options)
    : script_(script),
      layouts_(std::move(layouts)),
      symbols_(symbols),
      options_(options),
      held_(script.aggregations.size()) {
  CLEW_ASSERT(layouts_.size() == script_.aggregations.size());
}

// --- what is held --------------------------------------------------------------------------------

void Aggregations::take(uint32_t aggregation, const std::vector<AggregateEntry>& snapshot) {
  const query::d::Aggregation& about = script_.aggregations[aggregation];
  const uint32_t words =
      static_cast<uint32_t>(abi::machine_cell_words(about.function, about.parameters.data()));
  auto& keys = held_[aggregation].keys;
  for (auto& [key, cells] : keys)
    cells.newest.clear();
  for (const AggregateEntry& entry : snapshot) {
    if (entry.cells.size() != words) continue;
    Key key = entry.key;
    key.resize(layouts_[aggregation].size_bytes);
    canonise(aggregation, key);
    std::vector<uint64_t>& newest = keys[std::move(key)].newest;
    if (newest.empty()) {
      newest = entry.cells;
    } else {
      aggregate::merge_cells(about.function, entry.cells, newest);
    }
  }
}

// Two addresses of one function are one key of @[func(pc)]: the address becomes the function's.
void Aggregations::canonise(uint32_t aggregation, Key& key) {
  for (const RecordField& field : layouts_[aggregation].fields) {
    const bool is_address =
        field.kind == FieldKind::KernelAddress || field.kind == FieldKind::UserAddress;
    const size_t size_bytes = field.kind == FieldKind::UserAddress ? 16 : 8;
    if (!is_address || field.offset_bytes + size_bytes > key.size()) continue;
    canonise(field, std::span(key).subspan(field.offset_bytes, size_bytes));
  }
}

void Aggregations::canonise(const RecordField& field, std::span<uint8_t> bytes) {
  const PlaceDetail detail = detail_of(field.action);
  if (detail == PlaceDetail::Offset) return;
  const bool is_user = field.kind == FieldKind::UserAddress;
  const std::span<uint8_t> at = bytes.subspan(is_user ? 8 : 0);
  const uint64_t pid = is_user ? word_at(bytes, 0) : 0;
  uint64_t address = word_at(at, 0);
  const auto place = is_user ? symbols_.user(pid, address) : symbols_.kernel(address);
  if (!place) return;
  if (detail == PlaceDetail::Module) {
    address = modules_.try_emplace({pid, place->module}, address).first->second;
  } else if (!place->function.empty()) {
    address -= place->offset_bytes;
  }
  std::memcpy(at.data(), &address, sizeof address);
}

void Aggregations::normalize(uint32_t aggregation, int64_t divisor) {
  held_[aggregation].divisor = divisor == 0 ? 1 : divisor;
}

void Aggregations::denormalize(uint32_t aggregation) {
  held_[aggregation].divisor = 1;
}

void Aggregations::clear(uint32_t aggregation) {
  for (auto& [key, cells] : held_[aggregation].keys)
    cells = Cells{};
}

void Aggregations::truncate(uint32_t aggregation, int64_t count) {
  Held& held = held_[aggregation];
  const uint32_t only[] = {aggregation};
  std::vector<Row> rows = rows_of(only);
  // The first of the order stay: the smallest for a negative count, else the largest.
  std::sort(rows.begin(), rows.end(), [&](const Row& a, const Row& b) {
    const int by_value = compare(a.sort_values[0], b.sort_values[0]);
    const int order = by_value != 0 ? by_value : compare_keys(a, b);
    return count < 0 ? order < 0 : order > 0;
  });
  const uint64_t keep = count < 0 ? 0 - static_cast<uint64_t>(count) : static_cast<uint64_t>(count);
  std::map<Key, Cells> kept;
  for (size_t i = 0; i < rows.size() && i < keep; ++i) {
    const Cells& old = held.keys[*rows[i].key];
    const bool is_updated = !old.base.empty() || !old.newest.empty();
    kept[*rows[i].key].base = is_updated ? std::move(rows[i].cells[0]) : std::vector<uint64_t>();
  }
  held.keys = std::move(kept);
}

// Zeros when there is no such key, or when it was cleared.
std::vector<uint64_t> Aggregations::cells_of(uint32_t aggregation, const Key* key) const {
  const query::d::Aggregation& about = script_.aggregations[aggregation];
  const auto& keys = held_[aggregation].keys;
  const auto found = key == nullptr ? keys.end() : keys.find(*key);
  if (found == keys.end() || (found->second.base.empty() && found->second.newest.empty())) {
    return std::vector<uint64_t>(abi::machine_cell_words(about.function, about.parameters.data()));
  }
  const Cells& cells = found->second;
  if (cells.base.empty()) return cells.newest;
  std::vector<uint64_t> sum = cells.base;
  if (!cells.newest.empty()) aggregate::merge_cells(about.function, cells.newest, sum);
  return sum;
}

// --- the rows ------------------------------------------------------------------------------------

aggregate::DValue Aggregations::value_of(uint32_t aggregation,
                                         std::span<const uint64_t> cells) const {
  const query::d::Aggregation& about = script_.aggregations[aggregation];
  return {.function = about.function,
          .cells = cells,
          .parameters = about.parameters,
          .divisor = held_[aggregation].divisor};
}

// One for each key that one of the aggregations has, in the order of their bytes.
std::vector<Aggregations::Row> Aggregations::rows_of(std::span<const uint32_t> aggregations) const {
  std::map<Key, Row> rows;
  for (const uint32_t aggregation : aggregations) {
    for (const auto& [key, cells] : held_[aggregation].keys)
      rows[key].key = &key;
  }
  std::vector<Row> result;
  for (auto& [key, row] : rows) {
    row.key_data = key_data(aggregations[0], *row.key);
    for (const uint32_t aggregation : aggregations) {
      row.cells.push_back(cells_of(aggregation, &key));
      row.sort_values.push_back(sort_value_of(value_of(aggregation, row.cells.back())));
    }
    result.push_back(std::move(row));
  }
  return result;
}

std::vector<Aggregations::Row> Aggregations::sorted_rows(
    std::span<const uint32_t> aggregations) const {
  std::vector<Row> rows = rows_of(aggregations);
  const auto order = [&](const Row& a, const Row& b) {
    const auto by_key = [&] { return compare_keys(a, b); };
    const int first = options_.sorts_by_key ? by_key() : compare_values(a, b);
    if (first != 0) return first;
    return options_.sorts_by_key ? compare_values(a, b) : by_key();
  };
  std::sort(rows.begin(), rows.end(), [&](const Row& a, const Row& b) {
    return options_.sorts_reversed ? order(b, a) < 0 : order(a, b) < 0;
  });
  return rows;
}

// By the aggregation that option aggsortpos names, then by those that follow it.
int Aggregations::compare_values(const Row& a, const Row& b) const {
  const size_t count = a.sort_values.size();
  const size_t first = options_.sort_position < count ? options_.sort_position : 0;
  for (size_t i = 0; i < count; ++i) {
    const size_t at = (first + i) % count;
    const int order = compare(a.sort_values[at], b.sort_values[at]);
    if (order != 0) return order;
  }
  return 0;
}

// From the field that option aggsortkeypos names on, round to the one before it.
int Aggregations::compare_keys(const Row& a, const Row& b) const {
  const size_t count = a.key_data.size();
  const size_t first = options_.sort_key_position < count ? options_.sort_key_position : 0;
  for (size_t i = 0; i < count; ++i) {
    const size_t at = (first + i) % count;
    const int order = compare_field(a.key_data[at], b.key_data[at]);
    if (order != 0) return order;
  }
  return 0;
}

// Integers of a key take 8 bytes there; what they are shown and compared as is their type's size.
std::vector<Datum> Aggregations::key_data(uint32_t aggregation, const Key& key) const {
  std::vector<Datum> data;
  for (const RecordField& field : layouts_[aggregation].fields) {
    Datum datum = datum_of(field, key);
    const uint32_t own_bytes =
        field.type == query::d::kNoType ? 0 : script_.types.size_of(field.type);
    if (field.kind == FieldKind::Integer && own_bytes > 0 && own_bytes < 8) {
      datum.size_bytes = own_bytes;
      datum.bytes = datum.bytes.first(std::min<size_t>(own_bytes, datum.bytes.size()));
    }
    data.push_back(datum);
  }
  return data;
}

void Aggregations::mark_printed(std::span<const uint32_t> aggregations) {
  for (const uint32_t aggregation : aggregations)
    held_[aggregation].is_printed = true;
}

}  // namespace clew::output::d

// SPDX-License-Identifier: Apache-2.0
#include "aggregate/accumulator.h"

#include <algorithm>

#include "aggregate/hash.h"
#include "base/assert.h"

namespace clew::aggregate {

uint32_t GroupShape::words() const {
  uint32_t total = 0;
  for (const AggregateSpec& spec : cells)
    total += cell_words(spec);
  return total;
}

void GroupShape::merge(std::span<uint64_t> into, std::span<const uint64_t> from) const {
  CLEW_ASSERT(into.size() == from.size());
  size_t at = 0;
  for (const AggregateSpec& spec : cells) {
    const size_t size = cell_words(spec);
    CLEW_ASSERT(at + size <= into.size());
    aggregate::merge(spec, into.subspan(at, size), from.subspan(at, size));
    at += size;
  }
  CLEW_ASSERT(at == into.size());
}

void GroupShape::subtract(std::span<uint64_t> from, std::span<const uint64_t> earlier) const {
  CLEW_ASSERT(from.size() == earlier.size());
  size_t at = 0;
  for (const AggregateSpec& spec : cells) {
    const size_t size = cell_words(spec);
    CLEW_ASSERT(at + size <= from.size());
    aggregate::subtract(spec, from.subspan(at, size), earlier.subspan(at, size));
    at += size;
  }
  CLEW_ASSERT(at == from.size());
}

size_t WordsHash::operator()(const std::vector<uint64_t>& words) const {
  return hash_words(words);
}

Accumulator::Accumulator(StateShape shape) : shape_(std::move(shape)) {
  for (const DenseShape& dense : shape_.dense) {
    dense_words_ = std::max(dense_words_, dense.first_word + dense.groups * dense.group.words());
  }
}

Accumulator::State& Accumulator::state_of(uint32_t process) {
  State& state = states_[shape_.by_process ? process : 0];
  if (state.tables.empty()) {
    state.dense.resize(dense_words_);
    state.tables.resize(shape_.tables.size());
  }
  CLEW_ASSERT(state.dense.size() == dense_words_);
  CLEW_ASSERT(state.tables.size() == shape_.tables.size());
  return state;
}

namespace {

void merge_dense(const DenseShape& shape, std::span<uint64_t> into,
                 std::span<const uint64_t> from) {
  const size_t words = shape.group.words();
  CLEW_ASSERT(shape.first_word + shape.groups * words <= into.size());
  CLEW_ASSERT(shape.first_word + shape.groups * words <= from.size());
  for (uint32_t i = 0; i < shape.groups; ++i) {
    const size_t at = shape.first_word + i * words;
    shape.group.merge(into.subspan(at, words), from.subspan(at, words));
  }
}

void merge_entry(const GroupShape& shape, KeyedCells& into, std::vector<uint64_t> key,
                 std::span<const uint64_t> cells) {
  std::vector<uint64_t>& row = into[std::move(key)];
  CLEW_ASSERT(row.empty() || row.size() == cells.size());
  row.resize(cells.size());
  shape.merge(row, cells);
}

void subtract_dense(const DenseShape& shape, std::span<uint64_t> from,
                    std::span<const uint64_t> earlier) {
  const size_t words = shape.group.words();
  CLEW_ASSERT(shape.first_word + shape.groups * words <= from.size());
  CLEW_ASSERT(shape.first_word + shape.groups * words <= earlier.size());
  for (uint32_t i = 0; i < shape.groups; ++i) {
    const size_t at = shape.first_word + i * words;
    shape.group.subtract(from.subspan(at, words), earlier.subspan(at, words));
  }
}

void subtract_table(const GroupShape& shape, KeyedCells& from, const KeyedCells& earlier) {
  for (const auto& [key, cells] : earlier) {
    const auto found = from.find(key);
    if (found == from.end()) continue;
    shape.subtract(found->second, cells);
    const bool is_nothing = std::all_of(found->second.begin(), found->second.end(),
                                        [](uint64_t word) { return word == 0; });
    if (is_nothing) from.erase(found);
  }
}

void merge_table(const GroupShape& shape, KeyedCells& into, const KeyedCells& from) {
  for (const auto& [key, cells] : from)
    merge_entry(shape, into, key, cells);
}

}  // namespace

void Accumulator::dense(const collect::SlotIdentity& slot, std::span<const uint64_t> words) {
  CLEW_ASSERT(words.size() >= dense_words_);
  State& state = state_of(slot.process);
  for (const DenseShape& shape : shape_.dense)
    merge_dense(shape, state.dense, words);
}

void Accumulator::entry(const collect::SlotIdentity& slot, uint32_t table,
                        std::span<const uint64_t> key, std::span<const uint64_t> cells) {
  CLEW_ASSERT(table < shape_.tables.size());
  const TableShape& shape = shape_.tables[table];
  CLEW_ASSERT(key.size() == shape.key_words);
  CLEW_ASSERT(cells.size() == shape.group.words());
  merge_entry(shape.group, state_of(slot.process).tables[table], {key.begin(), key.end()}, cells);
}

void Accumulator::merge(const Accumulator& other) {
  CLEW_ASSERT(&other != this);  // Tables grow while they are read.
  CLEW_ASSERT(dense_words_ == other.dense_words_);
  CLEW_ASSERT(shape_.tables.size() == other.shape_.tables.size());
  CLEW_ASSERT(shape_.by_process == other.shape_.by_process);
  for (const auto& [process, from] : other.states_) {
    State& state = state_of(process);
    for (const DenseShape& shape : shape_.dense)
      merge_dense(shape, state.dense, from.dense);
    for (size_t i = 0; i < from.tables.size(); ++i)
      merge_table(shape_.tables[i].group, state.tables[i], from.tables[i]);
  }
}

void Accumulator::subtract(const Accumulator& earlier) {
  CLEW_ASSERT(&earlier != this);
  CLEW_ASSERT(dense_words_ == earlier.dense_words_);
  CLEW_ASSERT(shape_.tables.size() == earlier.shape_.tables.size());
  CLEW_ASSERT(shape_.by_process == earlier.shape_.by_process);
  for (const auto& [process, before] : earlier.states_) {
    State& state = state_of(process);
    for (const DenseShape& shape : shape_.dense)
      subtract_dense(shape, state.dense, before.dense);
    for (size_t i = 0; i < before.tables.size(); ++i)
      subtract_table(shape_.tables[i].group, state.tables[i], before.tables[i]);
  }
}

void Accumulator::clear() {
  states_.clear();
}

size_t Accumulator::entries() const {
  size_t count = 0;
  for (const auto& [process, state] : states_) {
    for (const KeyedCells& table : state.tables)
      count += table.size();
  }
  return count;
}

std::vector<uint32_t> Accumulator::processes() const {
  std::vector<uint32_t> result;
  result.reserve(states_.size());
  for (const auto& [process, state] : states_)
    result.push_back(process);
  return result;
}

std::span<const uint64_t> Accumulator::group(uint32_t process, uint32_t dense_index,
                                             uint32_t group_index) const {
  const auto found = states_.find(process);
  CLEW_ASSERT(dense_index < shape_.dense.size());
  if (found == states_.end()) return {};
  const DenseShape& shape = shape_.dense[dense_index];
  CLEW_ASSERT(group_index < shape.groups);
  const size_t words = shape.group.words();
  return std::span(found->second.dense).subspan(shape.first_word + group_index * words, words);
}

const KeyedCells& Accumulator::table(uint32_t process, uint32_t table_index) const {
  const auto found = states_.find(process);
  CLEW_ASSERT(table_index < shape_.tables.size());
  if (found == states_.end()) return empty_;
  return found->second.tables[table_index];
}

}  // namespace clew::aggregate

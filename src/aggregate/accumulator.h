// SPDX-License-Identifier: Apache-2.0
// Merges raw cells over the slots of a session as the collector passes them on: tier 2 of a query.
// Keys are still words here; `Table` holds them as values.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <unordered_map>
#include <vector>

#include "aggregate/function.h"
#include "collect/reader.h"

namespace clew::aggregate {

// The cells that belong to one key, one after the other.
struct GroupShape {
  std::vector<AggregateSpec> cells{};
  [[nodiscard]] uint32_t words() const;
  void merge(std::span<uint64_t> into, std::span<const uint64_t> from) const;
  // All cells must be subtractable.
  void subtract(std::span<uint64_t> from, std::span<const uint64_t> earlier) const;
};

// `groups` groups of the same shape, side by side, `first_word` words after the start of the dense
// cells.
struct DenseShape {
  uint32_t first_word = 0;
  uint32_t groups = 0;
  GroupShape group{};
};

struct TableShape {
  uint32_t key_words = 0;
  GroupShape group{};
};

// What the state of a session consists of. src/plan makes it together with abi::RegionLayout.
struct StateShape {
  std::vector<DenseShape> dense{};
  std::vector<TableShape> tables{};
  bool by_process = false;  // Keep followed processes apart; else all of them count as process 0.
};

struct WordsHash {
  size_t operator()(const std::vector<uint64_t>& words) const;
};
using KeyedCells = std::unordered_map<std::vector<uint64_t>, std::vector<uint64_t>, WordsHash>;

class Accumulator final : public collect::CellSink {
 public:
  explicit Accumulator(StateShape shape);

  void dense(const collect::SlotIdentity& slot, std::span<const uint64_t> words) override;
  void entry(const collect::SlotIdentity& slot, uint32_t table, std::span<const uint64_t> key,
             std::span<const uint64_t> cells) override;
  // Both have the same shape.
  void merge(const Accumulator& other);
  // Takes away what was read of the same state earlier; entries that did not change since then are
  // gone. All cells must be subtractable.
  void subtract(const Accumulator& earlier);
  void clear();

  // Processes that have counted anything, ascending.
  [[nodiscard]] std::vector<uint32_t> processes() const;
  // The cells of one group; empty when the process has none. Valid until the next change.
  [[nodiscard]] std::span<const uint64_t> group(uint32_t process, uint32_t dense_index,
                                                uint32_t group_index) const;
  // The entries of one table; empty when there are none.
  [[nodiscard]] const KeyedCells& table(uint32_t process, uint32_t table_index) const;
  [[nodiscard]] const StateShape& shape() const { return shape_; }
  // Entries of all tables together.
  [[nodiscard]] size_t entries() const;

 private:
  struct State {
    std::vector<uint64_t> dense;
    std::vector<KeyedCells> tables;
  };
  State& state_of(uint32_t process);

  StateShape shape_;
  uint32_t dense_words_ = 0;
  std::map<uint32_t, State> states_;
  KeyedCells empty_;
};

}  // namespace clew::aggregate

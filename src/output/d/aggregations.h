// SPDX-License-Identifier: Apache-2.0
// The aggregations of a running D script, as its output sees them: what the kernel counted, and
// what normalize(), clear(), trunc() and printing did to them.
//
// The kernel's counts arrive as snapshots that hold everything since one was last taken out of it.
// clear() and trunc() need a snapshot that is taken out (kernel::MachineSession::take); what stays
// is kept here as `base`, and a value is base + newest snapshot.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "aggregate/d_value.h"
#include "output/d/options.h"
#include "output/d/printf.h"
#include "output/d/symbols.h"
#include "output/d/table.h"
#include "query/d/record.h"
#include "query/d/script.h"

namespace clew::output::d {

// One key of a snapshot: its bytes by the KeyLayout, its cells without the word of updates.
struct AggregateEntry {
  std::vector<uint8_t> key;
  std::vector<uint64_t> cells;
};

class Aggregations {
 public:
  // All are borrowed; `layouts` has one for each aggregation of the script.
  Aggregations(const query::d::Script& script, std::vector<query::d::KeyLayout> layouts,
               const target::Symbolizer& symbols, const PrintOptions& options);

  // Replaces the last snapshot of an aggregation. Entries that do not fit its layout are left out.
  void take(uint32_t aggregation, const std::vector<AggregateEntry>& snapshot);

  void normalize(uint32_t aggregation, int64_t divisor);  // 0 counts as 1.
  void denormalize(uint32_t aggregation);

  // Before these two the newest snapshot has to be taken out of the kernel.
  void clear(uint32_t aggregation);  // Keys stay, with the value 0.
  // Removes all keys, or all but the `count` largest (or -count smallest).
  void truncate(uint32_t aggregation, int64_t count = 0);

  // At exit: everything that printa() has not printed.
  void print_rest(std::string& out);
  // printa() of one or more aggregations, whose rows are joined by their keys.
  void print(std::span<const uint32_t> aggregations, std::string& out);
  void print(const query::d::Format& format, std::span<const uint32_t> aggregations,
             std::string& out);
  // As rows, joined likewise.
  Table table(std::span<const uint32_t> aggregations);
  [[nodiscard]] bool is_printed(uint32_t aggregation) const {
    return held_[aggregation].is_printed;
  }
  // The same as lines of JSON, one for each key of each (json.h).
  void print_json(std::span<const uint32_t> aggregations, std::string& out);

 private:
  using Key = std::vector<uint8_t>;
  struct Cells {
    std::vector<uint64_t> base;    // Empty: nothing was updated.
    std::vector<uint64_t> newest;  // Empty likewise.
  };
  struct Held {
    std::map<Key, Cells> keys;
    int64_t divisor = 1;
    bool is_printed = false;
  };
  // A key with the values of the aggregations that are printed together.
  struct Row {
    const Key* key = nullptr;
    std::vector<Datum> key_data;               // As the first of them shows it.
    std::vector<std::vector<uint64_t>> cells;  // By aggregation.
    std::vector<aggregate::SortValue> sort_values;
  };

  [[nodiscard]] std::vector<uint64_t> cells_of(uint32_t aggregation, const Key* key) const;
  [[nodiscard]] aggregate::DValue value_of(uint32_t aggregation,
                                           std::span<const uint64_t> cells) const;
  [[nodiscard]] std::vector<Row> rows_of(std::span<const uint32_t> aggregations) const;
  [[nodiscard]] std::vector<Row> sorted_rows(std::span<const uint32_t> aggregations) const;
  [[nodiscard]] int compare_values(const Row& a, const Row& b) const;
  [[nodiscard]] int compare_keys(const Row& a, const Row& b) const;
  [[nodiscard]] std::vector<Datum> key_data(uint32_t aggregation, const Key& key) const;
  void canonise(uint32_t aggregation, Key& key);
  void canonise(const query::d::RecordField& field, std::span<uint8_t> bytes);
  void append_row(std::span<const uint32_t> aggregations, const Row& row, std::string& out) const;
  void mark_printed(std::span<const uint32_t> aggregations);

  const query::d::Script& script_;
  std::vector<query::d::KeyLayout> layouts_;
  const target::Symbolizer& symbols_;
  const PrintOptions& options_;
  std::vector<Held> held_;
  // The first address seen of each module, by process (0 = the kernel), for mod() and umod().
  std::map<std::pair<uint64_t, std::string>, uint64_t> modules_;
};

}  // namespace clew::output::d

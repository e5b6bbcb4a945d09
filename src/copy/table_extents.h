// SPDX-License-Identifier: Apache-2.0
// How far each table of a function goes, by all that is known of those who read it.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "copy/table_bound.h"
#include "copy/table_entries.h"

namespace clew::copy {

// Of one table. What is read with several bounds goes to the largest; where a read has none it goes
// on as long as its words lead into the function.
struct TableExtent {
  TableKind kind = TableKind::Offsets;
  std::vector<uint64_t> targets;
  // The table has these entries, and no others that a read can reach, if no switch leads to
  // `assumed`.
  bool is_known = false;
  std::vector<uint64_t> assumed;
};

class TableExtents {
 public:
  // Borrows all.
  TableExtents(const TableReader& reader, const BoundFinder& bounds)
      : reader_(reader), bounds_(bounds) {}

  // True when more is known of the table than before.
  bool add(uint64_t table, const TableRead& read);
  // Of a table that was read.
  [[nodiscard]] const TableExtent& of(uint64_t table) const { return tables_.at(table).extent; }

 private:
  struct Known {
    std::map<uint64_t, TableRead> reads;  // By instruction.
    TableBound bound;
    bool all_bounded = true;
    bool kinds_differ = false;
    TableExtent extent;
  };
  void measure(uint64_t table, Known& known) const;

  const TableReader& reader_;
  const BoundFinder& bounds_;
  std::map<uint64_t, Known> tables_;  // By address.
};

}  // namespace clew::copy

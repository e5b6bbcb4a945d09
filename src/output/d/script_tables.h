// SPDX-License-Identifier: Apache-2.0
// A D script's answer in formats that have several tables (stream, sqlite): one for each clause
// that records, clause_0, clause_1, …, and one for each aggregation, by its name.
//
//   clause_N   time, cpu, probe ("provider:module:function:name"), what trace(), printf(), stack()
//              and their kin were given, by their expressions, and text: what they print
//   calls      the parts of the key of @calls, and its value
//
// Rows of an aggregation belong to an interval each time they are printed, which begins with the
// session: a value is of all of it, or of what came after clear() and trunc().
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "abi/machine/window.h"
#include "output/d/printf.h"
#include "output/d/record.h"
#include "output/row_sink.h"
#include "query/d/record.h"
#include "query/d/script.h"

namespace clew::output::d {

class ScriptTables {
 public:
  // `sink` is borrowed, and of a format that has several tables; it begins with the first call.
  ScriptTables(const query::d::Script& script, std::span<const query::d::RecordLayout> records,
               std::span<const query::d::KeyLayout> keys, RowSink& sink);

  // abi::MachineShared::wall_offset_ns, before the first record.
  void set_wall_offset(uint64_t nanoseconds) { wall_offset_ns_ = nanoseconds; }
  // The values of a record, by value_of() and null where they were not recorded.
  void add_record(const abi::MachineRecordHeader& header, const ProbeNames& probe,
                  std::vector<aggregate::Value> values, std::string text);
  // The rows of one aggregation, which were printed now.
  void add_rows(uint32_t aggregation, const Table& table);

 private:
  void add_aggregation(const query::d::Script& script, std::span<const query::d::KeyLayout> keys,
                       uint32_t index);
  void add_clause(const query::d::RecordLayout& layout, uint32_t index);
  [[nodiscard]] std::string free_name(std::string name) const;

  RowSink& sink_;
  int64_t begin_ns_;
  uint64_t wall_offset_ns_ = 0;
  std::vector<TableShape> shapes_;
  std::map<uint32_t, size_t> of_aggregation_;  // In shapes_.
  std::map<uint32_t, size_t> of_clause_;
  uint64_t intervals_ = 0;
};

}  // namespace clew::output::d

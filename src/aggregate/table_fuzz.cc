// SPDX-License-Identifier: Apache-2.0
// Fuzzes the reader of tables: what it takes can be written, merged, subtracted and finished. Byte
// 0 says which: whether the input is the bytes, but for the size in their header, or changes to
// those of a table of some function, else few inputs would have rows.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "aggregate/table_bytes.h"
#include "base/assert.h"

namespace {

using clew::aggregate::AggregateColumn;
using clew::aggregate::Table;

constexpr size_t kHeaderBytes = 16;

size_t top_lists(const Table& table) {
  const auto& aggregates = table.schema().aggregates;
  return static_cast<size_t>(
      std::count_if(aggregates.begin(), aggregates.end(), [](const AggregateColumn& column) {
        return column.spec.function == clew::aggregate::AggregateFunction::TopK;
      }));
}

void use(const Table& table) {
  Table sum = table;
  CLEW_ASSERT(sum.merge(table).has_value());
  (void)sum.rows();
  const auto& aggregates = table.schema().aggregates;
  const bool has_differences =
      std::all_of(aggregates.begin(), aggregates.end(),
                  [](const AggregateColumn& column) { return subtractable(column.spec); });
  if (has_differences) (void)sum.since(table);
  const size_t keys = table.schema().keys.size();
  const size_t tops = top_lists(table);
  if (tops <= keys) (void)sum.fold_top(keys - tops);
}

Table example(uint8_t choice) {
  clew::aggregate::AggregateSpec spec;
  spec.function =
      static_cast<clew::aggregate::AggregateFunction>(choice % clew::abi::kAggregateFunctions);
  spec.is_real = choice >= 128;
  spec.high = 5;
  Table table({.keys = {{.name = "text"}, {.name = "number"}},
               .aggregates = {{.name = "count", .spec = {}}, {.name = "chosen", .spec = spec}}});
  table.losses.missed["fuel"] = 1;
  table.losses.lost = {"pid 17"};
  for (const uint64_t value : {1U, 2U, 1000U}) {
    std::vector<uint64_t> cells(table.schema().cell_words());
    add(spec, std::span(cells).subspan(1), value);
    table.add({std::string("key"), value}, cells);
  }
  return table;
}

std::vector<std::byte> bytes_of(std::span<const uint8_t> input) {
  std::vector<std::byte> bytes;
  if (input[0] == 0) {
    const auto all = std::as_bytes(input.subspan(1));
    bytes.assign(all.begin(), all.end());
  } else {
    bytes = to_bytes(example(input[0]));
    for (size_t at = 1; at + 3 <= input.size(); at += 3) {
      const size_t offset = input[at] + size_t{256} * input[at + 1];
      bytes[offset % bytes.size()] = static_cast<std::byte>(input[at + 2]);
    }
  }
  if (bytes.size() >= kHeaderBytes) {
    const uint64_t size_bytes = bytes.size();
    std::memcpy(&bytes[kHeaderBytes - sizeof size_bytes], &size_bytes, sizeof size_bytes);
  }
  return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::vector<std::byte> bytes = bytes_of(std::span(data, size));
  const auto table = clew::aggregate::table_of(bytes);
  if (!table) return 0;
  CLEW_ASSERT(to_bytes(*table) == bytes);
  use(*table);
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
// Aggregations as text: with a format, and in the columns that DTrace gives them without one.
#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "output/d/aggregations.h"
#include "output/d/default_text.h"
#include "output/d/distribution.h"

namespace clew::output::d {

void Aggregations::print_rest(std::string& out) {
  if (!options_.is_json()) out += '\n';
  std::vector<uint32_t> order(held_.size());
  std::iota(order.begin(), order.end(), 0U);
  // DTrace sorts the rows of all aggregations in one go, so the option turns them around as well.
  if (options_.sorts_reversed) std::reverse(order.begin(), order.end());
  for (const uint32_t aggregation : order) {
    if (held_[aggregation].is_printed) continue;
    const uint32_t only[] = {aggregation};
    if (options_.is_json()) {
      print_json(only, out);
      continue;
    }
    for (const Row& row : sorted_rows(only))
      append_row(only, row, out);
  }
}

void Aggregations::print(std::span<const uint32_t> aggregations, std::string& out) {
  out += '\n';
  if (aggregations.empty()) return;
  const std::vector<Row> rows = sorted_rows(aggregations);
  for (const Row& row : rows)
    append_row(aggregations, row, out);
  if (!rows.empty()) mark_printed(aggregations);
}

void Aggregations::print(const query::d::Format& format, std::span<const uint32_t> aggregations,
                         std::string& out) {
  if (aggregations.empty()) return;
  const std::vector<Row> rows = sorted_rows(aggregations);
  for (const Row& row : rows) {
    std::vector<aggregate::DValue> values;
    for (size_t i = 0; i < aggregations.size(); ++i)
      values.push_back(value_of(aggregations[i], row.cells[i]));
    append_formatted(format,
                     {.values = row.key_data,
                      .aggregates = values,
                      .symbols = symbols_,
                      .zooms = options_.zooms},
                     out);
  }
  if (!rows.empty()) mark_printed(aggregations);
}

void Aggregations::append_row(std::span<const uint32_t> aggregations, const Row& row,
                              std::string& out) const {
  for (const Datum& datum : row.key_data)
    append_key_text(datum, symbols_, options_, out);
  for (size_t i = 0; i < aggregations.size(); ++i) {
    const aggregate::DValue value = value_of(aggregations[i], row.cells[i]);
    if (aggregate::is_distribution(value.function)) {
      append_distribution(value, options_.zooms, out);
    } else {
      out += fmt::format(" {:16}", number_of(value));
    }
  }
  out += '\n';
}

}  // namespace clew::output::d

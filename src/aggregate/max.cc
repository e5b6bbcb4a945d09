// SPDX-License-Identifier: Apache-2.0
// max(x): the largest value. Word 1 says that word 0 holds one, so that a cell of zeros holds none.
#include "aggregate/operations.h"

namespace clew::aggregate {
namespace {

uint32_t words(const AggregateSpec&) {
  return 2;
}

bool better(bool is_signed, uint64_t value, uint64_t than) {
  return is_signed ? static_cast<int64_t>(value) > static_cast<int64_t>(than) : value > than;
}

void add_value(const AggregateSpec& spec, Cell cell, uint64_t value) {
  if (cell[1] == 0 || better(spec.is_signed, value, cell[0])) cell[0] = value;
  cell[1] = 1;
}

void merge_cells(const AggregateSpec& spec, Cell into, ConstCell from) {
  if (from[1] != 0) add_value(spec, into, from[0]);
}

Value finish_cell(const AggregateSpec& spec, ConstCell cell) {
  return cell[1] == 0 ? Value() : scaled_integer(spec, cell[0]);
}

constexpr Operations kOperations = {words, add_value, merge_cells, nullptr, finish_cell};

}  // namespace

const Operations& max_operations() {
  return kOperations;
}

}  // namespace clew::aggregate

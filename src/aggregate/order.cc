// SPDX-License-Identifier: Apache-2.0
// The order of values: for sorted rows and for keys.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "aggregate/table.h"

namespace clew::aggregate {
namespace {

template <typename T>
int three_way(const T& a, const T& b) {
  if (a < b) return -1;
  return b < a ? 1 : 0;
}

// In ascending order.
enum class Rank : uint8_t { Null, Number, Text, Histogram, TopList, Stack };

Rank rank_of(const Value& value) {
  if (std::holds_alternative<std::monostate>(value)) return Rank::Null;
  if (std::holds_alternative<std::string>(value)) return Rank::Text;
  if (std::holds_alternative<Histogram>(value)) return Rank::Histogram;
  if (std::holds_alternative<TopList>(value)) return Rank::TopList;
  if (std::holds_alternative<Stack>(value)) return Rank::Stack;
  return Rank::Number;
}

// An integer of either sign, exactly.
struct Whole {
  bool negative;
  uint64_t bits;
};

Whole whole_of(const Value& value) {
  if (const auto* number = std::get_if<uint64_t>(&value)) return {false, *number};
  const int64_t number = std::get<int64_t>(value);
  return {number < 0, static_cast<uint64_t>(number)};
}

int compare_wholes(Whole a, Whole b) {
  if (a.negative != b.negative) return a.negative ? -1 : 1;
  return three_way(a.bits, b.bits);  // Two's complement keeps the order among negatives.
}

// The 64-bit mantissa of a long double holds each of the three types exactly.
long double number_of(const Value& value) {
  if (const auto* number = std::get_if<double>(&value)) return *number;
  if (const auto* number = std::get_if<uint64_t>(&value)) return static_cast<long double>(*number);
  return static_cast<long double>(std::get<int64_t>(value));
}

// NaN comes before all other numbers, so that the order is total.
int compare_numbers(const Value& a, const Value& b) {
  if (!std::holds_alternative<double>(a) && !std::holds_alternative<double>(b)) {
    return compare_wholes(whole_of(a), whole_of(b));
  }
  const long double x = number_of(a);
  const long double y = number_of(b);
  if (std::isnan(x) || std::isnan(y)) return three_way(std::isnan(y), std::isnan(x));
  return three_way(x, y);
}

uint64_t total_of(const Histogram& histogram) {
  uint64_t total = 0;
  for (const Bucket& bucket : histogram.buckets)
    total += bucket.count;
  return total;
}

uint64_t total_of(const TopList& list) {
  uint64_t total = 0;
  for (const TopItem& item : list.items)
    total += item.count;
  return total;
}

}  // namespace

int compare(const Value& a, const Value& b) {
  const Rank rank = rank_of(a);
  if (rank != rank_of(b)) return three_way(rank, rank_of(b));
  switch (rank) {
    case Rank::Null:
      return 0;
    case Rank::Number:
      return compare_numbers(a, b);
    case Rank::Text:
      return three_way(std::get<std::string>(a), std::get<std::string>(b));
    case Rank::Histogram:
      return three_way(total_of(std::get<Histogram>(a)), total_of(std::get<Histogram>(b)));
    case Rank::TopList:
      return three_way(total_of(std::get<TopList>(a)), total_of(std::get<TopList>(b)));
    case Rank::Stack:
      return three_way(std::get<Stack>(a), std::get<Stack>(b));
  }
  return 0;
}

void sort_rows(std::vector<Row>& rows, std::span<const Order> orders) {
  std::stable_sort(rows.begin(), rows.end(), [orders](const Row& a, const Row& b) {
    for (const Order& order : orders) {
      const int result = compare(a[order.column], b[order.column]);
      if (result != 0) return order.descending ? result > 0 : result < 0;
    }
    return false;
  });
}

}  // namespace clew::aggregate

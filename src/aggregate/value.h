// SPDX-License-Identifier: Apache-2.0
// A finished value: what a row holds and output prints.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace clew::aggregate {

enum class Unit : uint8_t { None, Nanoseconds };

enum class ColumnType : uint8_t {
  Integer,    // int64_t
  Unsigned,   // uint64_t
  Float,      // double
  String,     // std::string
  Boolean,    // uint64_t, 0 or 1
  Address,    // uint64_t, printed as hexadecimal
  Time,       // int64_t, nanoseconds since 1970 in UTC; text shows the local time of day
  Enum,       // std::string (the enumerator's name) or int64_t (no such enumerator)
  Histogram,  // Histogram
  TopList,    // TopList
  Stack,      // Stack
  Record,     // std::string, an object or array of JSON; text shows its keys without quotes
};

enum class ColumnRole : uint8_t {
  Plain,      // Of an event.
  Key,        // What rows are grouped by.
  Aggregate,  // Counted over a group: what a chart draws.
  Cluster,    // The number of a cluster, 1, 2, …: what a chart of clusters has colours for.
  Centre,     // What the cluster looks like, in words.
};

struct Column {
  std::string name{};  // As in `select`.
  ColumnType type = ColumnType::Integer;
  Unit unit = Unit::None;
  bool approximate = false;  // A sketch: text marks its values with ~.
  ColumnRole role = ColumnRole::Plain;
  // Whether a sum of its values says something: it does of counts and sums, not of a maximum.
  bool adds_up = true;
  bool of_kernel = false;  // Of stacks: calls in the kernel, which those of a process have called.
  // What adds up and gets no less while more is counted: counts, sums of what is never negative.
  bool only_grows = false;
  // Of a histogram: the column with the sum of the same values, where the query asks for it.
  std::optional<uint32_t> sum_column{};
  bool operator==(const Column&) const = default;
};

// Where the lower bound of a bucket stands.
enum class BucketEdge : uint8_t {
  From,          // Values from `low` on (for quantize below zero: up to `low`).
  Below,         // All values below `low`.
  AtLeast,       // All values from `low` on, however large.
  FromUnsigned,  // As From, and `low` holds the bits of a uint64_t.
  UpTo,          // All values up to `low`, however small.
  Around,        // All values nearer to 0 than `low`.
};

struct Bucket {
  int64_t low = 0;
  BucketEdge edge = BucketEdge::From;
  uint64_t count = 0;
  bool operator==(const Bucket&) const = default;
};

enum class HistogramKind : uint8_t { Quantize, Lquantize, Llquantize };

// All buckets in ascending order, empty ones too; output leaves out what DTrace leaves out.
struct Histogram {
  HistogramKind kind = HistogramKind::Quantize;
  std::vector<Bucket> buckets{};
  bool operator==(const Histogram&) const = default;
};

// A value that is not itself a list.
using Scalar = std::variant<std::monostate, int64_t, uint64_t, double, std::string>;
// Numbers in decimal, text as it is, "null".
std::string text_of(const Scalar& value);

struct TopItem {
  Scalar value{};
  uint64_t count = 0;
  bool operator==(const TopItem&) const = default;
};

// Most frequent first; ties by value.
struct TopList {
  std::vector<TopItem> items{};
  bool operator==(const TopList&) const = default;
};

// One call of a stack. What is not known is empty or 0.
struct Frame {
  std::string symbol{};
  uint64_t offset = 0;  // Of `address` in the symbol.
  std::string module{};
  std::string file{};
  uint32_t line = 0;     // 1, 2, …
  bool inlined = false;  // Into the frame that follows, which has the same address.
  uint64_t address = 0;
  auto operator<=>(const Frame&) const = default;
};
// "nginx!ngx_http_handler+0x1f (ngx_http.c:812) [inlined]"; the address without a symbol.
std::string text_of(const Frame& frame);

// The innermost call first.
struct Stack {
  std::vector<Frame> frames{};
  auto operator<=>(const Stack&) const = default;
};
// One frame a line, no line feed at the end.
std::string text_of(const Stack& stack);

// std::monostate is null: no value (avg of nothing, the missing side of a left join).
using Value =
    std::variant<std::monostate, int64_t, uint64_t, double, std::string, Histogram, TopList, Stack>;

}  // namespace clew::aggregate

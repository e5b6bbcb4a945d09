// SPDX-License-Identifier: Apache-2.0
#include "aggregate/table_bytes.h"

#include <bit>
#include <cstring>
#include <random>
#include <string>

#include <gtest/gtest.h>

namespace clew::aggregate {
namespace {

using Bytes = std::vector<std::byte>;

constexpr size_t kVersionOffset = 4;
constexpr size_t kSizeOffset = 8;

AggregateSpec spec_of(AggregateFunction function) {
  AggregateSpec spec{.function = function};
  spec.high = function == AggregateFunction::Llquantize ? 5 : 100;
  spec.step = 7;
  spec.scale = 0.25;
  return spec;
}

// Each function of signed, unsigned and floating-point values.
TableSchema all_functions() {
  TableSchema schema;
  schema.keys = {{.name = "first", .type = ColumnType::String},
                 {.name = "second", .type = ColumnType::Enum, .unit = Unit::Nanoseconds}};
  for (uint32_t i = 0; i < abi::kAggregateFunctions; ++i) {
    AggregateSpec spec = spec_of(static_cast<AggregateFunction>(i));
    schema.aggregates.push_back({.name = name_of(spec.function), .spec = spec});
    spec.is_signed = false;
    schema.aggregates.push_back({.name = "unsigned", .spec = spec});
    spec.is_real = true;
    schema.aggregates.push_back({.name = "real", .spec = spec});
  }
  return schema;
}

std::vector<uint64_t> counted(const TableSchema& schema, std::mt19937_64& random) {
  std::vector<uint64_t> cells(schema.cell_words());
  size_t at = 0;
  for (const AggregateColumn& column : schema.aggregates) {
    const size_t words = cell_words(column.spec);
    const auto cell = std::span(cells).subspan(at, words);
    for (int i = 0; i < 20; ++i) {
      const uint64_t value = random() >> (random() % 64);
      add(column.spec, cell,
          column.spec.is_real ? std::bit_cast<uint64_t>(static_cast<double>(value)) : value);
    }
    at += words;
  }
  return cells;
}

// Keys of each kind of value, with losses of each kind.
Table example(uint64_t seed) {
  const Stack stack{{{.symbol = "serve",
                      .offset = 9,
                      .module = "shop",
                      .file = "serve.c",
                      .line = 12,
                      .inlined = true,
                      .address = 4096},
                     {}}};
  std::mt19937_64 random(seed);
  Table table(all_functions());
  const Value values[] = {
      Value(),       int64_t{-3}, uint64_t{UINT64_MAX}, Value(0.5), std::string("a\0b", 3),
      std::string(), Value(stack)};
  for (const Value& first : values) {
    for (const Value& second : values)
      table.add({first, second}, counted(table.schema(), random));
  }
  table.interval = 7;
  table.losses.missed = {{"fuel", 3}, {"reentry", seed}};
  table.losses.dropped = {{"ring_full", 1}};
  table.losses.lost = {"pid 17 ended"};
  table.losses.refused = {{.function = "open", .kind = "entry", .reason = "too short"}};
  table.losses.uprobes = {{.function = "memcpy", .kind = "exit", .reason = "no window"}};
  table.losses.disarmed = {{.probe = "entry of spin", .process = 3, .exhausted = 8}};
  table.losses.left_out = {{.process = -1, .reason = "not ours"}};
  table.losses.open = {.count = 2, .oldest_ns = 99};
  table.losses.left_by_jump = {"fork"};
  table.losses.duties = {3, 0, seed};
  table.losses.causal = {{"requests", 4}, {"recipe", 9}};
  table.losses.sites = 5;
  table.losses.attach_ms = 1.5;
  table.losses.stopped_ms = 0.25;
  table.losses.processes = 2;
  table.losses.window_ms = 1000;
  return table;
}

TableSchema counts() {
  return {.keys = {{.name = "n", .type = ColumnType::Unsigned}},
          .aggregates = {{.name = "count", .spec = {}}}};
}

Table small() {
  Table table(counts());
  table.add({uint64_t{1}}, std::vector<uint64_t>{10});
  table.add({uint64_t{2}}, std::vector<uint64_t>{20});
  return table;
}

template <typename T>
void overwrite(Bytes& bytes, size_t offset, T value) {
  std::memcpy(&bytes[offset], &value, sizeof value);
}

void set_size(Bytes& bytes) {
  overwrite(bytes, kSizeOffset, uint64_t{bytes.size()});
}

std::string error_of(const Bytes& bytes) {
  const auto table = table_of(bytes);
  return table ? "none" : table.error().message;
}

TEST(TableBytes, OfAllFunctionsAndValuesAreTheTableAgain) {
  const Table table = example(1);
  const auto again = table_of(to_bytes(table));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(*again, table);
  EXPECT_EQ(to_bytes(*again), to_bytes(table));
}

TEST(TableBytes, OfPartsMergeAsThePartsDo) {
  Table merged = example(1);
  ASSERT_TRUE(merged.merge(example(2)));
  auto again = table_of(to_bytes(example(1)));
  ASSERT_TRUE(again);
  const auto other = table_of(to_bytes(example(2)));
  ASSERT_TRUE(other);
  ASSERT_TRUE(again->merge(*other));
  EXPECT_EQ(*again, merged);
  EXPECT_EQ(again->rows(), merged.rows());
}

TEST(TableBytes, OfAnEmptyTableAreIt) {
  const Table table(TableSchema{});
  const auto again = table_of(to_bytes(table));
  ASSERT_TRUE(again);
  EXPECT_EQ(*again, table);
}

TEST(TableBytes, ThatEndEarlyAreAnError) {
  const Bytes whole = to_bytes(example(1));
  for (size_t size = 0; size < whole.size(); size += size < 4096 ? 1 : 509) {
    Bytes part(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_FALSE(table_of(part)) << size;
    if (size < kSizeOffset + 8) continue;
    set_size(part);
    EXPECT_FALSE(table_of(part)) << size;
  }
}

TEST(TableBytes, WithAnyByteChangedAreAnErrorOrAnotherTable) {
  const Bytes whole = to_bytes(small());
  for (size_t i = 0; i < whole.size(); ++i) {
    for (const int change : {0x01, 0x80, 0xFF}) {
      Bytes bytes = whole;
      bytes[i] ^= static_cast<std::byte>(change);
      const auto table = table_of(bytes);
      if (!table) continue;
      EXPECT_EQ(to_bytes(*table), bytes) << i;
    }
  }
}

TEST(TableBytes, OfAnotherVersionAreRefused) {
  Bytes bytes = to_bytes(small());
  overwrite(bytes, kVersionOffset, kTableVersion + 1);
  const auto table = table_of(bytes);
  ASSERT_FALSE(table);
  EXPECT_EQ(table.error().code, ErrorCode::Refused);
  const std::string version = "version " + std::to_string(kTableVersion + 1);
  EXPECT_NE(table.error().message.find(version), std::string::npos) << table.error().message;
}

TEST(TableBytes, SayHowManyTheyAre) {
  Bytes bytes = to_bytes(small());
  bytes.push_back(std::byte{0});
  EXPECT_NE(error_of(bytes).find("say another number"), std::string::npos) << error_of(bytes);
  set_size(bytes);
  EXPECT_NE(error_of(bytes).find("something follows"), std::string::npos) << error_of(bytes);
}

TEST(TableBytes, HaveEachKeyOnceAndInOrder) {
  Bytes bytes = to_bytes(small());
  const size_t row_bytes = 1 + 8 + 8;
  overwrite(bytes, bytes.size() - row_bytes + 1, uint64_t{1});
  EXPECT_NE(error_of(bytes).find("not sorted"), std::string::npos) << error_of(bytes);
}

// A count of rows that take no bytes must not be believed.
TEST(TableBytes, OfManyRowsWithoutColumnsEndSoon) {
  Bytes bytes = to_bytes(Table(TableSchema{}));
  overwrite(bytes, bytes.size() - 8, UINT64_MAX);
  EXPECT_NE(error_of(bytes).find("not sorted"), std::string::npos) << error_of(bytes);
}

TEST(TableBytes, WithAggregatesThatMakeNoSenseAreAnError) {
  TableSchema schema = counts();
  schema.aggregates[0].spec = {.function = AggregateFunction::Lquantize, .high = 10, .step = -1};
  EXPECT_NE(error_of(to_bytes(Table(schema))).find("the step is -1"), std::string::npos);
  schema.aggregates[0].spec = {.quantile = std::bit_cast<double>(UINT64_MAX)};
  EXPECT_NE(error_of(to_bytes(Table(schema))).find("is not between 0 and 1"), std::string::npos);
}

}  // namespace
}  // namespace clew::aggregate

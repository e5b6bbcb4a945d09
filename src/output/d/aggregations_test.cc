// SPDX-License-Identifier: Apache-2.0
#include "output/d/aggregations.h"

#include <gtest/gtest.h>

#include "abi/buckets.h"
#include "output/d/fake_host.h"
#include "query/d/parse_format.h"

namespace clew::output::d {
namespace {

using abi::AggregateFunction;
using query::d::Action;
using query::d::FieldKind;
using query::d::RecordField;

uint64_t word(int64_t value) {
  return static_cast<uint64_t>(value);
}

// Aggregations by number, with keys of the fields given.
class AggregationsTest : public testing::Test {
 protected:
  uint32_t add(AggregateFunction kind, std::vector<RecordField> fields,
               std::vector<int64_t> parameters = {}) {
    uint32_t at = 0;
    for (RecordField& field : fields) {
      field.offset_bytes = at;
      at += (field.size_bytes + 7) / 8 * 8;
    }
    query::d::Aggregation& about = script_.aggregations.emplace_back();
    about.function = kind;
    about.parameters = std::move(parameters);
    layouts_.push_back({.fields = std::move(fields), .size_bytes = at});
    return static_cast<uint32_t>(layouts_.size() - 1);
  }

  RecordField integer(uint32_t size_bytes, bool is_signed = true) {
    return {.is_signed = is_signed, .type = script_.types.integer(size_bytes, is_signed)};
  }
  static RecordField string() { return {.kind = FieldKind::String, .size_bytes = 16}; }

  Aggregations& aggregations() {
    if (!aggregations_) aggregations_.emplace(script_, layouts_, symbols_, options_);
    return *aggregations_;
  }

  void take(uint32_t aggregation, const std::vector<AggregateEntry>& snapshot) {
    aggregations().take(aggregation, snapshot);
  }
  // Keys of one integer, or none.
  void count(uint32_t aggregation, const std::vector<std::pair<int64_t, int64_t>>& counts) {
    std::vector<AggregateEntry> snapshot;
    for (const auto& [key, value] : counts)
      snapshot.push_back({bytes_of({word(key)}), {word(value)}});
    take(aggregation, snapshot);
  }

  std::string rest() {
    std::string out;
    aggregations().print_rest(out);
    return out;
  }
  std::string printa(const std::vector<uint32_t>& which) {
    std::string out;
    aggregations().print(which, out);
    return out;
  }
  std::string printa(std::string_view format, const std::vector<uint32_t>& which) {
    std::string out;
    aggregations().print(*query::d::parse_format(format, 1, {}), which, out);
    return out;
  }

  query::d::Script script_;
  std::vector<query::d::KeyLayout> layouts_;
  FakeSymbols symbols_;
  PrintOptions options_;
  std::optional<Aggregations> aggregations_;
};

TEST_F(AggregationsTest, AreSeparatedFromOutputByAnEmptyLineEvenWhenThereAreNone) {
  EXPECT_EQ(rest(), "\n");
}

TEST_F(AggregationsTest, WithoutKeysAreOneNumber) {
  const uint32_t a = add(AggregateFunction::Count, {});
  take(a, {{{}, {42}}});
  EXPECT_EQ(rest(), "\n               42\n");
}

TEST_F(AggregationsTest, NeverUpdatedPrintNothing) {
  add(AggregateFunction::Count, {});
  EXPECT_EQ(rest(), "\n");
  EXPECT_EQ(printa({0}), "\n");
  EXPECT_EQ(printa("%@d\n", {0}), "");
}

TEST_F(AggregationsTest, AsJsonAreALineForEachKey) {
  options_.format = Format::Json;
  script_.aggregations.reserve(2);
  const uint32_t counts = add(AggregateFunction::Count, {integer(8), string()});
  const uint32_t sizes = add(AggregateFunction::Quantize, {});
  script_.aggregations[counts].name = "calls";
  std::vector<uint8_t> key = bytes_of({word(-7)});
  const std::vector<uint8_t> name = bytes_of("read", 16);
  key.insert(key.end(), name.begin(), name.end());
  take(counts, {{key, {word(3)}}});
  std::vector<uint64_t> cells(abi::machine_cell_words(AggregateFunction::Quantize, nullptr));
  cells[abi::quantize_bucket(int64_t{8})] = 2;
  take(sizes, {{{}, cells}});
  EXPECT_EQ(rest(), R"({"aggregation":"calls","key":[-7,"read"],"value":3})"
                    "\n"
                    R"({"aggregation":"","key":[],"value":[{"value":8,"count":2}]})"
                    "\n");
}

TEST_F(AggregationsTest, AreSortedByValueAndThenByKey) {
  const uint32_t a = add(AggregateFunction::Count, {integer(8)});
  count(a, {{3, 5}, {1, 7}, {2, 5}, {9, 1}});
  EXPECT_EQ(rest(),
            "\n"
            "                9                1\n"
            "                2                5\n"
            "                3                5\n"
            "                1                7\n");
}

TEST_F(AggregationsTest, KeyColumnsHaveTheWidthOfTheirType) {
  struct Case {
    uint32_t size_bytes;
    bool is_signed;
    int64_t key;
    std::string_view expected;
  };
  const Case cases[] = {
      {8, true, -5, "               -5                1\n"},
      {8, false, -1, "               -1                1\n"},
      {4, true, -5, "       -5                1\n"},
      {4, true, 123456789, " 123456789                1\n"},
      {2, true, -2, " 65534                1\n"},
      {2, false, 7, "     7                1\n"},
      {1, true, -2, " 254                1\n"},
      {1, false, 9, "   9                1\n"},
  };
  for (const Case& each : cases) {
    script_.aggregations.clear();
    layouts_.clear();
    aggregations_.reset();
    const uint32_t a = add(AggregateFunction::Count, {integer(each.size_bytes, each.is_signed)});
    count(a, {{each.key, 1}});
    EXPECT_EQ(rest(), "\n" + std::string(each.expected)) << each.size_bytes << ' ' << each.key;
  }
}

TEST_F(AggregationsTest, StringKeysTakeFiftyColumns) {
  const uint32_t a = add(AggregateFunction::Sum, {string(), integer(4)});
  std::vector<uint8_t> key = bytes_of("bash", 16);
  key.resize(24);
  key[16] = 7;
  take(a, {{key, {word(-3)}}});
  EXPECT_EQ(rest(),
            "\n  bash                                                      7               -3\n");
}

TEST_F(AggregationsTest, BytesAsKeysAreTextOrATable) {
  const uint32_t a = add(AggregateFunction::Count, {{.kind = FieldKind::Bytes, .size_bytes = 8}});
  take(a, {{bytes_of("eth0", 8), {1}}, {bytes_of({0x0100000000000201}), {2}}});
  EXPECT_EQ(rest(),
            "\n"
            "  eth0                                                              1\n"
            "\n"
            "             0  1  2  3  4  5  6  7  8  9  a  b  c  d  e  f  0123456789abcdef\n"
            "         0: 01 02 00 00 00 00 00 01                          ........\n"
            "                2\n");
}

TEST_F(AggregationsTest, SymbolKeysTakeFiftyColumnsAndMergeByFunction) {
  const RecordField function = {.kind = FieldKind::KernelAddress, .action = Action::Sym};
  const uint32_t a = add(AggregateFunction::Count, {function});
  take(a, {{bytes_of({0xffffffff81000004}), {1}},
           {bytes_of({0xffffffff81000008}), {2}},
           {bytes_of({0xffffffff81000100}), {1}},
           {bytes_of({0x10}), {9}}});
  EXPECT_EQ(rest(),
            "\n"
            "  vmlinux`vfs_write                                                 1\n"
            "  vmlinux`vfs_read                                                  3\n"
            "  0x10                                                              9\n");
}

TEST_F(AggregationsTest, ModuleKeysMergeByModule) {
  const RecordField module = {.kind = FieldKind::KernelAddress, .action = Action::Mod};
  const uint32_t a = add(AggregateFunction::Count, {module});
  take(a, {{bytes_of({0xffffffff81000004}), {1}}, {bytes_of({0xffffffff81000104}), {2}}});
  EXPECT_EQ(rest(), "\n  vmlinux                                                           3\n");
}

TEST_F(AggregationsTest, UserSymbolKeysAreNamed) {
  struct Case {
    Action action;
    std::string_view expected;
  };
  const Case cases[] = {
      {Action::Usym, "  libc.so.6`read                                                    1\n"},
      {Action::Ufunc, "  libc.so.6`read                                                    1\n"},
      {Action::Umod, "  libc.so.6                                                         1\n"},
      {Action::Uaddr, "  libc.so.6`read+0x4                                                1\n"},
  };
  for (const Case& each : cases) {
    script_.aggregations.clear();
    layouts_.clear();
    aggregations_.reset();
    const uint32_t a =
        add(AggregateFunction::Count,
            {{.kind = FieldKind::UserAddress, .size_bytes = 16, .action = each.action}});
    take(a, {{bytes_of({7, 0x1004}), {1}}});
    EXPECT_EQ(rest(), "\n" + std::string(each.expected));
  }
}

TEST_F(AggregationsTest, StackKeysStandAboveTheirValue) {
  const uint32_t a =
      add(AggregateFunction::Count, {{.kind = FieldKind::KernelStack, .size_bytes = 24}});
  take(a, {{bytes_of({0xffffffff81000004, 0xffffffff81000104, 0}), {6}}});
  EXPECT_EQ(rest(),
            "\n"
            "\n"
            "              vmlinux`vfs_read+0x4\n"
            "              vmlinux`vfs_write+0x4\n"
            "                6\n");
}

TEST_F(AggregationsTest, UserStackKeysFollowOtherKeys) {
  const uint32_t a =
      add(AggregateFunction::Count, {integer(4), {.kind = FieldKind::UserStack, .size_bytes = 24}});
  take(a, {{bytes_of({5, 7, 0x1001, 0}), {6}}});
  EXPECT_EQ(rest(),
            "\n"
            "        5\n"
            "              libc.so.6`read+0x1\n"
            "                6\n");
}

TEST_F(AggregationsTest, DistributionsAreDrawnBelowTheirKeyWithAnEmptyLineBehind) {
  const uint32_t a = add(AggregateFunction::Quantize, {string()});
  std::vector<uint64_t> cells(127);
  cells[abi::quantize_bucket(1)] = 2;
  take(a, {{bytes_of("cat", 16), cells}});
  EXPECT_EQ(rest(),
            "\n"
            "  cat                                               \n"
            "           value  ------------- Distribution ------------- count    \n"
            "               0 |                                         0        \n"
            "               1 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@ 2        \n"
            "               2 |                                         0        \n"
            "\n");
}

TEST_F(AggregationsTest, AppearInTheOrderOfTheScript) {
  const uint32_t a = add(AggregateFunction::Sum, {});
  const uint32_t b = add(AggregateFunction::Count, {});
  take(b, {{{}, {1}}});
  take(a, {{{}, {2}}});
  EXPECT_EQ(rest(), "\n                2\n                1\n");
  options_.sorts_reversed = true;
  EXPECT_EQ(rest(), "\n                1\n                2\n");
}

TEST_F(AggregationsTest, PrintedByPrintaAreNotPrintedAtExit) {
  const uint32_t a = add(AggregateFunction::Count, {});
  const uint32_t b = add(AggregateFunction::Count, {});
  take(a, {{{}, {1}}});
  take(b, {{{}, {2}}});
  EXPECT_EQ(printa({a}), "\n                1\n");
  EXPECT_EQ(rest(), "\n                2\n");
}

TEST_F(AggregationsTest, PrintaOfNothingDoesNotCountAsPrinted) {
  const uint32_t a = add(AggregateFunction::Count, {});
  EXPECT_EQ(printa({a}), "\n");
  take(a, {{{}, {1}}});
  EXPECT_EQ(rest(), "\n                1\n");
}

// --- sorting -------------------------------------------------------------------------------------

TEST_F(AggregationsTest, KeysOfIntegersSortUnsigned) {
  for (const uint32_t size_bytes : {1U, 2U, 4U, 8U}) {
    script_.aggregations.clear();
    layouts_.clear();
    aggregations_.reset();
    options_.sorts_by_key = true;
    const uint32_t a = add(AggregateFunction::Count, {integer(size_bytes)});
    count(a, {{-1, 1}, {2, 1}, {0, 1}, {-2, 1}, {1, 1}});
    EXPECT_EQ(printa("%d ", {a}), "0 1 2 -2 -1 ") << size_bytes;
  }
}

TEST_F(AggregationsTest, KeysOfStringsSortByBytes) {
  options_.sorts_by_key = true;
  const uint32_t a = add(AggregateFunction::Count, {string()});
  take(a, {{bytes_of("b", 16), {1}},
           {bytes_of("\xc3", 16), {1}},
           {bytes_of("B", 16), {9}},
           {bytes_of("ab", 16), {5}},
           {bytes_of("a", 16), {7}}});
  EXPECT_EQ(printa("%s ", {a}), "B a ab b \xc3 ");
}

TEST_F(AggregationsTest, KeyPositionDecidesWhichKeyComesFirst) {
  options_.sorts_by_key = true;
  const uint32_t a = add(AggregateFunction::Count, {integer(4), integer(4), integer(4)});
  take(a, {{bytes_of({1, 3, 2}), {1}}, {bytes_of({2, 1, 2}), {1}}, {bytes_of({1, 2, 1}), {1}}});
  const auto order = [&](uint32_t position) {
    options_.sort_key_position = position;
    return printa("%d%d%d ", {a});
  };
  EXPECT_EQ(order(0), "121 132 212 ");
  EXPECT_EQ(order(1), "212 121 132 ");
  EXPECT_EQ(order(2), "121 132 212 ");
  EXPECT_EQ(order(3), "121 132 212 ");
}

TEST_F(AggregationsTest, ReversedSortingTurnsValuesAndKeysAround) {
  options_.sorts_reversed = true;
  const uint32_t a = add(AggregateFunction::Count, {integer(4)});
  count(a, {{1, 5}, {2, 5}, {3, 6}});
  EXPECT_EQ(printa("%d ", {a}), "3 2 1 ");
  options_.sorts_by_key = true;
  count(a, {{1, 9}, {2, 5}, {3, 6}});
  EXPECT_EQ(printa("%d ", {a}), "3 2 1 ");
}

TEST_F(AggregationsTest, ValuesSortSigned) {
  const uint32_t a = add(AggregateFunction::Sum, {integer(4)});
  count(a, {{1, 5}, {2, -5}, {3, 0}});
  EXPECT_EQ(printa("%d ", {a}), "2 3 1 ");
}

TEST_F(AggregationsTest, NormalizationDoesNotChangeTheOrder) {
  const uint32_t a = add(AggregateFunction::Sum, {integer(4)});
  count(a, {{1, 12}, {2, 11}});
  aggregations().normalize(a, 10);
  EXPECT_EQ(printa("%d=%@d ", {a}), "2=1 1=1 ");
}

// --- formats, several aggregations
// -----------------------------------------------------------------

TEST_F(AggregationsTest, AFormatMayUseFewerFieldsThanTheKeyHas) {
  const uint32_t a = add(AggregateFunction::Count, {string(), integer(4)});
  std::vector<uint8_t> key = bytes_of("cat", 16);
  key.resize(24);
  key[16] = 42;
  take(a, {{key, {8}}});
  EXPECT_EQ(printa("%s\n", {a}), "cat\n");
  EXPECT_EQ(printa("%-6s|%4d|%@5d\n", {a}), "cat   |  42|    8\n");
  EXPECT_EQ(printa("%@d of %s\n", {a}), "8 of cat\n");
  EXPECT_EQ(printa("x\n", {a}), "x\n");
}

TEST_F(AggregationsTest, ADynamicWidthIsTakenFromTheKey) {
  const uint32_t a = add(AggregateFunction::Count, {integer(4), integer(4)});
  take(a, {{bytes_of({6, 42}), {1}}});
  EXPECT_EQ(printa("%*d|%@d\n", {a}), "    42|1\n");
}

TEST_F(AggregationsTest, PrintedTogetherAreJoinedByKey) {
  const uint32_t a = add(AggregateFunction::Count, {integer(4)});
  const uint32_t b = add(AggregateFunction::Sum, {integer(4)});
  count(a, {{1, 5}, {2, 3}});
  count(b, {{2, 30}, {3, 10}});
  EXPECT_EQ(printa("%d %@d %@d\n", {a, b}), "3 0 10\n2 3 30\n1 5 0\n");
  EXPECT_EQ(printa({a, b}),
            "\n"
            "        3                0               10\n"
            "        2                3               30\n"
            "        1                5                0\n");
  EXPECT_EQ(rest(), "\n");
}

TEST_F(AggregationsTest, PrintedTogetherAreSortedByTheOneThatAnOptionNames) {
  const uint32_t a = add(AggregateFunction::Count, {integer(4)});
  const uint32_t b = add(AggregateFunction::Sum, {integer(4)});
  count(a, {{1, 5}, {2, 3}, {3, 3}});
  count(b, {{1, 1}, {2, 30}, {3, 10}});
  EXPECT_EQ(printa("%d ", {a, b}), "3 2 1 ");
  options_.sort_position = 1;
  EXPECT_EQ(printa("%d ", {a, b}), "1 3 2 ");
  options_.sort_position = 2;
  EXPECT_EQ(printa("%d ", {a, b}), "3 2 1 ");
}

TEST_F(AggregationsTest, AMissingDistributionIsDrawnEmpty) {
  const uint32_t a = add(AggregateFunction::Count, {integer(4)});
  const uint32_t b = add(AggregateFunction::Quantize, {integer(4)});
  count(a, {{1, 5}});
  EXPECT_EQ(printa("%d%@d%@d", {a, b}),
            "15\n"
            "           value  ------------- Distribution ------------- count    \n"
            "              -1 |                                         0        \n"
            "               0 |                                         0        \n"
            "               1 |                                         0        \n");
}

// --- what actions do
// -------------------------------------------------------------------------------

TEST_F(AggregationsTest, NormalizeReplacesAndDenormalizeUndoes) {
  const uint32_t a = add(AggregateFunction::Sum, {});
  take(a, {{{}, {1000}}});
  const auto value = [&] { return printa("%@d", {a}); };
  aggregations().normalize(a, 10);
  EXPECT_EQ(value(), "100");
  aggregations().normalize(a, 100);
  EXPECT_EQ(value(), "10");
  aggregations().normalize(a, -100);
  EXPECT_EQ(value(), "-10");
  aggregations().normalize(a, 0);
  EXPECT_EQ(value(), "1000");
  aggregations().normalize(a, 7);
  aggregations().denormalize(a);
  EXPECT_EQ(value(), "1000");
}

TEST_F(AggregationsTest, ClearKeepsKeysWithoutTheirValues) {
  const uint32_t a = add(AggregateFunction::Count, {integer(4)});
  count(a, {{1, 5}, {2, 3}});
  aggregations().clear(a);
  EXPECT_EQ(printa("%d=%@d ", {a}), "1=0 2=0 ");
  count(a, {{2, 4}});
  EXPECT_EQ(printa("%d=%@d ", {a}), "1=0 2=4 ");
}

TEST_F(AggregationsTest, AClearedMinimumIsThatOfWhatCameLater) {
  const uint32_t a = add(AggregateFunction::Min, {});
  take(a, {{{}, {3}}});
  aggregations().clear(a);
  EXPECT_EQ(printa("%@d", {a}), "0");
  take(a, {{{}, {8}}});
  EXPECT_EQ(printa("%@d", {a}), "8");
}

TEST_F(AggregationsTest, TruncRemovesAllKeys) {
  const uint32_t a = add(AggregateFunction::Count, {integer(4)});
  count(a, {{1, 5}, {2, 3}});
  aggregations().truncate(a);
  EXPECT_EQ(printa("%d=%@d ", {a}), "");
  count(a, {{2, 1}});
  EXPECT_EQ(printa("%d=%@d ", {a}), "2=1 ");
}

TEST_F(AggregationsTest, TruncKeepsTheLargestOrTheSmallest) {
  struct Case {
    int64_t count;
    std::string_view expected;
  };
  const Case cases[] = {{2, "3=7 4=9 "},
                        {1, "4=9 "},
                        {-1, "2=1 "},
                        {-3, "2=1 1=5 3=7 "},
                        {0, ""},
                        {9, "2=1 1=5 3=7 4=9 "},
                        {INT64_MIN, "2=1 1=5 3=7 4=9 "}};
  for (const Case& each : cases) {
    script_.aggregations.clear();
    layouts_.clear();
    aggregations_.reset();
    const uint32_t a = add(AggregateFunction::Count, {integer(4)});
    count(a, {{1, 5}, {2, 1}, {3, 7}, {4, 9}});
    aggregations().truncate(a, each.count);
    EXPECT_EQ(printa("%d=%@d ", {a}), each.expected) << each.count;
  }
}

TEST_F(AggregationsTest, WhatTruncKeptIsAddedToWhatCameLater) {
  const uint32_t a = add(AggregateFunction::Count, {integer(4)});
  count(a, {{1, 5}, {2, 1}});
  aggregations().truncate(a, 1);
  count(a, {});
  EXPECT_EQ(printa("%d=%@d ", {a}), "1=5 ");
  count(a, {{1, 2}, {2, 1}});
  EXPECT_EQ(printa("%d=%@d ", {a}), "2=1 1=7 ");
}

TEST_F(AggregationsTest, AKeyThatWasClearedAndKeptIsStillWithoutAValue) {
  const uint32_t a = add(AggregateFunction::Min, {integer(4)});
  count(a, {{1, 5}});
  aggregations().clear(a);
  aggregations().truncate(a, 1);
  EXPECT_EQ(printa("%d=%@d ", {a}), "1=0 ");
  count(a, {{1, 6}});
  EXPECT_EQ(printa("%d=%@d ", {a}), "1=6 ");
}

TEST_F(AggregationsTest, SnapshotsReplaceOneAnother) {
  const uint32_t a = add(AggregateFunction::Count, {integer(4)});
  count(a, {{1, 5}});
  count(a, {{1, 6}});
  EXPECT_EQ(printa("%d=%@d ", {a}), "1=6 ");
}

TEST_F(AggregationsTest, EntriesThatDoNotFitAreLeftOut) {
  const uint32_t a = add(AggregateFunction::Average, {});
  take(a, {{{}, {1}}, {bytes_of({1, 2, 3}), {2, 10}}});
  EXPECT_EQ(printa("%@d ", {a}), "5 ");
}

}  // namespace
}  // namespace clew::output::d

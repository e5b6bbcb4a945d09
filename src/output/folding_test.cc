// SPDX-License-Identifier: Apache-2.0
#include "output/folding.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "output/sinks.h"

namespace clew::output {
namespace {

using aggregate::Column;
using aggregate::ColumnRole;
using aggregate::ColumnType;
using aggregate::Stack;
using aggregate::Value;
using ::testing::AllOf;
using ::testing::HasSubstr;

const Column kStack = {.name = "stack", .type = ColumnType::Stack, .role = ColumnRole::Key};
const Column kCalls = {
    .name = "calls", .type = ColumnType::Unsigned, .role = ColumnRole::Aggregate};

Column key(const std::string& name, ColumnType type) {
  return {.name = name, .type = type, .role = ColumnRole::Key};
}

// "read" was called by "serve", and that by "main".
Stack stack(const std::vector<std::string>& innermost_first) {
  Stack result;
  for (const std::string& symbol : innermost_first)
    result.frames.push_back({.symbol = symbol, .offset = 4, .module = "shop"});
  return result;
}

std::string folded(const std::vector<Column>& columns,
                   const std::vector<std::vector<Value>>& rows) {
  StringSink bytes;
  StringSink notes;
  const auto sink = make_sink({.format = Format::Folded}, bytes, notes);
  sink->begin(columns, RowMode::Table);
  for (const auto& row : rows)
    sink->row(row);
  sink->finish({});
  return bytes.take() + notes.take();
}

std::string refusal(Format format, const std::vector<Column>& columns) {
  const Expected<void> checked = check_columns(formats()[static_cast<size_t>(format)], columns);
  return checked ? "" : checked.error().message;
}

TEST(Folded, HasTheOutermostCallFirst) {
  EXPECT_EQ(folded({kStack, kCalls}, {{stack({"read", "serve", "main"}), uint64_t{12}},
                                      {stack({"main"}), uint64_t{3}}}),
            "main 3\nmain;serve;read 12\n");
}

TEST(Folded, SumsUpEqualStacksOfAllIntervals) {
  StringSink bytes;
  const auto sink = make_sink({.format = Format::Folded}, bytes, bytes);
  const std::vector<Column> columns = {kStack, kCalls};
  const std::vector<Value> row = {stack({"f"}), uint64_t{2}};
  sink->begin(columns, RowMode::Table);
  for (uint64_t i = 1; i <= 3; ++i) {
    sink->row(row);
    sink->end_interval({.number = i});
  }
  EXPECT_EQ(bytes.text(), "");
  sink->finish({});
  EXPECT_EQ(bytes.text(), "f 6\n");
}

TEST(Folded, PutsOtherKeysInFrontAndStacksBehindEachOther) {
  const Column kernel = {.name = "kernel", .type = ColumnType::Stack, .role = ColumnRole::Key};
  EXPECT_EQ(folded({key("comm", ColumnType::String), kStack, kCalls, kernel,
                    key("tid", ColumnType::Integer)},
                   {{"redis", stack({"write", "main"}), uint64_t{1}, stack({"vfs_write", "entry"}),
                     int64_t{7}}}),
            "redis;tid 7;main;write;entry;vfs_write 1\n");
}

TEST(Folded, PutsTheKernelsStackBehindThatOfTheProcess) {
  const Column kernel = {
      .name = "kernel", .type = ColumnType::Stack, .role = ColumnRole::Key, .of_kernel = true};
  EXPECT_EQ(folded({kernel, kStack, kCalls},
                   {{stack({"vfs_write", "entry"}), stack({"write", "main"}), uint64_t{1}}}),
            "main;write;entry;vfs_write 1\n");
}

TEST(Folded, TakesNoNumberWhoseSumSaysNothing) {
  const Column largest = {.name = "largest",
                          .type = ColumnType::Integer,
                          .role = ColumnRole::Aggregate,
                          .adds_up = false};
  EXPECT_THAT(
      refusal(Format::Svg, {kStack, largest}),
      AllOf(HasSubstr("svg needs"), HasSubstr("largest (integer, whose sum says nothing)")));
  const std::vector<Column> columns = {kStack, largest, kCalls};
  ASSERT_TRUE(folded_columns(columns));
  EXPECT_EQ(folded_columns(columns)->number, 2U);
}

TEST(Folded, KeepsOneLineForWhateverNames) {
  EXPECT_EQ(folded({key("comm", ColumnType::String), kStack, kCalls},
                   {{"a;b\nc", stack({"x;y\x1b[2J"}), uint64_t{1}}}),
            "a\\x3bb\\nc;x\\x3by\\x1b[2J 1\n");
}

TEST(Folded, LeavesOutOneOfSeveralStacksThatHasNoCall) {
  const Column kernel = {.name = "kernel", .type = ColumnType::Stack, .role = ColumnRole::Key};
  EXPECT_EQ(folded({kStack, kernel, kCalls},
                   {{stack({"main"}), Stack{}, uint64_t{1}}, {{}, stack({"idle"}), uint64_t{2}}}),
            "idle 2\nmain 1\n");
}

TEST(Folded, CountsARowWithoutAStack) {
  EXPECT_EQ(folded({kStack, kCalls}, {{Stack{}, uint64_t{2}}, {{}, uint64_t{3}}}),
            "[no stack] 5\n");
}

TEST(Folded, LeavesOutWhatIsNoNumberAndSaysSo) {
  const Column sum = {.name = "bytes", .type = ColumnType::Integer, .role = ColumnRole::Aggregate};
  EXPECT_EQ(folded({kStack, sum}, {{stack({"f"}), int64_t{-2}},
                                   {stack({"f"}), {}},
                                   {stack({"f"}), int64_t{0}},
                                   {stack({"f"}), int64_t{9}}}),
            "f 9\nleft out: 2 rows whose bytes is no number from 0 on\n");
}

TEST(Folded, SaturatesInsteadOfBeginningAnew) {
  EXPECT_EQ(folded({kStack, kCalls}, {{stack({"f"}), UINT64_MAX}, {stack({"f"}), uint64_t{5}}}),
            "f 18446744073709551615\n");
}

TEST(Folded, TakesTheFirstNumberThatIsCountedAndExact) {
  const std::vector<Column> columns = {
      kStack,
      key("tid", ColumnType::Integer),
      {.name = "p99",
       .type = ColumnType::Unsigned,
       .approximate = true,
       .role = ColumnRole::Aggregate},
      {.name = "mean", .type = ColumnType::Float, .role = ColumnRole::Aggregate},
      kCalls,
      {.name = "bytes", .type = ColumnType::Integer, .role = ColumnRole::Aggregate}};
  ASSERT_TRUE(folded_columns(columns));
  EXPECT_EQ(folded_columns(columns)->number, 4U);
}

TEST(Folded, TakesTheLastNumberOfAnEvent) {
  const std::vector<Column> columns = {{.name = "tid"},
                                       {.name = "stack", .type = ColumnType::Stack},
                                       {.name = "size"},
                                       {.name = "comm", .type = ColumnType::String}};
  ASSERT_TRUE(folded_columns(columns));
  EXPECT_EQ(folded_columns(columns)->number, 2U);
  EXPECT_TRUE(folded_columns(columns)->keys.empty());
}

TEST(Folded, AreRefusedWhereAStackOrANumberIsMissing) {
  const Column sketch = {.name = "p99",
                         .type = ColumnType::Unsigned,
                         .approximate = true,
                         .role = ColumnRole::Aggregate};
  EXPECT_EQ(refusal(Format::Folded, {kStack, kCalls}), "");
  EXPECT_THAT(refusal(Format::Folded, {key("comm", ColumnType::String), kCalls}),
              AllOf(HasSubstr("folded needs"), HasSubstr("comm (string), calls (unsigned)")));
  EXPECT_THAT(refusal(Format::Folded, {kStack, sketch}),
              HasSubstr("stack (stack), p99 (unsigned, approximate)"));
  EXPECT_NE(refusal(Format::Folded, {kStack, key("tid", ColumnType::Integer)}), "");
  EXPECT_EQ(refusal(Format::Csv, {sketch}), "");
}

void fold(Folding& folding, const std::vector<std::string>& names) {
  const std::vector<Column> columns = {kStack, kCalls};
  folding.begin(columns);
  for (const std::string& name : names) {
    const std::vector<Value> row = {stack({name}), uint64_t{1}};
    folding.add(row);
  }
}

TEST(Folding, SumsUpWhatHasNoRoom) {
  Folding folding(Folding::kStacksMax, 3000);
  fold(folding, {std::string(2000, 'a'), std::string(2000, 'b'), "c", std::string(2000, 'a')});
  EXPECT_EQ(folding.stacks().size(), 3U);
  EXPECT_EQ(folding.stacks().at({Folding::kOthers}), 1U);
  EXPECT_EQ(folding.total(), 4U);
}

TEST(Folding, SumsUpWhatDoesNotFit) {
  Folding folding(2);
  fold(folding, {"a", "b", "c", "d", "a"});
  const Folding::Stacks expected = {{{"a"}, 2}, {{"b"}, 1}, {{Folding::kOthers}, 2}};
  EXPECT_EQ(folding.stacks(), expected);
  EXPECT_EQ(folding.total(), 5U);
}

}  // namespace
}  // namespace clew::output

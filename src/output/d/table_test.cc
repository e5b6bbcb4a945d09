// SPDX-License-Identifier: Apache-2.0
#include "output/d/table.h"

#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "abi/machine/window.h"
#include "output/d/aggregations.h"
#include "output/d/fake_host.h"

namespace clew::output::d {
namespace {

using abi::AggregateFunction;
using query::d::FieldKind;

class TableTest : public testing::Test {
 protected:
  // Of keys of one number and one text.
  uint32_t add(AggregateFunction function, const std::string& name) {
    query::d::Aggregation& made = script_.aggregations.emplace_back();
    made.name = name;
    made.function = function;
    made.is_used = true;
    layouts_.push_back(
        {.fields =
             {{.kind = FieldKind::Integer, .size_bytes = 8, .is_signed = true, .text = "arg0"},
              {.kind = FieldKind::String, .offset_bytes = 8, .size_bytes = 16, .text = "execname"}},
         .size_bytes = 24});
    return static_cast<uint32_t>(layouts_.size() - 1);
  }
  static std::vector<uint8_t> key_of(int64_t number, std::string_view text) {
    std::vector<uint8_t> key = bytes_of({static_cast<uint64_t>(number)});
    const std::vector<uint8_t> name = bytes_of(text, 16);
    key.insert(key.end(), name.begin(), name.end());
    return key;
  }
  Aggregations& aggregations() {
    if (!aggregations_) aggregations_.emplace(script_, layouts_, symbols_, options_);
    return *aggregations_;
  }
  std::string drawn(const std::vector<uint32_t>& which, Format format) {
    return draw(aggregations().table(which), {.format = format}).text;
  }

  query::d::Script script_;
  std::vector<query::d::KeyLayout> layouts_;
  FakeSymbols symbols_;
  PrintOptions options_;
  std::optional<Aggregations> aggregations_;
};

TEST_F(TableTest, ColumnsAreThePartsOfTheKeyAndTheValue) {
  const uint32_t calls = add(AggregateFunction::Count, "calls");
  aggregations().take(calls, {{key_of(-3, "a,b"), {2}}, {key_of(7, "cat"), {1}}});
  EXPECT_EQ(drawn({calls}, Format::Csv),
            "arg0,execname,@calls\r\n"
            "7,cat,1\r\n"
            "-3,\"a,b\",2\r\n");
  EXPECT_TRUE(aggregations().is_printed(calls));
}

TEST_F(TableTest, OneWithoutANameIsCalledByItsFunction) {
  const uint32_t sums = add(AggregateFunction::Sum, "");
  aggregations().take(sums, {{key_of(1, "x"), {40, 0}}});
  EXPECT_THAT(drawn({sums}, Format::Csv), testing::StartsWith("arg0,execname,sum\r\n"));
}

TEST_F(TableTest, SeveralAreJoinedByTheirKeys) {
  const uint32_t calls = add(AggregateFunction::Count, "calls");
  const uint32_t most = add(AggregateFunction::Max, "most");
  aggregations().take(calls, {{key_of(1, "x"), {5}}});
  aggregations().take(most, {{key_of(1, "x"), {9}}});
  EXPECT_EQ(drawn({calls, most}, Format::Csv),
            "arg0,execname,@calls,@most\r\n"
            "1,x,5,9\r\n");
}

TEST_F(TableTest, ChartsAreBarsOfTheValueAndNotOfTheKey) {
  const uint32_t calls = add(AggregateFunction::Count, "calls");
  aggregations().take(calls, {{key_of(900, "x"), {1}}, {key_of(2, "y"), {4}}});
  const std::string chart = drawn({calls}, Format::Chart);
  const size_t x = chart.find('x', chart.find('\n'));
  const std::string line_of_x = chart.substr(x, chart.find('\n', x) - x);
  const std::string line_of_y = chart.substr(chart.find('y', x));
  const auto blocks = [](const std::string& text) {
    size_t count = 0;
    for (size_t at = text.find("\u2588"); at != std::string::npos; at = text.find("\u2588", at + 1))
      ++count;
    return count;
  };
  EXPECT_EQ(blocks(line_of_x), 10U) << chart;
  EXPECT_EQ(blocks(line_of_y), 40U) << chart;
}

}  // namespace
}  // namespace clew::output::d

// SPDX-License-Identifier: Apache-2.0
// Update programs leave the words that aggregate::add leaves.
#include "plan/update.h"

#include <cstring>
#include <random>

#include <gtest/gtest.h>

#include "isa/accessor_host.h"
#include "isa/interpreter.h"

namespace clew::plan {
namespace {

constexpr uint32_t kCells = 1024;
constexpr uint32_t kWindowBytes = 64 * 1024;

struct Case {
  std::string_view name;
  abi::AggregateFunction kind;
  std::vector<int64_t> parameters{};
  double fraction = 0;
};

const std::vector<Case> kCases = {
    {"Count", abi::AggregateFunction::Count},
    {"Sum", abi::AggregateFunction::Sum},
    {"Min", abi::AggregateFunction::Min},
    {"Max", abi::AggregateFunction::Max},
    {"Average", abi::AggregateFunction::Average},
    {"Deviation", abi::AggregateFunction::StandardDeviation},
    {"Variance", abi::AggregateFunction::Variance},
    {"Quantize", abi::AggregateFunction::Quantize},
    {"Linear", abi::AggregateFunction::Lquantize, {-20, 100, 7}},
    {"LinearWide", abi::AggregateFunction::Lquantize, {INT64_MIN, INT64_MAX, INT64_MAX / 50}},
    {"LogLinear", abi::AggregateFunction::Llquantize, {10, 0, 17, 20}},
    {"LogLinearHigh", abi::AggregateFunction::Llquantize, {2, 3, 61, 8}},
    {"Distinct", abi::AggregateFunction::Distinct},
    {"Quantile", abi::AggregateFunction::Quantile, {}, 0.9},
};

query::Aggregate aggregate_of(const Case& test, bool is_signed) {
  query::Aggregate aggregate;
  aggregate.function = test.kind;
  aggregate.parameters = test.parameters;
  aggregate.fraction = test.fraction;
  if (test.kind == abi::AggregateFunction::Count) return aggregate;
  query::Expression argument;
  argument.kind = query::ExpressionKind::Field;
  argument.field = query::Field::Argument;
  argument.type.is_signed = is_signed;
  aggregate.arguments.push_back(argument);
  return aggregate;
}

Expected<isa::Program> program_of(const query::Aggregate& aggregate, bool ahead) {
  const query::Query query;
  const query::Source source;
  const CoderEnvironment environment;
  Coder coder(query, source, environment);
  coder.begin();
  std::optional<int32_t> prepared;
  if (ahead) prepared = CLEW_TRY(prepare(coder, aggregate));
  coder.builder().load_window(isa::Register::R9, kCells);
  CLEW_TRY(update(coder, aggregate, 16, prepared));
  return coder.finish("update");
}

uint64_t random_value(std::mt19937_64& random) {
  switch (random() % 5) {
    case 0:
      return random();
    case 1:
      return 0 - random() % 40;
    case 2:
      return (uint64_t{1} << random() % 64) - random() % 2;
    case 3:
      return random() >> random() % 64;
    default:
      return random() % 200;
  }
}

class Updates : public testing::TestWithParam<Case> {};

void expect_equal_words(const Case& test, bool is_signed, bool ahead) {
  const query::Aggregate aggregate = aggregate_of(test, is_signed);
  const aggregate::AggregateSpec spec = spec_of(aggregate);
  ASSERT_TRUE(aggregate::check(spec).has_value());
  const Expected<isa::Program> program = program_of(aggregate, ahead);
  ASSERT_TRUE(program.has_value()) << program.error().message;
  std::vector<uint8_t> window(kWindowBytes);
  std::vector<uint64_t> expected(aggregate::cell_words(spec));
  std::mt19937_64 random(11);
  isa::RegionHost host({});
  for (int i = 0; i < 400; ++i) {
    abi::Context context{};
    context.arguments[0] = i == 0 ? uint64_t{1} << 63 : random_value(random);
    const auto outcome =
        isa::interpret(*program, {.window = window, .context = &context, .host = &host});
    ASSERT_TRUE(outcome.has_value()) << outcome.error().message;
    aggregate::add(spec, expected, context.arguments[0]);
    std::vector<uint64_t> words(expected.size());
    std::memcpy(words.data(), window.data() + kCells + 16, 8 * words.size());
    ASSERT_EQ(words, expected) << "after " << context.arguments[0];
  }
}

TEST_P(Updates, LeaveTheWordsOfAdd) {
  expect_equal_words(GetParam(), true, false);
  expect_equal_words(GetParam(), false, false);
}

TEST_P(Updates, LeaveTheSameWordsFromAPreparedArgument) {
  if (GetParam().kind == abi::AggregateFunction::Count) return;
  expect_equal_words(GetParam(), true, true);
}

INSTANTIATE_TEST_SUITE_P(Plan, Updates, testing::ValuesIn(kCases),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace clew::plan

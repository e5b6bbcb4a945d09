// SPDX-License-Identifier: Apache-2.0
// Runs all of tests/golden/query: x.clew is a query, x.expected its normal form with the columns'
// types, or its diagnostic. A query that parses but is not part of this version has both. Set
// CLEW_GOLDEN_UPDATE=1 to write what comes out, then read the difference.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "query/fake_types.h"
#include "query/fields.h"
#include "query/parse.h"
#include "query/print.h"
#include "query/vocabulary.h"

namespace clew::query {
namespace {

namespace fs = std::filesystem;

const fs::path kGoldens = fs::path(CLEW_SOURCE_DIR) / "tests/golden/query";

std::string read(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

Vocabulary load_all() {
  Vocabulary vocabulary;
  for (const fs::path& path : {kGoldens / "vocabulary", fs::path(CLEW_SOURCE_DIR) / "vocabulary"}) {
    const Expected<void> loaded = vocabulary.load(path);
    EXPECT_TRUE(loaded.has_value()) << loaded.error().message;
  }
  return vocabulary;
}

const Vocabulary& all_vocabularies() {
  static const Vocabulary vocabulary = load_all();
  return vocabulary;
}

std::string with_columns(const Query& query) {
  std::string result = print(query) + "\n--\n";
  for (const NamedExpression& column : answered_columns(query)) {
    const Type& type = column.expression.type;
    std::string_view unit;
    if (type.unit == Unit::Nanoseconds) unit = " ns";
    if (type.unit == Unit::Timestamp) unit = " time";
    result += fmt::format("{}: {}{}\n", column.name, name_of(type), unit);
  }
  return result;
}

struct Outcome {
  std::string text;
  std::vector<Query> query;  // One, if it parses.
};

Outcome run(const fs::path& file, const Environment& environment) {
  const Text text{.name = file.filename().string(), .text = read(file)};
  const Expected<Query> query = parse(text, environment);
  if (query) return {.text = with_columns(*query), .query = {*query}};
  const std::string error = query.error().message + "\n";
  const Expected<Query> any = parse_any(text, environment);
  if (!any) return {.text = error, .query = {}};
  return {.text = with_columns(*any) + "--\n" + error, .query = {*any}};
}

std::vector<fs::path> golden_files() {
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(kGoldens)) {
    if (entry.path().extension() == ".clew") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::string test_name(const testing::TestParamInfo<fs::path>& info) {
  return info.param.stem().string();
}

class Golden : public testing::TestWithParam<fs::path> {};

TEST_P(Golden, HasTheExpectedMeaning) {
  const Vocabulary& vocabulary = all_vocabularies();
  FakeTypes types;
  FakeExtensions extensions;
  const Outcome outcome =
      run(GetParam(), {.vocabulary = &vocabulary, .types = &types, .extensions = &extensions});
  fs::path expected = GetParam();
  expected.replace_extension(".expected");
  if (std::getenv("CLEW_GOLDEN_UPDATE") != nullptr) std::ofstream(expected) << outcome.text;
  EXPECT_EQ(outcome.text, read(expected));
}

TEST_P(Golden, NormalFormReadsBackToTheSameQuery) {
  const Vocabulary& vocabulary = all_vocabularies();
  FakeTypes types;
  FakeExtensions extensions;
  const Environment environment{
      .vocabulary = &vocabulary, .types = &types, .extensions = &extensions};
  const Outcome outcome = run(GetParam(), environment);
  for (const Query& query : outcome.query) {
    const std::string printed = print(query);
    const Expected<Query> again = parse_any({.name = "printed", .text = printed}, environment);
    ASSERT_TRUE(again.has_value()) << printed << "\n" << again.error().message;
    EXPECT_EQ(print(*again), printed);
    EXPECT_TRUE(*again == query) << printed;
  }
}

INSTANTIATE_TEST_SUITE_P(Query, Golden, testing::ValuesIn(golden_files()), test_name);

}  // namespace
}  // namespace clew::query

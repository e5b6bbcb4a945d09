// SPDX-License-Identifier: Apache-2.0
// Runs all of tests/golden/plan: x.clew is a query, x.expected the plan that explain shows. Set
// CLEW_GOLDEN_UPDATE=1 to write what comes out, then read the difference.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "plan/plan.h"
#include "query/fake_types.h"
#include "query/parse.h"

namespace clew::plan {
namespace {

namespace fs = std::filesystem;

std::string read(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

std::vector<fs::path> golden_files() {
  std::vector<fs::path> files;
  for (const auto& entry :
       fs::directory_iterator(fs::path(CLEW_SOURCE_DIR) / "tests/golden/plan")) {
    if (entry.path().extension() == ".clew") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

class PlanGolden : public testing::TestWithParam<fs::path> {};

TEST_P(PlanGolden, IsPrintedAsExpected) {
  query::FakeTypes types;
  const Expected<query::Query> query =
      query::parse({.name = GetParam().filename().string(), .text = read(GetParam())},
                   {.vocabulary = nullptr, .types = &types});
  ASSERT_TRUE(query.has_value()) << query.error().message;
  const std::string printed = print(make(*query));
  fs::path expected = GetParam();
  expected.replace_extension(".expected");
  if (std::getenv("CLEW_GOLDEN_UPDATE") != nullptr) std::ofstream(expected) << printed;
  EXPECT_EQ(printed, read(expected));
}

INSTANTIATE_TEST_SUITE_P(Plan, PlanGolden, testing::ValuesIn(golden_files()),
                         [](const auto& test) { return test.param.stem().string(); });

}  // namespace
}  // namespace clew::plan

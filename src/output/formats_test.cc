// SPDX-License-Identifier: Apache-2.0
#include <set>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "output/sinks.h"

namespace clew::output {
namespace {

TEST(Formats, HaveNamesAndExtensionsOfTheirOwn) {
  std::set<std::string_view> names;
  std::set<std::string_view> extensions;
  for (const FormatRow& row : formats()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    if (row.extension.empty()) continue;
    EXPECT_TRUE(extensions.insert(row.extension).second) << row.extension;
  }
}

TEST(Formats, AreEitherBytesOrAFileByName) {
  for (const FormatRow& row : formats())
    EXPECT_NE(row.make == nullptr, row.open == nullptr) << row.name;
}

TEST(Formats, AreFoundByTheirNames) {
  for (const FormatRow& row : formats())
    EXPECT_EQ(format_named(row.name), &row);
  EXPECT_EQ(format_named("xml"), nullptr);
  EXPECT_EQ(format_names(), "text, json, csv, chart, stream, sqlite, folded, svg, metrics");
}

TEST(Formats, AreFoundByTheExtensionOfAFile) {
  for (const FormatRow& row : formats()) {
    if (row.extension.empty()) continue;
    const std::string path = "some.folder/answer." + std::string(row.extension);
    ASSERT_NE(format_of_file(path), nullptr) << path;
    EXPECT_EQ(format_of_file(path)->format, row.format) << path;
  }
}

TEST(Formats, AreNotFoundByAFolderOrAHiddenFile) {
  for (const char* path : {"", "answer", "folder.csv/answer", ".csv", "a/.csv", "csv", "answer.",
                           "answer.csvx", "/dev/stdout"}) {
    EXPECT_EQ(format_of_file(path), nullptr) << path;
  }
}

}  // namespace
}  // namespace clew::output

// SPDX-License-Identifier: Apache-2.0
#include "cmd/outputs.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace clew::cmd {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::StartsWith;

const std::vector<aggregate::Column> kColumns = {{.name = "n"}};

void write(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// A folder that goes with the test.
class OutputFiles : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "clew-outputs-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }

  [[nodiscard]] std::string path(const std::string& name) const {
    return (folder_ / name).string();
  }

 private:
  fs::path folder_;
};

void answer(Outputs& outputs) {
  const std::vector<aggregate::Value> row = {int64_t{7}};
  ASSERT_TRUE(outputs.accept(kColumns));
  outputs.sink().begin(kColumns, output::RowMode::Table);
  outputs.sink().row(row);
  outputs.sink().finish({});
}

TEST(OutputFormat, OfASingleFileIsWhatTheOptionSays) {
  EXPECT_EQ(format_of({.files = {"a.csv"}, .format = ""}, "a.csv").name, "csv");
  EXPECT_EQ(format_of({.files = {"a.csv"}, .format = "json"}, "a.csv").name, "json");
  EXPECT_EQ(format_of({.files = {"answer"}, .format = "json"}, "answer").name, "json");
  EXPECT_EQ(format_of({.files = {}, .format = ""}, "-").name, "text");
}

TEST(OutputFormat, OfSeveralFilesIsThatOfEachExtension) {
  const OutputArguments several = {.files = {"a.csv", "b.json", "answer", "-"}, .format = "chart"};
  EXPECT_EQ(format_of(several, "a.csv").name, "csv");
  EXPECT_EQ(format_of(several, "b.json").name, "json");
  EXPECT_EQ(format_of(several, "answer").name, "chart");
  EXPECT_EQ(format_of(several, "-").name, "chart");
}

TEST_F(OutputFiles, EachHoldTheAnswerInTheirFormat) {
  write(path("a.csv"), "something that is longer than the answer");
  Outputs outputs;
  const Expected<void> opened =
      outputs.open({.files = {path("a.csv"), path("b.json")}, .format = ""});
  ASSERT_TRUE(opened) << opened.error().message;
  answer(outputs);
  EXPECT_TRUE(outputs.close(nullptr).empty());
  EXPECT_EQ(text_of(path("a.csv")), "n\r\n7\r\n");
  EXPECT_THAT(text_of(path("b.json")), HasSubstr("{\"n\":7}\n{\"summary\":"));
}

TEST_F(OutputFiles, StayAsTheyWereWithoutAnAnswer) {
  write(path("a.csv"), "of yesterday");
  Outputs outputs;
  const Expected<void> opened = outputs.open({.files = {path("a.csv")}, .format = ""});
  ASSERT_TRUE(opened);
  EXPECT_TRUE(outputs.close(nullptr).empty());
  EXPECT_EQ(text_of(path("a.csv")), "of yesterday");
}

TEST_F(OutputFiles, StayAsTheyWereWhenOneFormatCannotTakeTheAnswer) {
  write(path("a.csv"), "of yesterday");
  Outputs outputs;
  ASSERT_TRUE(outputs.open({.files = {path("a.csv"), path("b.folded")}, .format = ""}));
  const Expected<void> accepted = outputs.accept(kColumns);
  ASSERT_FALSE(accepted);
  EXPECT_THAT(accepted.error().message, HasSubstr("folded needs a column of stacks"));
  EXPECT_TRUE(outputs.close(&accepted.error()).empty());
  EXPECT_EQ(text_of(path("a.csv")), "of yesterday");
}

TEST_F(OutputFiles, AreNotThereWhereNoAnswerBegan) {
  write(path("old.csv"), "");
  {
    Outputs outputs;
    const std::vector<std::string> files = {path("new.csv"), path("old.csv"), path("b.folded")};
    ASSERT_TRUE(outputs.open({.files = files, .format = ""}));
    const Expected<void> accepted = outputs.accept(kColumns);
    ASSERT_FALSE(accepted);
    EXPECT_TRUE(outputs.close(&accepted.error()).empty());
  }
  EXPECT_FALSE(Outputs().open({.files = {path("c.csv"), path("c.csv")}, .format = ""}));
  for (const char* name : {"new.csv", "b.folded", "c.csv"})
    EXPECT_FALSE(fs::exists(path(name))) << name;
  EXPECT_TRUE(fs::exists(path("old.csv"))) << "it is not ours";
}

// An answer may have no rows.
TEST_F(OutputFiles, AreThereWhereAnAnswerBegan) {
  {
    Outputs outputs;
    ASSERT_TRUE(outputs.open({.files = {path("a.csv")}, .format = ""}));
    outputs.sink().begin(kColumns, output::RowMode::Table);
    EXPECT_TRUE(outputs.close(nullptr).empty());
  }
  EXPECT_TRUE(fs::exists(path("a.csv")));
}

TEST_F(OutputFiles, ThatAreOneFileAreRefused) {
  write(path("a.csv"), "of yesterday");
  fs::create_hard_link(path("a.csv"), path("same.json"));
  for (const std::string& second : {path("a.csv"), path("same.json")}) {
    Outputs outputs;
    const Expected<void> opened = outputs.open({.files = {path("a.csv"), second}, .format = ""});
    ASSERT_FALSE(opened);
    EXPECT_THAT(opened.error().message, HasSubstr("are one file"));
  }
  EXPECT_FALSE(Outputs().open({.files = {"-", "-"}, .format = ""}));
  EXPECT_EQ(text_of(path("a.csv")), "of yesterday");
}

TEST_F(OutputFiles, ThatAreDatabasesAreWrittenByName) {
  Outputs none;
  const Expected<void> opened = none.open({.files = {}, .format = "sqlite"});
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error().message, HasSubstr("-o answer.sqlite"));

  Outputs outputs;
  ASSERT_TRUE(outputs.open({.files = {path("a.sqlite"), path("b.csv")}, .format = ""}));
  answer(outputs);
  EXPECT_TRUE(outputs.close(nullptr).empty());
  EXPECT_THAT(text_of(path("a.sqlite")), StartsWith("SQLite format 3"));
  EXPECT_EQ(text_of(path("b.csv")), "n\r\n7\r\n");
  EXPECT_FALSE(Outputs().open({.files = {path("a.sqlite"), path("./a.sqlite")}, .format = ""}));
  EXPECT_FALSE(Outputs().open({.files = {path("b.csv")}, .format = "sqlite"})) << "no database";
}

TEST_F(OutputFiles, HaveTheLossesBesideThemOnce) {
  Outputs outputs;
  ASSERT_TRUE(outputs.open({.files = {path("a.csv"), path("b"), path("c")}, .format = "csv"}));
  collect::Losses losses;
  losses.lost.emplace_back("process 7 is gone");
  testing::internal::CaptureStderr();
  outputs.sink().finish(losses);
  outputs.sink().flush();
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "lost: process 7 is gone\n");
}

TEST_F(OutputFiles, ThatCannotBeOpenedAreNamed) {
  Outputs outputs;
  const Expected<void> opened =
      outputs.open({.files = {path("a.csv"), path("no/such/folder.json")}, .format = ""});
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error().message, HasSubstr("cannot write " + path("no/such/folder.json")));
}

TEST_F(OutputFiles, ThatCannotBeWrittenAreNamedAndTheOthersAreWhole) {
  Outputs outputs;
  const Expected<void> opened =
      outputs.open({.files = {"/dev/full", path("b.csv")}, .format = "json"});
  ASSERT_TRUE(opened) << opened.error().message;
  answer(outputs);
  const std::vector<Error> errors = outputs.close(nullptr);
  ASSERT_EQ(errors.size(), 1U);
  EXPECT_THAT(errors[0].message, HasSubstr("cannot write the answer to /dev/full: No space left"));
  EXPECT_EQ(text_of(path("b.csv")), "n\r\n7\r\n");
}

}  // namespace
}  // namespace clew::cmd

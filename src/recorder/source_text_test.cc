// SPDX-License-Identifier: Apache-2.0
#include "recorder/source_text.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

namespace clew::recorder {
namespace {

namespace fs = std::filesystem;

class SourceTextTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "clew-source-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string write(const std::string& name, const std::string& text) {
    fs::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name) << text;
    return (folder_ / name).string();
  }

  fs::path folder_;
};

TEST_F(SourceTextTest, ALineIsWithoutTheSpaceAroundIt) {
  const std::string file = write("a.c", "int a;\n\n\t  return\ta + b; \r\nlast");
  SourceText text({});
  EXPECT_EQ(text.line(file, 1), "int a;");
  EXPECT_EQ(text.line(file, 2), "");
  EXPECT_EQ(text.line(file, 3), "return a + b;");
  EXPECT_EQ(text.line(file, 4), "last");
  EXPECT_EQ(text.line(file, 5), std::nullopt);
  EXPECT_EQ(text.line(file, 0), std::nullopt);
  EXPECT_TRUE(text.written_at(file).has_value());
}

TEST_F(SourceTextTest, NothingIsPrintedThatATerminalObeys) {
  const std::string file = write("a.c",
                                 "a\x1b[2Jb\x7f \xc2\x9b"
                                 "c \xc3\xa4\n");
  SourceText text({});
  EXPECT_EQ(text.line(file, 1), "a?[2Jb? ??c \xc3\xa4");
}

TEST_F(SourceTextTest, ALongLineIsCutInFrontOfACharacter) {
  const std::string file = write("a.c", std::string(199, 'x') + "\xc3\xa4" + std::string(9, 'y'));
  SourceText text({});
  EXPECT_EQ(text.line(file, 1), std::string(199, 'x') + "…");
}

TEST_F(SourceTextTest, AFolderHasTheLongestPartOfThePathThatLeadsToAFile) {
  write("other/src/a.c", "deep\n");
  write("other/a.c", "flat\n");
  SourceText text({(folder_ / "other").string()});
  EXPECT_EQ(text.line("/build/program-1.2/src/a.c", 1), "deep");
  EXPECT_EQ(text.line("/build/program-1.2/lib/a.c", 1), "flat");
  EXPECT_EQ(text.line("src/a.c", 1), "deep");
  EXPECT_EQ(text.line("/build/../../../src/a.c", 1), "deep");
  EXPECT_EQ(text.line("b.c", 1), std::nullopt);
}

TEST_F(SourceTextTest, APathThatIsRelativeIsFoundInFoldersAlone) {
  write("a.c", "text\n");
  const fs::path before = fs::current_path();
  fs::current_path(folder_);
  SourceText text({});
  EXPECT_EQ(text.line("a.c", 1), std::nullopt);
  EXPECT_EQ(text.line("", 1), std::nullopt);
  fs::current_path(before);
}

TEST_F(SourceTextTest, OnlyPlainFilesAreOpened) {
  const std::string pipe = (folder_ / "pipe.c").string();
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const std::string huge = write("huge.c", "x\n");
  fs::resize_file(huge, uintmax_t{1} << 40);
  const std::string link = (folder_ / "link.c").string();
  fs::create_symlink("/dev/zero", link);
  SourceText text({});
  for (const std::string& file : {pipe, huge, link, folder_.string(), std::string("/dev/zero"),
                                  std::string("/proc/self/status"), std::string("/proc/kmsg"),
                                  std::string("/sys/kernel/uevent_seqnum"), std::string(5000, '/')})
    EXPECT_EQ(text.line(file, 1), std::nullopt) << file.substr(0, 50);
}

}  // namespace
}  // namespace clew::recorder

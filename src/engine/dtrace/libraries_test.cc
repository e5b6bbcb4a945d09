// SPDX-License-Identifier: Apache-2.0
#include "engine/dtrace/libraries.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <stdlib.h>

namespace clew::engine {
namespace {

class LibrariesTest : public testing::Test {
 protected:
  LibrariesTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "clew-libraries-XXXXXX");
    directory_ = mkdtemp(pattern.data());
  }
  ~LibrariesTest() override { std::filesystem::remove_all(directory_); }

  void write(const std::string& name, const std::string& text) {
    std::ofstream(directory_ + "/" + name) << text;
  }
  // The names of the files, in their order.
  std::string read() {
    const auto found = read_libraries(directory_, [](std::string_view kind, std::string_view name) {
      return kind == "provider" && name == "syscall";
    });
    if (!found) return found.error().message;
    std::string names;
    for (const DLibrary& library : *found)
      names += std::filesystem::path(library.path).stem().string() + " ";
    return names;
  }

  std::string directory_;
};

TEST_F(LibrariesTest, ComeBehindThoseThatTheyDependOn) {
  write("a.d", "#pragma D depends_on library c.d\ninline int A = C;\n");
  write("b.d", "inline int B = 1;\n");
  write("c.d", "#pragma D depends_on library b.d\ninline int C = B;\n");
  EXPECT_EQ(read(), "b c a ");
}

TEST_F(LibrariesTest, ThatDependOnWhatIsNotThereAreLeftOut) {
  write("a.d", "#pragma D depends_on provider nosuch\n");
  write("b.d", "#pragma D depends_on library a.d\n");
  write("c.d", "#pragma D depends_on provider syscall\n");
  write("d.d", "#pragma D depends_on library io.d\n");
  EXPECT_EQ(read(), "c d ");
}

TEST_F(LibrariesTest, ThatDependOnEachOtherAreAllTaken) {
  write("a.d", "#pragma D depends_on library b.d\n");
  write("b.d", "#pragma D depends_on library a.d\n");
  EXPECT_EQ(read(), "b a ");
}

TEST_F(LibrariesTest, AreTheFilesOfDOnly) {
  write("a.d", "inline int A = 1;\n");
  write("notes.txt", "text");
  EXPECT_EQ(read(), "a ");
}

TEST_F(LibrariesTest, NeedADirectory) {
  std::filesystem::remove_all(directory_);
  EXPECT_NE(read().find("failed to open library directory"), std::string::npos);
}

}  // namespace
}  // namespace clew::engine

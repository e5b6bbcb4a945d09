// SPDX-License-Identifier: Apache-2.0
#include "recorder/symbol_file.h"

#include <array>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "target/module_image.h"
#include "target/types.h"

namespace clew::recorder {
namespace {

namespace fs = std::filesystem;

// Two functions of which the second has a stretch without lines, and a frame for the first.
constexpr uint64_t kCode = 0x7f12'3456'7000;
constexpr uint64_t kFrames = kCode + 0x1000;
constexpr std::array<uint8_t, 52> kFrameBytes = {
    // A CIE: version 1, "zR", addresses as they are.
    20, 0, 0, 0, 0, 0, 0, 0, 1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x00, 0x0c, 7, 8, 0x90, 1, 0, 0,
    // An entry: 0x20 bytes from kCode on.
    24, 0, 0, 0, 28, 0, 0, 0, 0x00, 0x70, 0x56, 0x34, 0x12, 0x7f, 0, 0, 0x20, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0};

SymbolFile some() {
  return {
      .name = "/usr/bin/app",
      .code = kCode,
      .code_bytes = 0x100,
      .frames = kFrames,
      .frame_bytes = kFrameBytes,
      .functions = {{"first", kCode, 0x20}, {"_Z6secondv", kCode + 0x20, 0xe0}},
      .files = {"/src/a.c", "/src/b.h"},
      .lines = {{kCode, 0, 7}, {kCode + 4, 1, 1000}, {kCode + 0x20, 0, 0}, {kCode + 0x80, 0, 3}}};
}

class SymbolFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = fs::temp_directory_path() / "clew-symbols-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }
  [[nodiscard]] std::string write(const SymbolFile& file) const {
    std::string path = folder_ / "0.sym";
    const std::vector<uint8_t> bytes = symbol_file_bytes(file);
    std::ofstream(path).write(reinterpret_cast<const char*>(bytes.data()),
                              static_cast<std::streamsize>(bytes.size()));
    return path;
  }
  // What readelf says of it.
  [[nodiscard]] std::string read(const std::string& path, const std::string& flags) const {
    const std::string said = folder_ / "said";
    EXPECT_EQ(std::system(("readelf " + flags + " " + path + " > " + said + " 2>&1").c_str()), 0);
    std::ifstream file(said);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  fs::path folder_;
};

TEST_F(SymbolFileTest, HasFunctionsAndFramesAtTheirPlaces) {
  const auto image = target::ModuleImage::read(write(some()));
  ASSERT_TRUE(image) << image.error().message;
  EXPECT_TRUE(image->problems().empty());
  ASSERT_NE(image->function_at(kCode), nullptr);
  EXPECT_EQ(image->function_at(kCode)->name, "first");
  EXPECT_EQ(image->function_covering(kCode + 0xff)->name, "second");
  EXPECT_EQ(image->function_covering(kCode + 0xff)->size_bytes, 0xe0U);
  ASSERT_EQ(image->fdes().size(), 1U);
  EXPECT_EQ(image->fdes()[0].address, kCode);
  EXPECT_EQ(image->fdes()[0].size_bytes, 0x20U);
}

TEST_F(SymbolFileTest, HasLinesWhereTheyAreKnown) {
  const std::string lines = read(write(some()), "--debug-dump=decodedline");
  EXPECT_NE(lines.find("7      0x7f1234567000"), std::string::npos) << lines;
  EXPECT_NE(lines.find("1000      0x7f1234567004"), std::string::npos) << lines;
  EXPECT_NE(lines.find("-      0x7f1234567020"), std::string::npos) << lines;
  EXPECT_NE(lines.find("3      0x7f1234567080"), std::string::npos) << lines;
  EXPECT_NE(lines.find("-      0x7f1234567100"), std::string::npos) << lines;
  EXPECT_EQ(lines.find("arning"), std::string::npos) << lines;
  const std::string unit = read(write(some()), "--debug-dump=info");
  EXPECT_NE(unit.find("/usr/bin/app"), std::string::npos) << unit;
  EXPECT_EQ(unit.find("arning"), std::string::npos) << unit;
}

TEST_F(SymbolFileTest, HasNoDebugInformationWithoutLines) {
  SymbolFile file = some();
  file.lines.clear();
  EXPECT_EQ(read(write(file), "-SW").find(".debug"), std::string::npos);
}

}  // namespace
}  // namespace clew::recorder

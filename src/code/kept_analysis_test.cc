// SPDX-License-Identifier: Apache-2.0
#include "code/kept_analysis.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "code/image_text.h"

namespace clew::code {
namespace {

class KeptAnalysesTest : public testing::Test {
 protected:
  KeptAnalysesTest()
      : folder_(std::filesystem::temp_directory_path() / fmt::format("clew-kept-{}", getpid())),
        kept_(folder_, 0),
        image_(target::ModuleImage::read("/proc/self/exe")) {
    std::filesystem::remove_all(folder_);
  }
  ~KeptAnalysesTest() override { std::filesystem::remove_all(folder_); }

  ModuleText text() {
    auto text = text_of(*image_);
    EXPECT_TRUE(text);
    return std::move(*text);
  }

  // All that can be asked of an analysis.
  static std::string portrait(const ModuleCode& code) {
    std::string all;
    for (uint32_t i = 0; i < code.functions().size(); ++i) {
      const FunctionRange& range = code.functions()[i];
      all += fmt::format("{:x} {} {} {} {} {} ", range.address, range.size_bytes, code.owner_of(i),
                         code.is_unsafe(i), code.parts_of(i).size(),
                         code.range_at(range.address).value_or(0));
      for (const uint64_t entry :
           code.side_entries({range.address, range.address + range.size_bytes}))
        all += fmt::format("{:x}! ", entry);
      for (uint64_t at = range.address; at < range.address + range.size_bytes; ++at) {
        const auto instruction = code.at(at);
        const int flags = (code.is_target(at) ? 1 : 0) + (code.is_foreign_target(at) ? 2 : 0) +
                          (code.overlaps_rseq(at, at + 1) ? 4 : 0);
        if (!instruction && flags == 0) continue;
        all += fmt::format("{}{}{} ", instruction ? instruction->length : 0,
                           instruction ? static_cast<int>(instruction->flow) : 0, flags);
        for (const LoopHead& head : code.loop_heads_at(at))
          all += fmt::format("{:x}", head.branch);
      }
    }
    for (const uint64_t jump : code.indirect_jumps()) {
      all += fmt::format("{:x}:", jump);
      for (const uint64_t target : code.table_targets(jump))
        all += fmt::format("{:x} ", target);
    }
    return all;
  }

  [[nodiscard]] std::vector<std::string> files() const {
    std::vector<std::string> found;
    if (!std::filesystem::exists(folder_)) return found;
    for (const auto& file : std::filesystem::directory_iterator(folder_))
      found.push_back(file.path());
    return found;
  }

  static ino_t inode(const std::string& path) {
    struct stat status {};
    EXPECT_EQ(stat(path.c_str(), &status), 0);
    return status.st_ino;
  }

  std::string folder_;
  KeptAnalyses kept_;
  Expected<target::ModuleImage> image_;
};

TEST_F(KeptAnalysesTest, WhatIsReadIsWhatWasMade) {
  ASSERT_TRUE(image_);
  const std::string made = portrait(analyse(text()));
  EXPECT_TRUE(portrait(kept_.analyse(text())) == made);
  ASSERT_EQ(files().size(), 1U);
  const ino_t before = inode(files()[0]);
  EXPECT_TRUE(portrait(kept_.analyse(text())) == made);
  EXPECT_EQ(inode(files()[0]), before) << "it was written again, so it was not used";
}

TEST_F(KeptAnalysesTest, ADamagedFileIsMadeAgain) {
  ASSERT_TRUE(image_);
  const std::string made = portrait(kept_.analyse(text()));
  ASSERT_EQ(files().size(), 1U);
  const std::string path = files()[0];
  const auto size = std::filesystem::file_size(path);
  for (const auto at : {size / 3, size / 2, size - 1}) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(static_cast<std::streamoff>(at));
    const int byte = file.get();
    file.seekp(static_cast<std::streamoff>(at));
    file.put(static_cast<char>(byte ^ 0x20));
    file.close();
    EXPECT_TRUE(portrait(kept_.analyse(text())) == made) << at;
  }
  std::filesystem::resize_file(path, size / 2);
  EXPECT_TRUE(portrait(kept_.analyse(text())) == made);
}

// One byte, one symbol, one pointer: each is another text.
TEST_F(KeptAnalysesTest, AnotherTextIsAnotherFile) {
  ASSERT_TRUE(image_);
  (void)kept_.analyse(text());
  ModuleText moved = text();
  moved.functions[moved.functions.size() / 2].address += 1;
  (void)kept_.analyse(moved);
  EXPECT_EQ(files().size(), 2U);
  ModuleText pointed = text();
  pointed.code_pointers.push_back(pointed.functions[1].address + 1);
  (void)kept_.analyse(pointed);
  EXPECT_EQ(files().size(), 3U);
  ModuleText changed = text();
  std::vector<uint8_t> bytes;
  for (Section& section : changed.sections) {
    if (!section.executable || section.bytes.size() < 2) continue;
    bytes.assign(section.bytes.begin(), section.bytes.end());
    bytes[1] ^= 1;
    section.bytes = bytes;
    break;
  }
  (void)kept_.analyse(changed);
  EXPECT_EQ(files().size(), 4U);
}

}  // namespace
}  // namespace clew::code

// SPDX-License-Identifier: Apache-2.0
#include "target/frame_tables.h"

#include <algorithm>
#include <random>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "target/elf_file.h"
#include "target/module_image.h"
#include "target/test_support.h"

namespace clew::target {
namespace {

constexpr const char* kLibrary = "/lib/x86_64-linux-gnu/libstdc++.so.6";

// What another reader knows of the same file.
TEST(FrameTables, HaveTheFunctionsAndLandingPadsOfTheImage) {
  const auto image = ModuleImage::read(kLibrary);
  if (!image) GTEST_SKIP() << kLibrary << " is not installed";
  const auto tables = read_frame_tables(kLibrary);
  ASSERT_TRUE(tables) << tables.error().message;
  EXPECT_TRUE(tables->problems.empty()) << tables->problems.front();
  ASSERT_EQ(tables->entries.size(), image->fdes().size());
  size_t landings = 0;
  for (size_t i = 0; i < tables->entries.size(); ++i) {
    const FrameEntry& entry = tables->entries[i];
    const Fde& fde = image->fdes()[i];
    ASSERT_EQ(entry.address, fde.address);
    ASSERT_EQ(entry.size_bytes, fde.size_bytes);
    ASSERT_EQ(entry.exceptions != kNoExceptionTable, fde.has_lsda);
    std::set<uint64_t> pads;
    if (fde.has_lsda) {
      ASSERT_TRUE(tables->exceptions[entry.exceptions].is_understood);
      ASSERT_TRUE(tables->commons[entry.common].personality);
      for (const CallSite& site : tables->exceptions[entry.exceptions].sites) {
        if (site.landing_pad != 0) pads.insert(site.landing_pad);
      }
    }
    ASSERT_TRUE(
        std::equal(pads.begin(), pads.end(), fde.landing_pads.begin(), fde.landing_pads.end()));
    landings += pads.size();
  }
  EXPECT_GT(landings, 1000U);
}

// A pointer to a type leads into the file, to a word that the loader fills, or to a type itself.
TEST(FrameTables, HaveTypesThatAreInTheFile) {
  const auto image = ModuleImage::read(kLibrary);
  if (!image) GTEST_SKIP() << kLibrary << " is not installed";
  const auto tables = read_frame_tables(kLibrary);
  ASSERT_TRUE(tables);
  size_t types = 0;
  for (const ExceptionTable& table : tables->exceptions) {
    for (const FramePointer& type : table.types) {
      if (type.address == 0) continue;
      ASSERT_NE(image->section_at(type.address), nullptr);
      ++types;
    }
  }
  EXPECT_GT(types, 100U);
}

// In a program that is loaded where it was linked.
TEST(FrameTables, OfAFixedProgramAreUnderstood) {
  const auto tables = read_frame_tables(test::fixture("shop_fixed"));
  ASSERT_TRUE(tables);
  EXPECT_TRUE(tables->problems.empty());
  EXPECT_FALSE(tables->entries.empty());
}

TEST(FrameTables, OfBrokenFilesAreFewerOrMarked) {
  const std::vector<uint8_t> good = test::read_file(test::fixture("classes"));
  const auto file = ElfFile::open(test::fixture("classes"));
  ASSERT_TRUE(file);
  std::mt19937 random(1);
  size_t marked = 0;
  for (unsigned round = 0; round < 400; ++round) {
    std::vector<uint8_t> broken = good;
    for (const char* name : {".eh_frame", ".gcc_except_table"}) {
      const ElfSection* const section = file->find_section(name);
      ASSERT_NE(section, nullptr) << name;
      for (unsigned i = 0; i < 1 + random() % 12; ++i) {
        broken[section->header.sh_offset + random() % section->header.sh_size] =
            static_cast<uint8_t>(random());
      }
    }
    const auto tables = read_frame_tables(broken);
    if (!tables) continue;
    uint64_t end = 0;
    for (const FrameEntry& entry : tables->entries) {
      ASSERT_GE(entry.address, end);
      end = entry.end();
      ASSERT_LT(entry.common, tables->commons.size());
      if (entry.exceptions == kNoExceptionTable) continue;
      ASSERT_LT(entry.exceptions, tables->exceptions.size());
      marked += tables->exceptions[entry.exceptions].is_understood ? 0 : 1;
    }
  }
  EXPECT_GT(marked, 0U);
}

TEST(FrameTables, OfAFileThatIsNoProgramAreAnError) {
  EXPECT_FALSE(read_frame_tables("/nonexistent"));
  EXPECT_FALSE(read_frame_tables(std::vector<uint8_t>(100)));
}

}  // namespace
}  // namespace clew::target

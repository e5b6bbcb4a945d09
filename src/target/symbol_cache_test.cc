// SPDX-License-Identifier: Apache-2.0
#include "target/symbol_cache.h"

#include <filesystem>

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "target/elf_file.h"
#include "target/module_image.h"
#include "target/test_support.h"

namespace clew::target {
namespace {

class SymbolCacheTest : public testing::Test {
 protected:
  SymbolCacheTest() {
    options_.cache_directory = directory_.file("cache/clew");
    options_.cache_from_bytes = 0;
    program_ = directory_.file("classes");
    std::filesystem::copy_file(test::fixture("classes"), program_);
  }

  // Everything that an image says, as text.
  static std::string portrait(const ModuleImage& image) {
    std::string text(image.soname());
    text += image.build_id();
    text += image.name();
    for (const Function& function : image.functions()) {
      text += std::to_string(function.address) + " " + std::to_string(function.size_bytes) +
              std::to_string(static_cast<int>(function.origin));
      for (const FunctionName& name : function.names) {
        text += std::string(name.plain) + "|" + std::string(name.demangled) + "|" +
                std::string(name.linkage) + "\n";
      }
      for (const AddressRange& cold : function.cold) {
        text += std::to_string(cold.address);
      }
    }
    for (const Fde& fde : image.fdes()) {
      text += std::to_string(fde.address) + (fde.cfa_at_start_is_rsp_plus_8 ? "y" : "n");
      for (const uint64_t pad : fde.landing_pads) {
        text += std::to_string(pad);
      }
    }
    for (const uint64_t pointer : image.code_pointers()) {
      text += std::to_string(pointer);
    }
    for (const Section& section : image.sections()) {
      text += std::string(section.name) + std::to_string(section.address);
    }
    return text;
  }

  std::string read() {
    auto image = ModuleImage::read(program_, options_);
    EXPECT_TRUE(image) << image.error().message;
    return image ? portrait(*image) : "";
  }

  std::string entry() {
    for (const auto& file : std::filesystem::directory_iterator(options_.cache_directory)) {
      return file.path();
    }
    ADD_FAILURE() << "nothing was cached";
    return {};
  }

  // Whether the entry on disk is what was read: a marker in its last problem would show.
  static ino_t inode(const std::string& path) {
    struct stat status {};
    EXPECT_EQ(stat(path.c_str(), &status), 0);
    return status.st_ino;
  }

  test::TemporaryDirectory directory_;
  ReadOptions options_;
  std::string program_;
};

TEST_F(SymbolCacheTest, AnImageFromTheCacheIsTheSameImage) {
  const std::string cold = read();
  const std::string path = entry();
  const ino_t before = inode(path);
  EXPECT_EQ(read(), cold);
  EXPECT_EQ(inode(path), before) << "the entry was written again, so it was not used";
}

TEST_F(SymbolCacheTest, ADamagedEntryIsIgnoredAndWrittenAgain) {
  const std::string cold = read();
  const std::string path = entry();
  const std::vector<uint8_t> whole = test::read_file(path);
  for (const size_t at :
       {size_t{0}, size_t{9}, size_t{17}, size_t{30}, whole.size() / 2, whole.size() - 1}) {
    std::vector<uint8_t> damaged = whole;
    damaged[at] ^= 0x10;
    test::write_file(path, damaged);
    EXPECT_EQ(read(), cold) << at;
    EXPECT_EQ(test::read_file(path), whole) << at;
  }
  for (const size_t size : {size_t{0}, size_t{10}, size_t{24}, whole.size() / 2}) {
    test::write_file(path, {whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)});
    EXPECT_EQ(read(), cold) << size;
    EXPECT_EQ(test::read_file(path), whole) << size;
  }
}

TEST_F(SymbolCacheTest, AnotherFileOfTheSameBuildIdIsReadAnew) {
  const std::string cold = read();
  test::run("strip " + program_);
  const std::string stripped = read();
  EXPECT_NE(stripped, cold);
  EXPECT_EQ(read(), stripped);
}

TEST_F(SymbolCacheTest, AnEntryThatOthersMayWriteIsNotTrusted) {
  const std::string cold = read();
  const std::string path = entry();
  const ino_t before = inode(path);
  std::filesystem::permissions(path, std::filesystem::perms::others_write,
                               std::filesystem::perm_options::add);
  EXPECT_EQ(read(), cold);
  EXPECT_NE(inode(path), before);
}

TEST_F(SymbolCacheTest, ADirectoryThatCannotBeWrittenIsNoError) {
  options_.cache_directory = "/proc/nowhere/clew";
  EXPECT_FALSE(read().empty());
}

TEST_F(SymbolCacheTest, TablesThatPointOutsideThemselvesAreNotConsistent) {
  auto file = ElfFile::open(program_);
  ASSERT_TRUE(file);
  auto tables = read_tables(*file, program_, options_);
  ASSERT_TRUE(tables);
  EXPECT_TRUE(is_consistent(*tables));
  const auto broken = [&](auto change) {
    ImageTables copy = *tables;
    change(copy);
    return !is_consistent(copy);
  };
  EXPECT_TRUE(broken([](ImageTables& t) { t.names[3].linkage.offset = 0xffffffff; }));
  EXPECT_TRUE(broken([](ImageTables& t) { t.functions[2].name_count = 0x7fffffff; }));
  EXPECT_TRUE(broken([](ImageTables& t) { t.functions[2].cold_count = 0x7fffffff; }));
  EXPECT_TRUE(broken([](ImageTables& t) { t.functions[2].address = 1; }));
  EXPECT_TRUE(broken([](ImageTables& t) { t.functions[2].size_bytes = uint64_t{1} << 40; }));
  EXPECT_TRUE(broken([](ImageTables& t) { t.fdes[1].first_landing_pad = 0x7fffffff; }));
  EXPECT_TRUE(broken([](ImageTables& t) { std::swap(t.functions[0], t.functions[1]); }));
  EXPECT_TRUE(broken([](ImageTables& t) { t.sections[1].size_bytes = ~uint64_t{0}; }));
}

}  // namespace
}  // namespace clew::target

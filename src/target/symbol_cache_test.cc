// SPDX-License-Identifier: Apache-2.0
#include "target/symbol_cache.h"

#include <algorithm>
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

  // Gives two functions of a symbol table each other's addresses and sizes.
  static void swap_two_functions(const std::string& path) {
    auto file = ElfFile::open(path);
    ASSERT_TRUE(file);
    const ElfSection* const table = file->find_section_of_type(SHT_SYMTAB);
    ASSERT_NE(table, nullptr);
    std::vector<uint8_t> bytes = test::read_file(path);
    auto* const symbols = reinterpret_cast<Elf64_Sym*>(&bytes.at(table->header.sh_offset));
    std::vector<Elf64_Sym*> functions;
    for (size_t i = 0; i < table->header.sh_size / sizeof(Elf64_Sym); ++i) {
      const bool is_function = ELF64_ST_TYPE(symbols[i].st_info) == STT_FUNC;
      if (is_function && symbols[i].st_size != 0) functions.push_back(&symbols[i]);
    }
    ASSERT_GE(functions.size(), 2U);
    const auto other = std::find_if(
        functions.begin(), functions.end(),
        [&](const Elf64_Sym* symbol) { return symbol->st_value != functions[0]->st_value; });
    ASSERT_NE(other, functions.end());
    std::swap(functions[0]->st_value, (*other)->st_value);
    std::swap(functions[0]->st_size, (*other)->st_size);
    test::write_file(path, bytes);
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

// What anybody can do who may read a program: a copy that says another thing of its functions, and
// has the same build-id, name, size and time.
TEST_F(SymbolCacheTest, AForgedCopyDoesNotSpeakForTheGenuineFile) {
  const std::string genuine = directory_.file("genuine/classes");
  const std::string forged = directory_.file("forged/classes");
  std::filesystem::create_directory(directory_.file("genuine"));
  std::filesystem::create_directory(directory_.file("forged"));
  std::filesystem::copy_file(program_, genuine);
  std::filesystem::copy_file(program_, forged);
  swap_two_functions(forged);
  test::run("touch -r " + genuine + " " + forged);
  ASSERT_EQ(std::filesystem::file_size(genuine), std::filesystem::file_size(forged));
  program_ = genuine;
  options_.cache_directory.clear();
  const std::string truth = read();
  options_.cache_directory = directory_.file("cache/clew");
  program_ = forged;
  EXPECT_NE(read(), truth);
  program_ = genuine;
  EXPECT_EQ(read(), truth);
  program_ = forged;
  EXPECT_NE(read(), truth);
}

TEST_F(SymbolCacheTest, AForgedDebugFileDoesNotSpeakForTheGenuineOne) {
  const std::string debug = directory_.file("classes.debug");
  test::run("objcopy --only-keep-debug " + program_ + " " + debug);
  test::run("strip " + program_);
  test::run("cd " + directory_.path() + " && objcopy --add-gnu-debuglink=classes.debug " +
            program_);
  const std::string truth = read();
  const std::vector<uint8_t> genuine = test::read_file(debug);
  const auto written = std::filesystem::last_write_time(debug);
  swap_two_functions(debug);
  std::filesystem::last_write_time(debug, written);
  EXPECT_NE(read(), truth);
  test::write_file(debug, genuine);
  std::filesystem::last_write_time(debug, written);
  EXPECT_EQ(read(), truth);
}

TEST_F(SymbolCacheTest, TheFolderAndItsFilesAreForTheirOwnerAlone) {
  const mode_t mask = umask(0);
  std::filesystem::create_directory(directory_.file("cache"));
  std::filesystem::create_directory(options_.cache_directory);  // As an older version did.
  (void)read();
  umask(mask);
  struct stat status {};
  ASSERT_EQ(stat(entry().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0600U);
  ASSERT_EQ(stat(options_.cache_directory.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0700U);
}

TEST_F(SymbolCacheTest, AFolderOrAFileOfSomebodyElseIsNotUsed) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  const std::string cold = read();
  const std::string path = entry();
  ASSERT_EQ(chown(path.c_str(), 65534, 65534), 0);
  const ino_t before = inode(path);
  EXPECT_EQ(read(), cold);
  EXPECT_NE(inode(path), before) << "it was not written again, so it was used";
  std::filesystem::remove(path);
  ASSERT_EQ(chown(options_.cache_directory.c_str(), 65534, 65534), 0);
  EXPECT_EQ(read(), cold);
  EXPECT_TRUE(std::filesystem::is_empty(options_.cache_directory));
}

TEST_F(SymbolCacheTest, WhatWasNotUsedForTheLongestTimeGoesWhenThereIsNoRoom) {
  const std::string path = directory_.file("small");
  const CacheFolder folder(path, 2500);
  const auto store = [&](const std::string& name) {
    folder.store(name, [](int fd) {
      BlockWriter writer(fd);
      writer.write(std::vector<uint8_t>(1000));
      return writer.good();
    });
  };
  store("first");
  store("second");
  test::run("touch -d '2 hours ago' " + path + "/first; touch -d '1 hour ago' " + path + "/second");
  EXPECT_TRUE(folder.open("first"));
  store("third");
  EXPECT_TRUE(folder.open("first"));
  EXPECT_FALSE(folder.open("second"));
  EXPECT_TRUE(folder.open("third"));
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

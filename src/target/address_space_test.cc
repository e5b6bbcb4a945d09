// SPDX-License-Identifier: Apache-2.0
#include "target/address_space.h"

#include <filesystem>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "target/module_image.h"
#include "target/test_support.h"

namespace clew::target {
namespace {

const CodeRange* range_of_file(const AddressSpace& space, std::string_view name) {
  for (const CodeRange& range : space.ranges) {
    if (range.file != nullptr && range.file->name == name) return &range;
  }
  return nullptr;
}

// A mapping of the code of the fixture "shop", as a notice tells of it.
Mapping mapping_of(const std::string& path, uint64_t start) {
  const auto image = ModuleImage::read(path);
  Mapping mapping;
  mapping.path = path;
  mapping.executable = true;
  struct stat status {};
  EXPECT_EQ(stat(path.c_str(), &status), 0);
  mapping.inode = status.st_ino;
  for (const Section& section : image->sections()) {
    if (section.name != ".text") continue;
    mapping.file_offset = section.file_offset & ~uint64_t{4095};
    mapping.start = start;
    mapping.end = start + 4096;
  }
  return mapping;
}

TEST(AddressSpaces, HaveTheCodeOfAProcess) {
  AddressSpaces spaces;
  const auto space = spaces.look_at(getpid());
  ASSERT_TRUE(space.has_value());
  const auto here = reinterpret_cast<uint64_t>(&mapping_of);
  const CodeRange* range = (*space)->find(here);
  ASSERT_NE(range, nullptr);
  EXPECT_EQ(range->file, (*space)->program);
  EXPECT_NE(range_of_file(**space, "[vdso]"), nullptr);
  EXPECT_NE(range_of_file(**space, "libc.so.6"), nullptr);
  EXPECT_EQ((*space)->find(1), nullptr);
}

TEST(AddressSpaces, AreThereWhenTheProcessAndItsFileAreGone) {
  const test::TemporaryDirectory directory;
  const std::string path = directory.file("gone");
  std::filesystem::copy_file(test::fixture("shop"), path);
  AddressSpaces spaces;
  pid_t pid = 0;
  uint64_t address = 0;
  {
    const test::Child child({path}, path);
    pid = child.pid();
    const auto space = spaces.look_at(pid);
    ASSERT_TRUE(space.has_value());
    address = range_of_file(**space, "gone")->begin;
  }
  std::filesystem::remove(path);
  spaces.end(pid);
  const AddressSpace* space = spaces.find(pid, address);
  ASSERT_NE(space, nullptr);
  EXPECT_EQ(space->program_name, "gone");
  EXPECT_TRUE(ModuleImage::read(space->find(address)->file->open_path).has_value());
  EXPECT_TRUE(spaces.living().empty());
}

// A library that was closed keeps its names until another one is at its addresses.
TEST(AddressSpaces, KnowWhatWasThereBefore) {
  const auto map = [](const std::string& path, void* where) {
    const FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    const int flags = MAP_PRIVATE | (where != nullptr ? MAP_FIXED : 0);
    return mmap(where, 4096, PROT_READ | PROT_EXEC, flags, file.get(), 0);
  };
  void* const code = map(test::fixture("shop"), nullptr);
  ASSERT_NE(code, MAP_FAILED);
  const auto address = reinterpret_cast<uint64_t>(code);
  const auto name = [&](AddressSpaces& spaces) {
    const auto space = spaces.look_at(getpid());
    const CodeRange* const range = space ? (*space)->find(address) : nullptr;
    return range == nullptr || range->file == nullptr ? "" : range->file->name;
  };
  AddressSpaces spaces;
  EXPECT_EQ(name(spaces), "shop");
  ASSERT_EQ(munmap(code, 4096), 0);
  EXPECT_EQ(name(spaces), "shop");
  EXPECT_EQ(spaces.find(getpid())->former.size(), 1U);
  ASSERT_EQ(map("/bin/true", code), code);
  EXPECT_EQ(name(spaces), "true");
  ASSERT_EQ(munmap(code, 4096), 0);
  EXPECT_EQ(name(spaces), "true");
}

TEST(AddressSpaces, FollowWhatTheyAreTold) {
  const std::string path = test::fixture("shop");
  constexpr uint64_t kStart = 0x7f0000001000;
  constexpr pid_t kParent = 4000001;  // Beyond what the kernel gives.
  constexpr pid_t kChild = 4000002;
  AddressSpaces spaces;
  spaces.exec(kParent);
  spaces.map(kParent, mapping_of(path, kStart));
  spaces.fork(kParent, kChild);
  ASSERT_NE(spaces.find(kChild, kStart), nullptr);
  EXPECT_EQ(spaces.find(kChild)->program_name, "shop");
  // The child runs another program; its old addresses are still known.
  spaces.exec(kChild);
  spaces.map(kChild, mapping_of(path, kStart + 0x100000));
  EXPECT_EQ(spaces.find(kChild)->find(kStart), nullptr);
  EXPECT_NE(spaces.find(kChild, kStart), nullptr);
  EXPECT_NE(spaces.find(kChild, kStart + 0x100000), nullptr);
}

TEST(AddressSpaces, PutANewMappingInThePlaceOfOldOnes) {
  AddressSpaces spaces;
  constexpr pid_t kPid = 4000001;
  spaces.exec(kPid);
  Mapping mapping;
  mapping.executable = true;
  mapping.start = 0x10000;
  mapping.end = 0x20000;
  spaces.map(kPid, mapping);
  mapping.start = 0x14000;
  mapping.end = 0x15000;
  spaces.map(kPid, mapping);
  const AddressSpace* space = spaces.find(kPid);
  ASSERT_EQ(space->ranges.size(), 3U);
  EXPECT_EQ(space->ranges[0].end, 0x14000U);
  EXPECT_EQ(space->ranges[1].begin, 0x14000U);
  EXPECT_EQ(space->ranges[2].begin, 0x15000U);
  EXPECT_EQ(space->ranges[2].file_offset, 0x5000U);
}

TEST(AddressSpaces, AreNotFoundForAProcessThatIsNotThere) {
  AddressSpaces spaces;
  EXPECT_FALSE(spaces.look_at(4000001));
  EXPECT_EQ(spaces.find(4000001), nullptr);
}

}  // namespace
}  // namespace clew::target

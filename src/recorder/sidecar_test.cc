// SPDX-License-Identifier: Apache-2.0
// What is kept of a file for the recorder is what would be made now, and nothing else is taken for
// it.
#include "recorder/sidecar.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/user.h>
#include <unistd.h>

#include "abi/recorder.h"
#include "base/file_descriptor.h"
#include "copy/unwind.h"
#include "target/frame_tables.h"
#include "target/module_file.h"

namespace clew::recorder {
namespace {

constexpr uint32_t kCursor = 0x1240;
constexpr uint64_t kBias = 0x555555554000;

// A file with its image, which must outlive what is made.
struct Module {
  explicit Module(const std::string& path) {
    file.emplace(*target::ModuleFile::read(path));
    digest = file->digest();
    recipe.imports = Imports::of(*file->names()).known();
    recipe.cursor = kCursor;
    tables = *file->frame_tables();
    image.emplace(*file->image());
  }
  [[nodiscard]] std::unique_ptr<RecordedModule> record(uint32_t first_id) const {
    Recipe its = recipe;
    its.first_id = first_id;
    return std::move(*RecordedModule::make(*image, its));
  }
  [[nodiscard]] copy::UnwindBytes unwind(RecordedModule& recorded) const {
    return *copy::write_unwind({tables, recorded.probes().insertions, recorded.copy().copy(),
                                recorded.facts().is_position_independent});
  }
  [[nodiscard]] Installable make() const {
    auto recorded = record(1);
    copy::UnwindBytes its = unwind(*recorded);
    return *Installable::of(std::move(recorded), std::move(its));
  }
  [[nodiscard]] SidecarKey key() const { return *sidecar_key(digest, recipe); }

  target::Digest digest{};
  Recipe recipe;
  target::FrameTables tables;
  std::optional<target::ModuleFile> file;
  std::optional<target::ModuleImage> image;
};

std::vector<uint8_t> written(const SidecarKey& key, const Installable& module) {
  const FileDescriptor file(memfd_create("side", MFD_CLOEXEC));
  EXPECT_TRUE(SidecarFile::write(file.get(), key, module));
  std::vector<uint8_t> bytes(static_cast<size_t>(lseek(file.get(), 0, SEEK_END)));
  EXPECT_EQ(pread(file.get(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  return bytes;
}

Expected<Installable> read(const SidecarKey& key, const std::vector<uint8_t>& bytes) {
  const FileDescriptor file(memfd_create("side", MFD_CLOEXEC));
  EXPECT_EQ(pwrite(file.get(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  return SidecarFile::read(file.get(), bytes.size(), key);
}

HeadPlaces places() {
  return {.owner = 0x1000,
          .index = 0x1008,
          .tid = 0x1010,
          .cookie = 0x1020,
          .cursor = kCursor,
          .claim = kBias + 0x8000000,
          .lobes = 0x7f0000000000,
          .keeps_self_pointer = true};
}

// All that goes into a process at that place.
struct Written {
  std::vector<uint8_t> copy;
  std::vector<uint8_t> unwind;
  std::vector<uint8_t> entries;
  std::vector<code::LedWindow> windows;
  Digest digest{};
};

Written install(Installable& module, uint32_t first_id) {
  Written result;
  result.digest = module.number_from(first_id);
  const uint64_t address = kBias + (uint64_t{1} << 28) + module.copy().address % 64;
  EXPECT_TRUE(module.move_to(kBias, address));
  result.copy = module.copy().bytes;
  result.unwind = module.unwind().bytes;
  auto entries = module.write_entries(places(), {kBias, address, address + (1U << 24)});
  EXPECT_TRUE(entries) << entries.error().message;
  result.entries = entries->bytes;
  result.windows = entries->windows;
  return result;
}

void expect_equal(const code::LedWindow& one, const code::LedWindow& other) {
  EXPECT_EQ(one.copy, other.copy);
  ASSERT_EQ(one.patches.size(), other.patches.size());
  for (size_t i = 0; i < one.patches.size(); ++i) {
    EXPECT_EQ(one.patches[i].address, other.patches[i].address);
    EXPECT_EQ(one.patches[i].original, other.patches[i].original);
    EXPECT_EQ(one.patches[i].replacement, other.patches[i].replacement);
  }
}

class SidecarOf : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (access(GetParam(), R_OK) != 0) GTEST_SKIP() << GetParam() << " is not installed";
  }
};

TEST_P(SidecarOf, AFileIsWhatWasMade) {
  const Module module(GetParam());
  Installable made = module.make();
  const std::vector<uint8_t> bytes = written(module.key(), made);
  auto again = read(module.key(), bytes);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(written(module.key(), *again), bytes);
  EXPECT_EQ(again->counts(), made.counts());
  const Written cold = install(made, 77'777);
  const Written warm = install(*again, 77'777);
  EXPECT_EQ(warm.copy, cold.copy);
  EXPECT_EQ(warm.unwind, cold.unwind);
  EXPECT_EQ(warm.entries, cold.entries);
  EXPECT_EQ(warm.digest, cold.digest);
  ASSERT_EQ(warm.windows.size(), cold.windows.size());
  for (size_t i = 0; i < warm.windows.size(); ++i)
    expect_equal(warm.windows[i], cold.windows[i]);
}

// As one is that was written for that place at once.
TEST_P(SidecarOf, IsForOneProcessAfterTheOther) {
  const Module module(GetParam());
  Installable made = module.make();
  Installable moved = module.make();
  made.number_from(5);
  moved.number_from(5);
  const uint64_t near = kBias + (uint64_t{1} << 28) + made.copy().address % 64;
  ASSERT_TRUE(moved.move_to(kBias + 0x1000, near + 0x20000));
  ASSERT_TRUE(moved.move_to(kBias, near));
  ASSERT_TRUE(made.move_to(kBias, near));
  EXPECT_EQ(moved.copy().bytes, made.copy().bytes);
  EXPECT_EQ(moved.unwind().bytes, made.unwind().bytes);
  EXPECT_EQ(moved.unwind().address, made.unwind().address);
}

// The ids that are put in later are those that the analysis would have written, in the copy and in
// front of it.
TEST_P(SidecarOf, AModuleWithOtherIdsIsWhatWouldHaveBeenMadeWithThem) {
  const Module module(GetParam());
  const uint32_t first_id = abi::kDagIdMax / 3;
  const auto direct = module.record(first_id);
  Installable made = module.make();
  const uint32_t ids = made.counts().ids;
  EXPECT_EQ(made.number_from(first_id), direct->digest());
  EXPECT_EQ(made.copy().bytes, direct->copy().copy().bytes);
  const EntryProbes probes({direct->facts(), direct->proof(), direct->copied(), direct->tiling()},
                           direct->probes(), first_id, kCursor);
  const auto plan =
      *plan_entries(direct->facts(), direct->copy().copy(),
                    [&](uint64_t function, uint64_t at) { return probes.bytes(function, at); });
  ASSERT_EQ(made.entries().entries.size(), plan.entries.size());
  for (size_t i = 0; i < plan.entries.size(); ++i) {
    EXPECT_EQ(made.entries().entries[i].first.probe, plan.entries[i].first.probe);
    EXPECT_EQ(made.entries().entries[i].second.probe, plan.entries[i].second.probe);
  }
  EXPECT_GT(ids, 0U);
}

// Wherever a thread stops, also as a file has it.
TEST_P(SidecarOf, TheCursorIsWhereTheAnalysisHasIt) {
  const Module module(GetParam());
  const auto direct = module.record(1);
  const copy::ModuleCopy copy = direct->copy().copy();
  const Installable made = *read(module.key(), written(module.key(), module.make()));
  user_regs_struct registers = {};
  registers.rax = 1;
  registers.rcx = 2;
  registers.rdx = 3;
  registers.rsi = 4;
  registers.rdi = 5;
  registers.r8 = 6;
  registers.r9 = 7;
  registers.r10 = 8;
  registers.r11 = 9;
  size_t in_registers = 0;
  size_t in_memory = 0;
  for (size_t at = 0; at < copy.code_size; at += 1 + copy.code_size / 20'000) {
    registers.rip = copy.address + at;
    const auto cursor = direct->cursor_in(registers);
    ASSERT_EQ(made.cursor_in(registers), cursor) << at;
    ++(cursor ? in_registers : in_memory);
  }
  EXPECT_GT(in_registers, 0U);
  EXPECT_GT(in_memory, 0U);
  registers.rip = copy.address - 1;
  EXPECT_FALSE(made.cursor_in(registers));
  registers.rip = copy.address + copy.code_size;
  EXPECT_FALSE(made.cursor_in(registers));
}

INSTANTIATE_TEST_SUITE_P(Files, SidecarOf, testing::Values(SHAPES, "/bin/gzip", "/usr/bin/lua5.4"));

// Random changes, and each byte of the head.
TEST(Sidecar, IsRefusedWithAnyByteChangedAddedOrLost) {
  const Module module(SHAPES);
  const std::vector<uint8_t> right = written(module.key(), module.make());
  std::mt19937 random(1);
  for (size_t i = 0; i < 2000; ++i) {
    std::vector<uint8_t> bytes = right;
    const size_t at = i < 100 ? i : random() % bytes.size();
    switch (i < 100 ? 0 : random() % 3) {
      case 0:
        bytes[at] = static_cast<uint8_t>(bytes[at] ^ 1U << random() % 8);
        break;
      case 1:
        bytes.resize(at);
        break;
      default:
        bytes.insert(bytes.end(), at % 9 + 1, 0);
    }
    EXPECT_FALSE(read(module.key(), bytes)) << at;
  }
}

TEST(Sidecar, OfOtherBytesOrAnotherRecipeHasAnotherKey) {
  const target::Digest file{1};
  const Recipe recipe = {.cursor = kCursor, .imports = {{8, 0}, {16, 32}}};
  const auto key = sidecar_key(file, recipe);
  ASSERT_TRUE(key);
  EXPECT_EQ(sidecar_key(file, recipe), key);
  EXPECT_NE(sidecar_key(target::Digest{2}, recipe), key);
  std::vector<Recipe> others(6, recipe);
  others[0].cursor += 8;
  others[1].loops = Loops::Each;
  others[2].imports.pop_back();
  others[3].imports[1].own = 0;
  others[4].stamped = {{24, Stamped::Behind}};
  others[5].stamped = {{24, Stamped::Around}};
  for (const Recipe& other : others)
    EXPECT_NE(sidecar_key(file, other), key);
  Recipe renumbered = recipe;
  renumbered.first_id = 9;
  EXPECT_EQ(sidecar_key(file, renumbered), key);
}

class SidecarFolder : public testing::Test {
 protected:
  SidecarFolder() : module_(SHAPES), sidecars_(made_folder()) {
    sidecars_.store(module_.key(), module_.make());
  }
  ~SidecarFolder() override { std::filesystem::remove_all(folder_); }
  std::string made_folder() {
    std::string pattern = testing::TempDir() + "sidecars-XXXXXX";
    return folder_ = mkdtemp(pattern.data());
  }
  // The one file there.
  [[nodiscard]] std::string file() const {
    return std::filesystem::directory_iterator(folder_)->path();
  }
  [[nodiscard]] bool finds() const { return sidecars_.find(module_.key(), "shapes").has_value(); }

  std::string folder_;
  Module module_;
  Sidecars sidecars_;
};

TEST_F(SidecarFolder, KeepsThemForTheirOwnerAlone) {
  EXPECT_TRUE(finds());
  struct stat status {};
  ASSERT_EQ(stat(file().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
  ASSERT_EQ(chmod(file().c_str(), 0644), 0);
  EXPECT_FALSE(finds());
}

TEST_F(SidecarFolder, FollowsNoLink) {
  const std::string elsewhere = folder_ + "/elsewhere";
  std::filesystem::rename(file(), elsewhere);
  const std::string name = target::hex_of(module_.key()) + ".side";
  std::filesystem::create_symlink(elsewhere, folder_ + "/" + name);
  EXPECT_FALSE(finds());
}

TEST_F(SidecarFolder, TakesADamagedOneForNoneAndMakesItAnew) {
  for (const uintmax_t size : {std::filesystem::file_size(file()) - 1, uintmax_t{0}}) {
    std::filesystem::resize_file(file(), size);
    EXPECT_FALSE(finds());
    sidecars_.store(module_.key(), module_.make());
    EXPECT_TRUE(finds());
  }
}

TEST_F(SidecarFolder, WithoutOneNothingIsKept) {
  const Sidecars none("");
  none.store(module_.key(), module_.make());
  EXPECT_FALSE(none.find(module_.key(), "shapes"));
}

}  // namespace
}  // namespace clew::recorder

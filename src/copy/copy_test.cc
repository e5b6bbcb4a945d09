// SPDX-License-Identifier: Apache-2.0
// How copies are laid out, where their instructions are, and that they do the same.
#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include <dlfcn.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <link.h>
#include <sys/mman.h>

#include "code/decode.h"
#include "copy/module_copy.h"
#include "copy/victims_testing.h"

namespace clew::copy {
namespace {

std::span<const uint8_t> code_from(const ModuleCopy& copy, uint64_t address) {
  return std::span(copy.bytes).first(copy.code_size).subspan(address - copy.address);
}

// "0 2:6 on": where each instruction that the copy has was in the function, how far the next
// one is behind it where a jump is not as long, and where one follows to what it ran on to.
std::string layout_of(const Victim& victim, const ModuleCopy& copy, std::string_view name) {
  const target::Function& function = victim.function(name);
  std::string shown;
  for (size_t i = 0; i < copy.pcs.size(); ++i) {
    const CopiedPc& pc = copy.pcs[i];
    const bool is_own = pc.original - function.address < function.size_bytes;
    if (!is_own && !((pc.kind == PcKind::RunsOn) && pc.original == function.range().end()))
      continue;
    if (!shown.empty()) shown += ' ';
    shown += (pc.kind == PcKind::RunsOn) ? "on" : std::to_string(pc.original - function.address);
    if ((pc.kind == PcKind::RunsOn) || i + 1 == copy.pcs.size()) continue;
    const auto at = victim.facts().code.at(pc.original);
    const bool jumps = at->flow == code::Flow::Conditional || at->flow == code::Flow::Jump;
    const uint32_t size = copy.pcs[i + 1].offset - pc.offset;
    if (jumps && size != at->length) shown += fmt::format(":{}", size);
  }
  return shown;
}

uint64_t copy_of(const Victim& victim, const ModuleCopy& copy, std::string_view name) {
  return copy.function_copy(victim.function(name).address).value_or(0);
}

TEST(Layout, LeavesWhatStillReaches) {
  const Victim victim("layout");
  const ModuleCopy copy = victim.write();
  EXPECT_EQ(layout_of(victim, copy, "run_reads"), "0 6 12 19 26");
  EXPECT_EQ(layout_of(victim, copy, "run_has_gap"), "0 2 4 6 50 55");
  EXPECT_EQ(layout_of(victim, copy, "kept_first"), "");
}

TEST(Layout, GrowsJumpsThatNoLongerReach) {
  const Victim victim("layout");
  const ModuleCopy copy = victim.write();
  EXPECT_EQ(layout_of(victim, copy, "run_short_out"),
            "0 2:6 4:24");  // With what is left behind it.
  EXPECT_EQ(layout_of(victim, copy, "run_grows"),
            "0 2:6 4 13 22 31 40 49 58 67 76 85 94 103 112 121 124 125 127:5 129 131");
}

// loop taken ; jmp over ; taken: jmp target ; over:
TEST(Layout, LeadsLoopsOverAJumpWhereTheirTargetIsFar) {
  const Victim victim("layout");
  const ModuleCopy copy = victim.write();
  EXPECT_EQ(layout_of(victim, copy, "run_counts"), "0 2 5 7 9 11 13:9 15");
  EXPECT_EQ(layout_of(victim, copy, "run_counts_short"), "0 2 4:10 7");
  const auto bytes = code_from(copy, copy_of(victim, copy, "run_counts_short") + 4);
  constexpr auto kWanted = std::to_array<uint8_t>({0x67, 0xe3, 0x02, 0xeb, 0x05, 0xe9});
  EXPECT_TRUE(std::equal(kWanted.begin(), kWanted.end(), bytes.begin()));
}

TEST(Layout, JumpsToWhatIsNoLongerBehind) {
  const Victim victim("layout");
  const ModuleCopy copy = victim.write();
  EXPECT_EQ(layout_of(victim, copy, "run_runs_on"), "0 3 8 13 on");
  EXPECT_EQ(layout_of(victim, copy, "ends_in_call"), "0 2 4 9 10 on");
}

TEST(Layout, KeepsPlacesInLinesOfTheCacheAndNoGaps) {
  const Victim victim("layout");
  const ModuleCopy copy = victim.write();
  const CopyMap map(copy);
  for (const CopiedFunction& one : copy.functions) {
    const auto before = victim.facts().code.before(one.original);
    const bool is_behind_gap = !before || !map.copy_of(before->address);
    EXPECT_TRUE(!is_behind_gap || (one.original - one.copy) % 64 == 0) << one.original;
  }
  const uint64_t original = victim.function("run_has_gap").address;
  const uint64_t before = *map.copy_of(original + 6);
  const uint64_t behind = *map.copy_of(original + 50);
  EXPECT_EQ((original + 50 - behind) % 32, 0U);
  EXPECT_LT(behind - before, 32U);
  for (uint64_t at = before + 1; at < behind; ++at)
    EXPECT_EQ(code_from(copy, at)[0], 0xcc);
}

TEST(Layout, LeavesNothingOutOfReach) {
  const Victim victim("layout");
  const auto far = write_copy(victim.facts(), victim.proof().proved, {}, uint64_t{1} << 32);
  ASSERT_FALSE(far);
  EXPECT_EQ(far.error().code, ErrorCode::Limit);
}

TEST(CopyMap, LeadsThereAndBack) {
  for (const char* const file : {"switches", "layout", "reasons", "fixed"}) {
    const Victim victim(file);
    const ModuleCopy copy = victim.write();
    const CopyMap map(copy);
    size_t found = 0;
    for (const Proved& one : victim.proof().proved) {
      for (const code::Block& block : one.blocks.blocks()) {
        for (uint64_t at = block.begin; at < block.end; at = victim.facts().code.at(at)->end()) {
          const auto place = map.copy_of(at);
          ASSERT_TRUE(place) << file << ' ' << at;
          EXPECT_EQ(copy.original_of(*place), at);
          EXPECT_EQ(copy.original_of(*place + victim.facts().code.at(at)->length - 1), at);
          ++found;
        }
      }
    }
    const auto glue = std::count_if(copy.pcs.begin(), copy.pcs.end(), [](const CopiedPc& one) {
      return (one.kind == PcKind::RunsOn);
    });
    EXPECT_EQ(copy.pcs.size(), found + static_cast<size_t>(glue));
  }
}

TEST(CopyMap, KnowsNothingOfWhatIsNotCopied) {
  const Victim victim("layout");
  const ModuleCopy copy = victim.write();
  const uint64_t kept = victim.function("kept_second").address;
  EXPECT_FALSE(CopyMap(copy).copy_of(kept));
  EXPECT_FALSE(CopyMap(copy).copy_of(victim.function("run_short_out").address + 1));
  EXPECT_FALSE(copy.function_copy(kept));
  EXPECT_FALSE(copy.original_of(copy.address - 1));
  EXPECT_FALSE(copy.original_of(copy.address + copy.code_size));
  // Nobody runs on into that one but a jump, and a thread there is at its first instruction.
  const uint64_t jump =
      copy_of(victim, copy, "run_runs_on") + victim.function("run_runs_on").size_bytes;
  EXPECT_EQ(copy.original_of(jump), victim.function("kept_fifth").address);
}

// A library of this process and copies of its functions beside it.
class LoadedVictim {
 public:
  explicit LoadedVictim(const char* file) : victim_(file) {
    handle_ = dlopen(victim_.path.c_str(), RTLD_NOW | RTLD_LOCAL);
    EXPECT_NE(handle_, nullptr) << dlerror();
    link_map* map = nullptr;
    EXPECT_EQ(dlinfo(handle_, RTLD_DI_LINKMAP, &map), 0);
    bias_ = map->l_addr;
  }
  LoadedVictim(const LoadedVictim&) = delete;
  LoadedVictim& operator=(const LoadedVictim&) = delete;
  ~LoadedVictim() {
    if (place_ != MAP_FAILED) munmap(place_, kSize);
    dlclose(handle_);
  }

  // As `install_copy` puts one beside a module, at most 2 GiB away.
  void copy() {
    auto checked = victim_.check(victim_.write());
    ASSERT_TRUE(checked) << checked.error().message;
    void* const hint = reinterpret_cast<void*>(bias_ - (uint64_t{64} << 20));
    place_ = mmap(hint, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(place_, MAP_FAILED);
    const uint64_t place = reinterpret_cast<uint64_t>(place_) + 16;  // As it was written for.
    const auto moved = checked->move_to(bias_, place - checked->copy().address);
    ASSERT_TRUE(moved) << moved.error().message;
    copy_ = checked->copy();
    ASSERT_EQ(copy_.address, place);
    std::memcpy(reinterpret_cast<void*>(place), copy_.bytes.data(), copy_.bytes.size());
    ASSERT_EQ(mprotect(place_, kSize, PROT_READ | PROT_EXEC), 0);
  }

  // What its functions and their copies give to some numbers must be the same.
  size_t compare() const {
    size_t compared = 0;
    for (const CopiedFunction& one : copy_.functions) {
      const auto* const function = victim_.image().function_at(one.original);
      if (!function->names.front().linkage.starts_with("run_")) continue;
      for (int number = 0; number < 520; ++number) {
        EXPECT_EQ(call(one.copy, number), call(bias_ + one.original, number))
            << function->names.front().linkage << ' ' << number;
      }
      ++compared;
    }
    return compared;
  }

  [[nodiscard]] const ModuleCopy& copied() const { return copy_; }

 private:
  static int call(uint64_t address, int number) {
    return reinterpret_cast<int (*)(uint64_t)>(address)(static_cast<uint64_t>(number));
  }

  static constexpr size_t kSize = size_t{1} << 20;
  Victim victim_;
  void* handle_ = nullptr;
  uint64_t bias_ = 0;
  void* place_ = MAP_FAILED;
  ModuleCopy copy_;
};

TEST(Copies, OfSwitchesDoTheSame) {
  LoadedVictim victim("switches");
  ASSERT_NO_FATAL_FAILURE(victim.copy());
  EXPECT_EQ(victim.compare(), 15U);
}

TEST(Copies, WithOtherJumpsDoTheSame) {
  LoadedVictim victim("layout");
  ASSERT_NO_FATAL_FAILURE(victim.copy());
  EXPECT_EQ(victim.compare(), 8U);
}

TEST(Copies, KnowTheirAddressesOnceMoved) {
  LoadedVictim victim("switches");
  ASSERT_NO_FATAL_FAILURE(victim.copy());
  const ModuleCopy& copy = victim.copied();
  for (const CopiedFunction& one : copy.functions)
    EXPECT_EQ(copy.original_of(one.copy), one.original);
  for (const ClonedTable& one : copy.tables) {
    EXPECT_GE(one.copy, copy.address + copy.code_size);
    EXPECT_LT(one.copy, copy.end());
  }
}

TEST(Copies, DoNotMoveOutOfReach) {
  const Victim victim("layout");
  auto checked = victim.check(victim.write());
  ASSERT_TRUE(checked);
  const auto moved = checked->move_to(0, uint64_t{1} << 32);
  ASSERT_FALSE(moved);
  EXPECT_EQ(moved.error().code, ErrorCode::Limit);
}

// 32 bits of an address, which only moves with the copy.
TEST(Copies, OfProgramsAtAFixedAddressStayBelow2GiB) {
  const Victim victim("fixed");
  auto checked = victim.check(victim.write());
  ASSERT_TRUE(checked);
  const ModuleCopy before = checked->copy();
  ASSERT_TRUE(checked->move_to(0, 0x100000));
  const ModuleCopy& now = checked->copy();
  size_t absolute = 0;
  for (const Fixup& one : before.fixups) {
    if (one.kind != FixupKind::Absolute32) continue;
    ++absolute;
    const auto word = [&](const ModuleCopy& copy) {
      return code::signed_field(std::span(copy.bytes).subspan(one.offset), 0, 4);
    };
    EXPECT_EQ(word(now), word(before) + 0x100000);
  }
  EXPECT_EQ(absolute, 3U);
  EXPECT_FALSE(checked->move_to(0, uint64_t{1} << 31));
}

}  // namespace
}  // namespace clew::copy

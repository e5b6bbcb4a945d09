// SPDX-License-Identifier: Apache-2.0
#include "output/kept_stacks.h"

#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace clew::output {
namespace {

constexpr uint64_t kProcess = 7;
constexpr uint64_t kSignalReturn = 0x1100;

// A function each 0x100 bytes, named by its number; inlined calls at 0x1210.
class EachHundredSymbols final : public target::Symbolizer {
 public:
  [[nodiscard]] std::optional<target::SymbolPlace> kernel(uint64_t address) const override {
    return target::SymbolPlace{"vmlinux", "k" + std::to_string(address >> 8), address & 0xff};
  }
  [[nodiscard]] std::optional<target::SymbolPlace> user(uint64_t process,
                                                        uint64_t address) const override {
    if (process != kProcess || !knows_all) return {};
    return target::SymbolPlace{"m", "f" + std::to_string(address >> 8), address & 0xff};
  }
  [[nodiscard]] std::optional<target::CodePlace> code_at(uint64_t, uint64_t) const override {
    return {};
  }
  [[nodiscard]] bool is_signal_return(uint64_t, uint64_t address) const override {
    return address == kSignalReturn;
  }
  [[nodiscard]] std::vector<target::SourceCall> source(uint64_t, uint64_t address) const override {
    if (address != 0x1210) return {};
    return {{.function = "inner", .place = {"a.c", 3}, .is_inlined = true},
            {.function = "f18", .place = {"a.c", 9}, .is_inlined = false}};
  }

  bool knows_all = true;
};

// Which stand for all that an address can be: interrupted, returned to, both, in a handler of a
// signal, with inlined calls, of no known process, of the kernel.
const std::vector<std::vector<uint64_t>> kStacks = {
    {kProcess, 0x1000, 0x1200, 0x1300, 0},
    {kProcess, 0x1300, 0x1200, 0},
    {kProcess, 0x1000, kSignalReturn, 0x1210, 0x1300, 0},
    {kProcess, kSignalReturn, 0x1200, 0},
    {kProcess, 0x1000, 0x1211, 0},
    {9, 0x1000, 0x1200, 0},
    {0, 0x5000, 0x5100, 0},
    {kProcess, 0},
    {},
};

TEST(KeptStacks, HaveTheNamesThatTheyHad) {
  const EachHundredSymbols symbols;
  StackNames names(symbols);
  KeptStacks kept;
  for (const auto& words : kStacks)
    EXPECT_EQ(kept.named_now(words, names), names.named(words));
  for (const auto& words : kStacks)
    EXPECT_EQ(kept.named(words), names.named(words)) << testing::PrintToString(words);
  EXPECT_EQ(kept.left_out(), 0U);
  EXPECT_EQ(kept.named(kStacks[2]).frames.at(2).symbol, "inner");
}

// As code is that a compiler has just made.
TEST(KeptStacks, AskAgainForWhatWasNotKnown) {
  EachHundredSymbols symbols;
  symbols.knows_all = false;
  StackNames names(symbols);
  KeptStacks kept;
  kept.named_now(kStacks[0], names);
  EXPECT_EQ(kept.named(kStacks[0]).frames[1], (aggregate::Frame{.address = 0x1200}));
  symbols.knows_all = true;
  kept.named_now(kStacks[0], names);
  EXPECT_EQ(kept.named(kStacks[0]), names.named(kStacks[0]));
}

TEST(KeptStacks, HaveALimitAndCountWhatIsBeyond) {
  KeptStacks kept;
  const KeptStacks::Frames long_name = {
      {.symbol = std::string(KeptStacks::kTextBytesMax / 2, 'x')}};
  EXPECT_TRUE(kept.put({kProcess, 1, false}, long_name, false));
  EXPECT_TRUE(kept.put({kProcess, 2, false}, long_name, false)) << "the same costs nothing";
  const KeptStacks::Frames other = {{.symbol = std::string(KeptStacks::kTextBytesMax / 2, 'y')}};
  EXPECT_FALSE(kept.put({kProcess, 3, false}, other, false));
  EXPECT_FALSE(
      kept.put({kProcess, 4, false}, KeptStacks::Frames(KeptStacks::kFramesMax + 1), false));
  EXPECT_TRUE(kept.put({kProcess, 5, false}, {{.symbol = "f"}}, false));
  EXPECT_EQ(kept.places().size(), 3U);
}

TEST(KeptStacks, AreAddressesWhereNothingWasKept) {
  const aggregate::Stack stack = KeptStacks().named(kStacks[0]);
  ASSERT_EQ(stack.frames.size(), 3U);
  EXPECT_EQ(stack.frames[1], (aggregate::Frame{.address = 0x1200}));
}

}  // namespace
}  // namespace clew::output

// SPDX-License-Identifier: Apache-2.0
// Tiling and decoding of functions whose records are known by hand: victims/shapes.S.
#include <algorithm>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "recorder/probes.h"
#include "recorder/walk.h"

namespace clew::recorder {
namespace {

class Shapes : public testing::Test {
 protected:
  void SetUp() override {
    auto image = target::ModuleImage::read(SHAPES);
    ASSERT_TRUE(image) << image.error().message;
    image_.emplace(std::move(*image));
    auto facts = copy::Facts::of(*image_);
    ASSERT_TRUE(facts) << facts.error().message;
    facts_ = std::move(*facts);
    proof_ = copy::prove_module(*facts_);
    const auto names = target::read_linked_names(image_->path());
    ASSERT_TRUE(names) << names.error().message;
    const Imports imports = Imports::of(*names);
    const Copied copied(*facts_, proof_, imports);
    tiling_ = tile_module(*facts_, proof_, copied, Loops::Once);
    paths_ = std::make_unique<ModulePaths>(*facts_, proof_, copied, tiling_);
  }

  [[nodiscard]] uint64_t address_of(const std::string& name) const {
    for (const target::Function& one : image_->functions()) {
      for (const target::FunctionName& known : one.names)
        if (known.plain == name) return one.address;
    }
    ADD_FAILURE() << name;
    return 0;
  }
  [[nodiscard]] uint32_t function(const std::string& name) const {
    const uint64_t address = address_of(name);
    for (uint32_t i = 0; i < proof_.proved.size(); ++i)
      if (facts_->code.functions()[proof_.proved[i].function].address == address) return i;
    for (const copy::NotCopied& one : proof_.refused)
      if (facts_->code.functions()[one.function].address == address)
        ADD_FAILURE() << name << ": " << copy::sentence(one.refusal.reason);
    return 0;
  }
  [[nodiscard]] std::string offset(uint32_t function, uint32_t block) const {
    const copy::Proved& proved = proof_.proved[function];
    const uint64_t start = facts_->code.functions()[proved.function].address;
    return std::to_string(proved.blocks.blocks()[block].begin - start);
  }

  // "0 7 | 0>9 bit 1 stub | loop 4-7": heads, bit sites, loops that are recorded once.
  [[nodiscard]] std::string tiling_of(const std::string& name) const {
    const uint32_t f = function(name);
    const copy::Proved& proved = proof_.proved[f];
    std::string shown;
    for (const DagHead& head : tiling_.functions[f].heads)
      shown += (shown.empty() ? "" : " ") + offset(f, head.block);
    for (const BitSite& site : tiling_.functions[f].bits) {
      const auto& block = proved.blocks.blocks()[site.block];
      const code::Edge& edge = proved.blocks.edges_of(block)[site.edge];
      shown += " | " + offset(f, site.block) + ">" +
               (edge.block == kNone ? "out" : offset(f, edge.block)) + " bit " +
               std::to_string(site.bit) + (site.on_target ? "" : " stub");
    }
    for (const OnceLoop& loop : tiling_.functions[f].loops)
      shown += " | loop " + offset(f, loop.head) + "-" + offset(f, loop.latch);
    return shown;
  }

  // The head at an offset of a function.
  [[nodiscard]] uint32_t word(const std::string& name, uint64_t at, uint32_t bits = 0) const {
    const uint32_t f = function(name);
    const auto block = proof_.proved[f].blocks.block_at(address_of(name) + at);
    return abi::dag_record(1 + tiling_.first_dag[f] + paths_->of(f).dag_of(block.value_or(kNone))) |
           bits;
  }
  // "calls_leaf 0, leaf 0; …" by depth.
  [[nodiscard]] std::string walked(const std::vector<uint32_t>& words,
                                   std::optional<uint64_t> stopped_at = std::nullopt) const {
    return text_of(walk(*paths_, {.words = words, .stopped_at = stopped_at}));
  }
  [[nodiscard]] std::string text_of(const Walk& walked) const {
    std::string shown;
    for (const Step& step : walked.steps) {
      if (!shown.empty()) shown += ", ";
      if ((step.marks & kViolation) != 0) shown += "violation ";
      if ((step.marks & kUncertain) != 0) shown += "uncertain ";
      if ((step.marks & kUnwound) != 0) shown += "unwound ";
      if ((step.marks & kGap) != 0) shown += "gap ";
      if (step.module != 0) shown += "other ";
      shown += name_of(step.function) + " " + offset(step.function, step.block) + "/" +
               std::to_string(step.depth);
    }
    return shown;
  }
  [[nodiscard]] std::string name_of(uint32_t f) const {
    const uint64_t address = facts_->code.functions()[proof_.proved[f].function].address;
    for (const target::Function& one : image_->functions())
      if (one.address == address) return std::string(one.names[0].plain);
    return "?";
  }

  // Calls with the parts, and the probes that they get.
  template <typename Use>
  void use_probes(Use use) {
    const auto names = target::read_linked_names(image_->path());
    ASSERT_TRUE(names) << names.error().message;
    const Copied copied(*facts_, proof_, Imports::of(*names));
    const RecordedParts parts = {*facts_, proof_, copied, tiling_};
    use(parts, make_probes(parts, 1, kCursor));
  }
  // What is inserted in front of the instruction at an offset of a function.
  [[nodiscard]] std::vector<uint8_t> inserted_at(const std::string& name, uint64_t at) {
    std::vector<uint8_t> inserted;
    use_probes([&](const RecordedParts&, Probes probes) {
      inserted = probes.insertions.before[address_of(name) + at];
    });
    return inserted;
  }
  static constexpr uint32_t kCursor = 0x1230;

  std::optional<target::ModuleImage> image_;
  std::unique_ptr<copy::Facts> facts_;
  copy::ModuleProof proof_;
  ModuleTiling tiling_;
  std::unique_ptr<ModulePaths> paths_;
};

TEST_F(Shapes, HaveABitOnTheSideWithOneWayIn) {
  EXPECT_EQ(tiling_of("leaf"), "0");
  EXPECT_EQ(tiling_of("diamond"), "0 | 0>4 bit 0");
  EXPECT_EQ(walked({word("diamond", 0)}), "diamond 0/0, diamond 6/0");
  EXPECT_EQ(walked({word("diamond", 0, 1)}), "diamond 0/0, diamond 4/0, diamond 6/0");
}

// mov ecx, [rax] ; lea ecx, [rcx + 1] ; mov [rax], ecx: below the red zone.
TEST_F(Shapes, SaveAnotherRegisterThanTheCursors) {
  EXPECT_EQ(tiling_of("full"), "0 | 0>5 bit 0 | 5>7 bit 1");
  EXPECT_EQ(inserted_at("full", 5),
            (std::vector<uint8_t>{0x48, 0x8d, 0x64, 0x24, 0x80, 0x51, 0x40, 0x8b, 0x08, 0x40,
                                  0x8d, 0x89, 1,    0,    0,    0,    0x40, 0x89, 0x08, 0x59,
                                  0x48, 0x8d, 0xa4, 0x24, 0x80, 0,    0,    0}));
}

// Whoever comes to a block's last instruction is behind what is inserted there, as in front of a
// call: the cursor is to be where that wants it all the same.
TEST_F(Shapes, AreEnteredInFrontOfTheLastInstructionOfABlock) {
  size_t moved = 0;
  use_probes([&](const RecordedParts& parts, const Probes& probes) {
    const EntryProbes entries(parts, probes, 1, kCursor);
    for (size_t f = 0; f < proof_.proved.size(); ++f) {
      const uint64_t start = facts_->code.functions()[proof_.proved[f].function].address;
      const auto& blocks = proof_.proved[f].blocks;
      const uint32_t first = *blocks.block_at(start);
      size_t size = 0;
      for (const CursorMove& move : probes.moves[f].end[first])
        size += size_of_move(move);
      const uint64_t last = blocks.blocks()[first].last;
      if (size == 0) continue;
      const std::vector<uint8_t>& there = probes.insertions.before.at(last);
      const std::vector<uint8_t> entered = entries.bytes(start, last);
      ASSERT_GE(there.size(), size);
      ASSERT_GT(entered.size(), size) << name_of(static_cast<uint32_t>(f));
      EXPECT_TRUE(std::equal(there.end() - static_cast<ptrdiff_t>(size), there.end(),
                             entered.end() - static_cast<ptrdiff_t>(size)))
          << name_of(static_cast<uint32_t>(f));
      // In front of the others it is behind nothing.
      if (last != start) {
        EXPECT_EQ(entries.bytes(start, start).size() + size, entered.size());
      }
      ++moved;
    }
  });
  EXPECT_GT(moved, 3U);
}

// mov r11, gs:[cursor] ; lea r11w, [r11 + 4] ; mov qword [r11], record ; mov gs:[cursor], r11
// Where a register has the cursor, nobody asks what else is free: flags are kept.
TEST_F(Shapes, AreEnteredBehindTheirFirstInstructionWithTheSameRecord) {
  use_probes([&](const RecordedParts& parts, const Probes& probes) {
    const EntryProbes entries(parts, probes, 1, kCursor);
    const uint64_t start = address_of("calls_out");
    const uint32_t record = word("calls_out", 0);
    std::vector<uint8_t> wanted = {0x65, 0x4c, 0x8b, 0x1c, 0x25, 0x30, 0x12, 0,   0,
                                   0x66, 0x45, 0x8d, 0x5b, 4,    0x49, 0xc7, 0x03};
    for (unsigned shift = 0; shift < 32; shift += 8)
      wanted.push_back(static_cast<uint8_t>(record >> shift));
    wanted.insert(wanted.end(), {0x65, 0x4c, 0x89, 0x1c, 0x25, 0x30, 0x12, 0, 0});
    EXPECT_EQ(entries.bytes(start, start + 1), wanted);
    EXPECT_EQ(entries.bytes(start + 1, start + 1), std::vector<uint8_t>());
    EXPECT_EQ(entries.bytes(start, start + 1000), std::vector<uint8_t>());
  });
}

TEST_F(Shapes, CallWhatTheyExportPastThePltsStub) {
  use_probes([&](const RecordedParts&, const Probes& probes) {
    const std::unordered_map<uint64_t, uint64_t> wanted = {
        {address_of("calls_exported") + 1, address_of("exported")}};
    EXPECT_EQ(probes.insertions.shortcuts, wanted);
  });
}

TEST_F(Shapes, HaveABitOnTheSideThatDoesNotComeBack) {
  EXPECT_EQ(tiling_of("fatal"), "0 | 0>4 bit 0");
  EXPECT_EQ(tiling_of("tail_if"), "0 | 0>4 bit 0");
}

TEST_F(Shapes, HaveNoBitWhereTheNextRecordSays) {
  EXPECT_EQ(tiling_of("two_loops"), "0 6 10 | 0>8 bit 0 stub");
  EXPECT_EQ(walked({word("two_loops", 0, 1), word("two_loops", 10)}),
            "two_loops 0/0, two_loops 8/0, two_loops 10/0, two_loops 8/0");
}

TEST_F(Shapes, WithALoopOfOneWayRecordItOnce) {
  EXPECT_EQ(tiling_of("scan"), "0 2 | 2>17 bit 0 stub | loop 2-7");
  EXPECT_EQ(walked({word("scan", 0), word("scan", 2)}),
            "scan 0/0, scan 2/0, scan 7/0, scan 15/0, scan 17/0");
}

TEST_F(Shapes, RecordBehindACallOnlyWhatIsDecidedThere) {
  EXPECT_EQ(tiling_of("calls_leaf"), "0");
  EXPECT_EQ(tiling_of("asks_leaf"), "0 6 | 6>10 bit 0");
  EXPECT_EQ(tiling_of("calls_jump"), "0 6");
  EXPECT_EQ(walked({word("calls_leaf", 0), word("leaf", 0)}),
            "calls_leaf 0/0, leaf 0/1, calls_leaf 6/0");
}

TEST_F(Shapes, GoOnInTheSameRecordBehindASilentCall) {
  EXPECT_EQ(tiling_of("copies"), "0 | 6>10 bit 0");
  EXPECT_EQ(tiling_of("copies_last"), "0");
  EXPECT_EQ(tiling_of("calls_copies_last"), "0");
  EXPECT_EQ(walked({word("copies", 0, 1)}), "copies 0/0, copies 6/0, copies 10/0, copies 12/0");
}

TEST_F(Shapes, KnowWhatALibraryCallsOfItsOwn) {
  EXPECT_EQ(tiling_of("calls_exported"), "0");
  EXPECT_EQ(walked({word("calls_exported", 0), word("exported", 0)}),
            "calls_exported 0/0, exported 0/1, calls_exported 6/0");
}

// A jump to its own first instruction and a call of itself make the same record.
TEST_F(Shapes, DecideBetweenALoopAndARecursion) {
  EXPECT_EQ(tiling_of("again"), "0 | 0>4 bit 0 | 4>8 bit 1");
}

TEST_F(Shapes, BeginARecordWhereBitsRunOut) {
  const std::string tiling = tiling_of("fourteen");
  EXPECT_EQ(tiling.substr(0, 5), "0 86 ");
  EXPECT_NE(tiling.find("bit 10"), std::string::npos);
}

TEST_F(Shapes, BeginARecordWhereTooManyGoOnAlike) {
  EXPECT_EQ(tiling_of("cases"), "0 21 28 35 42 49 56 63 70 77 84 91");
}

TEST_F(Shapes, StopAtAnInstruction) {
  const uint64_t at = address_of("diamond");
  EXPECT_EQ(walked({word("diamond", 0, 1)}, at + 4), "diamond 0/0, diamond 4/0");
  EXPECT_EQ(walked({word("diamond", 0)}, at + 2), "diamond 0/0");
  EXPECT_EQ(walked({word("calls_leaf", 0), word("leaf", 0)}, address_of("calls_leaf") + 7),
            "calls_leaf 0/0, leaf 0/1, calls_leaf 6/0");
}

TEST_F(Shapes, ShowWhereARecordFitsNoPath) {
  EXPECT_EQ(walked({word("diamond", 0, 2), word("leaf", 0)}),
            "violation diamond 0/0, uncertain leaf 0/1");
  EXPECT_EQ(walked({word("leaf", 0), 0, word("leaf", 0)}), "leaf 0/0, uncertain gap leaf 0/0");
  EXPECT_EQ(walked({word("calls_leaf", 0), word("diamond", 0)}),
            "calls_leaf 0/0, uncertain diamond 0/1, diamond 6/1");
}

// A handler may have interrupted it in front of a bit.
TEST_F(Shapes, ShowNoDecisionWithoutABitWhereTheEndOfThePathIsNotThere) {
  EXPECT_EQ(walked({word("fourteen", 0), word("leaf", 0)}), "fourteen 0/0, uncertain leaf 0/1");
  EXPECT_EQ(walked({word("fourteen", 0, 2), word("leaf", 0)}),
            "fourteen 0/0, fourteen 6/0, fourteen 12/0, fourteen 14/0, uncertain leaf 0/1");
}

TEST_F(Shapes, ComeBackBehindSetjmp) {
  EXPECT_EQ(walked({word("calls_out", 0), word("calls_out", 6), word("calls_jump", 0),
                    word("leaves_by_jump", 0), word("calls_out", 6)}),
            "calls_out 0/0, calls_out 6/0, calls_jump 0/1, leaves_by_jump 0/2, "
            "unwound calls_out 6/0");
}

// The same module once more, as another one.
class TwoModules : public Shapes {
 protected:
  [[nodiscard]] uint32_t other(const std::string& name, uint64_t at, uint32_t bits = 0) const {
    const uint32_t own = word(name, at);
    return abi::dag_record(abi::dag_id(own) + tiling_.dag_count) | bits;
  }
  [[nodiscard]] std::string walked(const std::vector<uint32_t>& words,
                                   std::optional<uint64_t> stopped_at = std::nullopt,
                                   uint32_t stopped_in = 0) const {
    const std::vector<WalkedModule> both = {{paths_.get(), 1},
                                            {paths_.get(), 1 + tiling_.dag_count}};
    return text_of(
        walk(both, {.words = words, .stopped_at = stopped_at, .stopped_in = stopped_in}));
  }
};

TEST_F(TwoModules, AreInOneStack) {
  EXPECT_EQ(walked({word("calls_out", 0), other("diamond", 0, 1), word("calls_out", 6)}),
            "calls_out 0/0, other diamond 0/1, other diamond 4/1, other diamond 6/1, "
            "calls_out 6/0");
  EXPECT_EQ(walked({word("calls_jump", 0), word("leaves_by_jump", 0), other("leaf", 0),
                    word("calls_jump", 6)}),
            "calls_jump 0/0, leaves_by_jump 0/1, other leaf 0/1, calls_jump 6/0");
}

TEST_F(TwoModules, HaveFunctionsOfTheirOwn) {
  EXPECT_EQ(walked({word("calls_leaf", 0), other("leaf", 0)}),
            "calls_leaf 0/0, uncertain other leaf 0/1");
  EXPECT_EQ(walked({word("calls_out", 0), other("calls_out", 6)}),
            "calls_out 0/0, uncertain other calls_out 6/-1");
}

TEST_F(TwoModules, StopInOneOfThem) {
  const uint64_t at = address_of("diamond") + 4;
  EXPECT_EQ(walked({word("calls_out", 0), other("diamond", 0, 1)}, at, 1),
            "calls_out 0/0, other diamond 0/1, other diamond 4/1");
  EXPECT_EQ(walked({word("calls_out", 0), other("diamond", 0, 1)}, at, 0),
            "calls_out 0/0, other diamond 0/1, other diamond 4/1, other diamond 6/1");
}

}  // namespace
}  // namespace clew::recorder

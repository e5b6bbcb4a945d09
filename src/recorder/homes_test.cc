// SPDX-License-Identifier: Apache-2.0
// Installed files: wherever control comes in a function, the cursor is where the block has it, and
// nothing that is still wanted was in that register. What is followed is the set of all places that
// have the newest cursor; how the homes were chosen is not looked at.
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "abi/recorder.h"
#include "code/register_effect.h"
#include "recorder/recorded_module.h"

namespace clew::recorder {
namespace {

using abi::Register;
using PlacesOfHome = uint32_t;  // Bit n: register n.
constexpr PlacesOfHome kInMemory = 1U << 16;
constexpr PlacesOfHome kEverywhere = ~0U;

PlacesOfHome place(Home home) {
  return home ? 1U << static_cast<unsigned>(*home) : kInMemory;
}

// Of one function.
class Follower {
 public:
  Follower(const RecordedFunction& function, const Probes& probes, uint32_t index)
      : function_(function),
        homes_(probes.homes),
        own_(probes.homes[index]),
        moves_(probes.moves[index]),
        shortcuts_(probes.insertions.shortcuts),
        at_start_(function.size(), kEverywhere) {}

  // Empty, or what is wrong.
  std::string run() {
    arrive(function_.flow.entry(), own_.takes ? place(kPassed) : kInMemory);
    for (const uint32_t pad : function_.flow.landing_pads())
      arrive(pad, kInMemory);
    for (uint32_t block = 0; block < function_.size(); ++block) {
      const uint32_t behind = function_.flow.nodes()[block].behind;
      if (behind != kNone) arrive(behind, after_call(block));
    }
    changes_ = true;
    while (std::exchange(changes_, false)) {
      for (uint32_t block = 0; block < function_.size(); ++block)
        follow(block);
    }
    return wrong_;
  }

 private:
  void require(bool is_right, uint32_t block, const char* what) {
    if (is_right || !wrong_.empty()) return;
    wrong_ = fmt::format("{:#x}: {}", function_.proved.blocks.blocks()[block].begin, what);
  }

  void arrive(uint32_t block, PlacesOfHome places) {
    const PlacesOfHome both = at_start_[block] & places;
    changes_ = changes_ || both != at_start_[block];
    at_start_[block] = both;
  }

  // `live`: what must not be overwritten.
  PlacesOfHome moved(PlacesOfHome places, const CursorMove& move, const code::Live& live,
                     uint32_t block) {
    require((places & place(move.from)) != 0, block, "it moves what it has not");
    if (move.to) require(!live.registers.has(*move.to), block, "it moves over what is live");
    return places | place(move.to);
  }

  PlacesOfHome without_changed(PlacesOfHome places, const code::Instruction& at) {
    const auto& code = function_.facts.code;
    return places &
           ~PlacesOfHome{
               code::register_effect(code.text_from(at.address).first(at.length)).changed.bits()};
  }

  void follow(uint32_t block) {
    if (at_start_[block] == kEverywhere) return;  // Nothing has led there yet.
    const code::Block& own = function_.proved.blocks.blocks()[block];
    const PlacesOfHome home = place(own_.at[block]);
    PlacesOfHome places = at_start_[block];
    if (moves_.start[block])
      places = moved(places, *moves_.start[block], function_.live.at_start(block), block);
    require((places & home) != 0, block, "it has no cursor");
    if (own_.at[block])
      require(!function_.live.at_start(block).registers.has(*own_.at[block]), block, "it is live");
    for (const DagHead& head : function_.tiling.heads)
      if (head.block == block) places = home;
    for (auto at = function_.facts.code.at(own.begin); at && at->address < own.last;
         at = function_.facts.code.at(at->end())) {
      places = without_changed(places, *at);
    }
    // Through the PLT nobody keeps r11, whatever the callers are taken to want.
    const bool is_shortcut = shortcuts_.contains(own.last);
    const code::Live live = is_shortcut ? code::Live{} : function_.live.before(own.last);
    for (const CursorMove& move : moves_.end[block])
      places = moved(places, move, live, block);
    require((places & home) != 0, block, "it has lost its cursor");
    leave(block, places);
  }

  void leave(uint32_t block, PlacesOfHome places) {
    const Leaving end = function_.leaving(block);
    if (end.calls) {
      const bool takes = end.callee != kNone && homes_[end.callee].takes;
      require((places & place(takes ? kPassed : kMemory)) != 0, block, "what it calls has none");
    }
    const auto ways = function_.flow.ways_of(block);
    places = end.calls ? after_call(block) : without_changed(places, end.last);
    for (size_t i = 0; i < ways.size(); ++i) {
      const bool is_taken = function_.flow.nodes()[block].is_branch && i == 0;
      const auto& move = (is_taken ? moves_.taken : moves_.passed)[block];
      const bool is_counted = end.calls || !move;  // after_call() has.
      go(block, ways[i], is_counted ? places : moved(places, *move, {}, block));
    }
  }

  void go(uint32_t block, const Way& way, PlacesOfHome places) {
    const Home wanted = wanted_on(way, function_, block, homes_);
    require((places & place(wanted)) != 0, block, "where it leads to has none");
    if (way.kind == WayKind::Return) require((places & kInMemory) != 0, block, "memory has none");
    if (way.kind != WayKind::Block) return;
    if (!function_.goes_round(block, way.block)) return arrive(way.block, places);
    require((places & place(own_.at[way.block])) != 0, block, "the loop has none");
  }

  PlacesOfHome after_call(uint32_t block) {
    const Leaving end = function_.leaving(block);
    PlacesOfHome places = kInMemory;
    if (end.callee != kNone && homes_[end.callee].leaves) places |= place(kPassed);
    return moves_.passed[block] ? moved(places, *moves_.passed[block], {}, block) : places;
  }

  const RecordedFunction& function_;
  const std::vector<FunctionHomes>& homes_;
  const FunctionHomes& own_;
  const FunctionMoves& moves_;
  const std::unordered_map<uint64_t, uint64_t>& shortcuts_;
  std::vector<PlacesOfHome> at_start_;  // By block.
  bool changes_ = false;
  std::string wrong_;
};

class HomesOf : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    auto image = target::ModuleImage::read(GetParam());
    if (!image) GTEST_SKIP() << GetParam() << " is not installed";
    image_.emplace(std::move(*image));
    const auto names = target::read_linked_names(image_->path());
    ASSERT_TRUE(names) << names.error().message;
    const Imports imports = Imports::of(*names);
    auto module = RecordedModule::make(*image_, {.cursor = 0x1230, .imports = imports.known()});
    ASSERT_TRUE(module) << module.error().message;
    module_ = std::move(*module);
  }

  std::optional<target::ModuleImage> image_;
  std::unique_ptr<RecordedModule> module_;
};

TEST_P(HomesOf, HaveTheCursorWhereverControlComes) {
  copy::Facts& facts = module_->facts();
  const Probes& probes = module_->probes();
  for (uint32_t i = 0; i < module_->proof().proved.size(); ++i) {
    const copy::Proved& proved = module_->proof().proved[i];
    const Flow flow(facts, proved, module_->copied());
    const auto live =
        code::Liveness::by_calls(facts.code, {proved.function, &proved.blocks}, facts.flags,
                                 probes.effects.calls, probes.effects.blocks[i]);
    const RecordedFunction function = {.facts = facts,
                                       .proved = proved,
                                       .copied = module_->copied(),
                                       .tiling = module_->tiling().functions[i],
                                       .flow = flow,
                                       .live = live};
    ASSERT_EQ(Follower(function, probes, i).run(), "");
  }
}

// Most heads find a register: that is what the cost rests on.
TEST_P(HomesOf, AreRegistersForMostHeads) {
  const ProbeCounts& counts = module_->probes().counts;
  fmt::print("{}: {} heads, {} in memory; {} bits\n", GetParam(), counts.heads,
             counts.heads_in_memory, counts.bits);
  EXPECT_LT(counts.heads_in_memory * 5, counts.heads);
}

// At each instruction of the copy that is not inserted; registers have their numbers in them.
TEST_P(HomesOf, AreWhatThreadsThatStopInTheCopyAreAskedFor) {
  constexpr uint32_t kFunctions = 50;
  const copy::ModuleCopy& copy = module_->copy().copy();
  const auto& proved = module_->proof().proved;
  user_regs_struct registers{};
  registers.rcx = 1, registers.rdx = 2, registers.rsi = 6, registers.rdi = 7;
  registers.r8 = 8, registers.r9 = 9, registers.r10 = 10, registers.r11 = 11;
  for (uint32_t i = 0; i < kFunctions && i < proved.size(); ++i) {
    for (const copy::CopiedPc& pc : copy.pcs) {
      const auto block = proved[i].blocks.block_at(pc.original);
      if (!block || pc.kind != copy::PcKind::Instruction) continue;
      registers.rip = copy.address + pc.offset;
      const Home home = module_->probes().homes[i].at[*block];
      const auto cursor = module_->cursor_in(registers);
      ASSERT_EQ(cursor.has_value(), home.has_value()) << std::hex << pc.original;
      ASSERT_EQ(cursor.value_or(0), home ? static_cast<uint64_t>(*home) : 0)
          << std::hex << pc.original;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Installed, HomesOf,
                         testing::Values("/bin/gzip", "/usr/bin/lua5.4", "/usr/bin/perl",
                                         "/lib/x86_64-linux-gnu/libsqlite3.so.0"));

}  // namespace
}  // namespace clew::recorder

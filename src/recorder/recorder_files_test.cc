// SPDX-License-Identifier: Apache-2.0
// Installed files: random runs of their functions come back from the records, block by block.
#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "recorder/simulator_testing.h"

namespace clew::recorder {
namespace {

constexpr size_t kBlocks = 150'000;  // Of each file and test, in runs of at most:
constexpr size_t kRunMax = 4'000;

// The same module, recorded in one way or another.
struct Recorder {
  Recorder(const copy::Facts& facts, const copy::ModuleProof& proof, const Imports& imports,
           Loops loops)
      : copied(facts, proof, imports),
        tiling(tile_module(facts, proof, copied, loops)),
        paths(facts, proof, copied, tiling),
        run(facts, proof, tiling, paths) {}

  Copied copied;
  ModuleTiling tiling;
  ModulePaths paths;
  Simulator run;
};

class RecordedFiles : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    auto image = target::ModuleImage::read(GetParam());
    if (!image) GTEST_SKIP() << GetParam() << " is not installed";
    image_.emplace(std::move(*image));
    auto facts = copy::Facts::of(*image_);
    ASSERT_TRUE(facts) << facts.error().message;
    facts_ = std::move(*facts);
    proof_ = copy::prove_module(*facts_);
    const auto names = target::read_linked_names(image_->path());
    ASSERT_TRUE(names) << names.error().message;
    const Imports imports = Imports::of(*names);
    recorders_.push_back(std::make_unique<Recorder>(*facts_, proof_, imports, Loops::Once));
    recorders_.push_back(std::make_unique<Recorder>(*facts_, proof_, Imports(), Loops::Each));
  }

  // Each function once, then any, until that many blocks ran.
  template <typename Check>
  void each_run(Recorder& recorder, Check check) {
    std::mt19937_64 random(1);
    const auto functions = static_cast<uint32_t>(proof_.proved.size());
    size_t blocks = 0;
    for (uint32_t i = 0; blocks < kBlocks && !HasFatalFailure(); ++i) {
      const auto function = i < functions ? i : static_cast<uint32_t>(random() % functions);
      const size_t most = i < functions ? 40 : kRunMax;
      recorder.run.run(function, 1 + random() % most, random);
      blocks += recorder.run.ran().size();
      check(recorder, random);
    }
  }

  [[nodiscard]] std::string name_of(uint32_t function, uint32_t block, int32_t depth) const {
    const auto& proved = proof_.proved[function];
    return fmt::format(" {}:{:x}/{}", function, proved.blocks.blocks()[block].begin, depth);
  }

  std::optional<target::ModuleImage> image_;
  std::unique_ptr<copy::Facts> facts_;
  copy::ModuleProof proof_;
  std::vector<std::unique_ptr<Recorder>> recorders_;
};

bool is_same(const Step& step, const RanBlock& ran) {
  return RanBlock{step.function, step.block, step.depth, step.is_entry} == ran;
}

// The first step that is not what ran, or their number.
size_t first_difference(const Walk& walk, const std::vector<RanBlock>& ran) {
  const size_t count = std::max(walk.steps.size(), ran.size());
  for (size_t i = 0; i < count; ++i) {
    if (i >= walk.steps.size() || i >= ran.size()) return i;
    const Step& step = walk.steps[i];
    if (!is_same(step, ran[i]) || (step.marks & ~kHandler) != 0) return i;
  }
  return count;
}

TEST_P(RecordedFiles, RunsComeBackBlockByBlock) {
  for (const auto& one : recorders_) {
    size_t blocks = 0;
    size_t records = 0;
    size_t ambiguous = 0;
    each_run(*one, [&](Recorder& recorder, std::mt19937_64&) {
      Simulator& run = recorder.run;
      const Walk walked =
          walk(recorder.paths, {.words = run.words(), .stopped_at = run.somewhere()});
      blocks += run.ran().size();
      records += run.words().size();
      ambiguous += walked.ambiguous;
      if (walked.ambiguous != 0) return;
      const size_t at = first_difference(walked, run.ran());
      ASSERT_EQ(at, std::max(run.ran().size(), walked.steps.size()))
          << (at < run.ran().size() ? name_of(run.ran()[at].function, run.ran()[at].block, 0) : "")
          << ", run of" << name_of(run.ran()[0].function, run.ran()[0].block, 0);
      ASSERT_EQ(walked.violations + walked.misfits + walked.gaps, 0U);
    });
    EXPECT_EQ(ambiguous, 0U);
    fmt::print("{}: {} blocks, {} records, {} ambiguous\n", GetParam(), blocks, records, ambiguous);
  }
}

TEST_P(RecordedFiles, HandlersBeginWhereTheyInterruptAPath) {
  size_t handlers = 0;
  each_run(*recorders_[0], [&](Recorder& recorder, std::mt19937_64& random) {
    Simulator& run = recorder.run;
    const size_t interrupted = run.ran().size();
    run.interrupt(1 + random() % 40);
    const auto place_of = [](uint64_t place) { return WalkedPlace{0, place}; };
    const Walk walked =
        walk(recorder.paths,
             {.words = run.words(), .place_of = place_of, .stopped_at = run.somewhere()});
    const size_t at = first_difference(walked, run.ran());
    ASSERT_EQ(at, std::max(run.ran().size(), walked.steps.size()))
        << (at < run.ran().size() ? name_of(run.ran()[at].function, run.ran()[at].block, 0) : "");
    ASSERT_EQ(walked.violations + walked.misfits + walked.gaps + walked.ambiguous, 0U);
    if (run.ran().size() == interrupted) return;
    ++handlers;
    ASSERT_EQ(walked.steps[interrupted].marks, kHandler);
  });
  EXPECT_GT(handlers, 50U);
}

// Only steps with a mark may leave something out.
TEST_P(RecordedFiles, TheNewestRecordsSayWhatIsMissing) {
  size_t missing = 0;
  size_t whole = 0;
  each_run(*recorders_[0], [&](Recorder& recorder, std::mt19937_64& random) {
    Simulator& run = recorder.run;
    const size_t from = random() % run.words().size();
    const Walk walked = walk(recorder.paths, {.words = std::span(run.words()).subspan(from),
                                              .stopped_at = run.somewhere()});
    size_t at = run.firsts()[from];
    for (const Step& step : walked.steps) {
      const auto is_it = [&] {
        return run.ran()[at].function == step.function && run.ran()[at].block == step.block;
      };
      for (; at < run.ran().size() && step.marks != 0 && !is_it(); ++at)
        ++missing;
      ASSERT_LT(at, run.ran().size());
      ASSERT_TRUE(is_it()) << name_of(step.function, step.block, step.depth) << " for"
                           << name_of(run.ran()[at].function, run.ran()[at].block, 0);
      ++at;
    }
    whole += walked.steps.size();
  });
  fmt::print("{}: {} steps, {} missing\n", GetParam(), whole, missing);
}

TEST_P(RecordedFiles, CorruptWordsAreViolationsAndGaps) {
  Walk sum;
  each_run(*recorders_[0], [&](Recorder& recorder, std::mt19937_64& random) {
    std::vector<uint32_t> words = recorder.run.words();
    for (size_t i = 0; i < 1 + words.size() / 50; ++i) {
      uint32_t& word = words[random() % words.size()];
      if (random() % 2 == 0) {
        word ^= 1U << (random() % abi::kPathBits);
      } else {
        word = static_cast<uint32_t>(random() >> (random() % 3));
      }
    }
    const Walk walked = walk(recorder.paths, {.words = words, .stopped_at = random() % 0x100000});
    ASSERT_EQ(walked.records + walked.gaps, words.size());
    sum.violations += walked.violations;
    sum.gaps += walked.gaps;
    sum.misfits += walked.misfits;
    sum.unwound += walked.unwound;
    sum.uncertain += walked.uncertain;
  });
  EXPECT_GT(sum.violations, 0U);
  EXPECT_GT(sum.gaps, 0U);
  EXPECT_GT(sum.misfits, 0U);
  fmt::print("{}: {} violations, {} gaps, {} misfits, {} unwound, {} uncertain\n", GetParam(),
             sum.violations, sum.gaps, sum.misfits, sum.unwound, sum.uncertain);
}

// What a tiling costs.
struct Figures {
  size_t functions = 0;
  size_t blocks = 0;
  size_t heads = 0;
  size_t dag_blocks = 0;  // Of all DAGs together.
  size_t dag_bits = 0;
  size_t bits = 0;
  size_t stubs = 0;
  size_t loops = 0;
};

// Every bit of a DAG is another one.
void add_dag(Figures& figures, const Paths& paths, const FunctionTiling& tiling, uint32_t head) {
  std::set<uint32_t> seen = {head};
  std::vector<uint32_t> open = {head};
  uint32_t used = 0;
  while (!open.empty()) {
    const uint32_t block = open.back();
    open.pop_back();
    for (const BitSite& site : tiling.bits) {
      if (site.block != block) continue;
      ASSERT_EQ(used & 1U << site.bit, 0U);
      used |= 1U << site.bit;
      ++figures.dag_bits;
    }
    for (const Way& way : paths.flow().ways_of(block)) {
      if (way.block == kNone || paths.dag_of(way.block) != kNone) continue;
      if (seen.insert(way.block).second) open.push_back(way.block);
    }
  }
  ++figures.heads;
  figures.dag_blocks += seen.size();
}

TEST_P(RecordedFiles, HaveDagsOfSomeBlocksAndFewBits) {
  for (const auto& one : recorders_) {
    Figures sum;
    for (uint32_t i = 0; i < proof_.proved.size(); ++i) {
      const FunctionTiling& tiling = one->tiling.functions[i];
      ++sum.functions;
      sum.blocks += proof_.proved[i].blocks.blocks().size();
      sum.bits += tiling.bits.size();
      sum.loops += tiling.loops.size();
      for (const BitSite& site : tiling.bits)
        sum.stubs += site.on_target ? 0 : 1;
      for (const DagHead& head : tiling.heads)
        add_dag(sum, one->paths.of(i), tiling, head.block);
    }
    const auto ratio = [](size_t a, size_t b) {
      return static_cast<double>(a) / static_cast<double>(b);
    };
    fmt::print(
        "{}: {} functions ({:.2f} %), {:.1f} blocks and {:.2f} heads each; a DAG has {:.1f} blocks "
        "and {:.2f} bits; {} bits, {:.0f} % in stubs; {} loops once\n",
        GetParam(), sum.functions,
        100 * ratio(sum.functions, sum.functions + proof_.refused.size()),
        ratio(sum.blocks, sum.functions), ratio(sum.heads, sum.functions),
        ratio(sum.dag_blocks, sum.heads), ratio(sum.dag_bits, sum.heads), sum.bits,
        100 * ratio(sum.stubs, sum.bits), sum.loops);
    EXPECT_LT(ratio(sum.heads, sum.functions), 9);
    EXPECT_LT(ratio(sum.dag_bits, sum.heads), 4);
  }
}

INSTANTIATE_TEST_SUITE_P(Installed, RecordedFiles,
                         testing::Values("/bin/gzip", "/usr/bin/lua5.4",
                                         "/lib/x86_64-linux-gnu/libsqlite3.so.0",
                                         "/usr/bin/redis-server"));

}  // namespace
}  // namespace clew::recorder

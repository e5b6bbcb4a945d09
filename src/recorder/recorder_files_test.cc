// SPDX-License-Identifier: Apache-2.0
// Installed files: random runs of their functions come back from the records, block by block.
#include <algorithm>
#include <memory>
#include <set>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "recorder/simulator_testing.h"

namespace clew::recorder {
namespace {

constexpr size_t kBlocks = 200'000;  // Of each file, in runs of at most:
constexpr size_t kRunMax = 4'000;

struct Module {
  std::optional<target::ModuleImage> image;
  std::unique_ptr<copy::Facts> facts;
  copy::ModuleProof proof;
  ModuleTiling tiling;
  std::unique_ptr<ModulePaths> paths;
};

class RecordedFiles : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    auto image = target::ModuleImage::read(GetParam());
    if (!image) GTEST_SKIP() << GetParam() << " is not installed";
    module_.image.emplace(std::move(*image));
    auto facts = copy::Facts::of(*module_.image);
    ASSERT_TRUE(facts) << facts.error().message;
    module_.facts = std::move(*facts);
    module_.proof = copy::prove_module(*module_.facts);
    module_.tiling = tile_module(*module_.facts, module_.proof, Loops::Each);
    module_.paths = std::make_unique<ModulePaths>(*module_.facts, module_.proof, module_.tiling);
  }

  [[nodiscard]] Simulator simulator() const {
    return {*module_.facts, module_.proof, module_.tiling, *module_.paths};
  }
  [[nodiscard]] uint32_t any_function(std::mt19937_64& random) const {
    return static_cast<uint32_t>(random() % module_.proof.proved.size());
  }

  Module module_;
};

std::string shown(const Module& module, const Walk& walk, const Simulator& run) {
  size_t i = 0;
  const auto& ran = run.ran();
  while (i < ran.size() && i < walk.steps.size() &&
         ran[i] == RanBlock{walk.steps[i].function, walk.steps[i].block, walk.steps[i].depth}) {
    ++i;
  }
  const auto name = [&](uint32_t function, uint32_t block, int32_t depth) {
    const auto& proved = module.proof.proved[function];
    return fmt::format(" {}:{:x}/{}", function, proved.blocks.blocks()[block].begin, depth);
  };
  std::string text = fmt::format("differ at {} of {}/{}:", i, ran.size(), walk.steps.size());
  for (size_t at = i > 4 ? i - 4 : 0; at < std::min(ran.size(), i + 4); ++at)
    text += name(ran[at].function, ran[at].block, ran[at].depth);
  text += " |";
  for (size_t at = i > 4 ? i - 4 : 0; at < std::min(walk.steps.size(), i + 4); ++at) {
    const Step& step = walk.steps[at];
    text += name(step.function, step.block, step.depth) + fmt::format("!{}", step.marks);
  }
  return text;
}

bool is_equal(const Walk& walk, const std::vector<RanBlock>& ran) {
  return std::equal(walk.steps.begin(), walk.steps.end(), ran.begin(), ran.end(),
                    [](const Step& step, const RanBlock& block) {
                      return step.function == block.function && step.block == block.block &&
                             step.depth == block.depth && step.marks == 0;
                    });
}

TEST_P(RecordedFiles, RunsComeBackBlockByBlock) {
  std::mt19937_64 random(1);
  Simulator run = simulator();
  size_t blocks = 0;
  size_t records = 0;
  size_t ambiguous = 0;
  while (blocks < kBlocks) {
    run.run(any_function(random), 1 + random() % kRunMax, random);
    const Walk walked = walk(*module_.paths, {.words = run.words(), .stopped_at = run.somewhere()});
    blocks += run.ran().size();
    records += run.words().size();
    if (walked.ambiguous != 0) {
      ++ambiguous;
      continue;
    }
    ASSERT_TRUE(is_equal(walked, run.ran())) << shown(module_, walked, run);
    ASSERT_EQ(walked.violations + walked.misfits + walked.gaps, 0U);
  }
  fmt::print("{}: {} blocks, {} records, {} ambiguous\n", GetParam(), blocks, records, ambiguous);
}

INSTANTIATE_TEST_SUITE_P(Installed, RecordedFiles,
                         testing::Values("/bin/gzip", "/usr/bin/lua5.4",
                                         "/lib/x86_64-linux-gnu/libsqlite3.so.0",
                                         "/usr/bin/redis-server"));

}  // namespace
}  // namespace clew::recorder

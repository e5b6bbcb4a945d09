// SPDX-License-Identifier: Apache-2.0
// A recorded process writes what it likes into its lobes: walking any words gives steps of the
// module's own blocks, and ends. The module is gzip.
//
//     byte 0: where the thread stopped, if it is odd (8 bytes)    then words, of which the ids are
//     taken modulo the module's, but for one in 16
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "base/assert.h"
#include "recorder/recorded_module.h"
#include "recorder/walk.h"

namespace {

using namespace clew;  // NOLINT(google-build-using-namespace)

struct Module {
  std::optional<target::ModuleImage> image;
  std::unique_ptr<recorder::RecordedModule> recorded;
  std::unique_ptr<recorder::ModulePaths> paths;
};

const Module& the_module() {
  static const Module kModule = [] {
    Module module;
    auto image = target::ModuleImage::read("/usr/bin/gzip");
    CLEW_ASSERT(image);
    module.image.emplace(std::move(*image));
    auto recorded = recorder::RecordedModule::make(*module.image, {});
    CLEW_ASSERT(recorded);
    module.recorded = std::move(*recorded);
    module.paths = std::make_unique<recorder::ModulePaths>(
        module.recorded->facts(), module.recorded->proof(), module.recorded->copied(),
        module.recorded->tiling());
    return module;
  }();
  return kModule;
}

uint32_t word_of(uint32_t raw, uint32_t ids) {
  if (raw % 16 == 0) return raw;
  return abi::dag_record(1 + abi::dag_id(raw) % ids) | abi::path_bits(raw);
}

void check_steps(const Module& module, const recorder::Walk& walked) {
  CLEW_ASSERT(walked.steps.size() <= recorder::kStepsMax);
  for (const recorder::Step& step : walked.steps) {
    CLEW_ASSERT(step.function < module.recorded->proof().proved.size());
    const auto& blocks = module.recorded->proof().proved[step.function].blocks.blocks();
    CLEW_ASSERT(step.block < blocks.size());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const Module& module = the_module();
  if (size < 1 + sizeof(uint64_t)) return 0;
  uint64_t stop = 0;
  std::memcpy(&stop, data + 1, sizeof(stop));
  std::vector<uint32_t> words((size - 9) / sizeof(uint32_t));
  if (!words.empty()) std::memcpy(words.data(), data + 9, words.size() * sizeof(uint32_t));
  for (uint32_t& word : words)
    word = word_of(word, module.recorded->tiling().dag_count);
  const auto stopped_at = (data[0] & 1) != 0 ? std::optional(stop) : std::nullopt;
  check_steps(module, recorder::walk(*module.paths, {.words = words, .stopped_at = stopped_at}));
  return 0;
}

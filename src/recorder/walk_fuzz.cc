// SPDX-License-Identifier: Apache-2.0
// A recorded process writes what it likes into its lobes: walking any words gives steps of the
// module's own blocks, and ends. The module is gzip.
//
//     where the thread stopped, 8 bytes, times 2, plus 1 if that is known    then words, of which
//     the ids are taken modulo the module's, but for one in 16; another one begins or ends a Time
//     record
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "recorder/recorded_module.h"
#include "recorder/records.h"
#include "recorder/signal_records.h"
#include "recorder/walk.h"

namespace clew::recorder {
namespace {

struct Module {
  std::optional<target::ModuleImage> image;
  std::unique_ptr<RecordedModule> recorded;
  std::unique_ptr<ModulePaths> paths;
};

const Module& the_module() {
  static const Module kModule = [] {
    Module module;
    auto image = target::ModuleImage::read("/usr/bin/gzip");
    CLEW_ASSERT(image);
    module.image.emplace(std::move(*image));
    auto recorded = RecordedModule::make(*module.image, {});
    CLEW_ASSERT(recorded);
    module.recorded = std::move(*recorded);
    module.paths =
        std::make_unique<ModulePaths>(module.recorded->facts(), module.recorded->proof(),
                                      module.recorded->copied(), module.recorded->tiling());
    return module;
  }();
  return kModule;
}

uint32_t word_of(uint32_t raw, uint32_t ids) {
  if (raw % 16 == 0) return raw;
  if (raw % 16 == 1) {
    return abi::extended_word(abi::ExtendedRecord::Time, abi::kTimeWords,
                              static_cast<uint16_t>(raw >> 30));
  }
  return abi::dag_record(1 + abi::dag_id(raw) % ids) | abi::path_bits(raw);
}

void check_steps(const Module& module, const Walk& walked) {
  CLEW_ASSERT(walked.steps.size() <= kStepsMax);
  for (const Step& step : walked.steps) {
    CLEW_ASSERT(step.function < module.recorded->proof().proved.size());
    const auto& blocks = module.recorded->proof().proved[step.function].blocks.blocks();
    CLEW_ASSERT(step.block < blocks.size());
  }
}

void check_stamps(const Records& records) {
  Stamp last;
  for (const Stamp& stamp : records.stamps) {
    CLEW_ASSERT(stamp.record >= last.record && stamp.record <= records.words.size());
    CLEW_ASSERT(stamp.ticks >= last.ticks);
    last = stamp;
  }
}

void fuzz(const uint8_t* data, size_t size) {
  const Module& module = the_module();
  uint64_t stop = 0;
  if (size < sizeof(stop)) return;
  std::memcpy(&stop, data, sizeof(stop));
  data += sizeof(stop);
  size -= sizeof(stop);
  std::vector<uint32_t> words(size / sizeof(uint32_t));
  if (!words.empty()) std::memcpy(words.data(), data, words.size() * sizeof(uint32_t));
  const std::vector<uint32_t> raw = std::exchange(words, {});
  for (const uint32_t word : raw) {
    if (word % 16 == 2) {
      const auto signal = signal_record(static_cast<uint16_t>(word >> 16), word >> 4);
      words.insert(words.end(), signal.begin(), signal.end());
    } else {
      words.push_back(word_of(word, module.recorded->tiling().dag_count));
    }
  }
  const auto place_of = [](uint64_t place) { return WalkedPlace{0, place}; };
  const Records records = read_records(words);
  check_stamps(records);
  check_steps(module, walk(*module.paths,
                           {.words = records.words,
                            .place_of = place_of,
                            .stopped_at = stop % 2 == 0 ? std::nullopt : std::optional(stop / 2)}));
}

}  // namespace
}  // namespace clew::recorder

// Before the time of the first input begins.
extern "C" int LLVMFuzzerInitialize(int* /*argument_count*/, char*** /*arguments*/) {
  (void)clew::recorder::the_module();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  clew::recorder::fuzz(data, size);
  return 0;
}

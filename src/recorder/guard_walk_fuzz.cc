// SPDX-License-Identifier: Apache-2.0
// A process writes what it likes into its lobes, also where guards record: walking any words gives
// steps of the module's own blocks, and ends.
//
//     where the thread stopped, 8 bytes, times 2, plus 1 if that is known    then pairs of words:
//     of the first, times 16, plus 0 for a word that is anything, 1 for a signal's record, else a
//     guard of the module by its number; of the second, how far the stack pointer has moved
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "recorder/guard_module_testing.h"
#include "recorder/signal_records.h"

namespace clew::recorder {
namespace {

struct Fuzzed {
  GuardModule module;
  std::vector<uint32_t> sites;  // What each guard writes.
};

const Fuzzed& fuzzed() {
  static const Fuzzed kFuzzed = [] {
    auto module = GuardModule::read(GUARDED_O2);
    CLEW_ASSERT(module);
    Fuzzed one{std::move(*module), {}};
    for (uint32_t function = 0; function < one.module.functions(); ++function) {
      for (uint32_t block = 0; block < one.module.blocks(function); ++block) {
        if (one.module.guards->is_site(function, block))
          one.sites.push_back(one.module.word_of(function, block));
      }
    }
    CLEW_ASSERT(!one.sites.empty());
    return one;
  }();
  return kFuzzed;
}

void add_pair(std::vector<uint32_t>& words, uint32_t first, uint32_t second, int64_t& stack) {
  const Fuzzed& from = fuzzed();
  if (first % 16 == 0) {
    words.insert(words.end(), {first, second});
    return;
  }
  if (first % 16 == 1) {
    const auto signal = signal_record(static_cast<uint16_t>(first >> 16), second);
    words.insert(words.end(), signal.begin(), signal.end());
    return;
  }
  stack += static_cast<int8_t>(second) * int64_t{8};
  words.insert(words.end(), {from.sites[first / 16 % from.sites.size()], frame_word(stack)});
}

void check_steps(const Walk& walked) {
  CLEW_ASSERT(walked.steps.size() <= kStepsMax);
  for (const Step& step : walked.steps) {
    CLEW_ASSERT(step.module == 0 && step.function < fuzzed().module.functions());
    CLEW_ASSERT(step.block < fuzzed().module.blocks(step.function));
  }
}

void fuzz(const uint8_t* data, size_t size) {
  uint64_t stop = 0;
  if (size < sizeof(stop)) return;
  std::memcpy(&stop, data, sizeof(stop));
  std::vector<uint32_t> raw((size - sizeof(stop)) / sizeof(uint32_t));
  if (!raw.empty()) std::memcpy(raw.data(), data + sizeof(stop), raw.size() * sizeof(uint32_t));
  std::vector<uint32_t> words;
  int64_t stack = int64_t{1} << 40;
  for (size_t i = 0; i + 1 < raw.size(); i += 2)
    add_pair(words, raw[i], raw[i + 1], stack);
  const WalkedModule module = fuzzed().module.walked();
  check_steps(walk_guards(
      {&module, 1},
      {.words = words,
       .stopped_at = stop % 2 == 0 ? std::nullopt : std::optional(stop / 2 % 0x4000),
       .stopped_stack =
           stop % 4 == 1 ? std::nullopt : std::optional(static_cast<uint64_t>(stack - 64))}));
}

}  // namespace
}  // namespace clew::recorder

// Before the time of the first input begins.
extern "C" int LLVMFuzzerInitialize(int* /*argument_count*/, char*** /*arguments*/) {
  (void)clew::recorder::fuzzed();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  clew::recorder::fuzz(data, size);
  return 0;
}

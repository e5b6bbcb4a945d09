// SPDX-License-Identifier: Apache-2.0
// The interpreter against the kernel's own BPF. tests/native/three_way_test.cc has native code
// besides; this one needs no translator.
#include <algorithm>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "isa/interpreter.h"
#include "isa/kernel_run.h"
#include "isa/print.h"
#include "isa/random_program.h"

namespace clew::isa {
namespace {

constexpr uint64_t kPrograms = 400;
constexpr uint32_t kDataSize = 256;
constexpr uint32_t kDataOffset = 1024;
constexpr uint32_t kSharedWindowSize = 2048;

std::vector<uint8_t> random_data(uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<uint8_t> data(kDataSize);
  for (uint8_t& byte : data)
    byte = static_cast<uint8_t>(random());
  return data;
}

TEST(KernelDifferential, TheKernelComputesTheSame) {
  const std::string reason = why_not_in_kernel();
  if (!reason.empty()) GTEST_SKIP() << "NOT COMPARED WITH THE KERNEL: " << reason;
  for (uint64_t seed = 0; seed < kPrograms; ++seed) {
    const Program program = random_program({.seed = seed,
                                            .steps = 60,
                                            .data_offset = kDataOffset,
                                            .data_size_bytes = kDataSize,
                                            .context = false,
                                            .accessors = false,
                                            .kernel_rules = true});
    const std::vector<uint8_t> data = random_data(seed);
    std::vector<uint8_t> window(kSharedWindowSize);
    std::copy(data.begin(), data.end(), window.begin() + kDataOffset);
    const Expected<Outcome> ours = interpret(program, {.window = window});
    ASSERT_TRUE(ours) << seed << ": " << ours.error().message;

    const KernelRun theirs = run_in_kernel(program, data);
    ASSERT_EQ(theirs.problem, "") << seed << '\n' << print(program);
    const auto our_data = window.begin() + kDataOffset;
    EXPECT_EQ(static_cast<uint32_t>(ours->result), theirs.result) << seed << '\n' << print(program);
    EXPECT_EQ(std::vector<uint8_t>(our_data, our_data + kDataSize), theirs.data) << seed;
  }
}

}  // namespace
}  // namespace clew::isa

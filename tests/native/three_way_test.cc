// SPDX-License-Identifier: Apache-2.0
// One random program in three engines: the interpreter, native code that was translated and
// verified and runs in a child without system calls, and the kernel's BPF. All three must leave the
// same data and the same result. CLEW_SEED and CLEW_PROGRAMS choose others than the usual ones.
#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "isa/interpreter.h"
#include "isa/kernel_run.h"
#include "isa/print.h"
#include "isa/random_program.h"
#include "trial.h"

namespace clew::native {
namespace {

constexpr uint32_t kWindowSizeLog2 = 12;
constexpr uint32_t kWindowSize = 1U << kWindowSizeLog2;
constexpr uint32_t kDataOffset = 1024;
constexpr uint64_t kBatch = 500;  // Programs that one child runs.
constexpr uint32_t kChildSecondsMax = 60;

using Window = std::array<uint8_t, kWindowSize>;

// r0 goes to the last word of the data, so that all engines show all of it.
void store_result_in_data(isa::Program& program, uint32_t data_size) {
  const isa::Instruction store = {
      .opcode = 0x7B, .registers = 0x08, .offset = static_cast<int16_t>(data_size - 8)};
  ASSERT_EQ(program.code.back().opcode, 0x95);
  program.code.insert(program.code.end() - 1, store);
}

struct Trial {
  uint64_t seed = 0;
  isa::Program program = {};
  std::vector<uint8_t> data = {};
  Window window{};  // To begin with: the data in it.
};

Trial make_trial(uint64_t seed) {
  std::mt19937_64 random(seed);
  Trial trial{.seed = seed};
  trial.data.resize(8 * (8 + random() % 120));
  for (uint8_t& byte : trial.data)
    byte = static_cast<uint8_t>(random());
  const auto size = static_cast<uint32_t>(trial.data.size());
  trial.program = isa::random_program({.seed = seed,
                                       .steps = 20 + static_cast<uint32_t>(random() % 100),
                                       .data_offset = kDataOffset,
                                       .data_size_bytes = size,
                                       .context = false,
                                       .accessors = false,
                                       .kernel_rules = true});
  store_result_in_data(trial.program, size);
  if (random() % 3 != 0) trial.program = without_constants(trial.program);
  std::copy(trial.data.begin(), trial.data.end(), trial.window.begin() + kDataOffset);
  return trial;
}

enum class Native : uint8_t { NotRun, Refused, Registers, Done };

struct NativeResult {
  Native state = Native::NotRun;
  Window window{};
};

NativeResult run_native(Machine& on, const Trial& trial) {
  if (!prepare(on, trial.program).empty()) return {Native::Refused};
  std::copy(trial.window.begin(), trial.window.end(), on.window().begin());
  const RegisterFile before = marked_registers();
  NativeResult result{on.run(before) == before ? Native::Done : Native::Registers};
  std::copy(on.window().begin(), on.window().end(), result.window.begin());
  return result;
}

void run_all_native(Machine& on, const std::vector<Trial>& trials, NativeResult* results) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(kChildSecondsMax);
    if (!forbid_system_calls()) _exit(2);
    for (size_t i = 0; i < trials.size(); ++i)
      results[i] = run_native(on, trials[i]);
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << "native code killed the child";
}

// The frame is the kernel's own there: what is compared with it is the data.
void expect_alike(const Trial& trial, const NativeResult& native, bool with_kernel) {
  Window ours = trial.window;
  const auto outcome = isa::interpret(trial.program, {.window = ours});
  ASSERT_TRUE(outcome) << outcome.error().message;
  ASSERT_EQ(native.state, Native::Done) << print(trial.program);
  ASSERT_TRUE(native.window == ours) << "native code differs\n" << print(trial.program);
  const auto data = ours.begin() + kDataOffset;
  uint64_t stored = 0;
  std::memcpy(&stored, &*data + trial.data.size() - 8, 8);
  ASSERT_EQ(stored, outcome->result);
  if (!with_kernel) return;
  const isa::KernelRun kernel = isa::run_in_kernel(trial.program, trial.data);
  ASSERT_EQ(kernel.problem, "") << print(trial.program);
  ASSERT_EQ(kernel.result, static_cast<uint32_t>(outcome->result)) << print(trial.program);
  ASSERT_TRUE(std::equal(kernel.data.begin(), kernel.data.end(), data)) << "the kernel differs\n"
                                                                        << print(trial.program);
}

class ThreeWay : public testing::TestWithParam<bool> {};

TEST_P(ThreeWay, InterpreterNativeCodeAndKernelAgree) {
  const uint64_t first = number_of("CLEW_SEED", 1);
  const uint64_t count = number_of("CLEW_PROGRAMS", 2000);
  const std::string reason = isa::why_not_in_kernel();
  const auto on = machine({.window_size_log2 = kWindowSizeLog2, .branch_guards = GetParam()});
  const size_t bytes = kBatch * sizeof(NativeResult);
  void* const shared =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(shared, MAP_FAILED);
  auto* const results = static_cast<NativeResult*>(shared);
  for (uint64_t done = 0; done < count && !HasFailure(); done += kBatch) {
    std::vector<Trial> trials;
    for (uint64_t i = 0; i < std::min(kBatch, count - done); ++i)
      trials.push_back(make_trial(first + done + i));
    std::fill(results, results + kBatch, NativeResult{});
    run_all_native(*on, trials, results);
    for (size_t i = 0; i < trials.size() && !HasFailure(); ++i) {
      SCOPED_TRACE(fmt::format("seed {}", trials[i].seed));
      expect_alike(trials[i], results[i], reason.empty());
    }
  }
  munmap(shared, bytes);
  fmt::print("{} programs from seed {}{}\n", count, first,
             reason.empty() ? "" : "; NOT COMPARED WITH THE KERNEL: " + reason);
}

INSTANTIATE_TEST_SUITE_P(MasksAndComparisons, ThreeWay, testing::Bool());

}  // namespace
}  // namespace clew::native

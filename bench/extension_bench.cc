// SPDX-License-Identifier: Apache-2.0
// How much slower is C in a probe than C? bench/kernels.c as an extension (translated, verified,
// with guards and fuel) against the same file by clang -O2, in turns. Prints one JSON object a
// line:
// {"kernel", "native_ms", "extension_ms", "ratios": […], "bytes"}. The results must be equal.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iterator>
#include <vector>

#include <fmt/format.h>

#include "extension/extension.h"
#include "isa/opcode.h"
#include "machine.h"
#include "native/print.h"

extern "C" {
uint64_t run_md5(uint64_t blocks);
uint64_t run_lld(uint64_t writes);
uint64_t run_hotlist(uint64_t lookups);
}

namespace clew::native {
namespace {

struct Kernel {
  const char* name;
  uint64_t (*native)(uint64_t rounds);
  uint64_t rounds;
};
constexpr Kernel kKernels[] = {{"run_md5", run_md5, 16'384},
                               {"run_lld", run_lld, 500'000},
                               {"run_hotlist", run_hotlist, 100'000}};
constexpr uint32_t kResult = 1024;  // Window offsets.
constexpr int32_t kState = 4096;
constexpr int kRepetitions = 21;

// r1 = the first argument of the traced call; the result goes to kResult.
isa::Program program_of(const extension::Function& function) {
  isa::Program program{.name = function.name, .code = {}};
  program.code.push_back({0x79, 0x11, 0, 0});
  const size_t begin = program.code.size();
  const auto end = static_cast<int64_t>(begin + function.code.size());
  for (isa::Instruction i : function.code) {
    const auto at = static_cast<int64_t>(program.code.size());
    if (i.opcode == isa::kLoad64Opcode && i.source() == 1) i.immediate += kState;
    if (i.opcode == isa::kExitOpcode)
      i = {isa::kJumpFarOpcode, 0, 0, static_cast<int32_t>(end - at - 1)};
    program.code.push_back(i);
  }
  program.code.push_back({isa::kLoad64Opcode, 0x11, 0, kResult});
  program.code.push_back({});
  program.code.push_back({0x7B, 0x01, 0, 0});
  program.code.push_back({0xB7, 0, 0, 0});
  program.code.push_back({isa::kExitOpcode, 0, 0, 0});
  return program;
}

// Of this thread's processor time: what others do counts less.
double milliseconds() {
  timespec now{};
  (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

template <typename Call>
double milliseconds_of(const Call& call) {
  const double begin = milliseconds();
  call();
  return milliseconds() - begin;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

int fail_with(const std::string& what) {
  fmt::print(stderr, "{}\n", what);
  return 1;
}

int measure(const Kernel& kernel, const extension::Extension& extension) {
  auto machine = Machine::make({.window_size_log2 = 23,
                                .fuel = (uint64_t{1} << 31) - 1,
                                .branch_guards = std::getenv("CLEW_MASKS") == nullptr});
  if (!machine) return fail_with(machine.error().message);
  Machine& on = **machine;
  for (const extension::InitialWord& word : extension.initial_words)
    std::memcpy(&on.window()[kState + word.offset_bytes], &word.value, 8);
  const extension::Function* function = extension.find(kernel.name);
  if (function == nullptr) return fail_with("no such function");
  const auto code = translate(program_of(*function), on.environment(), {});
  if (!code) return fail_with(code.error().message);
  if (!on.install(*code)) return fail_with("out of reach");
  const auto verified = verify::check(on.body(), on.policy(code->clobbers));
  if (!verified) return fail_with(verified.error().message);
  if (std::getenv("CLEW_PRINT_BODIES") != nullptr) fmt::print(stderr, "{}", print(*code));
  const auto stub = reinterpret_cast<void (*)(uint64_t)>(on.stub_address());
  std::vector<double> native;
  std::vector<double> extended;
  std::vector<double> ratios;
  for (int i = 0; i < kRepetitions; ++i) {
    uint64_t expected = 0;
    native.push_back(milliseconds_of([&] { expected = kernel.native(kernel.rounds); }));
    extended.push_back(milliseconds_of([&] { stub(kernel.rounds); }));
    uint64_t result = 0;
    std::memcpy(&result, &on.window()[kResult], sizeof result);
    if (result != expected)
      return fail_with(fmt::format("{}: {:x} instead of {:x}", kernel.name, result, expected));
    ratios.push_back(extended.back() / native.back());
  }
  fmt::print(
      "{{\"kernel\": \"{}\", \"native_ms\": {:.3f}, \"extension_ms\": {:.3f}, \"ratios\": "
      "[{:.3f}], \"bytes\": {}}}\n",
      kernel.name + 4, median(native), median(extended), fmt::join(ratios, ", "),
      code->bytes.size());
  return 0;
}

}  // namespace
}  // namespace clew::native

int main() {
  const auto extension = clew::extension::load(CLEW_KERNELS, {.folder = ""});
  if (!extension) return clew::native::fail_with(extension.error().message);
  int status = 0;
  for (const clew::native::Kernel& kernel : clew::native::kKernels)
    status |= clew::native::measure(kernel, *extension);
  return status;
}

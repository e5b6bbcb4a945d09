// SPDX-License-Identifier: Apache-2.0
// Random functions, of as few bytes as can be, run in this process without probes and with one at
// each entry and exit that can have it. Results must be the same, and each call one entry and one
// exit of its function.
#include <algorithm>
#include <array>
#include <random>
#include <set>
#include <vector>

#include <gtest/gtest.h>
#include <sys/mman.h>

#include "code/probed_text.h"
#include "code/text_cases.h"
#include "code/window_checks.h"
#include "code/windows.h"

namespace clew::code {
namespace {

// A page of functions without padding, of short instructions, forward jumps and returns. The last
// one ends with a return, the others may run on.
class RandomFunctions {
 public:
  static constexpr size_t kFunctions = 24;

  explicit RandomFunctions(unsigned seed) : random_(seed) {
    for (size_t i = 0; i < kFunctions; ++i) {
      starts_.push_back(bytes_.size());
      write_function(i + 1 == kFunctions);
    }
    starts_.push_back(bytes_.size());
  }

  [[nodiscard]] const std::vector<uint8_t>& bytes() const { return bytes_; }
  [[nodiscard]] size_t start_of(size_t function) const { return starts_[function]; }

  // With its bytes at `page`, where they are put.
  ModuleText write_to(uint8_t* page) const {
    std::copy(bytes_.begin(), bytes_.end(), page);
    ModuleText text;
    text.sections.push_back({at(page), {page, bytes_.size()}, true});
    for (size_t i = 0; i < kFunctions; ++i) {
      text.functions.push_back(
          {.address = at(page) + starts_[i], .size_bytes = starts_[i + 1] - starts_[i]});
    }
    return text;
  }

 private:
  void write_function(bool is_last) {
    struct Jump {
      size_t field;
      size_t skip;  // Instructions.
    };
    std::vector<Jump> jumps;
    std::vector<size_t> instructions;
    // Flags are dead at an entry, also at one that another function runs on into.
    bytes_.insert(bytes_.end(), kTest.begin(), kTest.end());
    const size_t count = 2 + random_() % 12;
    for (size_t i = 0; i < count; ++i) {
      instructions.push_back(bytes_.size());
      if (random_() % 3 == 0) {
        jumps.push_back({bytes_.size() + 1, i + 1 + random_() % 6});
        bytes_.insert(bytes_.end(), {kJumps[random_() % kJumps.size()], 0});
      } else {
        const std::vector<uint8_t>& chosen = kInstructions[random_() % kInstructions.size()];
        bytes_.insert(bytes_.end(), chosen.begin(), chosen.end());
      }
    }
    instructions.push_back(bytes_.size());
    const bool returns = is_last || random_() % 4 != 0;
    bytes_.insert(bytes_.end(), returns ? kReturn.begin() : kAdd.begin(),
                  returns ? kReturn.end() : kAdd.end());
    for (const Jump& jump : jumps) {
      const size_t target = instructions[std::min(jump.skip, count)];
      bytes_[jump.field] = static_cast<uint8_t>(target - (jump.field + 1));
    }
  }

  static inline const std::vector<uint8_t> kReturn = {0xc3};
  static inline const std::vector<uint8_t> kTest = {0x48, 0x85, 0xff};  // test %rdi, %rdi
  static inline const std::vector<uint8_t> kAdd = {0x48, 0x01, 0xf0};   // add %rsi, %rax
  static inline const std::vector<std::vector<uint8_t>> kInstructions = {
      kReturn,
      kReturn,
      kAdd,
      {0xf3, 0xc3},        // rep ret
      {0x31, 0xc0},        // xor %eax, %eax
      {0x48, 0x89, 0xf8},  // mov %rdi, %rax
      kTest,
      {0x48, 0x39, 0xf7},                  // cmp %rsi, %rdi
      {0x48, 0xff, 0xcf},                  // dec %rdi
      {0x48, 0x8d, 0x44, 0x77, 0x03},      // lea 3(%rdi,%rsi,2), %rax
      {0x98},                              // cwtl
      {0xb8, 0x07, 0x00, 0x00, 0x00},      // mov $7, %eax
      {0x0f, 0x1f, 0x40, 0x00},            // nopl 0(%rax)
      {0x48, 0x0f, 0xaf, 0xc7},            // imul %rdi, %rax
      {0x48, 0x81, 0xc6, 0x11, 0, 0, 0}};  // add $17, %rsi
  static inline const std::vector<uint8_t> kJumps = {0x74, 0x75, 0x78, 0x7f,
                                                     0x72, 0xeb, 0xe3};  // je … jb, jmp, jrcxz

  std::mt19937 random_;
  std::vector<uint8_t> bytes_;
  std::vector<size_t> starts_;  // And the end.
};

// Enters each function with all pairs of some arguments, and rax and rcx known.
std::vector<long> results_of(const uint8_t* function) {
  static constexpr std::array<long, 5> kArguments = {-3, 0, 1, 2, 70000};
  std::vector<long> results;
  for (const long a : kArguments) {
    for (const long b : kArguments) {
      long result = a ^ b;
      long first = a;
      long second = b;
      asm volatile(
          "lea -128(%%rsp), %%rsp\n call *%[function]\n lea 128(%%rsp), %%rsp"  // The red zone.
          : "+a"(result), "+D"(first), "+S"(second)
          : "c"(a & 1), [function] "r"(function)
          : "cc", "memory");
      results.push_back(result);
    }
  }
  return results;
}

class RandomExits : public testing::Test {
 protected:
  static constexpr size_t kSize = 16384;

  RandomExits()
      : page_(static_cast<uint8_t*>(mmap(nullptr, kSize, PROT_READ | PROT_WRITE | PROT_EXEC,
                                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))),
        patched_({page_, kSize}) {}

  void plan(const RandomFunctions& functions) {
    const ModuleText text = functions.write_to(page_);
    std::vector<Request> requests;
    for (const FunctionRange& function : text.functions) {
      requests.push_back({RequestKind::Entry, function.address});
      requests.push_back({RequestKind::Exits, function.address});
    }
    const ModuleCode code = analyse(text);
    plan_ = plan_windows(code, requests);
    EXPECT_EQ(broken_plan(code, plan_), "");
    refused_.clear();
    for (const Refusal& refusal : plan_.refusals)
      refused_.insert(refusal.request / 2);
    for (const Point& point : plan_.points) {
      behind_ += point.side != Side::Before ? 1 : 0;
      with_tails_ += point.tail.size_bytes != 0 ? 1 : 0;
    }
  }

  void run(const RandomFunctions& functions, size_t function) {
    const uint8_t* const start = page_ + functions.start_of(function);
    const std::vector<long> expected = results_of(start);
    ASSERT_EQ(patched_.install(plan_), "");
    ASSERT_EQ(results_of(start), expected);
    // It may run on into others.
    for (uint32_t i = 0; i < RandomFunctions::kFunctions; ++i) {
      if (refused_.count(i) != 0) continue;
      ASSERT_EQ(patched_.count_of(2 * i), patched_.count_of(2 * i + 1)) << i;
    }
    patched_.remove();
    ASSERT_TRUE(std::equal(functions.bytes().begin(), functions.bytes().end(), page_));
  }

  uint8_t* page_;  // Unmapped with the process: text that was written to is not used again.
  ProbedText patched_;
  Plan plan_;
  std::set<uint32_t> refused_;  // Functions.
  size_t behind_ = 0;
  size_t with_tails_ = 0;
};

TEST_F(RandomExits, GiveTheSameResultsAndOneExitForEachCall) {
  ASSERT_NE(page_, MAP_FAILED);
  for (unsigned seed = 0; seed < 2000; ++seed) {
    const RandomFunctions functions(seed);
    plan(functions);
    for (size_t i = 0; i < RandomFunctions::kFunctions; ++i) {
      run(functions, i);
      ASSERT_FALSE(HasFailure()) << "seed " << seed << ", function " << i;
    }
  }
  EXPECT_GT(behind_, 1000U);
  EXPECT_GT(with_tails_, 1000U);
}

}  // namespace
}  // namespace clew::code

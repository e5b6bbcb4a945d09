// SPDX-License-Identifier: Apache-2.0
// The functions of exit_shapes.S run in this process, first as they are, then with a probe at every
// entry and exit that changes all flags. Results must be the same, and each call one entry and one
// exit of its function.
#include "inline/victims/exit_shapes.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include "inline/relocate.h"
#include "inline/text_cases.h"
#include "inline/window_checks.h"
#include "inline/windows.h"

namespace clew::inline_ {
namespace {

constexpr uint64_t kPage = 4096;
constexpr size_t kCodeSize = 4 * kPage;

struct Shape {
  std::string name;
  long (*function)(long, long);

  [[nodiscard]] uint64_t address() const { return reinterpret_cast<uint64_t>(function); }
};

const std::vector<Shape>& shapes() {
#define CLEW_LIST_SHAPE(name) Shape{#name, shape_##name},
  static const std::vector<Shape> all = {CLEW_EXIT_SHAPES(CLEW_LIST_SHAPE)};
#undef CLEW_LIST_SHAPE
  return all;
}

// Each ends where the next one begins, but for what is between them when the assembler aligns.
TextCase text_of_shapes() {
  TextCase text(exit_shapes, exit_shapes_end);
  for (size_t i = 0; i < shapes().size(); ++i) {
    const bool is_last = i + 1 == shapes().size();
    text.text.functions.push_back(
        {.address = shapes()[i].address(),
         .size_bytes =
             (is_last ? at(exit_shapes_end) : shapes()[i + 1].address()) - shapes()[i].address()});
  }
  return text;
}

// Request 2 * i is the entry of shape i, 2 * i + 1 its exits.
std::vector<Request> all_requests() {
  std::vector<Request> requests;
  for (const Shape& shape : shapes()) {
    requests.push_back({RequestKind::Entry, shape.address()});
    requests.push_back({RequestKind::Exits, shape.address()});
  }
  return requests;
}

// What every function gives for every pair of these.
std::vector<long> results_of(const Shape& shape) {
  static constexpr std::array<long, 9> kArguments = {-9, -8, -1, 0, 1, 2, 7, 8, 1000};
  std::vector<long> results;
  for (const long a : kArguments) {
    for (const long b : kArguments)
      results.push_back(shape.function(a, b));
  }
  return results;
}

class ExitShapes : public testing::Test {
 protected:
  ExitShapes()
      : code_(analyse(text_of_shapes().text)), plan_(plan_windows(code_, all_requests())) {}

  void SetUp() override {
    constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS;
    const uint64_t text_page = at(exit_shapes) & ~(kPage - 1);
    void* near = reinterpret_cast<void*>(text_page + (uint64_t{64} << 20));
    words_ = static_cast<uint32_t*>(
        mmap(nullptr, kPage, PROT_READ | PROT_WRITE, kFlags | MAP_32BIT, -1, 0));
    copies_ = static_cast<uint8_t*>(
        mmap(near, kCodeSize, PROT_READ | PROT_WRITE | PROT_EXEC, kFlags, -1, 0));
    ASSERT_NE(words_, MAP_FAILED);
    ASSERT_NE(copies_, MAP_FAILED);
    const uint64_t size = (at(exit_shapes_end) - text_page + kPage - 1) & ~(kPage - 1);
    ASSERT_EQ(
        mprotect(reinterpret_cast<void*>(text_page), size, PROT_READ | PROT_WRITE | PROT_EXEC), 0);
    saved_.assign(exit_shapes, exit_shapes_end);
  }
  void TearDown() override {
    munmap(words_, kPage);
    munmap(copies_, kCodeSize);
  }

  // addl $1, [word of the request]: other flags, nothing else.
  Expected<void> emit(std::span<const Point> points, std::vector<uint8_t>& code) {
    for (const Point& point : points) {
      const auto address =
          static_cast<uint32_t>(reinterpret_cast<uint64_t>(words_ + point.request));
      code.insert(code.end(), {0x83, 0x04, 0x25});
      for (unsigned shift = 0; shift < 32; shift += 8)
        code.push_back(static_cast<uint8_t>(address >> shift));
      code.push_back(1);
    }
    return {};
  }

  void install() {
    size_t used = 0;
    for (uint32_t i = 0; i < plan_.windows.size(); ++i) {
      const auto copy = relocate(plan_.windows[i], plan_.points_of(i),
                                 {.destination = reinterpret_cast<uint64_t>(copies_ + used)},
                                 [this](std::span<const Point> points, uint64_t,
                                        std::vector<uint8_t>& code) { return emit(points, code); });
      ASSERT_TRUE(copy) << copy.error().message;
      ASSERT_LE(used + copy->bytes.size(), kCodeSize);
      std::memcpy(copies_ + used, copy->bytes.data(), copy->bytes.size());
      used += copy->bytes.size();
      for (const Patch& patch : copy->patches) {
        auto* const text = reinterpret_cast<uint8_t*>(patch.address);
        ASSERT_TRUE(std::equal(text, text + patch.size_bytes, patch.original.begin()));
        std::memcpy(text, patch.replacement.data(), patch.size_bytes);
        patches_.push_back(patch);
      }
    }
  }

  void remove() {
    for (const Patch& patch : patches_)
      std::memcpy(reinterpret_cast<uint8_t*>(patch.address), patch.original.data(),
                  patch.size_bytes);
    patches_.clear();
  }

  [[nodiscard]] bool is_as_before() const {
    return std::equal(saved_.begin(), saved_.end(), exit_shapes);
  }
  [[nodiscard]] uint32_t entries_of(size_t shape) const { return words_[2 * shape]; }
  [[nodiscard]] uint32_t exits_of(size_t shape) const { return words_[2 * shape + 1]; }

  ModuleCode code_;
  Plan plan_;
  uint32_t* words_ = nullptr;
  uint8_t* copies_ = nullptr;
  std::vector<uint8_t> saved_;
  std::vector<Patch> patches_;
};

TEST_F(ExitShapes, AreAllTakenAndTheirReturnsStayAsTheyAre) {
  std::string refused;
  for (const Refusal& refusal : plan_.refusals) {
    refused += shapes()[refusal.request / 2].name + ' ' + std::string(name(refusal.reason)) + '\n';
  }
  EXPECT_EQ(refused, "");
  EXPECT_EQ(broken_plan(code_, plan_), "");
}

TEST_F(ExitShapes, GiveTheSameResultsAndOneExitForEachCall) {
  std::vector<std::vector<long>> expected;
  for (const Shape& shape : shapes())
    expected.push_back(results_of(shape));
  install();
  for (size_t i = 0; i < shapes().size(); ++i) {
    std::fill(words_, words_ + kPage / sizeof *words_, 0);
    EXPECT_EQ(results_of(shapes()[i]), expected[i]) << shapes()[i].name;
    EXPECT_EQ(entries_of(i), expected[i].size()) << shapes()[i].name;
    for (size_t k = 0; k < shapes().size(); ++k)
      EXPECT_EQ(exits_of(k), entries_of(k))
          << shapes()[k].name << " called by " << shapes()[i].name;
  }
  remove();
  EXPECT_TRUE(is_as_before());
  for (size_t i = 0; i < shapes().size(); ++i)
    EXPECT_EQ(results_of(shapes()[i]), expected[i]) << shapes()[i].name;
}

}  // namespace
}  // namespace clew::inline_

// SPDX-License-Identifier: Apache-2.0
// The functions of exit_shapes.S run in this process, first as they are, then with a probe at every
// entry and exit. Results must be the same, and each call one entry and one exit of its function.
#include "code/victims/exit_shapes.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "code/probed_text.h"
#include "code/text_cases.h"
#include "code/window_checks.h"
#include "code/windows.h"

namespace clew::code {
namespace {

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
      : code_(analyse(text_of_shapes().text)),
        plan_(plan_windows(code_, all_requests())),
        saved_(exit_shapes, exit_shapes_end),
        text_({exit_shapes, exit_shapes_end}) {}

  [[nodiscard]] bool is_as_before() const {
    return std::equal(saved_.begin(), saved_.end(), exit_shapes);
  }
  [[nodiscard]] uint32_t entries_of(size_t shape) const { return text_.count_of(2 * shape); }
  [[nodiscard]] uint32_t exits_of(size_t shape) const { return text_.count_of(2 * shape + 1); }

  ModuleCode code_;
  Plan plan_;
  std::vector<uint8_t> saved_;
  ProbedText text_;
};

TEST_F(ExitShapes, AreAllTaken) {
  std::string refused;
  for (const Refusal& refusal : plan_.refusals) {
    refused += shapes()[refusal.request / 2].name + ' ' + std::string(name(refusal.reason)) + '\n';
  }
  EXPECT_EQ(refused, "");
  EXPECT_EQ(broken_plan(code_, plan_), "");
  std::set<std::string> with_tails;
  std::set<std::string> behind;
  for (const Point& point : plan_.points) {
    const std::string& shape = shapes()[point.request / 2].name;
    if (point.side != Side::Before) behind.insert(shape);
    if (point.tail.size_bytes != 0) with_tails.insert(shape);
  }
  EXPECT_THAT(with_tails, testing::ElementsAre("address", "frame", "zero"));
  EXPECT_THAT(behind, testing::ElementsAre("address", "behind", "both", "checked", "count", "early",
                                           "frame", "loop", "padded", "pop", "zero"));
}

TEST_F(ExitShapes, GiveTheSameResultsAndOneExitForEachCall) {
  std::vector<std::vector<long>> expected;
  for (const Shape& shape : shapes())
    expected.push_back(results_of(shape));
  for (size_t i = 0; i < shapes().size(); ++i) {
    ASSERT_EQ(text_.install(plan_), "");
    EXPECT_EQ(results_of(shapes()[i]), expected[i]) << shapes()[i].name;
    EXPECT_EQ(entries_of(i), expected[i].size()) << shapes()[i].name;
    for (size_t k = 0; k < shapes().size(); ++k)
      EXPECT_EQ(exits_of(k), entries_of(k))
          << shapes()[k].name << " called by " << shapes()[i].name;
    text_.remove();
  }
  EXPECT_TRUE(is_as_before());
  for (size_t i = 0; i < shapes().size(); ++i)
    EXPECT_EQ(results_of(shapes()[i]), expected[i]) << shapes()[i].name;
}

}  // namespace
}  // namespace clew::code

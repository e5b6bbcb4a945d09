// SPDX-License-Identifier: Apache-2.0
// Where a copy runs its probes, and the patches that lead to it.
#include <algorithm>
#include <cstring>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include "base/page.h"
#include "code/decode.h"
#include "code/near_text.h"
#include "code/relocate.h"
#include "code/text_cases.h"
#include "code/windows.h"

namespace clew::code {
namespace {

// A probe for tests: sets a word in low memory to 1, touching nothing else.
Expected<void> set_word(uint32_t address, std::vector<uint8_t>& code) {
  code.insert(code.end(), {0xc7, 0x04, 0x25});
  for (const uint32_t field : {address, 1U}) {
    for (unsigned i = 0; i < 4; ++i)
      code.push_back(static_cast<uint8_t>(field >> (8 * i)));
  }
  return {};
}

CLEW_TEXT_CASE(points_case, R"(
  test %edi, %edi
  points_jump: je points_other
  lea 1(%rdi), %eax
  points_ret: ret
  .fill 16,1,0x90
  points_other: mov $77, %eax
  ret
)");
CLEW_LABEL(points_jump);
CLEW_LABEL(points_other);

class Points : public testing::Test {
 protected:
  void SetUp() override {
    constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS;
    words_ = static_cast<uint32_t*>(
        mmap(nullptr, kPage, PROT_READ | PROT_WRITE, kFlags | MAP_32BIT, -1, 0));
    code_ = static_cast<uint8_t*>(map_near(text_page(), kPage));
    ASSERT_NE(words_, MAP_FAILED);
    ASSERT_NE(code_, MAP_FAILED);
  }
  void TearDown() override {
    munmap(words_, kPage);
    munmap(code_, kPage);
  }

  // Word 0: entry, 1: offset, 2: return, 3: conditional tail jump.
  Expected<void> emit(std::span<const Point> points, std::vector<uint8_t>& code) {
    for (const Point& point : points) {
      const unsigned word = point.side == Side::Taken ? 3 : static_cast<unsigned>(point.kind);
      CLEW_TRY(set_word(static_cast<uint32_t>(address_of_word(word)), code));
    }
    return {};
  }
  static uint64_t text_page() { return at(points_case) & ~(kPage - 1); }
  uint64_t address_of_word(unsigned word) { return reinterpret_cast<uint64_t>(words_ + word); }

  uint32_t* words_ = nullptr;
  uint8_t* code_ = nullptr;
};

TEST_F(Points, RunBeforeTheirInstructionsAndConditionalOnesWhenTaken) {
  TextCase text(points_case, points_case_end);
  text.function(points_case, points_other).function(points_other, points_case_end);
  const std::vector<Request> requests = {{RequestKind::Entry, at(points_case)},
                                         {RequestKind::Offset, at(points_jump)},
                                         {RequestKind::Exits, at(points_case)}};
  const Plan plan = plan_windows(analyse(text.text), requests);
  ASSERT_EQ(plan.refusals.size(), 0U);
  ASSERT_EQ(plan.windows.size(), 1U);
  const auto copy = relocate(plan.windows[0], plan.points_of(0),
                             {.destination = reinterpret_cast<uint64_t>(code_)},
                             [this](std::span<const Point> points, uint64_t,
                                    std::vector<uint8_t>& code) { return emit(points, code); });
  ASSERT_TRUE(copy) << copy.error().message;
  std::memcpy(code_, copy->bytes.data(), copy->bytes.size());
  const auto call = reinterpret_cast<int (*)(int)>(code_);
  EXPECT_EQ(call(5), 6);
  EXPECT_THAT(std::vector<uint32_t>(words_, words_ + 4), testing::ElementsAre(1, 1, 1, 0));
  std::fill(words_, words_ + 4, 0);
  EXPECT_EQ(call(0), 77);
  EXPECT_THAT(std::vector<uint32_t>(words_, words_ + 4), testing::ElementsAre(1, 1, 0, 1));
}

TEST_F(Points, PatchesLeadToTheCopyAndKnowTheOriginal) {
  TextCase text(points_case, points_case_end);
  text.function(points_case, points_other).function(points_other, points_case_end);
  const std::vector<Request> requests = {{RequestKind::Entry, at(points_case)}};
  const Plan plan = plan_windows(analyse(text.text), requests);
  const uint64_t destination = reinterpret_cast<uint64_t>(code_) + 128;
  const auto copy = relocate(plan.windows[0], {}, {.destination = destination}, {});
  ASSERT_TRUE(copy);
  ASSERT_EQ(copy->patches.size(), 1U);
  const Patch& patch = copy->patches[0];
  constexpr unsigned kKept = 2;  // The first instruction.
  EXPECT_EQ(patch.address, at(points_case) + kKept);
  EXPECT_TRUE(std::equal(points_case + kKept, points_case + kKept + 5, patch.original.begin()));
  EXPECT_EQ(patch.replacement[0], 0xe9);
  const auto distance = signed_field(patch.replacement, 1, 4);
  EXPECT_EQ(patch.address + 5 + static_cast<uint64_t>(distance), destination);
}

TEST_F(Points, FindRoomInReachWhereOthersAreAlready) {
  void* const second = map_near(text_page(), kPage);
  ASSERT_NE(second, MAP_FAILED);
  EXPECT_NE(second, code_);
  EXPECT_LE(reinterpret_cast<uint64_t>(second) - text_page(), uint64_t{1} << 30);
  munmap(second, kPage);
}

TEST_F(Points, AnArenaOutOfReachIsAnError) {
  TextCase text(points_case, points_case_end);
  text.function(points_case, points_other).function(points_other, points_case_end);
  const std::vector<Request> requests = {{RequestKind::Entry, at(points_case)}};
  const Plan plan = plan_windows(analyse(text.text), requests);
  const uint64_t far = at(points_case) + (uint64_t{1} << 31) + kPage;
  const auto copy = relocate(plan.windows[0], {}, {.destination = far}, {});
  ASSERT_FALSE(copy);
  EXPECT_EQ(copy.error().code, ErrorCode::Limit);
}

}  // namespace
}  // namespace clew::code

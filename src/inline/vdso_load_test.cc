// SPDX-License-Identifier: Apache-2.0
// Where the load without a fault can be, and how it comes and goes. That it works needs a kernel
// with an exception table: tests/kernel_machine/loads.
#include "inline/vdso_load.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "inline/victim.h"

namespace clew::inline_ {
namespace {

using Bytes = std::vector<uint8_t>;
using testing::HasSubstr;
using testing_::Victim;

constexpr std::chrono::milliseconds kLoadTimeout{1000};

const Bytes kEnclu = {0x0F, 0x01, 0xD7};
const Bytes kReturn = {0x31, 0xC0, 0xC3};            // xor eax, eax; ret
const Bytes kJumpBack = {0xEB, 0xF0};                // jmp
const Bytes kKeepLeaf = {0x89, 0x43, 0x08};          // mov [rbx + 8], eax
const Bytes kKeepNumber = {0x66, 0x89, 0x7B, 0x0C};  // mov [rbx + 12], di
const Bytes kKeepOther = {0x66, 0x89, 0x73, 0x0E};   // mov [rbx + 14], si
const Bytes kPadding(16, 0xCC);

Bytes joined(const std::vector<Bytes>& parts) {
  Bytes all;
  for (const Bytes& part : parts)
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

std::string refusal_of(const Bytes& image) {
  const auto places = find_load_places(image);
  return places ? "" : places.error().message;
}

TEST(LoadPlaces, AreTheInstructionOfTheTableAndWhereItsFaultsLand) {
  const Bytes image = joined({kPadding, kEnclu, kReturn, kJumpBack, kKeepLeaf, kKeepNumber,
                              kKeepOther, kJumpBack, kPadding});
  const auto places = find_load_places(image);
  ASSERT_TRUE(places) << places.error().message;
  EXPECT_EQ(places->load, 16U);
  EXPECT_EQ(places->landing, 16U + 3 + 3 + 2);  // Behind the jump, in front of the line.
}

TEST(LoadPlaces, AreNoneInOtherImages) {
  EXPECT_THAT(refusal_of({}), HasSubstr("no exception table"));
  EXPECT_THAT(refusal_of(kPadding), HasSubstr("no exception table"));
  EXPECT_THAT(refusal_of(joined({kEnclu, kReturn, kPadding})), HasSubstr("unknown kind"));
  EXPECT_THAT(refusal_of(joined({kEnclu, kReturn, kEnclu, kReturn, kKeepNumber, kPadding})),
              HasSubstr("unknown kind"));
  // The line begins where the load's own code is.
  EXPECT_THAT(refusal_of(joined({kEnclu, kKeepNumber, kPadding})), HasSubstr("unknown kind"));
  EXPECT_THAT(refusal_of(joined({kEnclu, kReturn, kKeepNumber})), testing::IsEmpty());
  for (size_t size = 0; size < 9; ++size) {
    Bytes cut = joined({kEnclu, kReturn, kKeepNumber});
    cut.resize(size);
    EXPECT_FALSE(find_load_places(cut)) << size;
  }
}

TEST(LoadPlaces, OfThisMachineAreFoundOrThereIsAReason) {
  const auto& places = load_places_here();
  if (!places) {
    EXPECT_EQ(places.error().code, ErrorCode::NotFound);
    EXPECT_FALSE(places.error().message.empty());
    return;
  }
  EXPECT_LT(places->load, places->landing);
}

class WrittenLoad : public testing::Test {
 protected:
  // Two places at the vDSO's end, where no code is.
  void SetUp() override {
    maps_ = target::read_memory_map(victim_.pid()).value();
    const auto vdso = std::find_if(maps_.begin(), maps_.end(),
                                   [](const auto& map) { return map.path == "[vdso]"; });
    ASSERT_NE(vdso, maps_.end());
    record_.load = vdso->end - 16;
    record_.landing = vdso->end - 8;
    const Bytes now = bytes();
    std::copy_n(now.begin(), kLoadCode.size(), record_.load_original);
    std::copy_n(now.begin() + 8, kLandingCode.size(), record_.landing_original);
  }

  [[nodiscard]] Bytes bytes() const {
    Bytes now(16);
    EXPECT_TRUE(target::read_memory(victim_.pid(), record_.load, now));
    return now;
  }

  Victim victim_{CLEW_COUNTER_VICTIM};
  std::vector<target::Mapping> maps_;
  abi::LoadRecord record_{};
};

TEST_F(WrittenLoad, GoesAsItCame) {
  const Bytes before = bytes();
  ASSERT_TRUE(is_in_vdso(record_, maps_));
  StoppedTarget target = StoppedTarget::stop(victim_.pid(), kLoadTimeout).value();
  for (int turn = 0; turn < 2; ++turn) {
    ASSERT_TRUE(write_load(target, record_));
    const Bytes now = bytes();
    EXPECT_TRUE(std::equal(kLoadCode.begin(), kLoadCode.end(), now.begin()));
    EXPECT_TRUE(std::equal(kLandingCode.begin(), kLandingCode.end(), now.begin() + 8));
  }
  for (int turn = 0; turn < 2; ++turn) {
    ASSERT_TRUE(remove_load(target, record_));
    EXPECT_EQ(bytes(), before);
  }
}

TEST_F(WrittenLoad, LeavesWhatOthersWrite) {
  StoppedTarget target = StoppedTarget::stop(victim_.pid(), kLoadTimeout).value();
  const Bytes trap = {0xCC};
  ASSERT_TRUE(target.write(record_.load, trap));
  const Bytes theirs = bytes();
  const auto written = write_load(target, record_);
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, ErrorCode::Refused);
  ASSERT_TRUE(remove_load(target, record_));
  EXPECT_EQ(bytes(), theirs);
}

TEST_F(WrittenLoad, IsLookedForInTheVdsoAlone) {
  abi::LoadRecord elsewhere = record_;
  elsewhere.load = maps_.front().start;
  EXPECT_FALSE(is_in_vdso(elsewhere, maps_));
  elsewhere = record_;
  elsewhere.landing = record_.landing + 7;  // Its last byte is behind the end.
  EXPECT_FALSE(is_in_vdso(elsewhere, maps_));
  EXPECT_FALSE(is_in_vdso(record_, {}));
}

}  // namespace
}  // namespace clew::inline_

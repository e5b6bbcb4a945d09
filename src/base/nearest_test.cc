// SPDX-License-Identifier: Apache-2.0
#include "base/nearest.h"

#include <array>

#include <gtest/gtest.h>

namespace clew {
namespace {

constexpr std::array<std::string_view, 3> kNames = {"charge_card", "lookupKey", "main"};

TEST(Nearest, FindsASwappedLetter) {
  EXPECT_EQ(nearest_name("charge_crad", kNames), "charge_card");
}

TEST(Nearest, IgnoresCase) {
  EXPECT_EQ(nearest_name("LOOKUPKEY", kNames), "lookupKey");
}

TEST(Nearest, SaysNothingWhenNothingIsNear) {
  EXPECT_EQ(nearest_name("zzzzzzzz", kNames), "");
}

TEST(Nearest, DistanceStopsAtTheLimit) {
  EXPECT_EQ(edit_distance("abc", "xyz", 1), 2U);
  EXPECT_EQ(edit_distance("abcd", "acbd", 3), 1U);
}

}  // namespace
}  // namespace clew

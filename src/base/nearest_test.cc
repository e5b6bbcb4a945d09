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

TEST(Nearest, FindsANameWithoutWhatIsAroundIt) {
  constexpr std::array<std::string_view, 4> kScoped = {"main", "shop::Cart::add(std::string)",
                                                       "shop::map<std::string>::find",
                                                       "(anonymous namespace)::total"};
  constexpr std::array<std::string_view, 2> kPlain = {"shop::Cart::add", "shop::Card::pay"};
  EXPECT_EQ(nearest_name("Cart::add", kPlain), "shop::Cart::add");
  EXPECT_EQ(nearest_name("add", kPlain), "shop::Cart::add");
  EXPECT_EQ(nearest_name("Card::pya", kPlain), "shop::Card::pay");
  EXPECT_EQ(nearest_name("shop::Cart::ad", kPlain), "shop::Cart::add");
  EXPECT_EQ(nearest_name("Basket::add", kPlain), "");
  EXPECT_EQ(nearest_name("find", kScoped), "shop::map<std::string>::find");
  EXPECT_EQ(nearest_name("string>::find", kScoped), "");
  EXPECT_EQ(nearest_name("total", kScoped), "(anonymous namespace)::total");
  EXPECT_EQ(nearest_name("main", kScoped), "main");
}

TEST(Nearest, DistanceStopsAtTheLimit) {
  EXPECT_EQ(edit_distance("abc", "xyz", 1), 2U);
  EXPECT_EQ(edit_distance("abcd", "acbd", 3), 1U);
}

}  // namespace
}  // namespace clew

// SPDX-License-Identifier: Apache-2.0
#include "aggregate/value.h"

#include <gtest/gtest.h>

namespace clew::aggregate {
namespace {

TEST(FrameText, HasTheModuleTheFunctionAndTheOffset) {
  EXPECT_EQ(text_of(Frame{.symbol = "serve", .offset = 0x1f, .module = "shop"}), "shop!serve+0x1f");
  EXPECT_EQ(text_of(Frame{.symbol = "serve", .module = "shop"}), "shop!serve");
  EXPECT_EQ(text_of(Frame{.address = 0xdead}), "0xdead");
  EXPECT_EQ(text_of(Frame{.module = "shop", .address = 0xdead}), "shop!0xdead");
  EXPECT_EQ(text_of(Frame{
                .symbol = "add", .module = "shop", .file = "cart.c", .line = 7, .inlined = true}),
            "shop!add (cart.c:7) [inlined]");
}

TEST(FrameText, HasOneOffsetWhereTheFunctionIsCalledAfterItsPlace) {
  EXPECT_EQ(text_of(Frame{.symbol = "bc+0xbb60", .offset = 0x128, .module = "bc"}), "bc+0xbc88");
  EXPECT_EQ(text_of(Frame{.symbol = "bc+0xbb60", .module = "bc"}), "bc+0xbb60");
}

TEST(FrameText, KeepsNamesThatOnlyLookLikeAPlace) {
  EXPECT_EQ(text_of(Frame{.symbol = "bc+0xbb60", .offset = 1, .module = "dc"}), "dc!bc+0xbb60+0x1");
  EXPECT_EQ(text_of(Frame{.symbol = "bc+0xyz", .offset = 1, .module = "bc"}), "bc!bc+0xyz+0x1");
  EXPECT_EQ(text_of(Frame{.symbol = "+0x10", .offset = 1}), "+0x10+0x1");
}

}  // namespace
}  // namespace clew::aggregate

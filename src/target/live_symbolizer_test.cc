// SPDX-License-Identifier: Apache-2.0
#include "target/live_symbolizer.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace clew::target {
namespace {

uint64_t an_address_here() {
  return reinterpret_cast<uint64_t>(&an_address_here);
}

TEST(LiveSymbolizer, KnowsTheTargetByItsPidAndAsTheTarget) {
  AddressSpaces spaces;
  const LiveSymbolizer symbols(spaces, getpid(), true);
  for (const uint64_t pid : {static_cast<uint64_t>(getpid()), Symbolizer::kTarget}) {
    const auto place = symbols.user(pid, an_address_here());
    ASSERT_TRUE(place.has_value()) << pid;
    EXPECT_EQ(place->module, "target_test");
  }
}

// The idle thread is in no process: its addresses are not those of the target.
TEST(LiveSymbolizer, PidZeroHasNoNames) {
  AddressSpaces spaces;
  const LiveSymbolizer symbols(spaces, getpid(), true);
  EXPECT_FALSE(symbols.user(0, an_address_here()).has_value());
}

TEST(LiveSymbolizer, WithoutATargetNothingIsItsOwn) {
  AddressSpaces spaces;
  const LiveSymbolizer symbols(spaces, 0, true);
  EXPECT_FALSE(symbols.user(Symbolizer::kTarget, an_address_here()).has_value());
}

}  // namespace
}  // namespace clew::target

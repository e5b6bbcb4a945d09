// SPDX-License-Identifier: Apache-2.0
#include "engine/uprobe_sites.h"

#include <gtest/gtest.h>

#include "code/refusal.h"

namespace clew::engine {
namespace {

using code::RefusalReason;

constexpr RefusalReason kLast = static_cast<RefusalReason>(code::kRefusalReasons - 1);

size_t taken_of_all(UprobePolicy policy) {
  size_t taken = 0;
  for (unsigned i = 0; i <= static_cast<unsigned>(kLast); ++i)
    taken += takes_uprobe(static_cast<RefusalReason>(i), policy) ? 1 : 0;
  return taken;
}

TEST(UprobeSites, AreByDefaultThoseWhereAJumpWouldBeUnsafe) {
  EXPECT_TRUE(takes_uprobe(RefusalReason::LaterUprobe, UprobePolicy::WhereLate));
  EXPECT_EQ(taken_of_all(UprobePolicy::WhereLate), 1U);
  EXPECT_EQ(taken_of_all(UprobePolicy::Never), 0U);
}

TEST(UprobeSites, AreOnRequestThoseWithoutRoomForAJump) {
  constexpr UprobePolicy kPolicy = UprobePolicy::WhereRefused;
  for (const RefusalReason reason : {RefusalReason::LaterUprobe, RefusalReason::TooShort,
                                     RefusalReason::NoRoomForExit, RefusalReason::BranchIntoWindow})
    EXPECT_TRUE(takes_uprobe(reason, kPolicy)) << code::name(reason);
}

// Hits would be no calls, or a trap would do harm.
TEST(UprobeSites, AreNeverThoseWhereATrapMeansSomethingElse) {
  constexpr UprobePolicy kPolicy = UprobePolicy::WhereRefused;
  for (const RefusalReason reason :
       {RefusalReason::EntryIsLoopHead, RefusalReason::Rseq, RefusalReason::DataInText,
        RefusalReason::ColdPart, RefusalReason::ForeignPatch, RefusalReason::WindowInUse})
    EXPECT_FALSE(takes_uprobe(reason, kPolicy)) << code::name(reason);
}

TEST(UprobeSites, AreToldToWhoIsRefused) {
  const collect::RefusedSite late{.function = "f", .kind = "entry", .reason = "later-uprobe"};
  const collect::RefusedSite no_room{.function = "f", .kind = "exit", .reason = "no-room-for-exit"};
  EXPECT_EQ(way_out(late, UprobePolicy::Never),
            "; its count may be possible, and --allow-late-uprobe-danger takes it all the same");
  EXPECT_EQ(way_out(no_room, UprobePolicy::WhereLate),
            "; --uprobes may have a uprobe there; its entry may be possible: clew list --sites");
}

}  // namespace
}  // namespace clew::engine

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

query::Query query_of(query::SourceKind kind) {
  query::Query query;
  query.sources.emplace_back().kind = kind;
  return query;
}

const collect::RefusedSite kLate{.function = "f", .kind = "entry", .reason = "later-uprobe"};
const collect::RefusedSite kNoRoom{.function = "f", .kind = "exit", .reason = "no-room-for-exit"};
const collect::RefusedSite kShort{.function = "f", .kind = "entry", .reason = "too-short"};

TEST(UprobeSites, AreToldToWhoIsRefused) {
  EXPECT_EQ(way_out(kLate, query_of(query::SourceKind::Entry), UprobePolicy::Never),
            "; ask for its count alone, or put a jump there with --allow-late-uprobe-danger");
  EXPECT_EQ(way_out(kNoRoom, query_of(query::SourceKind::Return), UprobePolicy::WhereLate),
            "; --uprobes may have a uprobe there; its entry may be possible: clew list --sites");
  EXPECT_EQ(way_out(kShort, query_of(query::SourceKind::Entry), UprobePolicy::WhereLate),
            "; --uprobes may have a uprobe there");
}

TEST(UprobeSites, AreNotToldWhereTheyAreSetAnyway) {
  const std::string told =
      way_out(kLate, query_of(query::SourceKind::Entry), UprobePolicy::WhereLate);
  EXPECT_EQ(told.find("--uprobes"), std::string::npos) << told;
}

TEST(UprobeSites, AreNotToldWhereTheyCannotServeTheQuery) {
  query::Query query = query_of(query::SourceKind::Entry);
  query::Expression& argument = query.where.emplace_back();
  argument.kind = query::ExpressionKind::Field;
  argument.field = query::Field::Argument;
  argument.type.kind = query::TypeKind::Float;
  EXPECT_EQ(way_out(kShort, query, UprobePolicy::WhereLate), "");
  EXPECT_EQ(way_out(kLate, query, UprobePolicy::WhereLate),
            "; ask for its count alone, or put a jump there with --allow-late-uprobe-danger");
  EXPECT_EQ(uprobes_of_root({kLate, kShort}, query, UprobePolicy::WhereRefused), "");
}

}  // namespace
}  // namespace clew::engine

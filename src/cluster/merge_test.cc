// SPDX-License-Identifier: Apache-2.0
// What a merge lacks of partials that a root before it has.
#include "cluster/merge.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "aggregate/table_bytes.h"
#include "cluster/chunks.h"
#include "cluster/world_testing.h"

namespace clew::cluster {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Behind `previous`; a root has told the node that it has all up to `safe`.
void take(Merge& merge, Pane pane, Pane previous, Pane safe) {
  aggregate::Table table(counts_by_node());
  table.add({aggregate::Value(std::string("a"))}, std::vector<uint64_t>{1});
  auto chunks = split(to_bytes(table)).value();
  ASSERT_EQ(chunks.size(), 1U);
  ASSERT_TRUE(merge.add({.query = "q",
                         .node = "a",
                         .pane = pane,
                         .previous = previous,
                         .safe = safe,
                         .table = std::move(chunks[0])},
                        1));
}

NodeGap gap(Pane first, Pane last) {
  return {.node = "a", .panes = {.first = first, .last = last}};
}

TEST(Merges, NameNothingThatIsSafeWithThem) {
  Merge merge;
  take(merge, 5, kNoPane, kNoPane);
  take(merge, 6, 5, kNoPane);
  take(merge, 7, kNoPane, 6);
  merge.note_safe("a", {}, 7);
  EXPECT_THAT(merge.take_elsewhere(), IsEmpty());
  EXPECT_EQ(merge.mark("a", {}), 7);
}

// Its log has the first two, and the node has only what is behind the fifth.
TEST(Merges, NameWhatARootBeforeHas) {
  Merge merge;
  take(merge, 5, kNoPane, kNoPane);
  take(merge, 6, 5, kNoPane);
  take(merge, 10, kNoPane, 9);
  EXPECT_THAT(merge.take_elsewhere(), ElementsAre(gap(7, 9)));
  EXPECT_EQ(merge.mark("a", {}), 10);
  take(merge, 11, kNoPane, 10);
  EXPECT_THAT(merge.take_elsewhere(), IsEmpty());
}

// A node that has nothing to send says it by its beats.
TEST(Merges, NameWhatANodeSaysThatARootBeforeHas) {
  Merge merge;
  merge.note_safe("a", {}, kNoPane);
  EXPECT_THAT(merge.take_elsewhere(), IsEmpty());
  merge.note_safe("a", {}, 9);
  EXPECT_THAT(merge.take_elsewhere(), ElementsAre(gap(kNoPane, 9)));
  take(merge, 10, kNoPane, 9);
  merge.note_safe("a", {}, 9);
  EXPECT_THAT(merge.take_elsewhere(), IsEmpty());
}

// A life whose panes have all gone from a store is not news.
TEST(Merges, NameNothingOfALifeThatIsForgotten) {
  Merge merge;
  take(merge, 5, kNoPane, kNoPane);
  merge.saved();
  const auto all = [](const std::string&, const Incarnation&) { return true; };
  ASSERT_EQ(merge.forget_members(1'000, all).size(), 1U);
  merge.note_safe("a", {}, 5);
  EXPECT_THAT(merge.take_elsewhere(), IsEmpty());
}

// What is told of them is told anew, also where there are as many as before.
TEST(Merges, KnowThatOtherLivesAreKnown) {
  Merge merge;
  take(merge, 5, kNoPane, kNoPane);
  merge.saved();
  const uint64_t before = merge.lives();
  (void)merge.begin("a", {});
  EXPECT_EQ(merge.lives(), before);
  const auto all = [](const std::string&, const Incarnation&) { return true; };
  ASSERT_EQ(merge.forget_members(1'000, all).size(), 1U);
  ASSERT_TRUE(merge.begin("b", {}));
  EXPECT_NE(merge.lives(), before);
}

}  // namespace
}  // namespace clew::cluster

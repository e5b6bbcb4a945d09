// SPDX-License-Identifier: Apache-2.0
#include "cluster/node_gaps.h"

#include <limits>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace clew::cluster {
namespace {

using testing::ElementsAre;
using testing::SizeIs;

NodeGap gap_of(const std::string& node, Pane first, Pane last) {
  return {.node = node, .panes = {.first = first, .last = last}};
}

TEST(NodeGaps, ThatComePaneByPaneAreOne) {
  std::vector<NodeGap> gaps;
  for (Pane pane = 1; pane <= 5'000; ++pane) {
    add_gap(gaps, gap_of("a", pane, pane));
    if (pane % 1'000 != 0) add_gap(gaps, gap_of("b", pane, pane));
  }
  add_gap(gaps, gap_of("a", 4'000, 4'001));
  EXPECT_THAT(joined(gaps), ElementsAre(gap_of("a", 1, 5'000), gap_of("b", 1, 999),
                                        gap_of("b", 1'001, 1'999), gap_of("b", 2'001, 2'999),
                                        gap_of("b", 3'001, 3'999), gap_of("b", 4'001, 4'999)));
  EXPECT_THAT(gaps, SizeIs(6));
}

TEST(NodeGaps, AreThoseThatEndedLastWhereTheyAreTooMany) {
  std::vector<NodeGap> gaps;
  const auto add_some = [&gaps](Pane first, Pane last) {
    for (Pane pane = first; pane <= last; pane += 2)
      add_gap(gaps, gap_of(pane % 4 == 0 ? "a" : "b", pane, pane));
  };
  GapsCut cut;
  add_some(2, 2'000);
  keep_latest(gaps, cut);
  EXPECT_THAT(gaps, SizeIs(1'000));
  EXPECT_EQ(cut.gaps, 0U);
  add_some(2'002, 2'012);
  keep_latest(gaps, cut);
  EXPECT_THAT(gaps, SizeIs(1'000));
  EXPECT_EQ(gaps.front(), gap_of("b", 14, 14));
  EXPECT_EQ(gaps.back(), gap_of("a", 2'012, 2'012));
  EXPECT_EQ(cut.gaps, 6U);
  EXPECT_EQ(cut.panes, (PaneRange{.first = 2, .last = 12}));
  add_some(2'014, 2'014);
  keep_latest(gaps, cut);
  EXPECT_EQ(cut.gaps, 7U);
  EXPECT_EQ(cut.panes, (PaneRange{.first = 2, .last = 14}));
}

TEST(NodeGaps, AreNotCutWhereTheyCanBeJoined) {
  std::vector<NodeGap> gaps;
  for (Pane pane = 2'000; pane > 0; --pane)
    gaps.push_back(gap_of("a", pane, pane));
  GapsCut cut;
  keep_latest(gaps, cut);
  EXPECT_THAT(gaps, ElementsAre(gap_of("a", 1, 2'000)));
  EXPECT_EQ(cut.gaps, 0U);
}

// As nodes may say anything.
TEST(NodeGaps, MayBeOfAnyPanes) {
  constexpr Pane kLeast = std::numeric_limits<Pane>::min();
  constexpr Pane kMost = std::numeric_limits<Pane>::max();
  EXPECT_THAT(joined({gap_of("a", kMost, kMost), gap_of("a", kLeast, kLeast)}), SizeIs(2));
  EXPECT_THAT(joined({gap_of("a", kLeast, kMost), gap_of("a", kLeast, kLeast)}),
              ElementsAre(gap_of("a", kLeast, kMost)));
}

TEST(NodeGaps, AreNotSaidTwice) {
  std::vector<NodeGap> gaps = {{.node = "a", .panes = {.first = 3, .last = 5}},
                               {.node = "b", .panes = {.first = 3, .last = 5}}};
  const std::vector<NodeGap> known = {{.node = "a", .panes = {.first = 3, .last = 7}}};
  add_known(gaps, known);
  EXPECT_THAT(
      gaps, testing::ElementsAre(NodeGap{.node = "b", .panes = {.first = 3, .last = 5}}, known[0]));
}

}  // namespace
}  // namespace clew::cluster

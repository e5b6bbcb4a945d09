// SPDX-License-Identifier: Apache-2.0
// Lists of what an answer lacks of nodes. They are bounded: what does not fit is counted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cluster/message.h"

namespace clew::cluster {

inline constexpr size_t kGapsMost = 1000;

struct GapsCut {
  uint64_t gaps = 0;
  PaneRange panes{};  // All of them are within.
};

// What is lost pane by pane is one gap of its node.
void add_gap(std::vector<NodeGap>& gaps, NodeGap gap);
// `known` as well, in place of gaps that are within one of these.
void add_known(std::vector<NodeGap>& gaps, const std::vector<NodeGap>& known);
// Those of one node that touch are one; by node and pane.
std::vector<NodeGap> joined(std::vector<NodeGap> gaps);
// Too many are joined, and if that is not enough, those that ended last stay.
void keep_latest(std::vector<NodeGap>& gaps, GapsCut& cut);

}  // namespace clew::cluster

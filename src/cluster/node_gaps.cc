// SPDX-License-Identifier: Apache-2.0
#include "cluster/node_gaps.h"

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

namespace clew::cluster {
namespace {

// Numbers of panes may be any.
bool begins_within(const PaneRange& one, const PaneRange& other) {
  return one.first <= other.last || one.first == other.last + 1;
}

bool touch(const PaneRange& one, const PaneRange& other) {
  return begins_within(one, other) && begins_within(other, one);
}

void widen(PaneRange& all, const PaneRange& panes) {
  all.first = std::min(all.first, panes.first);
  all.last = std::max(all.last, panes.last);
}

}  // namespace

void add_gap(std::vector<NodeGap>& gaps, NodeGap gap) {
  const auto before = std::find_if(gaps.rbegin(), gaps.rend(),
                                   [&gap](const NodeGap& each) { return each.node == gap.node; });
  if (before != gaps.rend() && touch(before->panes, gap.panes))
    return widen(before->panes, gap.panes);
  gaps.push_back(std::move(gap));
}

void add_known(std::vector<NodeGap>& gaps, const std::vector<NodeGap>& known) {
  std::erase_if(gaps, [&known](const NodeGap& gap) {
    return std::any_of(known.begin(), known.end(), [&gap](const NodeGap& each) {
      return each.node == gap.node && each.panes.first <= gap.panes.first &&
             gap.panes.last <= each.panes.last;
    });
  });
  gaps.insert(gaps.end(), known.begin(), known.end());
}

std::vector<NodeGap> joined(std::vector<NodeGap> gaps) {
  std::sort(gaps.begin(), gaps.end(), [](const NodeGap& one, const NodeGap& other) {
    return std::tie(one.node, one.panes.first) < std::tie(other.node, other.panes.first);
  });
  std::vector<NodeGap> all;
  for (NodeGap& gap : gaps) {
    if (!all.empty() && all.back().node == gap.node && touch(all.back().panes, gap.panes)) {
      widen(all.back().panes, gap.panes);
    } else {
      all.push_back(std::move(gap));
    }
  }
  return all;
}

void keep_latest(std::vector<NodeGap>& gaps, GapsCut& cut) {
  if (gaps.size() <= kGapsMost) return;
  gaps = joined(std::move(gaps));
  if (gaps.size() <= kGapsMost) return;
  std::stable_sort(gaps.begin(), gaps.end(), [](const NodeGap& one, const NodeGap& other) {
    return one.panes.last < other.panes.last;
  });
  const auto end = std::prev(gaps.end(), static_cast<std::ptrdiff_t>(kGapsMost));
  for (auto gap = gaps.begin(); gap != end; ++gap) {
    if (cut.gaps++ == 0) cut.panes = gap->panes;
    widen(cut.panes, gap->panes);
  }
  gaps.erase(gaps.begin(), end);
}

}  // namespace clew::cluster

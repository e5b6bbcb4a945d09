// SPDX-License-Identifier: Apache-2.0
#include "cluster/gap_texts.h"

#include <algorithm>
#include <array>
#include <ctime>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "cluster/clock.h"

namespace clew::cluster {
namespace {

// Those of one node that touch are one.
std::vector<NodeGap> joined(std::vector<NodeGap> gaps) {
  std::sort(gaps.begin(), gaps.end(), [](const NodeGap& one, const NodeGap& other) {
    return std::tie(one.node, one.panes.first) < std::tie(other.node, other.panes.first);
  });
  std::vector<NodeGap> all;
  for (NodeGap& gap : gaps) {
    const bool goes_on =
        !all.empty() && all.back().node == gap.node && all.back().panes.last >= gap.panes.first - 1;
    if (goes_on) {
      all.back().panes.last = std::max(all.back().panes.last, gap.panes.last);
    } else {
      all.push_back(std::move(gap));
    }
  }
  return all;
}

std::string time_of_day(int64_t time_ns) {
  const time_t seconds = time_ns / kSecond;
  tm parts{};
  std::array<char, 16> text{};
  if (localtime_r(&seconds, &parts) != nullptr)
    (void)std::strftime(text.data(), text.size(), "%H:%M:%S", &parts);
  return fmt::format("{}.{:03}", text.data(), time_ns % kSecond / 1'000'000);
}

}  // namespace

bool has_gap(const std::vector<NodeGap>& gaps, Pane pane) {
  return std::any_of(gaps.begin(), gaps.end(), [pane](const NodeGap& gap) {
    return gap.panes.first <= pane && pane <= gap.panes.last;
  });
}

std::vector<std::string> texts_of(std::vector<NodeGap> gaps, const stream::Panes& panes,
                                  std::optional<Pane> first) {
  std::vector<std::string> texts;
  for (const NodeGap& gap : joined(std::move(gaps))) {
    if (!first) {
      texts.push_back(fmt::format("node {} lacks what was from {} to {}", gap.node,
                                  time_of_day(panes.begin(gap.panes.first)),
                                  time_of_day(panes.end(gap.panes.last))));
      continue;
    }
    const Pane begin = std::max<Pane>(gap.panes.first - *first + 1, 1);
    const Pane end = gap.panes.last - *first + 1;
    if (end < begin) continue;
    texts.push_back(begin == end
                        ? fmt::format("node {} lacks interval {}", gap.node, begin)
                        : fmt::format("node {} lacks intervals {} to {}", gap.node, begin, end));
  }
  return texts;
}

}  // namespace clew::cluster

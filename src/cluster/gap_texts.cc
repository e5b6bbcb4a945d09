// SPDX-License-Identifier: Apache-2.0
#include "cluster/gap_texts.h"

#include <algorithm>
#include <array>
#include <ctime>
#include <utility>

#include <fmt/format.h>

#include "cluster/clock.h"
#include "cluster/node_gaps.h"

namespace clew::cluster {
namespace {

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

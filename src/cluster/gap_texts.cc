// SPDX-License-Identifier: Apache-2.0
#include "cluster/gap_texts.h"

#include <algorithm>
#include <array>
#include <ctime>
#include <string_view>
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

// Of what has no begin: "what was before".
std::string times_text(const PaneRange& gap, const stream::Panes& panes) {
  const std::string end = time_of_day(panes.end(gap.last));
  if (gap.first == kNoPane) return "what was before " + end;
  return fmt::format("what was from {} to {}", time_of_day(panes.begin(gap.first)), end);
}

// Empty: all of it is before the first interval.
std::string numbers_text(const PaneRange& gap, Pane first) {
  const Pane begin = std::max(gap.first, first) - first + 1;
  const Pane end = gap.last - first + 1;
  if (end < begin) return "";
  return begin == end ? fmt::format("interval {}", begin)
                      : fmt::format("intervals {} to {}", begin, end);
}

std::vector<std::string> texts(std::vector<NodeGap> gaps, const stream::Panes& panes,
                               std::optional<Pane> first, std::string_view lacks) {
  std::vector<std::string> texts;
  for (const NodeGap& gap : joined(std::move(gaps))) {
    const std::string what = first ? numbers_text(gap.panes, *first) : times_text(gap.panes, panes);
    const std::string who = gap.node.empty() ? "some node" : "node " + gap.node;
    if (!what.empty()) texts.push_back(fmt::format("{} {} {}", who, lacks, what));
  }
  return texts;
}

}  // namespace

bool has_gap(const std::vector<NodeGap>& gaps, Pane pane) {
  return std::any_of(gaps.begin(), gaps.end(), [pane](const NodeGap& gap) {
    return gap.panes.first <= pane && pane <= gap.panes.last;
  });
}

std::vector<std::string> texts_of(std::vector<NodeGap> gaps, const stream::Panes& panes,
                                  std::optional<Pane> first) {
  return texts(std::move(gaps), panes, first, "lacks");
}

std::vector<std::string> texts_of_unsure(std::vector<NodeGap> gaps, const stream::Panes& panes,
                                         std::optional<Pane> first) {
  return texts(std::move(gaps), panes, first, "may lack");
}

}  // namespace clew::cluster

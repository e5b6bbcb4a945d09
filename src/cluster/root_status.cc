// SPDX-License-Identifier: Apache-2.0
// What a root says of a query to whoever asked it: who counts, who does not and why, and what the
// answer lacks.
#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "cluster/digest.h"
#include "cluster/root.h"
#include "stream/pane.h"

namespace clew::cluster {
namespace {

constexpr size_t kRefusalsTold = 20;
constexpr size_t kRangesTold = 8;  // Of a node.
constexpr size_t kLostTold = 20;
constexpr size_t kLostKept = 100;  // Of nodes that were begun anew.

std::string time_of(int64_t ns) {
  return fmt::format("{:%H:%M:%S}", fmt::localtime(static_cast<time_t>(ns / kSecond)));
}

// "02:33:34 to 02:33:40", with more of them where there are.
std::string times_of(const std::vector<PaneRange>& ranges, const stream::Panes& panes) {
  std::string text;
  for (size_t i = 0; i < ranges.size() && i < kRangesTold; ++i) {
    text += fmt::format("{}{} to {}", i == 0 ? "" : ", ", time_of(panes.begin(ranges[i].first)),
                        time_of(panes.end(ranges[i].last)));
  }
  if (ranges.size() > kRangesTold) text += fmt::format(" and {} more", ranges.size() - kRangesTold);
  return text;
}

void tell_spilled(const std::string& node, const NodeQuery& said, const stream::Panes& panes,
                  std::vector<std::string>& lost) {
  if (!said.lost.empty()) {
    lost.push_back(fmt::format("what node {} counted from {}: it had no room to keep it", node,
                               times_of(said.lost, panes)));
  }
  if (!said.merged.empty()) {
    lost.push_back(fmt::format("of node {}, intervals from {} are counted in the last one of each",
                               node, times_of(said.merged, panes)));
  }
}

}  // namespace

// A life of the node has ended, and what it told with it.
void Root::keep_lost(const std::string& node) {
  for (auto& [query, asked] : asked_) {
    const auto said = asked.nodes.find(node);
    if (said == asked.nodes.end() || asked.lost.size() >= kLostKept) continue;
    tell_spilled(node, said->second, panes_of(asked.want), asked.lost);
    said->second.lost.clear();
    said->second.merged.clear();
  }
}

// To whoever asked.
void Root::tell(Asked& asked) {
  asked.has_news = false;
  (void)bus_.publish(subjects_.status(asked.want.query), to_bytes(status_of(asked)));
}

Status Root::status_of(const Asked& asked) const {
  Status status{.query = asked.want.query,
                .phase = asked.out.empty() ? asked.phase : Phase::Draining,
                .reason = asked.reason,
                .answered = asked.answered,
                .asker = asked.want.asker,
                .root = options_.name,
                .has_store = store_ != nullptr,
                .first_row = asked.rows.first(),
                .rows = asked.rows.last()};
  std::map<std::string, Refusal> refusals;
  const auto refuse = [&refusals](const std::string& node, const std::string& reason) {
    Refusal& one = refusals[reason];
    if (one.nodes++ == 0) one = {.reason = reason, .node = node, .nodes = 1};
  };
  for (const auto& [node, said] : asked.nodes) {
    const auto member = members_.find(node);
    const bool is_silent = member == members_.end() || !is_alive(member->second);
    if (is_silent) ++status.silent;
    if (!is_silent && counts(said.state)) ++status.armed;
    if (!said.reason.empty()) refuse(node, said.reason);
  }
  for (const auto& [node, why] : asked.strangers)
    refuse(node, why);
  for (const auto& [node, member] : members_) {
    if (!is_alive(member)) continue;
    ++status.nodes;
    if (has_labels(member.last.labels, asked.want.labels)) ++status.meant;
  }
  status.lost = asked.lost;
  for (const auto& [node, said] : asked.nodes)
    tell_spilled(node, said, panes_of(asked.want), status.lost);
  if (asked.merge.late() != 0)
    status.lost.push_back(fmt::format("{} tables of intervals long over", asked.merge.late()));
  for (auto& [reason, one] : refusals) {
    if (status.refusals.size() < kRefusalsTold) status.refusals.push_back(std::move(one));
  }
  // What a root before has kept in words may be said again.
  std::sort(status.lost.begin(), status.lost.end());
  status.lost.erase(std::unique(status.lost.begin(), status.lost.end()), status.lost.end());
  if (status.lost.size() > kLostTold) {
    const size_t more = status.lost.size() - kLostTold;
    status.lost.resize(kLostTold);
    status.lost.push_back(fmt::format("and {} more of this kind", more));
  }
  return status;
}

}  // namespace clew::cluster

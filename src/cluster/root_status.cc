// SPDX-License-Identifier: Apache-2.0
// What a root says of a query to whoever asked it: who counts, who does not and why, and what the
// answer lacks.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <map>
#include <set>
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
constexpr size_t kSilentTold = 8;
constexpr size_t kRangesTold = 8;  // Of a node.
constexpr size_t kLostTold = 20;
constexpr size_t kLostKept = 100;  // Of nodes that were begun anew.
constexpr size_t kUnreadMax = 1000;
constexpr int64_t kSkewAllowed = kSecond / 2;  // Messages take their time.

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

void tell_merged(const std::string& node, const NodeQuery& said, const stream::Panes& panes,
                 std::vector<std::string>& lost) {
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
    if (said == asked.nodes.end()) continue;
    if (asked.lost.size() < kLostKept)
      tell_merged(node, said->second, panes_of(asked.want), asked.lost);
    asked.dropped = dropped_of(asked, asked.cut);
    said->second.lost.clear();
    said->second.merged.clear();
  }
}

// Intervals of the store that are damaged.
void Root::tell_unreadable(Asked& asked) {
  std::vector<PaneRange> ranges;
  for (const Pane pane : asked.merge.unreadable()) {
    if (!ranges.empty() && ranges.back().last + 1 == pane) {
      ranges.back().last = pane;
    } else {
      ranges.push_back({.first = pane, .last = pane});
    }
  }
  const size_t count = asked.merge.unreadable().size();
  const std::string text =
      fmt::format("{} interval{} of the store, which cannot be read: from {}", count,
                  count == 1 ? "" : "s", times_of(ranges, panes_of(asked.want)));
  asked.lost.push_back(text);
  notes_.push_back(fmt::format("query {} has lost {}", asked.want.query, text));
}

// Two that are heard by turns have one name: they hear it by the answers to their beats, and the
// one that began later ends.
void Root::note_life(Member& member, const Beat& said) {
  const bool was_there = member.heard_ns != 0;
  if (was_there && member.before == said.incarnation) {
    const std::string note =
        fmt::format("two nodes are called {}: one has to have another --name", said.node);
    if (std::exchange(forger_, note) != note) notes_.push_back(note);
  } else {
    notes_.push_back(fmt::format("node {} is there", said.node));
  }
  if (was_there) member.before = member.last.incarnation;
  keep_lost(said.node);
}

// Of another version, most of all: it is told to whoever asks, and once here.
void Root::note_unread(const Message& message, const Error& why) {
  if (why.code != ErrorCode::Refused || unread_.size() >= kUnreadMax) return;
  const bool is_beat = message.subject.starts_with(subjects_.beat(""));
  if (message.subject == subjects_.ask()) {
    const Status said{.query = std::string(kOfStrangers), .root = options_.name};
    (void)bus_.publish(subjects_.status(kOfStrangers), to_bytes(said));
  } else if (!is_beat) {
    (void)bus_.publish(subjects_.found(kOfStrangers), to_bytes(Found{}));
  }
  const std::string who =
      is_beat ? std::string(Subjects::node_of(message.subject)) : std::string("who asks");
  std::string text = why.message + "; all need the same version of clew";
  if (std::exchange(unread_[who], text) == text) return;
  notes_.push_back(fmt::format("{}{} is not understood: {}", is_beat ? "node " : "", who, text));
}

// Of nodes that were killed and begun anew, that are not heard any more, or whose session has gone;
// of those alone that had begun to count.
std::vector<NodeGap> Root::gaps_of(const Asked& asked, GapsCut& cut) const {
  const auto is_gone = [&](const std::string& node, const Incarnation& incarnation) {
    const auto life = asked.lives.find(node);
    const auto member = members_.find(node);
    const bool is_heard = life != asked.lives.end() && life->second == incarnation &&
                          member != members_.end() && is_alive(member->second) &&
                          member->second.last.incarnation == incarnation;
    return !is_heard || !counts(asked.nodes.at(node).state) || asked.ended_ns != 0;
  };
  std::vector<NodeGap> gaps =
      asked.given ? asked.merge.gaps(*asked.given, is_gone) : std::vector<NodeGap>();
  add_known(gaps, lasting_gaps_of(asked, cut));
  keep_latest(gaps, cut);
  return gaps;
}

// Whatever comes of their nodes later: a root that begins on our store does not know it otherwise.
std::vector<NodeGap> Root::lasting_gaps_of(const Asked& asked, GapsCut& cut) const {
  std::vector<NodeGap> gaps = dropped_of(asked, cut);
  const std::vector<NodeGap> unsure = asked.merge.unsure(known_behind(asked));
  gaps.insert(gaps.end(), unsure.begin(), unsure.end());
  keep_latest(gaps, cut);
  return gaps;
}

// Where nobody knows who counted for a root before, whoever is not heard by this pane counts no
// more: nodes take their probes out when no root has answered for so long.
Pane Root::known_behind(const Asked& asked) const {
  const auto lease_ns = static_cast<int64_t>(asked.want.lease_ns);
  return std::min(asked.given.value_or(kNoPane),
                  panes_of(asked.want).number_of(leads_since_ns_ + lease_ns));
}

// Up to here a node may count that is there and has said nothing of the query; none: none does. One
// that is not heard any more takes its probes out in time.
Pane Root::last_unheard(const Asked& asked) const {
  const auto lease_ns = static_cast<int64_t>(asked.want.lease_ns);
  Pane last = kNoPane;
  for (const auto& [node, member] : members_) {
    const bool is_meant = has_labels(member.last.labels, asked.want.labels);
    const bool is_unheard =
        member.heard_ns >= asked.begun_ns - options_.silent_ns && !asked.nodes.contains(node);
    if (!is_meant || !is_unheard) continue;
    last = std::max(last, panes_of(asked.want).number_of(member.heard_ns + offset_ns_ + lease_ns));
  }
  return last;
}

// What nodes had no room to keep, of all their lives.
std::vector<NodeGap> Root::dropped_of(const Asked& asked, GapsCut& cut) {
  std::vector<NodeGap> gaps = asked.dropped;
  for (const auto& [node, said] : asked.nodes) {
    for (const PaneRange& panes : said.lost)
      gaps.push_back({.node = node, .panes = panes});
  }
  keep_latest(gaps, cut);
  return gaps;
}

// Nodes whose intervals are not the others', as their clock is not ours.
std::vector<std::string> Root::skewed(const Asked& asked) const {
  std::vector<std::string> texts;
  const int64_t most = std::max(asked.want.width_ns, kSkewAllowed);
  for (const auto& [node, said] : asked.nodes) {
    const auto member = members_.find(node);
    if (member == members_.end()) continue;
    const int64_t offset = member->second.last.clock_offset_ns;
    if (std::abs(offset) <= most) continue;
    texts.push_back(fmt::format("the clock of node {} is {:.1f} s {}: its intervals are skewed",
                                node, static_cast<double>(std::abs(offset)) / kSecond,
                                offset < 0 ? "ahead" : "behind"));
  }
  return texts;
}

// "no function 'f' (n1 and 2 more); …"
std::string refused_text(const std::vector<Refusal>& refusals) {
  std::string text;
  for (const Refusal& one : refusals) {
    text += fmt::format("{}{} ({}", text.empty() ? "" : "; ", one.reason, one.node);
    text += one.nodes > 1 ? fmt::format(" and {} more)", one.nodes - 1) : ")";
  }
  return text;
}

// To whoever asked.
void Root::tell(Asked& asked) {
  asked.has_news = false;
  (void)bus_.publish(subjects_.status(asked.want.query), to_bytes(status_of(asked)));
}

// Some of those that nodes have.
std::vector<std::string> Root::labels_there() const {
  constexpr size_t kLabelsTold = 20;
  std::set<std::string> labels;
  for (const auto& [node, member] : members_) {
    if (!is_alive(member)) continue;
    for (const auto& [name, value] : member.last.labels) {
      if (labels.size() >= kLabelsTold) break;
      labels.insert(fmt::format("{}={}", name, value));
    }
  }
  return {labels.begin(), labels.end()};
}

Status Root::status_of(const Asked& asked) const {
  // It is over behind the last of its rows.
  const bool is_told = asked.out.empty() || asked.phase < Phase::Done;
  Status status{.query = asked.want.query,
                .phase = is_told ? asked.phase : Phase::Draining,
                .reason = asked.reason,
                .answered = asked.answered,
                .asker = asked.want.asker,
                .root = asked.as,
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
    if (is_silent && status.silent++ < kSilentTold) status.silent_nodes.push_back(node);
    if (!is_silent && counts(said.state)) ++status.armed;
    if (!said.reason.empty()) refuse(node, said.reason);
  }
  for (const auto& [node, why] : asked.strangers)
    refuse(node, why);
  for (const auto& [who, why] : unread_)
    refuse(who, why);
  for (const auto& [node, member] : members_) {
    if (!is_alive(member)) continue;
    ++status.nodes;
    if (has_labels(member.last.labels, asked.want.labels)) ++status.meant;
  }
  if (status.meant == 0) status.labels = labels_there();
  status.lost = asked.lost;
  // It has no intervals that could be named.
  const bool has_none = asked.want.gives == Gives::AtEnd || !asked.given;
  if (asked.lacks_store && has_none)
    status.lost.emplace_back("what the root before has merged in its store and had not given");
  for (const auto& [node, said] : asked.nodes)
    tell_merged(node, said, panes_of(asked.want), status.lost);
  GapsCut cut = asked.cut;
  status.gaps = gaps_of(asked, cut);
  for (std::string& text : skewed(asked))
    status.lost.push_back(std::move(text));
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
  if (cut.gaps != 0) {
    status.lost.push_back(fmt::format("intervals of nodes in {} more gaps than are named, from {}",
                                      cut.gaps, times_of({cut.panes}, panes_of(asked.want))));
  }
  return status;
}

}  // namespace clew::cluster

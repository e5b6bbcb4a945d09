// SPDX-License-Identifier: Apache-2.0
// What a session has lost, of all its sources and of what it does with their events.
#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "causal/edge.h"
#include "session/session.h"

namespace clew::session {

uint64_t lost_edges(const collect::Losses& losses, const plan::Joined& joined) {
  constexpr std::array<std::string_view, 4> kNone = {
      collect::kMissedForks, collect::kMissedFollowed, collect::kMissedUprobes,
      collect::kMissedUnpaired};
  uint64_t lost = 0;
  for (const auto& [cause, count] : losses.dropped)
    lost += count;
  for (const auto& [cause, count] : losses.missed) {
    const bool is_of_stream = cause == collect::kMissedUnreadable && !joined.carriers_read_memory;
    const bool is_none = std::find(kNone.begin(), kNone.end(), cause) != kNone.end();
    if (!is_none && !is_of_stream) lost += count;
  }
  return lost;
}

namespace {

void add_joins(const answer::JoinCounts& counts, collect::Losses& losses) {
  using collect::count_cause;
  const causal::GraphCounts& graph = counts.graph;
  count_cause(losses.missed, collect::kMissedNoRequest, graph.orphans);
  count_cause(losses.missed, collect::kMissedNoContext, graph.missing);
  count_cause(losses.missed, collect::kMissedBadToken, counts.bad_tokens);
  count_cause(losses.missed, collect::kMissedUnknownToken, graph.not_sent);
  count_cause(losses.missed, collect::kMissedSentTwice, graph.sent_twice);
  count_cause(losses.missed, collect::kMissedWornToken, graph.worn);
  count_cause(losses.missed, collect::kMissedWeak, graph.weak);
  count_cause(losses.missed, collect::kMissedOtherRequest, graph.mixed);
  count_cause(losses.missed, collect::kMissedAmbiguous, counts.sockets.ambiguous);
  count_cause(losses.missed, collect::kMissedUnplaced, counts.sockets.unplaced);
  count_cause(losses.missed, collect::kMissedBesideLoss, counts.skipped);
  count_cause(losses.dropped, collect::kDroppedRequests, graph.forgotten);
  count_cause(losses.dropped, collect::kDroppedJoinRows, counts.cut);
  losses.causal[std::string(collect::kCausalRequests)] = graph.requests;
  count_cause(losses.causal, collect::kCausalUnjoined, counts.unjoined);
  count_cause(losses.causal, collect::kCausalAgain, graph.again);
  for (const auto& [process, messages] : counts.sockets.unknown)
    count_cause(losses.missed, collect::kMissedNoProgram, messages);
  for (size_t i = 0; i < graph.edges.size(); ++i)
    count_cause(losses.causal, causal::name_of(static_cast<causal::EdgeClass>(i)), graph.edges[i]);
}

void add_joins(const answer::TimeJoinCounts& counts, collect::Losses& losses) {
  collect::count_cause(losses.missed, collect::kMissedTooLate, counts.late);
  collect::count_cause(losses.dropped, collect::kDroppedHeld, counts.forgotten);
  collect::count_cause(losses.dropped, collect::kDroppedPartners, counts.cut);
}

void add_joins(const stream::OpenRows::Counts& counts, collect::Losses& losses) {
  collect::count_cause(losses.missed, collect::kMissedEndedUnseen, counts.ended_unseen);
  collect::count_cause(losses.missed, collect::kMissedBegunAgain, counts.again);
  collect::count_cause(losses.dropped, collect::kDroppedOutstanding, counts.no_room);
}

}  // namespace

collect::Losses Session::losses_of_events() {
  collect::Losses all;
  for (Source* each : input_.sources) {
    collect::Losses some = each->losses();
    // A child that two sources see is one child; one of them sees all.
    const auto forks = some.missed.find(collect::kMissedForks);
    if (forks != some.missed.end()) {
      const auto known = all.missed.find(collect::kMissedForks);
      const uint64_t before = known == all.missed.end() ? 0 : known->second;
      forks->second -= std::min(before, forks->second);
    }
    all.merge(some);
  }
  all.merge(input_.beside);
  collect::count_cause(all.dropped, collect::kDroppedNoRoom, input_.flow.dropped());
  all.window_ms = std::max(all.window_ms, window_ms_);
  return all;
}

collect::Losses Session::losses() {
  collect::Losses all = losses_of_events();
  if (by_cause_ != nullptr) add_joins(by_cause_->counts(), all);
  if (by_time_ != nullptr) add_joins(by_time_->counts(), all);
  if (outstanding_ != nullptr) add_joins(outstanding_->counts(), all);
  if (events_) collect::count_cause(all.dropped, collect::kDroppedPane, events_->dropped());
  if (windows_) {
    collect::count_cause(all.dropped, collect::kDroppedLate, windows_->late());
    collect::count_cause(all.dropped, collect::kDroppedWindowRows, windows_->dropped());
  }
  // That none began is said, too.
  if (!input_.plan.contexts.duties.empty()) all.causal[std::string(collect::kCausalRequests)] += 0;
  return all;
}

}  // namespace clew::session

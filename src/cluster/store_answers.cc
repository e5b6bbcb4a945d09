// SPDX-License-Identifier: Apache-2.0
#include "cluster/store_answers.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "aggregate/table_bytes.h"
#include "cluster/merge.h"
#include "cluster/node_gaps.h"
#include "cluster/node_losses.h"

namespace clew::cluster {
namespace {

// Of all nodes.
Expected<Bytes> losses_of(const std::vector<StoredMember>& members) {
  aggregate::Table all(aggregate::TableSchema{});
  for (const StoredMember& member : members)
    add_losses(all.losses, CLEW_TRY(aggregate::table_of(member.losses)).losses, member.node);
  return aggregate::to_bytes(all);
}

}  // namespace

// Also of who has not ended as it should.
Expected<std::vector<NodeGap>> StoreAnswers::gaps_of(const StoredAnswer& head, Pane first) {
  StoredAnswer ends{.query = head.query, .members = head.members};
  // Whatever it has.
  ends.panes = {{.pane = first, .table = aggregate::to_bytes(aggregate::Table({}))}};
  Merge merge(head.query.want.gives);
  CLEW_TRY(merge.restore(ends));
  const bool is_over = head.query.phase == Phase::Done;
  std::vector<NodeGap> gaps =
      merge.gaps(head.query.given.value_or(first),
                 [is_over](const std::string&, const Incarnation&) { return is_over; });
  add_known(gaps, head.query.dropped);
  if (!head.forgotten) return gaps;
  // What is not kept lacks nothing.
  std::erase_if(gaps, [&](const NodeGap& gap) { return gap.panes.last <= *head.forgotten; });
  for (NodeGap& gap : gaps)
    gap.panes.first = std::max(gap.panes.first, *head.forgotten + 1);
  return gaps;
}

Expected<AnswerPart> StoreAnswers::read(const std::string& query, uint64_t first, uint64_t last) {
  StoredAnswer head = CLEW_TRY(store_.read_head(query));
  AnswerPart part{.want = head.query.want,
                  .phase = head.query.phase,
                  .answered = head.query.answered,
                  .losses = CLEW_TRY(losses_of(head.members)),
                  .lost = head.query.lost};
  part.begun = head.query.begun.value_or(0);
  const std::optional<PaneRange> given = CLEW_TRY(store_.given_panes(head.query));
  if (given) part.gaps = CLEW_TRY(gaps_of(head, given->first));
  if (part.want.gives == Gives::AtEnd) {
    part.total = std::move(head.total).value_or(Bytes{});
    return part;
  }
  if (!given) return part;
  part.given = *given;
  part.begun = std::min(head.query.begun.value_or(given->first), given->first);
  const PaneRange wanted = panes_of_intervals(part.begun, *given, first, last);
  for (StoredPane& pane : CLEW_TRY(store_.read_panes(query, wanted, kPartBytes))) {
    part.panes.push_back(
        {.pane = pane.pane, .version = pane.version, .table = std::move(pane.table)});
  }
  part.is_last = part.panes.empty() || part.panes.back().pane >= wanted.last;
  return part;
}

}  // namespace clew::cluster

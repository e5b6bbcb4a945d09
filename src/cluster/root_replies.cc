// SPDX-License-Identifier: Apache-2.0
// What a root shows of answers that were given, to whoever reads them over the bus: from its store,
// or, without one, what it still has in memory.
#include <algorithm>
#include <utility>
#include <vector>

#include "aggregate/table_bytes.h"
#include "cluster/chunks.h"
#include "cluster/root.h"
#include "cluster/store_answers.h"

namespace clew::cluster {

void Root::reply(const Read& read) {
  const auto say = [&](const Bytes& answer) {
    auto chunks = split(answer);
    if (!chunks) return;
    for (Chunk& chunk : *chunks) {
      const Found found{.request = read.request, .answer = std::move(chunk)};
      (void)bus_.publish(subjects_.found(read.reader), to_bytes(found));
    }
  };
  if (read.query.empty()) {
    if (const auto list = list_answers()) say(to_bytes(*list));
  } else if (const auto part = part_of_answer(read)) {
    say(to_bytes(*part));
  } else if (part.error().code == ErrorCode::NotFound) {
    say(to_bytes(AnswerPart{.is_known = false}));
  }
}

Expected<AnswerList> Root::list_answers() const {
  AnswerList list;
  if (store_ != nullptr) {
    list = AnswerList{CLEW_TRY(StoreAnswers(*store_).list())};
    // As it is now.
    for (AnswerSummary& one : list.answers) {
      const auto found = asked_.find(one.query);
      if (found != asked_.end()) one.refused = refused_text(status_of(found->second).refusals);
    }
    return list;
  }
  for (const auto& [query, asked] : asked_) {
    const stream::Panes panes = panes_of(asked.want);
    list.answers.push_back({.query = query,
                            .phase = asked.phase,
                            .is_standing = asked.want.is_standing,
                            .intervals = asked.merge.given().size(),
                            .begun_ns = asked.begun ? panes.begin(*asked.begun) : 0,
                            .given_ns = asked.begun ? panes.end(*asked.given) : 0,
                            .refused = refused_text(status_of(asked).refusals),
                            .text = asked.want.text});
  }
  return list;
}

Expected<AnswerPart> Root::part_of_answer(const Read& read) const {
  const auto found = asked_.find(read.query);
  if (store_ != nullptr) {
    AnswerPart part = CLEW_TRY(StoreAnswers(*store_).read(read.query, read.first, read.last));
    // Who is away at present is not in the store.
    if (found != asked_.end()) part.gaps = status_of(found->second).gaps;
    return part;
  }
  if (found == asked_.end()) return fail(ErrorCode::NotFound, "no such query");
  const Asked& asked = found->second;
  aggregate::Table losses(aggregate::TableSchema{});
  losses.losses = asked.merge.losses();
  Status status = status_of(asked);
  AnswerPart part{.want = asked.want,
                  .phase = asked.phase,
                  .answered = asked.answered,
                  .losses = aggregate::to_bytes(losses),
                  .lost = std::move(status.lost),
                  .gaps = std::move(status.gaps)};
  const std::vector<PaneTable> given = asked.merge.given();
  if (asked.want.gives == Gives::AtEnd) {
    if (asked.merge.total()) part.total = aggregate::to_bytes(*asked.merge.total());
    return part;
  }
  if (given.empty()) return part;
  part.given = {.first = given.front().pane, .last = given.back().pane};
  part.begun = std::min(asked.begun.value_or(part.given.first), part.given.first);
  const PaneRange wanted = panes_of_intervals(part.begun, part.given, read.first, read.last);
  size_t bytes = 0;
  for (const PaneTable& one : given) {
    if (one.pane < wanted.first || one.pane > wanted.last) continue;
    part.is_last = bytes < kPartBytes;
    if (!part.is_last) break;
    part.panes.push_back(
        {.pane = one.pane, .version = one.version, .table = aggregate::to_bytes(*one.table)});
    bytes += part.panes.back().table.size();
  }
  return part;
}

}  // namespace clew::cluster

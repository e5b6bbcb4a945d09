// SPDX-License-Identifier: Apache-2.0
// What nodes need not keep any more, and what a root leaves to the next one for that, as a key of
// each query: which lives of nodes there were, and what whoever asked has of them.
#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include "cluster/names.h"
#include "cluster/root.h"

namespace clew::cluster {
namespace {

// Permissions of an older version do not have the key of marks, and very many nodes do not fit:
// then the next root does not know it, and nothing else.
bool is_impossible(const Error& error) {
  return error.code == ErrorCode::Refused || error.code == ErrorCode::Limit ||
         error.code == ErrorCode::InvalidQuery;
}

}  // namespace

// Without a store the next root has what nodes and the log have.
bool Root::needs_open(const Asked& asked) const {
  return store_ == nullptr && asked.want.gives != Gives::AtEnd;
}

// Before that nobody would know where our store is away what to miss, and that there is one.
bool Root::are_lives_told(const Asked& asked) const {
  return asked.is_announced &&
         (asked.want.gives == Gives::AtEnd || asked.merge.lives() == asked.told_lives);
}

// What it need not keep. Without a store what has not come to whoever asked is safe nowhere.
void Root::add_safe(const Asked& asked, const std::string& node,
                    std::vector<SafePanes>& safe) const {
  const auto add = [&](const Incarnation& incarnation, Pane mark) {
    safe.push_back({.query = asked.want.query,
                    .revision = asked.want.revision,
                    .incarnation = incarnation,
                    .mark = mark});
  };
  if (!needs_open(asked)) {
    if (store_ != nullptr && !are_lives_told(asked)) return;
    for (const auto& [incarnation, mark] : asked.merge.safe(node))
      add(incarnation, mark);
    return;
  }
  if (!asked.told) return;
  const std::vector<MemberMark>& members = asked.told->members;
  auto one = std::lower_bound(
      members.begin(), members.end(), node,
      [](const MemberMark& each, const std::string& name) { return each.node < name; });
  for (; one != members.end() && one->node == node; ++one) {
    if (one->mark != kNoPane) add(one->incarnation, one->mark);
  }
}

// The first entry of the log that is needed, if any is.
std::optional<uint64_t> Root::first_needed(const Asked& asked) const {
  if (!needs_open(asked)) {
    if (store_ != nullptr && !are_lives_told(asked)) return 1;
    return asked.merge.first_needed();
  }
  if (!asked.told) return asked.merge.first_needed_behind(std::nullopt);
  // Corrections of what was given are entries behind the others.
  const bool has_all = asked.unheard.empty() && !asked.heard && !asked.merge.has_corrections();
  return has_all ? asked.merge.first_needed_behind(asked.told->given) : asked.told->read + 1;
}

Root::Had Root::had_now(const Asked& asked) const {
  const Pane given = asked.given.value_or(kNoPane);
  uint64_t read = read_;
  if (const auto first = asked.merge.first_needed_behind(given)) read = std::min(read, *first - 1);
  return {
      .row = asked.rows.last(), .given = given, .members = asked.merge.marks(given), .read = read};
}

// Behind what was sent: what has come to whoever asked, once that says so.
void Root::note_sent(Asked& asked, bool has_rows) const {
  if (!needs_open(asked) || !asked.given) return;
  const bool is_for_nobody =
      asked.rows.last() == 0 || (asked.want.is_standing && !is_listened_to(asked));
  const bool is_new = has_rows || !asked.told || asked.told->given != *asked.given;
  if (!is_new) return;
  if (!is_for_nobody) {
    if (has_rows) asked.unheard.push_back(had_now(asked));
    return;
  }
  asked.unheard.clear();
  asked.heard = had_now(asked);
}

void Root::note_heard(Asked& asked, uint64_t row) {
  while (!asked.unheard.empty() && asked.unheard.front().row <= row) {
    asked.heard = std::move(asked.unheard.front());
    asked.unheard.pop_front();
  }
}

// Numbers of the log behind this one are others by now.
void Root::forget_read_behind(uint64_t last) {
  for (auto& [query, asked] : asked_) {
    if (asked.told) asked.told->read = std::min(asked.told->read, last);
    if (asked.heard) asked.heard->read = std::min(asked.heard->read, last);
    for (Had& each : asked.unheard)
      each.read = std::min(each.read, last);
  }
}

// What is in no store may be forgotten by nodes and the log once whoever asked has it, and the next
// root knows that. Which lives there were is told at once: where our store is away, whoever takes
// over knows at least whom to miss.
void Root::put_marks() {
  for (auto& [query, asked] : asked_) {
    const uint64_t lives = asked.merge.lives();
    const bool has_lives = asked.want.gives != Gives::AtEnd && lives != asked.told_lives;
    if (!asked.heard && !has_lives) continue;
    const auto done = put(mark_key(query), to_bytes(marks_to_tell(asked)));
    if (!done && !is_impossible(done.error())) continue;
    if (!done && asked.heard) tell_problem(done.error());
    asked.told_lives = lives;
    if (asked.heard) asked.told = std::exchange(asked.heard, std::nullopt);
  }
}

// By node and life.
Marks Root::marks_to_tell(const Asked& asked) const {
  const std::optional<Had>& had = asked.heard ? asked.heard : asked.told;
  Marks marks{.revision = asked.want.revision,
              .given = had ? had->given : kNoPane,
              .members = asked.merge.marks(kNoPane)};
  if (!had) return marks;
  const auto who = [](const MemberMark& one) { return std::tie(one.node, one.incarnation); };
  auto known = had->members.begin();
  for (MemberMark& one : marks.members) {
    while (known != had->members.end() && who(*known) < who(one))
      ++known;
    if (known != had->members.end() && who(*known) == who(one)) one = *known;
  }
  return marks;
}

// Servers that have elected another leader may lose what they had confirmed; what is put since has
// these revisions once more.
// So may one that failed: by its number nobody would see it.
void Root::note_put(const Expected<uint64_t>& revision) {
  const bool is_anew = revision ? *revision <= std::exchange(put_revision_, *revision)
                                : !is_impossible(revision.error());
  if (!is_anew) return;
  for (auto& [query, asked] : asked_) {
    asked.told_lives = 0;
    if (!asked.heard) asked.heard = asked.told;
  }
}

// What a root has left that had no store, or has taken it along.
Expected<std::optional<Marks>> Root::marks_of(const Control& want) {
  const auto found = CLEW_TRY(bus_.get(bucket_of(options_.tenant), mark_key(want.query)));
  const auto marks = found ? read_kept_as<Marks>(found->bytes) : fail(ErrorCode::NotFound, "");
  if (!marks || marks->revision != want.revision) return std::optional<Marks>();
  return std::optional(*marks);
}

// While our store was away another root has led, and nodes have forgotten what that has given.
void Root::name_what_another_took(Asked& asked, const std::optional<Marks>& marks) {
  for (const MemberMark& one : marks ? marks->members : std::vector<MemberMark>()) {
    const Pane mark = asked.merge.mark(one.node, one.incarnation);
    // Of a life that is not known here there is nothing before it, either; with it begins what is
    // missing behind it.
    if (mark == kNoPane) asked.merge.adopt(one);
    asked.has_merged = true;
    if (one.mark == kNoPane || one.mark <= mark) continue;
    const Pane first = mark == kNoPane ? one.first : mark + 1;
    add_gap(asked.dropped, {.node = one.node, .panes = {.first = first, .last = one.mark}});
  }
  keep_latest(asked.dropped, asked.cut);
}

}  // namespace clew::cluster

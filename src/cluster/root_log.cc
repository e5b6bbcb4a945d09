// SPDX-License-Identifier: Apache-2.0
// What a root reads of the log of partials, and what it believes of beats: that their nodes have
// sent what they say, when that was read.
#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "cluster/answered_rows.h"
#include "cluster/names.h"
#include "cluster/root.h"

namespace clew::cluster {
namespace {

constexpr size_t kEntriesAtOnce = 256;
constexpr int64_t kReadTurn = kSecond / 5;
constexpr int64_t kLogRetry = kSecond / 10;
constexpr size_t kPassedByMax = 10'000;
constexpr int64_t kFar = int64_t{30} * 24 * 3600 * kSecond;
constexpr const char* kClockIsOff = "its clock is days off";

}  // namespace

// --- beats ---------------------------------------------------------------------------------------

// From then on it is known what is missing of it.
void Root::begin_life(const Beat& said) {
  for (const NodeQuery& one : said.queries) {
    const auto found = asked_.find(one.query);
    if (found == asked_.end() || one.state != NodeState::Armed) continue;
    Asked& asked = found->second;
    if (one.revision != asked.want.revision) continue;
    const bool is_new = asked.merge.begin(said.node, said.incarnation);
    asked.has_merged = asked.has_merged || is_new;
  }
}

// Behind the log: what a node says to have sent was there before. Of a log that is kept several
// times we may have read one that lacks it still: then the node is believed later.
void Root::take_beats() {
  bool is_behind = false;
  for (auto& [node, said] : std::exchange(beats_, {})) {
    if (said.log != told_log_) continue;  // What it says to have sent is in another one.
    if (is_ahead(said)) {
      is_behind = true;
      beats_.emplace(node, std::move(said));
      continue;
    }
    for (const NodeQuery& one : said.queries) {
      const auto asked = asked_.find(one.query);
      if (asked != asked_.end()) report(asked->second, said, one);
    }
  }
  if (is_behind) follow_log();
}

bool Root::is_ahead(const Beat& said) const {
  return std::any_of(said.queries.begin(), said.queries.end(), [this](const NodeQuery& one) {
    return one.sequence > read_ && asked_.contains(one.query);
  });
}

void Root::report(Asked& asked, const Beat& said, const NodeQuery& one) {
  if (one.revision != asked.want.revision) return;
  if (is_far_ahead(asked, one.safe)) {
    asked.strangers[said.node] = kClockIsOff;
  } else {
    asked.merge.note_safe(said.node, said.incarnation, one.safe);
    keep_missing(asked);
  }
  const Pane mark = asked.merge.mark(said.node, said.incarnation);
  const bool lacks_some = mark < one.last && !asked.strangers.contains(said.node);
  const bool has_ended = one.state == NodeState::Closed && !asked.want.is_wanted;
  if (!lacks_some) asked.merge.close(said.node, said.incarnation, one.closed);
  if (!lacks_some && has_ended) asked.merge.finish(said.node, said.incarnation);
  asked.lives[said.node] = said.incarnation;
  asked.has_news = asked.has_news || asked.nodes[said.node].state != one.state;
  NodeQuery& kept = asked.nodes[said.node];
  kept = one;
  kept.answered.clear();
  if (lacks_some) {
    // It was in the log, and has gone from there.
    kept.closed = std::min(one.closed, mark);
    if (one.state == NodeState::Closed) kept.state = NodeState::Draining;
    ask_again(said.node, one.query, {.first = mark == kNoPane ? mark : mark + 1, .last = one.last});
  }
  if (one.answered.empty()) return;
  if (asked.answered.empty()) {
    asked.answered = one.answered;
    asked.schema = one.schema;
    asked.has_news = true;
    if (answers_events(one.answered)) give_events(asked);
  } else if (one.schema != asked.schema) {
    asked.strangers[said.node] = "it answers another query: its program has other types";
    asked.has_news = true;
  }
}

// Whoever asked may not have known that.
void Root::give_events(Asked& asked) {
  if (asked.want.gives == Gives::Events || asked.given) return;
  asked.want.gives = Gives::Events;
  asked.merge.set_gives(Gives::Events);
  asked.is_announced = false;
}

// --- the log -------------------------------------------------------------------------------------

// Where it ends; it is made, if it is not there. With a server's disk it may have been lost: nodes
// hear in each answer to a beat which one is there, and send to a new one what they have still.
Expected<LogEnds> Root::look_at_log() {
  const std::string log = partials_log(options_.tenant);
  auto ends = bus_.ends(log);
  if (!ends && ends.error().code == ErrorCode::NotFound) {
    log_ = told_log_ = 0;  // Until it is known, nothing is believed.
    read_anew();
    CLEW_TRY(bus_.make_log(log, subjects_.all_partials(), options_.log_bytes_max));
    ends = bus_.ends(log);
  }
  if (ends && ends->log == log_ && ends->last < read_) {
    // Servers that have elected another leader may lose what they had confirmed; what comes since
    // has these numbers once more.
    read_ = ends->first - 1;
    forgotten_ = std::min(forgotten_, read_);
    forget_read_behind(read_);
    has_partials_ = true;
  }
  if (!ends || std::exchange(log_, ends->log) == ends->log) return ends;
  if (leads_) notes_.emplace_back("the bus has lost its log: nodes send what it had once more");
  told_log_ = log_;
  read_anew();
  return ends;
}

// From the start; nodes send once more all that is not safe.
void Root::read_anew() {
  read_ = forgotten_ = 0;
  has_partials_ = true;
  beats_.clear();
  passed_by_.clear();
  forget_read_behind(0);
  for (auto& [query, asked] : asked_)
    asked.merge.log_began_anew();
}

// What nodes have sent is not read: it is late, or was forgotten, or is lost. Then they have it
// still.
void Root::follow_log() {
  next_read_ns_ = clock_.monotonic_ns() + kLogRetry;
  const auto ends = look_at_log();
  if (!ends) return;
  read_ = std::max(read_, ends->first - 1);
  for (const auto& [node, said] : beats_) {
    for (const NodeQuery& one : said.queries) {
      if (one.sequence > ends->last) ask_again(node, one.query, kAllPanes);
    }
  }
}

void Root::ask_again(const std::string& node, const std::string& query, const PaneRange& panes) {
  const auto asked = asked_.find(query);
  if (asked == asked_.end()) return;
  (void)bus_.publish(
      subjects_.again(node),
      to_bytes(Again{.query = query, .revision = asked->second.want.revision, .panes = {panes}}));
}

// False: not up to its end. Others want their turn, too.
bool Root::read_partials() {
  if (told_log_ == 0) follow_log();
  if (told_log_ == 0) return false;
  const int64_t until = clock_.monotonic_ns() + kReadTurn;
  while (clock_.monotonic_ns() <= until) {
    const auto entries = bus_.read(partials_log(options_.tenant), read_, kEntriesAtOnce);
    if (!entries) {
      follow_log();
      return false;
    }
    if (entries->empty()) return true;
    for (const Entry& entry : *entries) {
      take(entry);
      read_ = entry.sequence;
    }
  }
  return false;
}

// Numbers of panes may be anybody's.
bool Root::is_near(const Asked& asked, Pane pane) const {
  const int64_t now = clock_.monotonic_ns() + offset_ns_;
  return panes_of(asked.want).begin(pane) > now - kFar && !is_far_ahead(asked, pane);
}

bool Root::is_far_ahead(const Asked& asked, Pane pane) const {
  const int64_t now = clock_.monotonic_ns() + offset_ns_;
  return panes_of(asked.want).begin(pane) >= now + kFar;
}

void Root::take(const Entry& entry) {
  const auto partial = read_as<Partial>(entry.bytes);
  if (!partial) return;
  if (Subjects::node_of(entry.subject) != partial->node)
    return tell_forger(entry.subject, partial->node);
  const auto asked = asked_.find(partial->query);
  if (asked == asked_.end() && passed_by_.size() < kPassedByMax) passed_by_.insert(partial->query);
  if (asked == asked_.end() || asked->second.want.revision != partial->revision) return;
  // Those before it may have been in one that is lost: all of them come again.
  if (partial->log != told_log_) return;
  if (!is_near(asked->second, partial->pane)) {
    asked->second.strangers[partial->node] = kClockIsOff;
    return;
  }
  const auto merged = asked->second.merge.add(*partial, entry.sequence);
  asked->second.has_merged = true;
  if (!merged) asked->second.strangers[partial->node] = merged.error().message;
  keep_missing(asked->second);
}

// What comes no more.
void Root::keep_missing(Asked& asked) {
  for (auto& gaps : {asked.merge.take_left_out(), asked.merge.take_elsewhere()}) {
    for (const NodeGap& gap : gaps) {
      add_gap(asked.dropped, gap);
      asked.has_merged = true;
    }
  }
  keep_latest(asked.dropped, asked.cut);
}

}  // namespace clew::cluster

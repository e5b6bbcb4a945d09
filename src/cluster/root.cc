// SPDX-License-Identifier: Apache-2.0
#include "cluster/root.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "aggregate/table_bytes.h"
#include "cluster/digest.h"
#include "cluster/names.h"
#include "stream/pane.h"

namespace clew::cluster {
namespace {

constexpr int64_t kLeadPeriod = kSecond;
constexpr int64_t kTellPeriod = kSecond / 2;
constexpr int64_t kCommitPeriod = kSecond / 4;
constexpr size_t kEntriesAtOnce = 256;
constexpr Pane kPanesKept = 256;  // So many given ones may be corrected.
constexpr size_t kRefusalsTold = 20;

bool counts(NodeState state) {
  return state == NodeState::Armed || state == NodeState::Draining;
}

bool has_answered(NodeState state) {
  return state != NodeState::Offered;
}

stream::Panes panes_of(const Control& want) {
  return {.epoch_ns = want.epoch_ns, .width_ns = want.width_ns};
}

}  // namespace

Root::Root(Bus& bus, const Clock& clock, RootOptions options, Store* store)
    : bus_(bus),
      clock_(clock),
      options_(std::move(options)),
      store_(store),
      subjects_(options_.tenant),
      offset_ns_(clock.realtime_ns() - clock.monotonic_ns()) {}

Expected<void> Root::begin() {
  CLEW_TRY(bus_.make_log(partials_log(options_.tenant), subjects_.all_partials(),
                         options_.log_bytes_max));
  for (const std::string& subject :
       {subjects_.beat("*"), subjects_.ask(), subjects_.all_partials()}) {
    CLEW_TRY(bus_.subscribe(subject));
  }
  turn();
  return {};
}

void Root::turn() {
  lead();
  while (const std::optional<Message> message = bus_.next())
    hear(*message);
  if (!leads_) return;
  // What a node has said was in the log before.
  const std::vector<Beat> beats = std::exchange(beats_, {});
  if (std::exchange(has_partials_, false) || !beats.empty()) read_partials();
  for (const Beat& said : beats) {
    for (const NodeQuery& one : said.queries) {
      const auto asked = asked_.find(one.query);
      if (asked != asked_.end()) report(asked->second, said, one);
    }
  }
  const bool is_time = clock_.monotonic_ns() >= next_tell_ns_;
  if (is_time) next_tell_ns_ = clock_.monotonic_ns() + kTellPeriod;
  for (auto& [query, asked] : asked_) {
    install(asked);
    give(asked);
  }
  commit();
  for (auto& [query, asked] : asked_) {
    if (is_time || asked.has_news) tell(asked);
  }
  std::erase_if(asked_, [this](const auto& each) {
    const Asked& asked = each.second;
    return asked.ended_ns != 0 && clock_.monotonic_ns() - asked.ended_ns > options_.asker_ns;
  });
}

int64_t Root::next_ns() const {
  return std::min(next_lead_ns_, leads_ ? next_tell_ns_ : next_lead_ns_);
}

// --- who leads -----------------------------------------------------------------------------------

void Root::lead() {
  const int64_t now = clock_.monotonic_ns();
  if (now < next_lead_ns_) return;
  next_lead_ns_ = now + kLeadPeriod;
  const auto known = bus_.get(bucket_of(options_.tenant), kRootKey);
  if (!known) return;
  const uint64_t revision = *known ? (*known)->revision : 0;
  const bool is_ours = leads_ && leader_ && leader_->revision == revision;
  const bool has_changed = !leader_ || leader_->revision != revision;
  if (has_changed) leader_seen_ns_ = now;
  leader_ = known->value_or(Revised{});
  if (leads_ && !is_ours) {
    notes_.emplace_back("another root leads");
    leads_ = false;
    asked_.clear();
    return;
  }
  const bool is_vacant = leader_->bytes.empty() || now - leader_seen_ns_ >= options_.takeover_ns;
  if (!is_ours && !is_vacant) return;
  const Bytes named = to_bytes(Leader{.root = options_.name});
  const auto put = bus_.put(bucket_of(options_.tenant), kRootKey, named, revision);
  if (!put) return;
  leader_ = Revised{.revision = *put, .bytes = named};
  if (std::exchange(leads_, true)) return;
  take_over();
  // Who is there?
  (void)bus_.publish(subjects_.control_of_all(), to_bytes(greeting()));
}

Expected<void> Root::leave() {
  if (!leads_ || !leader_) return {};
  leads_ = false;
  CLEW_TRY(bus_.put(bucket_of(options_.tenant), kRootKey, {}, leader_->revision));
  return {};
}

// What a root with this store had merged goes on from there.
void Root::take_over_stored() {
  if (store_ == nullptr) return;
  const auto stored = store_->read_all();
  if (!stored) {
    notes_.push_back(stored.error().message);
    return;
  }
  for (const StoredAnswer& one : *stored) {
    const auto known = asked_.find(one.query.want.query);
    if (known == asked_.end()) continue;
    Asked& asked = known->second;
    asked.gives_panes = one.query.gives_panes;
    asked.answered = one.query.answered;
    asked.schema = one.query.schema;
    if (const auto restored = asked.merge.restore(one); !restored) {
      notes_.push_back(restored.error().message);
      continue;
    }
    if (one.query.given) give(asked, *one.query.given);
  }
}

// What is wanted already is asked for by nobody yet: it ends, unless its asker is heard again.
void Root::take_over() {
  notes_.emplace_back("this root leads");
  const auto found = bus_.get(bucket_of(options_.tenant), kWantKey);
  if (!found || !*found) return;
  want_key_revision_ = (*found)->revision;
  const auto want = read_as<Want>((*found)->bytes);
  if (!want) return;
  want_revision_ = want->revision;
  for (const WantedQuery& each : want->queries) {
    const auto entry = bus_.get(bucket_of(options_.tenant), want_key(each.query));
    const auto control = entry && *entry ? read_as<Control>((*entry)->bytes)
                                         : Expected<Control>(fail(ErrorCode::Io, ""));
    if (!control) continue;
    Asked& asked = asked_[each.query];
    asked.want = *control;
    asked.begun_ns = asked.asker_heard_ns = clock_.monotonic_ns();
    settled_ns_ = clock_.monotonic_ns() + options_.silent_ns;
  }
  take_over_stored();
}

// --- messages ------------------------------------------------------------------------------------

void Root::hear(const Message& message) {
  if (!leads_) return;
  if (const auto said = read_as<Beat>(message.bytes)) return beat(message, *said);
  if (const auto asked = read_as<Ask>(message.bytes)) return ask(*asked);
  has_partials_ = has_partials_ || read_as<Partial>(message.bytes).has_value();
}

Control Root::greeting() const {
  return {.want_revision = want_revision_, .time_ns = clock_.monotonic_ns() + offset_ns_};
}

// Who says something in another's name is not heard.
void Root::beat(const Message& message, const Beat& said) {
  if (Subjects::node_of(message.subject) != said.node) return;
  Member& member = members_[said.node];
  const bool is_new = member.heard_ns == 0 || member.last.incarnation != said.incarnation;
  if (is_new) notes_.push_back(fmt::format("node {} is there", said.node));
  member.last = said;
  member.heard_ns = clock_.monotonic_ns();
  (void)bus_.publish(subjects_.control(said.node), to_bytes(greeting()));
  beats_.push_back(said);
}

// Comes again and again while its asker listens.
void Root::ask(const Ask& said) {
  const auto known = asked_.find(said.query);
  if (known == asked_.end() && !said.is_wanted) return;
  Asked& asked = known == asked_.end() ? asked_[said.query] : known->second;
  const int64_t now = clock_.monotonic_ns();
  asked.asker_heard_ns = now;
  if (said.root == options_.name) asked.rows.forget(said.has_rows);
  if (known != asked_.end() && said.is_wanted) {
    for (const Bytes& row : asked.rows.take_unheard(now))
      (void)bus_.publish(subjects_.row(said.query), row);
    return;
  }
  if (!said.is_wanted) return end(asked);
  asked.begun_ns = now;
  asked.gives_panes = said.gives_panes;
  asked.want = {.query = said.query,
                .revision = 1,
                .is_wanted = true,
                .digest = digest_of(said.text),
                .text = said.text,
                .name_patterns = said.name_patterns,
                .labels = said.labels,
                .epoch_ns = 0,
                .width_ns = said.width_ns,
                .lease_ns = options_.lease_ns};
  if (const auto wanted = want(asked); !wanted) {
    asked.phase = Phase::Failed;
    asked.reason = wanted.error().message;
    asked.ended_ns = now;
  }
  notes_.push_back(fmt::format("query {} is asked", said.query));
}

// First the keys, which nodes read that did not hear it, then all that listen.
Expected<void> Root::want(Asked& asked) {
  const std::string bucket = bucket_of(options_.tenant);
  asked.want.want_revision = ++want_revision_;
  asked.want.time_ns = clock_.monotonic_ns() + offset_ns_;
  Want all{.revision = want_revision_};
  for (const auto& [query, each] : asked_) {
    if (each.want.is_wanted && each.ended_ns == 0)
      all.queries.push_back({.query = query, .revision = each.want.revision});
  }
  const std::string key = want_key(asked.want.query);
  const std::optional<Revised> known = CLEW_TRY(bus_.get(bucket, key));
  CLEW_TRY(bus_.put(bucket, key, to_bytes(asked.want), known ? known->revision : 0));
  want_key_revision_ = CLEW_TRY(bus_.put(bucket, kWantKey, to_bytes(all), want_key_revision_));
  return bus_.publish(subjects_.control_of_all(), to_bytes(asked.want));
}

void Root::report(Asked& asked, const Beat& said, const NodeQuery& one) {
  asked.merge.close(said.node, said.incarnation, one.closed);
  asked.has_news = asked.has_news || asked.nodes[said.node].state != one.state;
  NodeQuery& kept = asked.nodes[said.node];
  kept = one;
  kept.answered.clear();
  if (one.answered.empty()) return;
  if (asked.answered.empty()) {
    asked.answered = one.answered;
    asked.schema = one.schema;
    asked.has_news = true;
  } else if (one.schema != asked.schema) {
    asked.strangers[said.node] = "it answers another query: its program has other types";
    asked.has_news = true;
  }
}

// --- partials ------------------------------------------------------------------------------------

void Root::read_partials() {
  while (true) {
    const auto entries = bus_.read(partials_log(options_.tenant), read_, kEntriesAtOnce);
    if (!entries) {
      has_partials_ = true;
      return;
    }
    if (entries->empty()) return;
    for (const Entry& entry : *entries) {
      take(entry);
      read_ = entry.sequence;
    }
  }
}

void Root::take(const Entry& entry) {
  const auto partial = read_as<Partial>(entry.bytes);
  if (!partial || Subjects::node_of(entry.subject) != partial->node) return;
  const auto asked = asked_.find(partial->query);
  if (asked == asked_.end() || asked->second.want.revision != partial->revision) return;
  const auto merged = asked->second.merge.add(*partial);
  asked->second.has_merged = true;
  if (!merged) asked->second.strangers[partial->node] = merged.error().message;
}

// --- queries -------------------------------------------------------------------------------------

bool Root::is_alive(const Member& member) const {
  return clock_.monotonic_ns() - member.heard_ns < options_.silent_ns;
}

// Running, once all that are there have answered, or it has taken long enough.
void Root::install(Asked& asked) {
  const int64_t now = clock_.monotonic_ns();
  const bool is_over = asked.phase == Phase::Done || asked.phase == Phase::Failed;
  if (!is_over && now - asked.asker_heard_ns > options_.asker_ns &&
      asked.phase != Phase::Draining) {
    notes_.push_back(fmt::format("query {}: nobody listens any more", asked.want.query));
    end(asked);
  }
  if (asked.phase != Phase::Installing) return;
  size_t waited_for = 0;
  size_t armed = 0;
  for (const auto& [node, member] : members_) {
    const auto said = asked.nodes.find(node);
    const bool is_heard = said != asked.nodes.end() && has_answered(said->second.state);
    const bool is_meant = has_labels(member.last.labels, asked.want.labels);
    if (is_meant && is_alive(member) && !is_heard) ++waited_for;
    if (is_heard && counts(said->second.state)) ++armed;
  }
  const bool is_late = now - asked.begun_ns > options_.install_ns;
  // A node that has just begun to work out what it is asked may still be refused.
  const bool may_go_on = armed > 0 ? waited_for == 0 || is_late : waited_for == 0 && is_late;
  if (!may_go_on) return;
  asked.phase = Phase::Running;
  asked.has_news = true;
}

void Root::end(Asked& asked) {
  if (asked.phase == Phase::Draining || asked.ended_ns != 0) return;
  asked.phase = Phase::Draining;
  asked.drained_ns = clock_.monotonic_ns() + options_.late_ns;
  asked.want.is_wanted = false;
  asked.has_news = true;
  // Nodes that do not hear it see it by the keys, at the next beat.
  (void)want(asked);
}

// Whether somebody may still count in it.
bool Root::waits_for(const Asked& asked, Pane pane) const {
  return std::any_of(members_.begin(), members_.end(), [&](const auto& each) {
    const auto& [node, member] = each;
    const auto said = asked.nodes.find(node);
    return said != asked.nodes.end() && is_alive(member) && counts(said->second.state) &&
           said->second.closed < pane;
  });
}

void Root::give(Asked& asked) {
  if (asked.ended_ns != 0 || asked.answered.empty()) {
    if (asked.phase == Phase::Draining) finish(asked);
    return;
  }
  if (clock_.monotonic_ns() < settled_ns_) return;
  const stream::Panes panes = panes_of(asked.want);
  const int64_t now = clock_.monotonic_ns() + offset_ns_;
  std::optional<Pane> up_to;
  if (asked.merge.has_corrections()) up_to = asked.given;
  for (const Pane open : asked.merge.open()) {
    const bool is_late = now > panes.end(open) + options_.late_ns;
    if (!is_late && waits_for(asked, open)) break;
    up_to = open;
  }
  if (up_to) give(asked, *up_to);
  if (asked.phase == Phase::Draining) finish(asked);
}

void Root::give(Asked& asked, Pane up_to) {
  asked.given = up_to;
  for (const PaneTable& one : asked.merge.take_due(up_to)) {
    if (asked.gives_panes) give(asked, *one.table, one.pane, one.version, false);
  }
  asked.merge.forget(up_to - kPanesKept);
}

void Root::give(Asked& asked, const aggregate::Table& table, Pane pane, uint64_t version,
                bool is_final) {
  aggregate::Table whole = table;
  whole.losses = asked.merge.losses();
  auto chunks = split(aggregate::to_bytes(whole));
  if (!chunks) {
    asked.reason = chunks.error().message;
    return;
  }
  for (Chunk& chunk : *chunks) {
    RowUpdate row{.query = asked.want.query,
                  .revision = asked.want.revision,
                  .pane = pane,
                  .version = version,
                  .is_final = is_final,
                  .table = std::move(chunk)};
    asked.out.push_back(std::move(row));
  }
}

void Root::send_rows(Asked& asked) {
  for (RowUpdate& row : std::exchange(asked.out, {})) {
    row.root = options_.name;
    row.number = asked.rows.next();
    Bytes bytes = to_bytes(row);
    (void)bus_.publish(subjects_.row(asked.want.query), bytes);
    asked.rows.add(std::move(bytes), clock_.monotonic_ns());
  }
}

// Rows are told, and nodes and the log may forget, behind what makes it safe.
void Root::commit() {
  // What is told next.
  const bool is_urgent = std::any_of(asked_.begin(), asked_.end(), [](const auto& each) {
    const Asked& asked = each.second;
    return !asked.out.empty() || asked.stored_phase != asked.phase ||
           asked.is_answered_stored == asked.answered.empty();
  });
  if (!is_urgent && clock_.monotonic_ns() < next_commit_ns_) return;
  next_commit_ns_ = clock_.monotonic_ns() + kCommitPeriod;
  if (const auto written = write(); !written) {
    if (!std::exchange(is_unsafe_, true)) notes_.push_back(written.error().message);
    return;
  }
  is_unsafe_ = false;
  for (auto& [query, asked] : asked_) {
    send_rows(asked);
    mark(asked);
  }
  if (forgotten_ == read_) return;
  if (bus_.forget(partials_log(options_.tenant), read_)) forgotten_ = read_;
}

Expected<void> Root::write() {
  bool has_news = false;
  for (auto& [query, asked] : asked_) {
    const bool is_as_stored =
        asked.stored_phase == asked.phase && asked.is_answered_stored != asked.answered.empty();
    if (!asked.has_merged && asked.out.empty() && is_as_stored) continue;
    has_news = true;
    if (store_ == nullptr) continue;
    store_->put(StoredQuery{.want = asked.want,
                            .gives_panes = asked.gives_panes,
                            .phase = asked.phase,
                            .answered = asked.answered,
                            .schema = asked.schema,
                            .given = asked.given});
    asked.merge.save(*store_, query);
  }
  if (!has_news) return {};
  if (store_ != nullptr) CLEW_TRY(store_->commit());
  for (auto& [query, asked] : asked_) {
    asked.merge.saved();
    asked.stored_phase = asked.phase;
    asked.is_answered_stored = !asked.answered.empty();
  }
  return {};
}

// Once all nodes have closed it, or it has taken too long.
void Root::finish(Asked& asked) {
  const bool is_waited_for = std::any_of(members_.begin(), members_.end(), [&](const auto& each) {
    const auto said = asked.nodes.find(each.first);
    return said != asked.nodes.end() && is_alive(each.second) && counts(said->second.state);
  });
  const int64_t now = clock_.monotonic_ns();
  if (now < settled_ns_ || (is_waited_for && now < asked.drained_ns)) return;
  if (const auto open = asked.merge.open(); !open.empty() && !asked.answered.empty())
    give(asked, open.back());
  if (!asked.gives_panes && asked.merge.total()) give(asked, *asked.merge.total(), 0, 1, true);
  asked.phase = Phase::Done;
  asked.ended_ns = clock_.monotonic_ns();
  asked.has_news = true;
}

void Root::mark(Asked& asked) {
  if (!std::exchange(asked.has_merged, false)) return;
  const std::vector<NodeMark> marks = asked.merge.marks();
  if (marks.empty()) return;
  (void)bus_.publish(
      subjects_.mark(asked.want.query),
      to_bytes(Mark{.query = asked.want.query, .revision = asked.want.revision, .marks = marks}));
}

// To whoever asked.
void Root::tell(Asked& asked) {
  asked.has_news = false;
  Status status{.query = asked.want.query,
                .phase = asked.out.empty() ? asked.phase : Phase::Draining,
                .reason = asked.reason,
                .answered = asked.answered,
                .root = options_.name,
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
  for (auto& [reason, one] : refusals) {
    if (status.refusals.size() < kRefusalsTold) status.refusals.push_back(std::move(one));
  }
  (void)bus_.publish(subjects_.status(asked.want.query), to_bytes(status));
}

}  // namespace clew::cluster

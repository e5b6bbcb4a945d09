// SPDX-License-Identifier: Apache-2.0
#include "cluster/root.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "aggregate/table_bytes.h"
#include "cluster/digest.h"
#include "cluster/gap_texts.h"
#include "cluster/names.h"
#include "cluster/shown_query.h"

namespace clew::cluster {
namespace {

constexpr int64_t kRetryPeriod = kSecond / 4;
constexpr int64_t kTellPeriod = kSecond / 2;
constexpr int64_t kCommitPeriod = kSecond / 4;

bool has_answered(NodeState state) {
  return state != NodeState::Offered;
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
       {subjects_.beat("*"), subjects_.ask(), subjects_.read(), subjects_.all_partials()}) {
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
  const bool may_read = clock_.monotonic_ns() >= next_read_ns_;
  if (may_read && (has_partials_ || !beats_.empty())) {
    has_partials_ = !read_partials();
    // Between what was read and what is believed: the log may be another one by now.
    if (!has_partials_ && !beats_.empty() && look_at_log() && !has_partials_) take_beats();
  }
  const bool is_time = clock_.monotonic_ns() >= next_tell_ns_;
  if (is_time) next_tell_ns_ = clock_.monotonic_ns() + kTellPeriod;
  for (auto& [query, asked] : asked_) {
    install(asked);
    give(asked);
  }
  // What fails is tried again.
  (void)announce();
  commit();
  forget();
  for (auto& [query, asked] : asked_) {
    if (is_time || asked.has_news) tell(asked);
  }
  std::erase_if(asked_, [this](const auto& each) {
    const Asked& asked = each.second;
    const bool is_over =
        asked.ended_ns != 0 && clock_.monotonic_ns() - asked.ended_ns > options_.asker_ns;
    if (is_over && options_.exports != nullptr) options_.exports->end(each.first);
    return is_over;
  });
}

int64_t Root::next_ns() const {
  const int64_t next = std::min(next_lead_ns_, leads_ ? next_tell_ns_ : next_lead_ns_);
  const bool reads = leads_ && (has_partials_ || !beats_.empty());
  return reads ? std::min(next, next_read_ns_) : next;
}

// --- messages ------------------------------------------------------------------------------------

void Root::hear(const Message& message) {
  if (!leads_) return;
  // By its subject: a server lets members say what is theirs to say.
  if (message.subject == subjects_.ask()) {
    const auto asked = read_as<Ask>(message.bytes);
    asked ? ask(*asked) : note_unread(message, asked.error());
  } else if (message.subject == subjects_.read()) {
    const auto read = read_as<Read>(message.bytes);
    read ? reply(*read) : note_unread(message, read.error());
  } else if (message.subject.starts_with(subjects_.beat(""))) {
    const auto said = read_as<Beat>(message.bytes);
    said ? beat(message, *said) : note_unread(message, said.error());
  } else {
    has_partials_ = true;
  }
}

Control Root::greeting() const {
  return {.want_revision = want_revision_,
          .time_ns = clock_.monotonic_ns() + offset_ns_,
          .log = told_log_};
}

// Who says something in another's name is not heard.
void Root::beat(const Message& message, const Beat& said) {
  if (Subjects::node_of(message.subject) != said.node)
    return tell_forger(message.subject, said.node);
  Member& member = members_[said.node];
  const bool is_new = member.heard_ns == 0 || member.last.incarnation != said.incarnation;
  if (is_new) note_life(member, said);
  member.last = said;
  member.heard_ns = clock_.monotonic_ns();
  Control greets = greeting();
  greets.incarnation = said.incarnation;
  for (const auto& [query, asked] : asked_) {
    if (asked.answered.empty()) greets.unknown.push_back(query);
    add_safe(asked, said.node, greets.safe);
  }
  (void)bus_.publish(subjects_.control(said.node), to_bytes(greets));
  begin_life(said);
  beats_[said.node] = said;
}

// Comes again and again while its asker listens.
void Root::ask(const Ask& said) {
  const bool is_known = asked_.contains(said.query);
  if (const auto checked = check_who(said); !checked) {
    // Whoever asks in another's name is not answered there.
    return is_known ? void() : refuse(said, checked.error().message);
  }
  if (!is_known && !recall(said)) return;
  Asked& asked = asked_[said.query];
  // Another one has used the name; the status says whose it is.
  if (!said.asker.empty() && said.asker != asked.want.asker) return;
  renew(asked, said);
  const int64_t now = clock_.monotonic_ns();
  asked.asker_heard_ns = now;
  if (said.root == asked.as) {
    asked.rows.forget(said.has_rows);
    note_heard(asked, said.has_rows);
  }
  for (const Bytes& row : asked.rows.take_unheard(now))
    (void)bus_.publish(subjects_.row(said.query), row);
  if (!said.is_wanted) end(asked);
}

// A query that is not known: it is in the store, or is asked for the first time. False: neither.
bool Root::recall(const Ask& said) {
  if (store_ != nullptr) {
    const auto stored = store_->read_recent(said.query, kPanesKept);
    // What is in the store is told to who asked it alone.
    if (stored && stored->query.want.signature.key != said.signature.key) return false;
    if (stored) {
      const auto marks = marks_of(stored->query.want);
      return marks && restore(*stored, *marks).has_value();
    }
    if (stored.error().code != ErrorCode::NotFound) return false;
  }
  if (!said.is_wanted) return false;
  const auto revision = revision_for(said);
  if (!revision) return false;
  const Control want{.query = said.query,
                     .revision = *revision,
                     .is_wanted = true,
                     .is_standing = said.is_standing,
                     .has_store = store_ != nullptr,
                     .asker = said.asker,
                     .digest = digest_of(said.text),
                     .text = said.text,
                     .name_patterns = said.name_patterns,
                     .labels = said.labels,
                     .epoch_ns = 0,
                     .width_ns = said.width_ns,
                     .gives = said.gives,
                     .lease_ns = options_.lease_ns,
                     .signature = said.signature};
  const auto marks = marks_of(want);
  if (!marks) return false;
  Asked& asked = add(want);
  asked.install_ns = said.install_ns;
  asked.is_announced = false;
  // With the keys of a query that a root before has answered in part.
  asked.lacks_store = *marks || !said.root.empty();
  asked.want.has_store = asked.want.has_store || asked.lacks_store;
  if (asked.lacks_store) asked.merge.begin_without_store(*marks ? &**marks : nullptr);
  asked.merge.expect_strangers(asked.lacks_store);
  // The keys were lost, and what nodes have sent for it was left out.
  if (passed_by_.contains(said.query)) {
    told_log_ += 2;  // Another number, by which they send it again.
    read_anew();
  }
  notes_.push_back(fmt::format("query {} is asked{}: {}", said.query, shown_asker(said),
                               shown_query(said.text)));
  return true;
}

// Whoever asks under a name that was used before asks something else. Where keys were lost together
// with the root that had asked nodes for it, these go on with what they have of the same asker.
Expected<uint64_t> Root::revision_for(const Ask& said) {
  const auto revision = static_cast<uint64_t>(clock_.monotonic_ns() + offset_ns_);
  const auto known = CLEW_TRY(bus_.get(bucket_of(options_.tenant), want_key(said.query)));
  const auto before = known ? read_kept_as<Control>(known->bytes) : fail(ErrorCode::NotFound, "");
  // What nodes have for a root before is of the same query.
  const bool is_same = before && !said.asker.empty() && before->asker == said.asker &&
                       before->digest == digest_of(said.text);
  if (is_same) return before->revision;
  if (known || said.asker.empty()) return revision;
  const Digest digest = digest_of(said.asker);
  uint64_t of_asker = 0;
  std::memcpy(&of_asker, digest.data(), sizeof of_asker);
  return of_asker;
}

// First the keys, which nodes read that did not hear it, then all that listen.
Expected<void> Root::announce() {
  const bool has_news = std::any_of(asked_.begin(), asked_.end(),
                                    [](const auto& each) { return !each.second.is_announced; });
  if (!has_news || clock_.monotonic_ns() < next_announce_ns_) return {};
  next_announce_ns_ = clock_.monotonic_ns() + kRetryPeriod;
  Want all{.revision = want_revision_ + 1};
  const std::string bucket = bucket_of(options_.tenant);
  for (auto& [query, asked] : asked_) {
    if (asked.want.is_wanted)
      all.queries.push_back({.query = query, .revision = asked.want.revision});
    if (asked.is_announced) continue;
    asked.want.want_revision = all.revision;
    asked.want.time_ns = clock_.monotonic_ns() + offset_ns_;
    CLEW_TRY(put(want_key(query), to_bytes(asked.want)));
  }
  CLEW_TRY(put(kWantKey, to_bytes(all)));
  want_revision_ = all.revision;
  next_announce_ns_ = 0;
  for (auto& [query, asked] : asked_) {
    if (!std::exchange(asked.is_announced, true))
      (void)bus_.publish(subjects_.control_of_all(), to_bytes(asked.want));
  }
  return {};
}

Expected<void> Root::put(std::string_view key, const Bytes& bytes) {
  const std::string bucket = bucket_of(options_.tenant);
  const std::optional<Revised> known = CLEW_TRY(bus_.get(bucket, key));
  const auto revision = bus_.put(bucket, key, bytes, known ? known->revision : 0);
  note_put(revision);
  if (!revision) return tl::unexpected(revision.error());
  return {};
}

// --- queries -------------------------------------------------------------------------------------

bool Root::is_alive(const Member& member) const {
  return clock_.monotonic_ns() - member.heard_ns < options_.silent_ns;
}

// Running, once all that are there have answered, or it has taken long enough.
void Root::install(Asked& asked) {
  const int64_t now = clock_.monotonic_ns();
  const bool is_over = asked.phase == Phase::Done || asked.phase == Phase::Failed;
  const bool is_heard_of = asked.want.is_standing || is_listened_to(asked);
  if (!is_over && !is_heard_of && asked.phase != Phase::Draining) {
    notes_.push_back(fmt::format("query {}: nobody listens any more", asked.want.query));
    end(asked);
  }
  if (now - asked.begun_ns > static_cast<int64_t>(asked.want.lease_ns))
    asked.merge.expect_strangers(false);
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
  const bool is_late = now - asked.begun_ns > asked.install_ns;
  // A node that has just begun to work out what it is asked may still be refused.
  const bool may_go_on = armed > 0 ? waited_for == 0 || is_late : waited_for == 0 && is_late;
  if (!may_go_on) return;
  asked.phase = Phase::Running;
  asked.has_news = true;
}

void Root::end(const std::string& query) {
  const auto asked = asked_.find(query);
  if (!leads_ || asked == asked_.end()) return;
  end(asked->second);
  next_announce_ns_ = 0;
  (void)announce();
}

void Root::end(Asked& asked) {
  if (asked.phase == Phase::Draining || asked.ended_ns != 0) return;
  asked.phase = Phase::Draining;
  if (options_.roles != nullptr) ended_.add(asked.want.query, clock_.realtime_ns());
  asked.drained_ns = clock_.monotonic_ns() + options_.late_ns;
  asked.want.is_wanted = false;
  asked.has_news = true;
  asked.is_announced = false;
}

// In this pane and those before it nobody counts any more, of those that were heard.
Pane Root::closed_by_all(const Asked& asked) const {
  Pane closed = std::numeric_limits<Pane>::max();
  for (const auto& [node, said] : asked.nodes) {
    if (said.closed >= closed || !counts(said.state)) continue;
    const auto member = members_.find(node);
    if (member != members_.end() && is_alive(member->second)) closed = said.closed;
  }
  return closed;
}

void Root::give(Asked& asked) {
  if (asked.ended_ns != 0 || asked.answered.empty()) {
    if (asked.phase == Phase::Draining) finish(asked);
    return;
  }
  if (clock_.monotonic_ns() < settled_ns_) return;
  const stream::Panes panes = panes_of(asked.want);
  const int64_t now = clock_.monotonic_ns() + offset_ns_;
  const Pane closed = closed_by_all(asked);
  std::optional<Pane> up_to;
  if (asked.merge.has_corrections()) up_to = asked.given;
  for (const Pane open : asked.merge.open()) {
    const bool is_late = now > panes.end(open) + options_.late_ns;
    if (!is_late && open > closed) break;
    up_to = open;
  }
  if (up_to) give(asked, *up_to);
  if (asked.phase == Phase::Draining) finish(asked);
}

void Root::give(Asked& asked, Pane up_to) {
  asked.given = up_to;
  // Who was not waited for is told with it.
  asked.has_news = true;
  GapsCut cut;
  const std::vector<NodeGap> gaps = gaps_of(asked, cut);
  // Behind a root before nobody has said yet what is closed.
  const Pane closed = asked.nodes.empty() ? kNoPane : closed_by_all(asked);
  const Pane unheard = last_unheard(asked);
  for (const PaneTable& one : asked.merge.take_due(up_to)) {
    asked.begun = std::min(asked.begun.value_or(one.pane), one.pane);
    if (asked.want.gives == Gives::AtEnd) continue;
    give(asked, *one.table,
         {.pane = one.pane,
          .version = one.version,
          .lacks_nodes = one.pane > closed || one.pane <= unheard || has_gap(gaps, one.pane)});
    if (options_.exports != nullptr) asked.fresh[one.pane] = false;
  }
  asked.merge.keep(kPanesKept);
}

void Root::give(Asked& asked, const aggregate::Table& table, const Given& what) {
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
                  .pane = what.pane,
                  .version = what.version,
                  .is_final = what.is_final,
                  .lacks_nodes = what.lacks_nodes,
                  .table = std::move(chunk)};
    asked.out.push_back(std::move(row));
  }
}

bool Root::is_listened_to(const Asked& asked) const {
  return clock_.monotonic_ns() - asked.asker_heard_ns <= options_.asker_ns;
}

void Root::send_rows(Asked& asked) {
  const bool has_rows = !asked.out.empty();
  for (RowUpdate& row : std::exchange(asked.out, {})) {
    row.root = asked.as;
    row.number = asked.rows.next();
    Bytes bytes = to_bytes(row);
    (void)bus_.publish(subjects_.row(asked.want.query), bytes);
    // Of a standing query whoever comes later reads what the store has.
    if (!asked.want.is_standing || is_listened_to(asked))
      asked.rows.add(std::move(bytes), clock_.monotonic_ns());
  }
  note_sent(asked, has_rows);
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
  // Another root may lead by now.
  if (clock_.monotonic_ns() - renewed_ns_ > options_.takeover_ns - kSecond) return;
  next_commit_ns_ = clock_.monotonic_ns() + kCommitPeriod;
  if (const auto written = write(); !written) {
    if (!std::exchange(is_unsafe_, true)) {
      notes_.push_back(written.error().message +
                       ": nodes keep what they have, and no rows are told, until that goes");
    }
    return;
  }
  if (std::exchange(is_unsafe_, false)) notes_.emplace_back("the store is written again");
  for (auto& [query, asked] : asked_) {
    send_rows(asked);
    hand_over(asked);
  }
  put_marks();
  uint64_t up_to = read_;
  for (const auto& [query, asked] : asked_) {
    if (const auto first = first_needed(asked)) up_to = std::min(up_to, *first - 1);
  }
  if (forgotten_ >= up_to) return;
  if (bus_.forget(partials_log(options_.tenant), up_to)) forgotten_ = up_to;
}

Expected<void> Root::write() {
  bool has_news = false;
  for (auto& [query, asked] : asked_) {
    GapsCut cut;  // Status::lost names it.
    has_news = store_exported(asked) || has_news;
    if (asked.is_unreadable) continue;
    const bool is_as_stored =
        asked.stored_phase == asked.phase && asked.is_answered_stored != asked.answered.empty();
    if (!asked.has_merged && asked.out.empty() && is_as_stored) continue;
    has_news = true;
    if (store_ == nullptr) continue;
    store_->put(StoredQuery{.want = asked.want,
                            .phase = asked.phase,
                            .answered = asked.answered,
                            .schema = asked.schema,
                            .lost = status_of(asked).lost,
                            .dropped = lasting_gaps_of(asked, cut),
                            .refused = refused_text(status_of(asked).refusals),
                            .begun = asked.begun,
                            .given = asked.given});
    asked.merge.save(*store_, query);
  }
  if (!has_news) return {};
  if (store_ != nullptr) CLEW_TRY(store_->commit());
  for (auto& [query, asked] : asked_) {
    asked.merge.saved();
    asked.has_merged = false;
    asked.stored_phase = asked.phase;
    asked.is_answered_stored = !asked.answered.empty();
  }
  return {};
}

// Once all nodes have closed it, or it has taken too long.
void Root::finish(Asked& asked) {
  std::vector<std::string> missing;
  for (const auto& [node, said] : asked.nodes) {
    if (counts(said.state)) missing.push_back(node);
  }
  const int64_t now = clock_.monotonic_ns();
  if (now < settled_ns_ || (!missing.empty() && now < asked.drained_ns)) return;
  for (const std::string& node : missing)
    asked.lost.push_back(fmt::format("what node {} has not sent by the end", node));
  if (const auto open = asked.merge.open(); !open.empty() && !asked.answered.empty())
    give(asked, open.back());
  if (asked.want.gives == Gives::AtEnd && asked.merge.total())
    give(asked, *asked.merge.total(), {.is_final = true});
  asked.phase = Phase::Done;
  asked.ended_ns = clock_.monotonic_ns();
  asked.has_news = true;
  name_unsent(asked);
}

// What comes later is in no row that is told, and at most in the store: so it stays named. A node
// that has not heard of the end may count until now.
void Root::name_unsent(Asked& asked) const {
  if (!asked.given) return;
  const auto is_gone = [](const std::string&, const Incarnation&) { return true; };
  const Pane now = panes_of(asked.want).number_of(clock_.monotonic_ns() + offset_ns_);
  for (const NodeGap& gap : asked.merge.gaps(std::max(*asked.given, now), is_gone))
    add_gap(asked.dropped, gap);
  keep_latest(asked.dropped, asked.cut);
  asked.has_merged = true;
}

}  // namespace clew::cluster

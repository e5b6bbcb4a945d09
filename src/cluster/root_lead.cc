// SPDX-License-Identifier: Apache-2.0
// Which root leads, and what the next one takes over: what is wanted, what its store has, or what a
// root without one has left.
#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "cluster/digest.h"
#include "cluster/names.h"
#include "cluster/root.h"

namespace clew::cluster {
namespace {

constexpr int64_t kLeadPeriod = kSecond;

}  // namespace

void Root::lead() {
  const int64_t now = clock_.monotonic_ns();
  if (now < next_lead_ns_) return;
  next_lead_ns_ = now + kLeadPeriod;
  const auto known = bus_.get(bucket_of(options_.tenant), kRootKey);
  if (!known) return tell_problem(known.error());
  const Revised key = known->value_or(Revised{});
  // With a server's disk: whoever leads puts it anew.
  const bool is_gone = !*known && leader_seen_ns_ != 0;
  if (key.revision != std::exchange(leader_revision_, key.revision)) leader_seen_ns_ = now;
  const auto leader = read_as<Leader>(key.bytes);
  const bool is_ours = leader && leader->root == options_.name;
  if (leads_) (void)look_at_log();
  if (leads_) look_at_want();
  // One before ours: servers have lost ours, and nobody has led since.
  const bool is_lost = leads_ && !is_ours && key.revision <= led_revision_;
  if (leads_ && !is_ours && !is_lost) {
    notes_.emplace_back("another root leads");
    leads_ = false;
    end_exports();
  }
  const int64_t takeover_ns = std::max(options_.takeover_ns, patience_ns_);
  const bool is_left = key.bytes.empty() && !is_gone;
  const bool is_vacant = is_left || now - leader_seen_ns_ >= takeover_ns;
  const bool may_lead =
      is_ours || is_lost || (is_vacant && (store_ != nullptr || !has_stored_queries()));
  if (!may_lead) return key.bytes.empty() ? void() : stand_by(leader);
  const auto put = bus_.put(bucket_of(options_.tenant), kRootKey,
                            to_bytes(Leader{.root = options_.name}), key.revision);
  if (put) leader_revision_ = led_revision_ = *put;
  note_put(put);
  if (!put) tell_problem(put.error());
  if (put) renewed_ns_ = now;
  if (put && leads_) problem_.clear();
  // Whether it happened is seen the next time.
  if (!put || leads_) return;
  if (const auto taken = take_over(); !taken) return give_back(taken.error());
  leads_ = true;
  problem_.clear();
  notes_.emplace_back("this root leads");
  stands_by_.clear();
  // Who is there?
  (void)bus_.publish(subjects_.control_of_all(), to_bytes(greeting()));
}

// A server has lost its disk, or those that elected another leader what they had confirmed: nodes
// have to know again what is wanted.
void Root::look_at_want() {
  const auto found = bus_.get(bucket_of(options_.tenant), kWantKey);
  if (!found) return;
  const auto want = *found ? read_kept_as<Want>((*found)->bytes) : Expected<Want>(Want{});
  if (want && want->revision == want_revision_) return;
  if (want) want_revision_ = std::max(want_revision_, want->revision);
  for (auto& [query, asked] : asked_)
    asked.is_announced = false;
}

// Whether some of what stands is in a store, whose root has gone. Without that store nodes would be
// told to forget what is in no file, and the next root with it would not have it.
bool Root::has_stored_queries() {
  const std::string bucket = bucket_of(options_.tenant);
  const auto found = bus_.get(bucket, kWantKey);
  if (!found) return true;
  const auto want = *found ? read_kept_as<Want>((*found)->bytes) : Expected<Want>(Want{});
  if (!want) return false;
  return std::any_of(want->queries.begin(), want->queries.end(), [&](const WantedQuery& each) {
    const auto entry = bus_.get(bucket, want_key(each.query));
    if (!entry || !*entry) return !entry;
    const auto control = read_kept_as<Control>((*entry)->bytes);
    return control && control->has_store && control->is_standing;
  });
}

// Another one may be able to take over, and is first.
void Root::give_back(const Error& why) {
  next_lead_ns_ = clock_.monotonic_ns() + 2 * kLeadPeriod;
  (void)bus_.put(bucket_of(options_.tenant), kRootKey, {}, leader_revision_);
  if (std::exchange(problem_, why.message) == why.message) return;
  notes_.push_back("this root cannot take over, and leaves it to another one: " + why.message);
}

Expected<void> Root::leave() {
  if (!std::exchange(leads_, false)) return {};
  CLEW_TRY(bus_.put(bucket_of(options_.tenant), kRootKey, {}, leader_revision_));
  return {};
}

// What is wanted already is asked for by nobody yet: it ends, unless its asker is heard again. What
// was merged and is in no store comes once more, if the log still has it.
Expected<void> Root::take_over() {
  end_exports();
  asked_.clear();
  members_.clear();
  beats_.clear();
  read_ = forgotten_ = 0;
  want_revision_ = 0;
  put_revision_ = 0;
  leads_since_ns_ = clock_.monotonic_ns() + offset_ns_;
  has_partials_ = true;
  passed_by_.clear();
  CLEW_TRY(look_at_log());
  CLEW_TRY(find_wanted());
  if (store_ != nullptr) CLEW_TRY(restore_all());
  if (!asked_.empty()) settled_ns_ = clock_.monotonic_ns() + options_.silent_ns;
  return {};
}

// What another version of clew has left ends: the whole, or a query.
Expected<void> Root::find_wanted() {
  const std::string bucket = bucket_of(options_.tenant);
  const std::optional<Revised> found = CLEW_TRY(bus_.get(bucket, kWantKey));
  if (!found) return {};
  const auto want = read_kept_as<Want>(found->bytes);
  if (!want) {
    notes_.push_back("what is wanted is not read: " + want.error().message);
    return {};
  }
  want_revision_ = want->revision;
  for (const WantedQuery& each : want->queries) {
    const std::optional<Revised> entry = CLEW_TRY(bus_.get(bucket, want_key(each.query)));
    if (!entry) continue;
    const auto control = read_kept_as<Control>(entry->bytes);
    if (control) {
      CLEW_TRY(go_on(add(*control)));
    } else {
      notes_.push_back(
          fmt::format("query {} is not read: {}", each.query, control.error().message));
    }
  }
  return {};
}

// One that cannot be read costs its query alone.
// Where the bus does not answer nothing is said of it, and another root or turn reads it again.
Expected<void> Root::restore_all() {
  for (const AnswerSummary& one : CLEW_TRY(store_->list())) {
    const bool is_over = one.phase == Phase::Done || one.phase == Phase::Failed;
    if (is_over && !asked_.contains(one.query)) continue;
    const auto stored = store_->read_recent(one.query, kPanesKept);
    if (!stored && stored.error().code != ErrorCode::Refused) return tl::unexpected(stored.error());
    if (!stored) {
      give_up(one.query, stored.error().message);
      continue;
    }
    const auto known = asked_.find(one.query);
    const Control& want = known == asked_.end() ? stored->query.want : known->second.want;
    const std::optional<Marks> marks = CLEW_TRY(marks_of(want));
    const auto restored = restore(*stored, marks);
    if (!restored) give_up(one.query, restored.error().message);
  }
  return {};
}

// What was merged of it is not known, so that anything more might be counted twice.
void Root::give_up(const std::string& query, const std::string& why) {
  notes_.push_back(fmt::format("query {} is given up: {}", query, why));
  const auto found = asked_.find(query);
  if (found == asked_.end()) return;
  Asked& asked = found->second;
  asked.merge = Merge(asked.want.gives);
  asked.out.clear();
  asked.is_unreadable = true;
  asked.phase = Phase::Failed;
  asked.reason = why;
  asked.ended_ns = clock_.monotonic_ns();
  asked.want.is_wanted = false;
  asked.is_announced = false;
  asked.has_news = true;
}

// Behind a root that had no store, or whose store is another one.
Expected<void> Root::go_on(Asked& asked) {
  if (store_ != nullptr) {
    const auto stored = store_->read_head(asked.want.query);
    if (stored || stored.error().code == ErrorCode::Refused) return {};
  }
  const std::optional<Marks> marks = CLEW_TRY(marks_of(asked.want));
  const bool had_store = asked.want.has_store;
  if (store_ != nullptr && !had_store) {
    asked.want.has_store = true;
    asked.is_announced = false;
  }
  if (had_store) {
    asked.lacks_store = true;
    asked.merge.go_on_without_store(marks ? &*marks : nullptr);
    asked.merge.expect_strangers(true);
    return {};
  }
  if (asked.want.gives == Gives::AtEnd)
    asked.lost.emplace_back("what a root without a store had merged before it went away");
  if (!marks) return {};
  asked.merge.go_on(*marks);
  asked.merge.expect_strangers(true);
  if (marks->given == kNoPane) return {};
  asked.given = marks->given;
  asked.told = Had{.given = marks->given, .members = marks->members};
  return {};
}

Root::Asked& Root::add(const Control& want) {
  Asked& asked = asked_[want.query];
  asked.want = want;
  asked.merge = Merge(want.gives);
  asked.begun_ns = asked.asker_heard_ns = clock_.monotonic_ns();
  asked.as = fmt::format("{}.{}", options_.name, asked.begun_ns + offset_ns_);
  return asked;
}

// What a root with this store had merged goes on from there, and what it gave is given again.
Expected<void> Root::restore(const StoredAnswer& stored, const std::optional<Marks>& marks) {
  const auto known = asked_.find(stored.query.want.query);
  Asked& asked = known == asked_.end() ? add(stored.query.want) : known->second;
  asked.answered = stored.query.answered;
  asked.schema = stored.query.schema;
  asked.merge = Merge(asked.want.gives);
  CLEW_TRY(asked.merge.restore(stored));
  asked.lost = stored.query.lost;
  if (!asked.merge.unreadable().empty()) tell_unreadable(asked);
  asked.dropped = stored.query.dropped;
  asked.begun = stored.query.begun;
  asked.exported = stored.exported;
  name_what_another_took(asked, marks);
  asked.merge.expect_strangers(true);
  if (stored.query.given) give(asked, *stored.query.given);
  for (auto& [pane, is_known] : asked.fresh)
    is_known = asked.exported && pane <= *asked.exported;
  // Whoever wants to see it reads it.
  if (asked.want.is_standing) asked.out.clear();
  // It was to end, or its end has come; where no key is there, a server has lost its disk.
  const bool is_unwanted = known == asked_.end() && want_revision_ != 0;
  asked.is_announced = want_revision_ != 0 && asked.want.has_store;
  asked.want.has_store = true;
  const bool is_ending = !stored.query.want.is_wanted || is_unwanted;
  if (is_ending && stored.query.phase != Phase::Installing) end(asked);
  return {};
}

}  // namespace clew::cluster

// SPDX-License-Identifier: Apache-2.0
#include "cluster/merge.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <numeric>
#include <utility>

#include "aggregate/table_bytes.h"
#include "cluster/node_losses.h"

namespace clew::cluster {
namespace {

constexpr Pane kBitsOfPanes = 64;  // Of a PaneSet, above its mark.
constexpr Pane kAll = std::numeric_limits<Pane>::max();
constexpr Pane kFarthest = 64;  // Of what a PaneSet has above its mark.

// Between its mark and this partial.
bool lacks_some(const PaneSet& merged, const Partial& partial) {
  return merged.mark() < partial.previous;
}

}  // namespace

Expected<bool> Merge::add(const Partial& partial, uint64_t sequence) {
  const Who who{partial.node, partial.incarnation};
  if (members_.size() >= kMembersMax && !members_.contains(who))
    return fail(ErrorCode::Limit, "too many nodes have begun and ended");
  if (gone_ && partial.pane <= *gone_ && !members_.contains(who)) {
    if (partial.table.index == 0) ++late_;
    return false;
  }
  note_safe(partial.node, partial.incarnation, partial.safe);
  Member& member = member_of(who);
  if (member.merged.has(partial.pane)) {
    if (partial.table.index == 0) ++repeated_;
    follow(member, partial);
    return false;
  }
  if (!has_place(member, partial)) return false;
  const std::optional<Bytes> whole = CLEW_TRY(join(member, partial, sequence));
  if (!whole) return false;
  member.open.reset();
  CLEW_TRY(merge(member, partial, *whole));
  return true;
}

Merge::Member& Merge::member_of(const Who& who) {
  const auto [member, is_new] = members_.try_emplace(who);
  lives_ += is_new ? 1 : 0;
  if (is_new && expects_strangers_) {
    const auto first = members_.lower_bound({who.first, Incarnation{}});
    const auto second = std::next(first);
    const bool is_alone = second == members_.end() || second->first.first != who.first;
    member->second.is_stranger = is_alone;
  }
  return member->second;
}

// Whatever the log and keys have lost: nodes are told so by roots that have it.
void Merge::note_safe(const std::string& node, const Incarnation& incarnation, Pane safe) {
  const Who who{node, incarnation};
  const bool is_known = members_.contains(who);
  const bool is_forgotten = !is_known && gone_ && safe <= *gone_;
  if (safe == kNoPane || is_forgotten || (!is_known && members_.size() >= kMembersMax)) return;
  Member& member = member_of(who);
  const Pane mark = member.merged.mark();
  if (safe <= mark) return;
  const Pane first = mark == PaneSet::kNone ? kNoPane : mark + 1;
  elsewhere_.push_back({.node = node, .panes = {.first = first, .last = safe}});
  member.merged.close(safe);
  member.is_changed = true;
}

// Of what is not merged the node is asked again, when it says that it was sent.
bool Merge::has_place(const Member& member, const Partial& partial) {
  const PaneSet& merged = member.merged;
  if (!lacks_some(merged, partial)) return true;
  if (merged.mark() == PaneSet::kNone) return false;
  // Above the mark, so that neither overflows.
  return static_cast<uint64_t>(partial.pane) - static_cast<uint64_t>(merged.mark()) <= kFarthest;
}

// The mark goes up to where one is missing.
void Merge::follow(Member& member, const Partial& partial) {
  PaneSet& merged = member.merged;
  const Pane before = merged.mark();
  if (partial.pane > before && partial.pane > partial.previous) {
    Pane& previous = member.previous.try_emplace(partial.pane, partial.previous).first->second;
    previous = std::min(previous, partial.previous);
  }
  auto next = member.previous.begin();
  while (next != member.previous.end()) {
    const auto [pane, previous] = *next;
    if (pane > merged.mark() && previous > merged.mark()) break;
    if (pane > merged.mark()) merged.close(pane - 1);
    next = member.previous.erase(next);
  }
  member.is_changed = member.is_changed || merged.mark() != before;
}

// What was begun before and is not whole comes no more.
Expected<std::optional<Bytes>> Merge::join(Member& member, const Partial& partial,
                                           uint64_t sequence) {
  if (member.open != partial.pane) {
    member.open = partial.pane;
    member.parts = {};
    member.first_part = sequence;
  }
  auto whole = member.parts.add(partial.table);
  if (whole) return whole;
  member.parts = {};
  member.first_part = sequence;
  return member.parts.add(partial.table);
}

std::optional<uint64_t> Merge::first_needed() const {
  std::optional<uint64_t> first;
  for (const auto& [who, member] : members_) {
    if (member.open) first = std::min(first.value_or(member.first_part), member.first_part);
  }
  return first;
}

std::optional<uint64_t> Merge::first_needed_behind(std::optional<Pane> pane) const {
  std::optional<uint64_t> first = first_needed();
  for (auto open = pane ? panes_.upper_bound(*pane) : panes_.begin(); open != panes_.end(); ++open)
    first = std::min(first.value_or(open->second.first), open->second.first);
  return first;
}

Expected<void> Merge::merge(Member& member, const Partial& partial, const Bytes& bytes) {
  const Pane pane = partial.pane;
  aggregate::Table table = CLEW_TRY(aggregate::table_of(bytes));
  if (total_ && total_->schema() != table.schema())
    return fail(ErrorCode::InvalidQuery, "its table has other columns than those before");
  if (!lacks_some(member.merged, partial)) member.merged.close(pane - 1);
  (void)member.merged.add(pane);
  follow(member, partial);
  if (member.first == PaneSet::kNone) member.first = pane;
  // They are of the session so far, and not of the pane.
  member.losses = std::exchange(table.losses, {});
  member.is_changed = true;
  CLEW_TRY(add_to_total(table));
  if (!has_room(pane, bytes.size())) {
    left_out_.push_back({.node = partial.node, .panes = {.first = pane, .last = pane}});
    return {};
  }
  return add_to_pane(pane, std::move(table), member.first_part, bytes.size());
}

// The first of all says which columns there are.
Expected<void> Merge::add_to_total(const aggregate::Table& table) {
  is_total_changed_ = gives_ != Gives::Events;
  if (!total_ && gives_ == Gives::Events) total_.emplace(table.schema());
  if (gives_ == Gives::Events) return {};
  if (total_) return total_->merge(table);
  total_ = table;
  return {};
}

// What is given once takes what comes late with the next one.
Pane Merge::pane_for(Pane pane) const {
  const bool is_once = gives_ == Gives::Windows || gives_ == Gives::Events;
  return is_once && given_ && pane <= *given_ ? *given_ + 1 : pane;
}

bool Merge::has_room(Pane pane, size_t bytes) const {
  const auto known = panes_.find(pane_for(pane));
  return gives_ != Gives::Events || known == panes_.end() ||
         known->second.bytes + bytes <= kEventBytesMax;
}

Expected<void> Merge::add_to_pane(Pane pane, aggregate::Table table, uint64_t first, size_t bytes) {
  const Pane merged_in = pane_for(pane);
  const auto known = panes_.find(merged_in);
  if (forgotten_ && merged_in <= *forgotten_) {
    ++late_;
  } else if (known == panes_.end()) {
    panes_.emplace(merged_in, Open{.table = std::move(table), .first = first, .bytes = bytes});
  } else {
    CLEW_TRY(known->second.table.merge(table));
    known->second.has_news = known->second.is_changed = true;
    known->second.bytes += bytes;
  }
  return {};
}

Pane Merge::mark(const std::string& node, const Incarnation& incarnation) const {
  const auto member = members_.find({node, incarnation});
  return member == members_.end() ? kNoPane : member->second.merged.mark();
}

void Merge::close(const std::string& node, const Incarnation& incarnation, Pane pane) {
  const auto member = members_.find({node, incarnation});
  if (member == members_.end() || member->second.first == PaneSet::kNone) return;
  // The rest of it is still on its way to us.
  const std::optional<Pane>& open = member->second.open;
  if ((open && *open <= pane) || member->second.merged.mark() >= pane) return;
  member->second.merged.close(pane);
  member->second.is_changed = true;
}

void Merge::log_began_anew() {
  for (auto& [who, member] : members_) {
    member.open.reset();
    member.parts = {};
  }
  // What comes again of these is left out, so that the first entries may be those of them.
  for (auto& [pane, open] : panes_)
    open.first = 1;
}

bool Merge::begin(const std::string& node, const Incarnation& incarnation) {
  if (members_.size() >= kMembersMax) return false;
  const uint64_t before = lives_;
  Member& member = member_of({node, incarnation});
  const bool is_new = lives_ != before;
  if (is_new) member.is_changed = true;
  return is_new;
}

void Merge::finish(const std::string& node, const Incarnation& incarnation) {
  close(node, incarnation, kAll);
}

std::vector<NodeGap> Merge::gaps(
    Pane given, const std::function<bool(const std::string&, const Incarnation&)>& is_gone) const {
  std::vector<NodeGap> gaps;
  if (panes_.empty()) return gaps;
  const auto add = [&gaps](const std::string& node, Pane mark, Pane last) {
    if (mark < last) gaps.push_back({.node = node, .panes = {.first = mark + 1, .last = last}});
  };
  std::optional<Pane> mark;  // Of the life before, if it is of the same node.
  for (auto life = members_.begin(); life != members_.end(); ++life) {
    const auto& [node, incarnation] = life->first;
    const Member& member = life->second;
    const bool is_mute = member.first == PaneSet::kNone;
    if (mark && !is_mute) add(node, *mark, member.first);
    // Of a life that ended before it had told anything it is not known when it began.
    if (!is_mute) mark = member.merged.mark();
    if (!mark) mark = panes_.begin()->first - 1;
    const auto next = std::next(life);
    const bool is_last = next == members_.end() || next->first.first != node;
    if (!is_last) continue;
    if (is_gone(node, incarnation)) add(node, *mark, given);
    mark.reset();
  }
  return gaps;
}

// Partials of a life are in the order of their panes: what is before the first that came was safe,
// and that is whole; but for a life that began in it.
std::vector<NodeGap> Merge::unsure(Pane known_behind) const {
  std::vector<NodeGap> gaps;
  if (panes_.empty()) return gaps;
  const bool may_be_anybody = lacks_store_ && !knows_lives_;
  if (may_be_anybody && known_behind != kNoPane)
    gaps.push_back({.node = "", .panes = {.first = kNoPane, .last = known_behind}});
  for (auto life = members_.begin(); life != members_.end();) {
    const std::string& node = life->first.first;
    bool may_be_there = may_be_anybody;
    bool is_whole = !begins_anew_ && !life->second.is_stranger;
    std::optional<Pane> last;
    for (; life != members_.end() && life->first.first == node; ++life) {
      const Member& member = life->second;
      if (!last && member.first != PaneSet::kNone) last = member.first - (is_whole ? 1 : 0);
      may_be_there = may_be_there || member.was_there || member.is_stranger;
      is_whole = false;
    }
    const Pane most = last.value_or(panes_.begin()->first - 1);
    if (may_be_there) gaps.push_back({.node = node, .panes = {.first = kNoPane, .last = most}});
  }
  return gaps;
}

std::vector<Pane> Merge::open() const {
  std::vector<Pane> panes;
  for (auto next = given_ ? panes_.upper_bound(*given_) : panes_.begin(); next != panes_.end();
       ++next) {
    panes.push_back(next->first);
  }
  return panes;
}

std::vector<PaneTable> Merge::given() const {
  std::vector<PaneTable> given;
  for (const auto& [pane, open] : panes_) {
    if (given_ && pane <= *given_ && open.version != 0)
      given.push_back({.pane = pane, .version = open.version, .table = &open.table});
  }
  return given;
}

bool Merge::has_corrections() const {
  return given_ && std::any_of(panes_.begin(), panes_.upper_bound(*given_),
                               [](const auto& each) { return each.second.has_news; });
}

std::vector<PaneTable> Merge::take_due(Pane up_to) {
  std::vector<PaneTable> due;
  for (auto& [pane, open] : panes_) {
    if (pane > up_to) break;
    if (!std::exchange(open.has_news, false)) continue;
    open.is_changed = true;
    due.push_back({.pane = pane, .version = ++open.version, .table = &open.table});
  }
  if (!given_ || up_to > *given_) given_ = up_to;
  return due;
}

void Merge::set_gives(Gives gives) {
  gives_ = gives;
  if (gives == Gives::Events && total_) total_.emplace(total_->schema());
}

// --- what outlives a root ------------------------------------------------------------------------

void Merge::save(Store& store, const std::string& query) const {
  for (const auto& [pane, open] : panes_) {
    if (!open.is_changed) continue;
    const Bytes table = aggregate::to_bytes(open.table);
    const uint64_t version = open.version + (open.has_news ? 1 : 0);
    store.put(query, StoredPane{.pane = pane, .version = version, .table = table});
  }
  if (is_total_changed_ && total_) store.put_total(query, aggregate::to_bytes(*total_));
  for (const auto& [who, member] : members_) {
    if (!member.is_changed) continue;
    aggregate::Table losses(aggregate::TableSchema{});
    losses.losses = member.losses.value_or(collect::Losses{});
    store.put(query, StoredMember{.node = who.first,
                                  .incarnation = who.second,
                                  .first = member.first,
                                  .mark = member.merged.mark(),
                                  .bits = member.merged.bits(),
                                  .losses = aggregate::to_bytes(losses)});
  }
}

void Merge::saved() {
  for (auto& [pane, open] : panes_)
    open.is_changed = false;
  for (auto& [who, member] : members_) {
    member.is_changed = false;
    member.safe = member.merged.mark();
  }
  is_total_changed_ = false;
}

Expected<void> Merge::restore(const StoredAnswer& stored) {
  for (const StoredMember& one : stored.members) {
    Member& member = member_of({one.node, one.incarnation});
    member.merged = PaneSet(one.mark, one.bits);
    member.safe = one.mark;
    member.first = one.first;
    member.losses = CLEW_TRY(aggregate::table_of(one.losses)).losses;
  }
  for (const StoredPane& one : stored.panes) {
    auto table = aggregate::table_of(one.table);
    if (!table) {
      unreadable_.push_back(one.pane);
      continue;
    }
    Open open{.table = std::move(*table),
              .version = std::max<uint64_t>(one.version, 1) - 1,
              .is_changed = false,
              .bytes = one.table.size()};
    panes_.emplace(one.pane, std::move(open));
  }
  forgotten_ = stored.left_out;
  gone_ = stored.forgotten;
  if (stored.total) total_ = CLEW_TRY(aggregate::table_of(*stored.total));
  return {};
}

std::vector<MemberMark> Merge::marks(Pane given) const {
  std::vector<MemberMark> marks;
  for (const auto& [who, member] : members_) {
    MemberMark& one = marks.emplace_back(
        MemberMark{.node = who.first, .incarnation = who.second, .first = kNoPane});
    const auto taken = member.taken.value_or(PaneRange{.first = kNoPane, .last = kNoPane});
    one.first = taken.first;
    one.mark = taken.last;
    if (member.first == PaneSet::kNone || member.first > given) continue;
    if (!member.taken) one.first = member.first;
    one.mark = std::max(one.mark, std::min(member.safe, given));
  }
  return marks;
}

void Merge::adopt(const MemberMark& mark) {
  Member& member = member_of({mark.node, mark.incarnation});
  member.first = mark.first;
  member.safe = mark.mark;
  member.merged = PaneSet(mark.mark, 0);
  member.is_changed = true;
}

void Merge::go_on(const Marks& marks) {
  for (const MemberMark& one : marks.members)
    adopt(one);
  if (marks.given != kNoPane) given_ = marks.given;
}

void Merge::go_on_without_store(const Marks* marks) {
  lacks_store_ = true;
  knows_lives_ = marks != nullptr;
  if (marks == nullptr) return;
  for (const MemberMark& one : marks->members) {
    Member& member = member_of({one.node, one.incarnation});
    member.was_there = true;
    if (one.mark != kNoPane) member.taken = PaneRange{.first = one.first, .last = one.mark};
  }
}

void Merge::begin_without_store(const Marks* marks) {
  go_on_without_store(marks);
  begins_anew_ = true;
}

size_t Merge::kept_bytes() const {
  return std::accumulate(panes_.begin(), panes_.end(), size_t{0},
                         [](size_t sum, const auto& each) { return sum + each.second.bytes; });
}

void Merge::keep(size_t panes) {
  const auto is_too_much = [&] {
    return panes_.size() > panes || (gives_ == Gives::Events && kept_bytes() > kEventBytesKept);
  };
  while (!panes_.empty() && given_ && panes_.begin()->first <= *given_ && is_too_much()) {
    if (panes_.begin()->second.is_changed) return;
    forgotten_ = panes_.begin()->first;
    panes_.erase(panes_.begin());
  }
}

std::vector<std::pair<std::string, Incarnation>> Merge::forget_members(
    Pane before, const std::function<bool(const std::string&, const Incarnation&)>& is_gone) {
  gone_ = std::max(gone_.value_or(before - 1), before - 1);
  std::vector<Who> forgotten;
  for (const auto& [who, member] : members_) {
    const Pane mark = member.merged.mark();
    const bool is_mute = mark == PaneSet::kNone;
    const bool is_old = is_mute ? member.first == PaneSet::kNone : mark < before - kBitsOfPanes;
    if (is_old && !member.is_changed && is_gone(who.first, who.second)) forgotten.push_back(who);
  }
  for (const Who& who : forgotten)
    members_.erase(who);
  lives_ += forgotten.size();
  return forgotten;
}

std::vector<std::pair<Incarnation, Pane>> Merge::safe(const std::string& node) const {
  std::vector<std::pair<Incarnation, Pane>> safe;
  for (auto one = members_.lower_bound({node, Incarnation{}});
       one != members_.end() && one->first.first == node; ++one) {
    if (one->second.safe != PaneSet::kNone) safe.emplace_back(one->first.second, one->second.safe);
  }
  return safe;
}

collect::Losses Merge::losses() const {
  collect::Losses all;
  for (const auto& [who, member] : members_) {
    if (member.losses) add_losses(all, *member.losses, who.first);
  }
  return all;
}

}  // namespace clew::cluster

// SPDX-License-Identifier: Apache-2.0
#include "cluster/spill.h"

#include <algorithm>
#include <utility>

#include "aggregate/table_bytes.h"
#include "base/assert.h"

namespace clew::cluster {
namespace {

// Two tables that become one have to gain a quarter: else memory would grow with all keys.
constexpr size_t kGainOf = 4;

}  // namespace

void Spill::add(Pane pane, Bytes table) {
  CLEW_ASSERT(kept_.empty() || kept_.back().pane < pane);
  bytes_ += table.size();
  kept_.push_back({.pane = pane, .table = std::move(table)});
  while (bytes_ > bytes_max_ && kept_.size() > 1)
    shrink();
}

void Spill::add(const LeftFile& left) {
  for (const SpilledAt& one : left.partials) {
    const auto place = std::find_if(kept_.begin(), kept_.end(),
                                    [&one](const Kept& each) { return each.pane >= one.pane; });
    // Never two of one pane: the one that became part of another is marked in its file.
    if (place != kept_.end() && place->pane == one.pane) continue;
    kept_.insert(place, {.pane = one.pane, .file = left.file, .offset = one.offset});
  }
}

void Spill::shrink() {
  if (!write_oldest() && !merge_oldest()) drop_first();
}

// Half of what is in memory.
bool Spill::write_oldest() {
  if (folder_ == nullptr) return false;
  std::vector<Spilled> some;
  size_t bytes = 0;
  for (const Kept& kept : kept_) {
    if (kept.file != nullptr) continue;
    if (bytes > 0 && bytes + kept.table.size() > bytes_max_ / 2) break;
    bytes += kept.table.size();
    some.push_back({.tenant = owner_.tenant,
                    .node = owner_.node,
                    .query = owner_.query,
                    .revision = owner_.revision,
                    .incarnation = owner_.incarnation,
                    .pane = kept.pane,
                    .table = kept.table});
  }
  std::vector<SpilledAt> places;
  const auto file = folder_->write(some, places);
  if (!file) {
    if (!failed_at_) problem_ = file.error().message;
    failed_at_ = kept_.back().pane;
    return false;
  }
  auto place = places.begin();
  for (Kept& kept : kept_) {
    if (place == places.end()) break;
    if (kept.file != nullptr) continue;
    CLEW_ASSERT(kept.pane == place->pane);
    bytes_ -= kept.table.size();
    kept.table = {};
    kept.file = *file;
    kept.offset = place->offset;
    ++place;
  }
  return true;
}

void Spill::write_all() {
  while (bytes_ != 0 && write_oldest()) {
  }
}

bool Spill::merge_oldest() {
  // Under its number nobody can have one of these.
  const auto is_new = [](const Kept& each) { return !each.is_sent && !each.was_tried; };
  const auto first = std::find_if(kept_.begin(), kept_.end(), is_new);
  if (first == kept_.end()) return false;
  const auto second = first + 1;
  if (second == kept_.end() || !is_new(*second)) return false;
  const auto one = table_of(*first);
  const auto other = table_of(*second);
  if (!one || !other) return false;
  auto table = aggregate::table_of(*other);
  const auto added = aggregate::table_of(*one);
  if (!table || !added || !table->merge(*added)) return false;
  Bytes both = aggregate::to_bytes(*table);
  const size_t before = one->size() + other->size();
  if (both.size() > before - before / kGainOf) return false;
  note_merged(first->pane, second->pane);
  release(*first);
  release(*second);
  bytes_ += both.size();
  second->table = std::move(both);
  kept_.erase(first);
  return true;
}

// What was sent may have been merged; what was not, nobody has.
void Spill::drop_first() {
  Kept& first = kept_.front();
  if (!first.is_sent) {
    note_lost(first.pane);
  } else {
    given_up_ = {.first = given_up_ ? given_up_->first : first.pane, .last = first.pane};
  }
  release(first);
  kept_.pop_front();
}

void Spill::drop(const Kept& kept) {
  const auto found = std::find_if(kept_.begin(), kept_.end(),
                                  [&kept](const Kept& each) { return each.pane == kept.pane; });
  if (found == kept_.end()) return;
  note_lost(found->pane);
  release(*found);
  kept_.erase(found);
}

void Spill::note_lost(Pane pane) {
  const auto merged = std::find_if(merged_.begin(), merged_.end(),
                                   [pane](const PaneRange& each) { return each.last == pane; });
  const Pane first = merged == merged_.end() ? pane : merged->first;
  if (merged != merged_.end()) merged_.erase(merged);
  name_lost({.first = first, .last = pane});
}

// Nobody has them, and we neither.
void Spill::name_given_up(const std::vector<PaneRange>& panes) {
  if (!given_up_) return;
  const bool is_wanted = std::any_of(panes.begin(), panes.end(), [this](const PaneRange& range) {
    return range.first <= given_up_->last && given_up_->first <= range.last;
  });
  if (!is_wanted) return;
  name_lost(*std::exchange(given_up_, {}));
}

void Spill::name_lost(const PaneRange& panes) {
  auto next = std::find_if(lost_.begin(), lost_.end(), [&panes](const PaneRange& each) {
    return each.last >= panes.first || each.last + 1 == panes.first;
  });
  PaneRange all = panes;
  while (next != lost_.end() && next->first - 1 <= all.last) {
    all = {.first = std::min(all.first, next->first), .last = std::max(all.last, next->last)};
    next = lost_.erase(next);
  }
  lost_.insert(next, all);
}

void Spill::note_merged(Pane first, Pane last) {
  const auto known = std::find_if(merged_.begin(), merged_.end(),
                                  [first](const PaneRange& each) { return each.last == first; });
  if (known != merged_.end()) {
    known->last = last;
  } else {
    merged_.push_back({.first = first, .last = last});
  }
}

// A file goes with the last of its partials.
void Spill::release(Kept& kept) {
  bytes_ -= kept.table.size();
  kept.table = {};
  if (kept.file == nullptr) return;
  if (kept.file.use_count() == 1) {
    kept.file->remove();
  } else {
    kept.file->forget(kept.offset);
  }
  kept.file.reset();
}

Spill::Kept* Spill::next() {
  const auto found =
      std::find_if(kept_.begin(), kept_.end(), [](const Kept& each) { return !each.is_sent; });
  return found == kept_.end() ? nullptr : &*found;
}

Pane Spill::previous_of(const Kept& kept) const {
  const auto found = std::lower_bound(kept_.begin(), kept_.end(), kept.pane,
                                      [](const Kept& each, Pane pane) { return each.pane < pane; });
  if (found != kept_.begin()) return (found - 1)->pane;
  return given_up_ ? given_up_->last : kNoPane;
}

Pane Spill::last_sent() const {
  const auto next =
      std::find_if(kept_.begin(), kept_.end(), [](const Kept& each) { return !each.is_sent; });
  if (next != kept_.begin()) return (next - 1)->pane;
  return given_up_ ? given_up_->last : kNoPane;
}

Expected<Bytes> Spill::table_of(const Kept& kept) {
  if (kept.file == nullptr) return kept.table;
  return kept.file->table_at(kept.offset);
}

void Spill::forget(Pane mark) {
  if (given_up_ && mark >= given_up_->first) safe_ = std::min(mark, given_up_->last);
  if (given_up_ && mark >= given_up_->last) given_up_.reset();
  if (given_up_) given_up_->first = std::max(given_up_->first, mark + 1);
  while (!kept_.empty() && kept_.front().pane <= mark) {
    safe_ = kept_.front().pane;
    release(kept_.front());
    kept_.pop_front();
  }
  if (failed_at_ && mark >= *failed_at_) failed_at_.reset();
}

void Spill::send_again(const std::vector<PaneRange>& panes) {
  name_given_up(panes);
  for (Kept& each : kept_) {
    const bool is_wanted = std::any_of(panes.begin(), panes.end(), [&each](const PaneRange& range) {
      return range.first <= each.pane && each.pane <= range.last;
    });
    if (is_wanted) each.is_sent = false;
  }
}

}  // namespace clew::cluster

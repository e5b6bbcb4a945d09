// SPDX-License-Identifier: Apache-2.0
#include "cluster/asker.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <string_view>
#include <utility>

#include "aggregate/table_bytes.h"
#include "cluster/node_gaps.h"

namespace clew::cluster {
namespace {

constexpr int64_t kAskPeriod = kSecond / 2;
constexpr int64_t kLateMost = 2 * kSecond;
constexpr size_t kEarlyMax = 4096;
constexpr size_t kVersionsMax = 4096;
constexpr size_t kUnsureMax = 4096;

bool is_unsure(const NodeGap& gap) {
  return gap.panes.first == kNoPane;
}

size_t hash_of(const Bytes& bytes) {
  return std::hash<std::string_view>()({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

}  // namespace

Asker::Asker(Bus& bus, const Clock& clock, const std::string& tenant, Ask question,
             const SigningKey* key)
    : bus_(bus),
      clock_(clock),
      tenant_(tenant),
      subjects_(tenant),
      question_(std::move(question)),
      key_(key),
      heard_ns_(clock.monotonic_ns()) {
  question_.is_wanted = true;
}

Expected<void> Asker::begin() {
  CLEW_TRY(bus_.subscribe(subjects_.status(question_.query)));
  CLEW_TRY(bus_.subscribe(subjects_.status(kOfStrangers)));
  CLEW_TRY(bus_.subscribe(subjects_.row(question_.query)));
  ask();
  return {};
}

void Asker::turn() {
  while (const std::optional<Message> message = bus_.next())
    hear(*message);
  if (clock_.monotonic_ns() >= next_ask_ns_) ask();
}

void Asker::end() {
  question_.is_wanted = false;
  ask();
}

void Asker::ask() {
  next_ask_ns_ = clock_.monotonic_ns() + kAskPeriod;
  if (key_ != nullptr) sign(question_, tenant_, *key_, clock_.realtime_ns());
  (void)bus_.publish(subjects_.ask(), to_bytes(question_));
}

bool Asker::is_done() const {
  const bool is_over =
      status_ && (status_->phase == Phase::Done || status_->phase == Phase::Failed);
  return is_over && question_.has_rows >= status_->rows;
}

std::vector<NodeGap> Asker::gaps() const {
  std::vector<NodeGap> all = earlier_gaps_;
  if (status_) {
    std::copy_if(status_->gaps.begin(), status_->gaps.end(), std::back_inserter(all),
                 [](const NodeGap& gap) { return !is_unsure(gap); });
  }
  return without_whole(all);
}

std::vector<NodeGap> Asker::unsure() const {
  std::vector<NodeGap> all;
  if (status_) {
    std::copy_if(status_->gaps.begin(), status_->gaps.end(), std::back_inserter(all), is_unsure);
  }
  all = without_whole(all);
  // A root behind it may not know of whom it lacks something, and call whole what is not.
  all.insert(all.end(), unsure_.begin(), unsure_.end());
  return all;
}

// Whatever became of their nodes later.
std::vector<NodeGap> Asker::without_whole(const std::vector<NodeGap>& gaps) const {
  std::vector<NodeGap> rest;
  for (const NodeGap& gap : gaps) {
    Pane first = gap.panes.first;
    const auto end = whole_.upper_bound(gap.panes.last);
    for (auto pane = whole_.lower_bound(first); pane != end; ++pane) {
      if (first < *pane) rest.push_back({.node = gap.node, .panes = {first, *pane - 1}});
      first = *pane + 1;
    }
    if (first <= gap.panes.last)
      rest.push_back({.node = gap.node, .panes = {first, gap.panes.last}});
  }
  return rest;
}

void Asker::hear(const Message& message) {
  const auto said = read_as<Status>(message.bytes);
  const bool is_status = message.subject == subjects_.status(question_.query) ||
                         message.subject == subjects_.status(kOfStrangers);
  if (is_status && !said) stranger_ = said.error().message;
  if (said) {
    if (said->query != question_.query) return;
    heard_ns_ = clock_.monotonic_ns();
    const bool is_other = said->root != question_.root;
    // On its way since before the one that leads now.
    if (is_other && said->root == root_before_ && heard_ns_ - root_ns_ < kLateMost) return;
    if (is_other) begin_anew(*said);
    status_ = *said;
    take_back(said->gaps);
    give_up_before(said->first_row);
    return;
  }
  auto row = read_as<RowUpdate>(message.bytes);
  if (row && row->query == question_.query) take(std::move(*row));
}

// Another root numbers its rows anew, and gives once more what was given.
// One without a store has of these a part alone, as has the one behind it: they stay as they are.
void Asker::begin_anew(const Status& said) {
  had_no_store_ = had_no_store_ || !said.has_store;
  if (had_no_store_ && !versions_.empty()) last_come_ = versions_.rbegin()->first;
  unsure_ = joined(unsure());
  if (unsure_.size() > kUnsureMax) unsure_.erase(unsure_.begin(), unsure_.end() - kUnsureMax);
  earlier_gaps_ = had_no_store_ ? gaps() : std::vector<NodeGap>();
  root_before_ = std::exchange(question_.root, said.root);
  root_ns_ = heard_ns_;
  question_.has_rows = 0;
  whole_here_.clear();
  early_.clear();
  parts_ = {};
}

// The root has too many: what is before this one comes no more.
void Asker::give_up_before(uint64_t first) {
  if (question_.has_rows + 1 >= first) return;
  lost_ += first - question_.has_rows - 1;
  question_.has_rows = first - 1;
  parts_ = {};
  early_.erase(early_.begin(), early_.lower_bound(first));
  take_early();
}

// In the order of their numbers, each once.
void Asker::take(RowUpdate row) {
  if (row.root != question_.root) return;
  const bool is_next = row.number == question_.has_rows + 1;
  if (row.number <= question_.has_rows || (!is_next && early_.size() >= kEarlyMax)) return;
  const uint64_t number = row.number;
  early_.emplace(number, std::move(row));
  take_early();
}

void Asker::take_early() {
  while (!early_.empty() && early_.begin()->first == question_.has_rows + 1) {
    ++question_.has_rows;
    take_in_order(early_.extract(early_.begin()).mapped());
  }
}

void Asker::take_in_order(const RowUpdate& row) {
  auto whole = parts_.add(row.table);
  // Those before it will not be whole any more.
  if (!whole && row.table.index == 0) {
    parts_ = {};
    whole = parts_.add(row.table);
  }
  if (whole && !*whole) return;
  auto table = whole ? aggregate::table_of(**whole)
                     : Expected<aggregate::Table>(tl::unexpected(whole.error()));
  parts_ = {};
  if (!table) {
    ++lost_;
    return;
  }
  // Losses are of the session so far, and go on.
  const collect::Losses losses = std::exchange(table->losses, {});
  const size_t hash = hash_of(aggregate::to_bytes(*table));
  table->losses = losses;
  Come& come = versions_[row.pane];
  if (come.version != 0 && last_come_ && row.pane <= *last_come_) {
    // Whoever gave the first one may not have known of a node that the other one has.
    if (hash == come.hash) return;
    whole_.erase(row.pane);
    add_gap(unsure_, {.node = "", .panes = {.first = row.pane, .last = row.pane}});
    return;
  }
  if (row.version <= come.version) return;
  come = {.version = row.version, .hash = hash};
  note_whole(row);
  if (versions_.size() > kVersionsMax) versions_.erase(versions_.begin());
  panes_.push_back({.pane = row.pane,
                    .version = row.version,
                    .is_final = row.is_final,
                    .lacks_nodes = row.lacks_nodes,
                    .table = std::move(*table)});
}

void Asker::note_whole(const RowUpdate& row) {
  if (row.lacks_nodes) {
    whole_.erase(row.pane);
    whole_here_.erase(row.pane);
  } else {
    whole_.insert(row.pane);
    whole_here_.insert(row.pane);
  }
  if (whole_.size() > kVersionsMax) whole_.erase(whole_.begin());
  if (whole_here_.size() > kVersionsMax) whole_here_.erase(whole_here_.begin());
}

// A root that names what it has given as whole has heard of a node since.
void Asker::take_back(const std::vector<NodeGap>& gaps) {
  for (const NodeGap& gap : gaps) {
    auto pane = whole_here_.lower_bound(gap.panes.first);
    while (pane != whole_here_.end() && *pane <= gap.panes.last) {
      whole_.erase(*pane);
      pane = whole_here_.erase(pane);
    }
  }
}

}  // namespace clew::cluster

// SPDX-License-Identifier: Apache-2.0
// What a root's store is not to keep for ever: intervals of long ago (RootOptions::keep_ns), or the
// oldest ones where there are too many (keep_bytes); queries that have ended, with their last
// interval; and lives of nodes of which nothing is left. Little at a time, each in a transaction
// that is soon over, as the root has other things to do.
#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cluster/root.h"
#include "stream/pane.h"

namespace clew::cluster {
namespace {

constexpr int64_t kForgetPeriod = kSecond;
constexpr size_t kPanesAtOnce = 256;  // Of a query.
constexpr int kRoundsMost = 16;

bool is_over(Phase phase) {
  return phase == Phase::Done || phase == Phase::Failed;
}

}  // namespace

void Root::forget() {
  const bool forgets = store_ != nullptr && (options_.keep_ns != 0 || options_.keep_bytes != 0);
  if (!forgets || clock_.monotonic_ns() < next_forget_ns_ || is_unsafe_) return;
  next_forget_ns_ = clock_.monotonic_ns() + kForgetPeriod;
  const auto done = [this]() -> Expected<void> {
    if (options_.keep_ns != 0) CLEW_TRY(forget_old());
    CLEW_TRY(store_->commit());
    if (options_.keep_bytes != 0) CLEW_TRY(forget_most());
    CLEW_TRY(forget_members());
    CLEW_TRY(store_->commit());
    return store_->shrink();
  }();
  const std::string problem = done ? std::string() : done.error().message;
  const bool is_told = std::exchange(keeps_all_, problem) == problem;
  if (!done && !is_told) notes_.push_back("the store forgets nothing: " + problem);
}

Expected<void> Root::forget_old() {
  const int64_t before_ns = clock_.monotonic_ns() + offset_ns_ - options_.keep_ns;
  for (const StoredSpan& one : CLEW_TRY(store_->spans())) {
    if (!one.is_readable) continue;  // Of which time its panes are is not known.
    const std::string& query = one.want.query;
    // The pane that is not over then, and all behind it, stay.
    const Pane before = panes_of(one.want).number_of(before_ns);
    (void)CLEW_TRY(store_->forget(query, before, kPanesAtOnce));
    const bool is_old = one.given ? *one.given < before : one.want.time_ns < before_ns;
    const bool is_left = one.first && *one.first < before;
    if (is_over(one.phase) && is_old && !is_left && !asked_.contains(query))
      store_->forget_query(query);
  }
  return {};
}

// The oldest ones, of whichever query; but first those of queries that nobody can read any more.
Expected<void> Root::forget_most() {
  for (int round = 0; round < kRoundsMost; ++round) {
    if (CLEW_TRY(store_->bytes()) <= options_.keep_bytes) return {};
    const std::vector<StoredSpan> all = CLEW_TRY(store_->spans());
    const auto time_of = [](const StoredSpan& one) {
      const bool has_given = one.first && one.given && *one.first <= *one.given;
      if (has_given && !one.is_readable) return std::numeric_limits<int64_t>::min();
      return has_given ? panes_of(one.want).end(*one.first) : std::numeric_limits<int64_t>::max();
    };
    const auto oldest = std::min_element(
        all.begin(), all.end(),
        [&](const auto& one, const auto& other) { return time_of(one) < time_of(other); });
    if (oldest == all.end()) return {};
    const size_t gone = CLEW_TRY(store_->forget(
        oldest->want.query, std::numeric_limits<Pane>::max(), kPanesAtOnce / kRoundsMost));
    CLEW_TRY(store_->commit());
    if (gone == 0) return {};
  }
  return {};
}

Expected<void> Root::forget_members() {
  for (const StoredSpan& one : CLEW_TRY(store_->spans())) {
    const auto found = asked_.find(one.want.query);
    if (found == asked_.end() || !one.first) continue;
    Asked& asked = found->second;
    if (asked.begun && *one.first <= *asked.begun) continue;  // Nothing has gone.
    const auto is_gone = [&](const std::string& node, const Incarnation& life) {
      const auto last = asked.lives.find(node);
      const auto member = members_.find(node);
      const bool is_last = last != asked.lives.end() && last->second == life;
      return !is_last || member == members_.end() || !is_alive(member->second);
    };
    for (const auto& [node, life] : asked.merge.forget_members(*one.first, is_gone))
      store_->forget(one.want.query, node, life);
  }
  return {};
}

}  // namespace clew::cluster

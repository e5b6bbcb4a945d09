// SPDX-License-Identifier: Apache-2.0
#include "stream/temporal_join.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <variant>

#include "base/assert.h"

namespace clew::stream {

using aggregate::Value;

namespace {

bool has_null(std::span<const Value> key) {
  return std::any_of(key.begin(), key.end(), [](const Value& part) {
    return std::holds_alternative<std::monostate>(part);
  });
}

int64_t more(int64_t time, uint64_t by) {
  int64_t result = 0;
  const bool is_over = __builtin_add_overflow(time, by, &result);
  return is_over ? std::numeric_limits<int64_t>::max() : result;
}

int64_t less(int64_t time, uint64_t by) {
  int64_t result = 0;
  const bool is_over = __builtin_sub_overflow(time, by, &result);
  return is_over ? std::numeric_limits<int64_t>::min() : result;
}

}  // namespace

TemporalJoin::TemporalJoin(TemporalShape shape, TemporalLimits limits, JoinedRows& into)
    : shape_(shape),
      limits_(limits),
      into_(into),
      seed_(random_seed()),
      left_({.width = shape.left_width,
             .moments = shape.left_moments,
             .keys = shape.keys,
             .first_by = shape.left_of}),
      right_({.width = shape.right_width, .keys = shape.keys}),
      row_(shape.left_width + shape.right_width),
      key_(shape.keys),
      moments_(shape.left_moments + 1) {
  CLEW_ASSERT(shape.left_of < shape.left_moments);
  CLEW_ASSERT(limits.held > 0 && limits.held < HeldRows::kNone);
  CLEW_ASSERT(shape.within_ns < INT64_MAX);
  CLEW_ASSERT(shape.count > 0);
}

void TemporalJoin::hold(HeldRows& side, const HeldRows::Row& row, bool is_joined) {
  if (side.size() >= limits_.held) {
    if (&side == &right_)
      right_forgotten_ns_ = std::max(right_forgotten_ns_, side.time_of(side.first()));
    side.remove_first();
    ++forgotten_;
  }
  const uint32_t place = side.add(row);
  if (is_joined) side.set_joined(place);
}

// The latest ones, in the order of their times.
void TemporalJoin::find(const HeldRows& side, size_t moment, const Wanted& wanted, Budget& budget) {
  found_.clear();
  const HeldRows::Rows rows = side.rows_of(wanted.key, wanted.hash);
  for (uint32_t place = rows.last; place != HeldRows::kNone; place = side.before(place)) {
    const Moment at = side.moment(place, moment);
    if (at.time_ns < wanted.first_ns && rows.is_sorted) break;
    if (budget.looks == 0 || budget.rows == 0) {
      budget.is_cut = true;
      break;
    }
    --budget.looks;
    const bool is_near = at.time_ns >= wanted.first_ns && at.time_ns <= wanted.last_ns;
    if (!is_near || at.number == wanted.number) continue;
    --budget.rows;
    found_.push_back(place);
  }
  std::reverse(found_.begin(), found_.end());
}

void TemporalJoin::take_left(std::span<const Value> row, std::span<const Moment> moments,
                             std::span<const Value> key, Budget& budget) {
  const Moment& own = moments[shape_.left_of];
  if (own.is_never() || has_null(key)) {
    if (!shape_.is_outer) return;
    set_left(row, moments);
    give_nothing();
    return;
  }
  const uint64_t hash = hash_of_key(key, seed_);
  const HeldRows::Row held{.values = row, .moments = moments, .key = key, .hash = hash};
  if (chooses()) return hold(left_, held, false);
  find(right_, 0,
       {.key = key,
        .hash = hash,
        .number = own.number,
        .first_ns = less(own.time_ns, reach(Side::After)),
        .last_ns = more(own.time_ns, reach(Side::Before))},
       budget);
  hold(left_, held, !found_.empty());
  set_left(row, moments);
  give_found();
}

void TemporalJoin::take_right(std::span<const Value> row, Moment moment, std::span<const Value> key,
                              Budget& budget) {
  if (moment.is_never() || has_null(key)) return;
  const uint64_t hash = hash_of_key(key, seed_);
  const HeldRows::Row held{.values = row, .moments = {&moment, 1}, .key = key, .hash = hash};
  if (chooses()) return hold(right_, held, false);
  find(left_, shape_.left_of,
       {.key = key,
        .hash = hash,
        .number = moment.number,
        .first_ns = less(moment.time_ns, reach(Side::Before)),
        .last_ns = more(moment.time_ns, reach(Side::After))},
       budget);
  hold(right_, held, false);
  if (found_.empty()) return;
  std::copy(row.begin(), row.end(), row_.begin() + static_cast<ptrdiff_t>(shape_.left_width));
  moments_.back() = moment;
  for (const uint32_t place : found_) {
    left_.set_joined(place);
    read_left(place);
    into_.joined(row_, moments_);
  }
}

// --- what waits for all to have come -------------------------------------------------------------

void TemporalJoin::set_left(std::span<const Value> row, std::span<const Moment> moments) {
  std::copy(row.begin(), row.end(), row_.begin());
  std::copy(moments.begin(), moments.end(), moments_.begin());
}

void TemporalJoin::read_left(uint32_t place) {
  left_.read(place, std::span(row_).first(shape_.left_width));
  for (size_t i = 0; i < shape_.left_moments; ++i)
    moments_[i] = left_.moment(place, i);
}

// The left row in the making, with each that was found, or with none.
void TemporalJoin::give_found() {
  for (const uint32_t place : found_) {
    right_.read(place, std::span(row_).subspan(shape_.left_width));
    moments_.back() = right_.moment(place, 0);
    into_.joined(row_, moments_);
  }
}

void TemporalJoin::give_nothing() {
  std::fill(row_.begin() + static_cast<ptrdiff_t>(shape_.left_width), row_.end(), Value{});
  moments_.back() = {};
  into_.joined(row_, moments_);
}

// All that there is of it. False: it is to be asked again.
bool TemporalJoin::give_held(uint32_t place, size_t& most) {
  if (chooses()) return give_chosen(place, most);
  if (!shape_.is_outer || left_.is_joined(place)) return true;
  if (most == 0) return false;
  --most;
  read_left(place);
  give_nothing();
  return true;
}

bool TemporalJoin::give_chosen(uint32_t place, size_t& most) {
  if (most == 0) return false;
  const Moment own = left_.moment(place, shape_.left_of);
  left_.read_key(place, key_);
  const bool is_known = choose({.key = key_,
                                .hash = left_.hash_of(place),
                                .number = own.number,
                                .first_ns = less(own.time_ns, reach(Side::After)),
                                .last_ns = more(own.time_ns, reach(Side::Before))});
  if (!is_known) ++unchosen_;
  if (!is_known || (found_.empty() && !shape_.is_outer)) return true;
  most -= std::min(most, std::max<size_t>(found_.size(), 1));
  read_left(place);
  if (found_.empty()) {
    give_nothing();
  } else {
    give_found();
  }
  return true;
}

// The first or last of the right rows that are near. False: there are too many to tell, or there
// may have been one before them that is forgotten.
bool TemporalJoin::choose(const Wanted& wanted) {
  found_.clear();
  if (shape_.choice == Choice::First && wanted.first_ns <= right_forgotten_ns_) return false;
  const HeldRows::Rows rows = right_.rows_of(wanted.key, wanted.hash);
  const bool is_last = shape_.choice == Choice::Last;
  size_t looks = limits_.looks;
  for (uint32_t place = rows.last; place != HeldRows::kNone; place = right_.before(place)) {
    const Moment at = right_.moment(place, 0);
    if (at.time_ns < wanted.first_ns && rows.is_sorted) break;
    if (looks-- == 0) return false;
    const bool is_near = at.time_ns >= wanted.first_ns && at.time_ns <= wanted.last_ns;
    if (!is_near || at.number == wanted.number) continue;
    found_.push_back(place);
    if (is_last && rows.is_sorted && found_.size() == shape_.count) break;
  }
  std::reverse(found_.begin(), found_.end());
  if (!rows.is_sorted) {
    const auto when = [this](uint32_t place) {
      const Moment moment = right_.moment(place, 0);
      return std::pair(moment.time_ns, moment.number);
    };
    std::sort(found_.begin(), found_.end(),
              [&when](uint32_t a, uint32_t b) { return when(a) < when(b); });
  }
  if (found_.size() <= shape_.count) return true;
  const auto some = static_cast<ptrdiff_t>(shape_.count);
  if (is_last) found_.erase(found_.begin(), found_.end() - some);
  found_.resize(shape_.count);
  return true;
}

bool TemporalJoin::pass(int64_t left_until, int64_t right_until, size_t& most) {
  for (uint32_t place = left_.first(); place != HeldRows::kNone; place = left_.first()) {
    if (more(left_.time_of(place), reach(Side::Before)) >= right_until) break;
    if (!give_held(place, most)) return false;
    left_.remove_first();
  }
  // Whoever waits still has to choose.
  const uint32_t waiting = chooses() ? left_.first() : HeldRows::kNone;
  if (waiting != HeldRows::kNone) left_until = std::min(left_until, left_.time_of(waiting));
  for (uint32_t place = right_.first(); place != HeldRows::kNone; place = right_.first()) {
    if (more(right_.time_of(place), reach(Side::After)) >= left_until) break;
    right_.remove_first();
  }
  return true;
}

bool TemporalJoin::drain(size_t& most) {
  for (uint32_t place = left_.first(); place != HeldRows::kNone; place = left_.first()) {
    if (!give_held(place, most)) return false;
    left_.remove_first();
  }
  while (right_.first() != HeldRows::kNone)
    right_.remove_first();
  return true;
}

}  // namespace clew::stream

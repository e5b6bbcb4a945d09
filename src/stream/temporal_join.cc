// SPDX-License-Identifier: Apache-2.0
#include "stream/temporal_join.h"

#include <algorithm>
#include <limits>
#include <random>
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

// Keys come from programs that are traced: they should not be able to choose their buckets.
uint64_t random_seed() {
  std::random_device random;
  return (uint64_t{random()} << 32) | random();
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
      moments_(shape.left_moments + 1) {
  CLEW_ASSERT(shape.left_of < shape.left_moments);
  CLEW_ASSERT(limits.held > 0 && limits.held < HeldRows::kNone);
  CLEW_ASSERT(shape.within_ns < INT64_MAX);
}

void TemporalJoin::hold(HeldRows& side, const HeldRows::Row& row, bool is_joined) {
  if (side.size() >= limits_.held) {
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
    if (shape_.is_outer) give_alone(row, moments);
    return;
  }
  const uint64_t hash = hash_of_key(key, seed_);
  find(right_, 0,
       {.key = key,
        .hash = hash,
        .number = own.number,
        .first_ns = less(own.time_ns, reach(Side::After)),
        .last_ns = more(own.time_ns, reach(Side::Before))},
       budget);
  hold(left_, {.values = row, .moments = moments, .key = key, .hash = hash}, !found_.empty());
  if (found_.empty()) return;
  std::copy(row.begin(), row.end(), row_.begin());
  std::copy(moments.begin(), moments.end(), moments_.begin());
  for (const uint32_t place : found_) {
    right_.read(place, std::span(row_).subspan(shape_.left_width));
    moments_.back() = right_.moment(place, 0);
    into_.joined(row_, moments_);
  }
}

void TemporalJoin::take_right(std::span<const Value> row, Moment moment, std::span<const Value> key,
                              Budget& budget) {
  if (moment.is_never() || has_null(key)) return;
  const uint64_t hash = hash_of_key(key, seed_);
  find(left_, shape_.left_of,
       {.key = key,
        .hash = hash,
        .number = moment.number,
        .first_ns = less(moment.time_ns, reach(Side::Before)),
        .last_ns = more(moment.time_ns, reach(Side::After))},
       budget);
  const std::span<const Moment> moments(&moment, 1);
  hold(right_, {.values = row, .moments = moments, .key = key, .hash = hash}, false);
  if (found_.empty()) return;
  std::copy(row.begin(), row.end(), row_.begin() + static_cast<ptrdiff_t>(shape_.left_width));
  moments_.back() = moment;
  for (const uint32_t place : found_) {
    left_.set_joined(place);
    left_.read(place, std::span(row_).first(shape_.left_width));
    for (size_t i = 0; i < shape_.left_moments; ++i)
      moments_[i] = left_.moment(place, i);
    into_.joined(row_, moments_);
  }
}

// --- what has no partner -------------------------------------------------------------------------

void TemporalJoin::give_alone(std::span<const Value> row, std::span<const Moment> moments) {
  std::copy(row.begin(), row.end(), row_.begin());
  std::fill(row_.begin() + static_cast<ptrdiff_t>(shape_.left_width), row_.end(), Value{});
  std::copy(moments.begin(), moments.end(), moments_.begin());
  moments_.back() = {};
  into_.joined(row_, moments_);
}

void TemporalJoin::give_held_alone(uint32_t place) {
  left_.read(place, std::span(row_).first(shape_.left_width));
  std::fill(row_.begin() + static_cast<ptrdiff_t>(shape_.left_width), row_.end(), Value{});
  for (size_t i = 0; i < shape_.left_moments; ++i)
    moments_[i] = left_.moment(place, i);
  moments_.back() = {};
  into_.joined(row_, moments_);
}

bool TemporalJoin::pass(int64_t left_until, int64_t right_until, size_t& most) {
  for (uint32_t place = left_.first(); place != HeldRows::kNone; place = left_.first()) {
    if (more(left_.time_of(place), reach(Side::Before)) >= right_until) break;
    if (shape_.is_outer && !left_.is_joined(place)) {
      if (most == 0) return false;
      --most;
      give_held_alone(place);
    }
    left_.remove_first();
  }
  for (uint32_t place = right_.first(); place != HeldRows::kNone; place = right_.first()) {
    if (more(right_.time_of(place), reach(Side::After)) >= left_until) break;
    right_.remove_first();
  }
  return true;
}

bool TemporalJoin::drain(size_t& most) {
  for (uint32_t place = left_.first(); place != HeldRows::kNone; place = left_.first()) {
    if (shape_.is_outer && !left_.is_joined(place)) {
      if (most == 0) return false;
      --most;
      give_held_alone(place);
    }
    left_.remove_first();
  }
  while (right_.first() != HeldRows::kNone)
    right_.remove_first();
  return true;
}

}  // namespace clew::stream

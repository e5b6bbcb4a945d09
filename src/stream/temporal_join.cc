// SPDX-License-Identifier: Apache-2.0
#include "stream/temporal_join.h"

#include <algorithm>
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

// Whether so much time behind `time` has passed.
bool is_over(int64_t time, uint64_t wait_ns, int64_t until) {
  int64_t end = 0;
  const bool is_never = __builtin_add_overflow(time, static_cast<int64_t>(wait_ns), &end);
  return !is_never && end < until;
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

// One hit that is an event of both streams is not joined with itself.
bool TemporalJoin::is_near(const Moment& left, const Moment& right) const {
  if (left.number == right.number) return false;
  const bool is_later = right.time_ns > left.time_ns;
  const auto a = static_cast<uint64_t>(left.time_ns);
  const auto b = static_cast<uint64_t>(right.time_ns);
  if ((is_later ? b - a : a - b) > shape_.within_ns) return false;
  switch (shape_.side) {
    case Side::Either:
      return true;
    case Side::Before:
      return !is_later;
    case Side::After:
      return is_later || a == b;
  }
  return false;
}

// How much later than a row its last partner may be.
uint64_t TemporalJoin::wait_of_left() const {
  return shape_.side == Side::Before ? 0 : shape_.within_ns;
}

uint64_t TemporalJoin::wait_of_right() const {
  return shape_.side == Side::After ? 0 : shape_.within_ns;
}

void TemporalJoin::hold(HeldRows& side, const HeldRows::Row& row, bool is_joined) {
  if (side.size() >= limits_.held) {
    side.remove_first();
    ++forgotten_;
  }
  const uint32_t place = side.add(row);
  if (is_joined) side.set_joined(place);
}

// Those that came last, in the order of their coming.
template <typename IsNear>
void TemporalJoin::find(const HeldRows& side, std::span<const Value> key, uint64_t hash,
                        const IsNear& is_near, Budget& budget) {
  found_.clear();
  for (uint32_t place = side.last_of(key, hash); place != HeldRows::kNone;
       place = side.before(place)) {
    if (budget.looks == 0 || budget.rows == 0) {
      budget.is_cut = true;
      break;
    }
    --budget.looks;
    if (!is_near(place)) continue;
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
  find(
      right_, key, hash, [&](uint32_t place) { return is_near(own, right_.moment(place, 0)); },
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
  find(
      left_, key, hash,
      [&](uint32_t place) { return is_near(left_.moment(place, shape_.left_of), moment); }, budget);
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
    if (!is_over(left_.time_of(place), wait_of_left(), right_until)) break;
    if (shape_.is_outer && !left_.is_joined(place)) {
      if (most == 0) return false;
      --most;
      give_held_alone(place);
    }
    left_.remove_first();
  }
  for (uint32_t place = right_.first(); place != HeldRows::kNone; place = right_.first()) {
    if (!is_over(right_.time_of(place), wait_of_right(), left_until)) break;
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

// SPDX-License-Identifier: Apache-2.0
#include "stream/held_rows.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <variant>

#include "aggregate/hash.h"
#include "base/assert.h"

namespace clew::stream {

using aggregate::Value;

namespace {

constexpr size_t kBlockRows = 1024;
constexpr size_t kBucketsLeast = 64;
constexpr size_t kMomentWords = 2;

// What a word of a row is.
constexpr uint8_t kNull = 0;
constexpr uint8_t kSigned = 1;
constexpr uint8_t kUnsigned = 2;
constexpr uint8_t kFloat = 3;
constexpr uint8_t kText = 4;                    // At another place,
constexpr uint8_t kOther = 5;                   // as anything else.
constexpr uint8_t kShortText = 6;               // And its length:
constexpr size_t kShortMax = sizeof(uint64_t);  // the text itself.

std::string* text_at(uint64_t word) {
  return std::bit_cast<std::string*>(word);
}

Value* other_at(uint64_t word) {
  return std::bit_cast<Value*>(word);
}

// The row owns it from then on.
template <typename Object>
uint64_t owned(std::unique_ptr<Object> object) {
  return std::bit_cast<uint64_t>(object.release());
}

uint64_t word_of_text(std::string_view text) {
  uint64_t word = 0;
  std::memcpy(&word, text.data(), text.size());
  return word;
}

std::string_view text_of(const uint64_t& word, uint8_t tag) {
  if (tag == kText) return *text_at(word);
  return {reinterpret_cast<const char*>(&word), static_cast<size_t>(tag - kShortText)};
}

void set_text(Value& into, std::string_view text) {
  if (auto* const old = std::get_if<std::string>(&into)) {
    old->assign(text);
  } else {
    into = std::string(text);
  }
}

uint64_t hash_of_text(uint64_t hash, std::string_view text) {
  hash = aggregate::hash_step(hash, text.size());
  while (!text.empty()) {
    const size_t size = std::min(text.size(), sizeof(uint64_t));
    hash = aggregate::hash_step(hash, word_of_text(text.substr(0, size)));
    text.remove_prefix(size);
  }
  return hash;
}

bool equals(const uint64_t& word, uint8_t tag, const Value& value) {
  switch (tag) {
    case kSigned: {
      const auto* const number = std::get_if<int64_t>(&value);
      return number != nullptr && static_cast<uint64_t>(*number) == word;
    }
    case kUnsigned: {
      const auto* const number = std::get_if<uint64_t>(&value);
      return number != nullptr && *number == word;
    }
    case kNull:
    case kFloat:
    case kOther:
      return false;
    default:
      break;
  }
  const auto* const text = std::get_if<std::string>(&value);
  return text != nullptr && *text == text_of(word, tag);
}

}  // namespace

uint64_t random_seed() {
  std::random_device random;
  return (uint64_t{random()} << 32) | random();
}

uint64_t hash_of_key(std::span<const Value> key, uint64_t seed) {
  uint64_t hash = seed;
  for (const Value& part : key) {
    if (const auto* const text = std::get_if<std::string>(&part)) {
      hash = hash_of_text(hash, *text);
    } else if (const auto* const number = std::get_if<int64_t>(&part)) {
      hash = aggregate::hash_step(hash, static_cast<uint64_t>(*number));
    } else if (const auto* const whole = std::get_if<uint64_t>(&part)) {
      hash = aggregate::hash_step(hash, *whole);
    }
  }
  return hash;
}

HeldRows::HeldRows(Shape shape)
    : shape_(shape),
      row_words_(kMomentWords * shape.moments + cells() + (cells() + 7) / 8),
      buckets_(kBucketsLeast, kNone) {}

HeldRows::~HeldRows() {
  while (first() != kNone)
    remove_first();
}

// --- words ---------------------------------------------------------------------------------------

uint64_t* HeldRows::words(uint32_t place) const {
  return &blocks_[place / kBlockRows][(place % kBlockRows) * row_words_];
}

uint8_t* HeldRows::tags(uint32_t place) const {
  return reinterpret_cast<uint8_t*>(words(place) + kMomentWords * shape_.moments + cells());
}

void HeldRows::write(uint32_t place, size_t cell, const Value& value) {
  uint64_t& word = words(place)[kMomentWords * shape_.moments + cell];
  uint8_t& tag = tags(place)[cell];
  word = 0;
  if (const auto* const number = std::get_if<int64_t>(&value)) {
    word = static_cast<uint64_t>(*number);
    tag = kSigned;
  } else if (const auto* const whole = std::get_if<uint64_t>(&value)) {
    word = *whole;
    tag = kUnsigned;
  } else if (const auto* const real = std::get_if<double>(&value)) {
    word = std::bit_cast<uint64_t>(*real);
    tag = kFloat;
  } else if (const auto* const text = std::get_if<std::string>(&value)) {
    const bool is_short = text->size() <= kShortMax;
    word = is_short ? word_of_text(*text) : owned(std::make_unique<std::string>(*text));
    tag = is_short ? static_cast<uint8_t>(kShortText + text->size()) : kText;
  } else if (std::holds_alternative<std::monostate>(value)) {
    tag = kNull;
  } else {
    word = owned(std::make_unique<Value>(value));
    tag = kOther;
  }
}

void HeldRows::forget(uint32_t place, size_t cell) {
  const uint64_t word = words(place)[kMomentWords * shape_.moments + cell];
  const uint8_t tag = tags(place)[cell];
  if (tag == kText) std::unique_ptr<std::string>(text_at(word)).reset();
  if (tag == kOther) std::unique_ptr<Value>(other_at(word)).reset();
}

void HeldRows::read(uint32_t place, std::span<Value> values) const {
  CLEW_ASSERT(values.size() == shape_.width);
  read_cells(place, 0, values);
}

void HeldRows::read_key(uint32_t place, std::span<Value> key) const {
  CLEW_ASSERT(key.size() == shape_.keys);
  read_cells(place, shape_.width, key);
}

void HeldRows::read_cells(uint32_t place, size_t first, std::span<Value> values) const {
  const uint64_t* const word = words(place) + kMomentWords * shape_.moments + first;
  const uint8_t* const tag = tags(place) + first;
  for (size_t i = 0; i < values.size(); ++i) {
    switch (tag[i]) {
      case kNull:
        values[i] = std::monostate{};
        break;
      case kSigned:
        values[i] = static_cast<int64_t>(word[i]);
        break;
      case kUnsigned:
        values[i] = word[i];
        break;
      case kFloat:
        values[i] = std::bit_cast<double>(word[i]);
        break;
      case kOther:
        values[i] = *other_at(word[i]);
        break;
      default:
        set_text(values[i], text_of(word[i], tag[i]));
    }
  }
}

Moment HeldRows::moment(uint32_t place, size_t index) const {
  const uint64_t* const word = words(place) + kMomentWords * index;
  return {.time_ns = static_cast<int64_t>(word[0]), .number = word[1]};
}

// --- keys ----------------------------------------------------------------------------------------

bool HeldRows::has_key(uint32_t place, std::span<const Value> key) const {
  const uint64_t* const word = words(place) + kMomentWords * shape_.moments + shape_.width;
  const uint8_t* const tag = tags(place) + shape_.width;
  for (size_t i = 0; i < key.size(); ++i) {
    if (!equals(word[i], tag[i], key[i])) return false;
  }
  return true;
}

uint32_t HeldRows::find_group(std::span<const Value> key, uint64_t hash) const {
  uint32_t group = buckets_[hash & (buckets_.size() - 1)];
  while (group != kNone) {
    if (groups_[group].hash == hash && has_key(groups_[group].last, key)) return group;
    group = groups_[group].next;
  }
  return kNone;
}

HeldRows::Rows HeldRows::rows_of(std::span<const Value> key, uint64_t hash) const {
  const uint32_t group = find_group(key, hash);
  if (group == kNone) return {};
  return {.last = groups_[group].last, .is_sorted = groups_[group].is_sorted};
}

void HeldRows::grow() {
  std::vector<uint32_t> old(buckets_.size() * 2, kNone);
  std::swap(old, buckets_);
  for (uint32_t group : old) {
    while (group != kNone) {
      const uint32_t next = groups_[group].next;
      uint32_t& bucket = buckets_[groups_[group].hash & (buckets_.size() - 1)];
      groups_[group].next = std::exchange(bucket, group);
      group = next;
    }
  }
}

uint32_t HeldRows::add_group(uint64_t hash) {
  if (group_count_ == buckets_.size()) grow();
  ++group_count_;
  uint32_t group = free_group_;
  if (group == kNone) {
    group = static_cast<uint32_t>(groups_.size());
    groups_.emplace_back();
  } else {
    free_group_ = groups_[group].next;
  }
  uint32_t& bucket = buckets_[hash & (buckets_.size() - 1)];
  groups_[group] = {
      .hash = hash, .last = kNone, .next = std::exchange(bucket, group), .is_sorted = true};
  return group;
}

void HeldRows::remove_group(uint32_t group) {
  uint32_t* at = &buckets_[groups_[group].hash & (buckets_.size() - 1)];
  while (*at != group)
    at = &groups_[*at].next;
  *at = groups_[group].next;
  groups_[group].next = std::exchange(free_group_, group);
  --group_count_;
}

// Behind those that are not later. Who would have to go far stays in front.
void HeldRows::link(uint32_t place, uint32_t group) {
  constexpr size_t kFar = 256;
  const int64_t time = time_of(place);
  uint32_t before = groups_[group].last;
  uint32_t behind = kNone;
  for (size_t i = 0; i < kFar && before != kNone && time_of(before) > time; ++i) {
    behind = before;
    before = links_[before].before;
  }
  if (before != kNone && time_of(before) > time) {
    groups_[group].is_sorted = false;
    before = groups_[group].last;
    behind = kNone;
  }
  links_[place] = {.before = before, .behind = behind, .group = group};
  if (before != kNone) links_[before].behind = place;
  (behind == kNone ? groups_[group].last : links_[behind].before) = place;
}

void HeldRows::unlink(uint32_t place) {
  const Link& own = links_[place];
  if (own.before != kNone) links_[own.before].behind = own.behind;
  if (own.behind != kNone) {
    links_[own.behind].before = own.before;
    return;
  }
  groups_[own.group].last = own.before;
  if (own.before == kNone) remove_group(own.group);
}

// --- rows ----------------------------------------------------------------------------------------

uint32_t HeldRows::new_place() {
  if (!free_.empty()) {
    const uint32_t place = free_.back();
    free_.pop_back();
    return place;
  }
  const auto place = static_cast<uint32_t>(links_.size());
  if (place % kBlockRows == 0)
    blocks_.push_back(std::make_unique<uint64_t[]>(kBlockRows * row_words_));
  links_.emplace_back();
  return place;
}

uint32_t HeldRows::add(const Row& row) {
  CLEW_ASSERT(row.values.size() == shape_.width && row.key.size() == shape_.keys);
  CLEW_ASSERT(row.moments.size() == shape_.moments);
  const uint32_t place = new_place();
  uint64_t* word = words(place);
  for (const Moment& moment : row.moments) {
    *word++ = static_cast<uint64_t>(moment.time_ns);
    *word++ = moment.number;
  }
  for (size_t i = 0; i < shape_.width; ++i)
    write(place, i, row.values[i]);
  for (size_t i = 0; i < shape_.keys; ++i)
    write(place, shape_.width + i, row.key[i]);
  uint32_t group = find_group(row.key, row.hash);
  if (group == kNone) group = add_group(row.hash);
  link(place, group);
  put_in_order(place);
  return place;
}

void HeldRows::put_in_order(uint32_t place) {
  const int64_t time = time_of(place);
  if (in_order_.empty() || time_of(in_order_.back()) <= time) {
    in_order_.push_back(place);
  } else {
    out_of_order_.emplace(time, place);
  }
}

uint32_t HeldRows::first() const {
  if (out_of_order_.empty()) return in_order_.empty() ? kNone : in_order_.front();
  const auto& [time, place] = out_of_order_.top();
  if (in_order_.empty() || time < time_of(in_order_.front())) return place;
  return in_order_.front();
}

void HeldRows::remove_first() {
  const uint32_t place = first();
  CLEW_ASSERT(place != kNone);
  if (!in_order_.empty() && in_order_.front() == place) {
    in_order_.pop_front();
  } else {
    out_of_order_.pop();
  }
  unlink(place);
  for (size_t i = 0; i < cells(); ++i)
    forget(place, i);
  free_.push_back(place);
}

size_t HeldRows::bytes() const {
  return blocks_.size() * kBlockRows * row_words_ * sizeof(uint64_t) +
         links_.capacity() * sizeof(Link) + buckets_.capacity() * sizeof(uint32_t) +
         groups_.capacity() * sizeof(Group) + free_.capacity() * sizeof(uint32_t) +
         in_order_.size() * sizeof(uint32_t) + out_of_order_.size() * sizeof(Timed);
}

}  // namespace clew::stream

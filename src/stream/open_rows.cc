// SPDX-License-Identifier: Apache-2.0
#include "stream/open_rows.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <string>
#include <variant>

#include "base/assert.h"
#include "stream/held_rows.h"

namespace clew::stream {

using aggregate::Value;

namespace {

constexpr size_t kRowsOfBlock = 4096;
constexpr size_t kSlotsLeast = 64;

bool is_key(std::span<const Value> key) {
  return std::all_of(key.begin(), key.end(), [](const Value& part) {
    return std::holds_alternative<uint64_t>(part) || std::holds_alternative<std::string>(part);
  });
}

}  // namespace

// A row is its time, the words of its key and its values, and a byte for each of them behind one
// that says what the place is.
OpenRows::OpenRows(Shape shape, Limits limits)
    : shape_(shape),
      limits_(limits),
      seed_(random_seed()),
      row_words_(1 + shape.keys + shape.width + (1 + shape.keys + shape.width + 7) / 8),
      slots_(kSlotsLeast),
      pool_(seed_) {}

// --- words ---------------------------------------------------------------------------------------

uint64_t* OpenRows::words(uint32_t place) const {
  return &blocks_[place / kRowsOfBlock][(place % kRowsOfBlock) * row_words_];
}

uint8_t* OpenRows::tags(uint32_t place) const {
  return reinterpret_cast<uint8_t*>(words(place) + 1 + shape_.keys + shape_.width);
}

void OpenRows::write(uint32_t place, size_t cell, const Value& value) {
  uint64_t& word = words(place)[1 + cell];
  Form form = Form::Shared;
  if (const auto* const number = std::get_if<int64_t>(&value)) {
    word = static_cast<uint64_t>(*number);
    form = Form::Signed;
  } else if (const auto* const whole = std::get_if<uint64_t>(&value)) {
    word = *whole;
    form = Form::Unsigned;
  } else if (const auto* const real = std::get_if<double>(&value)) {
    word = std::bit_cast<uint64_t>(*real);
    form = Form::Float;
  } else if (std::holds_alternative<std::monostate>(value)) {
    word = 0;
    form = Form::Null;
  } else {
    word = pool_.use(value);
  }
  tags(place)[1 + cell] = static_cast<uint8_t>(form);
}

void OpenRows::forget(uint32_t place, size_t cell) {
  uint8_t& tag = tags(place)[1 + cell];
  if (static_cast<Form>(tag) == Form::Shared)
    pool_.leave(static_cast<uint32_t>(words(place)[1 + cell]));
  tag = static_cast<uint8_t>(Form::Null);
}

void OpenRows::write_row(uint32_t place, int64_t time_ns, std::span<const Value> row) {
  words(place)[0] = static_cast<uint64_t>(time_ns);
  for (size_t i = 0; i < shape_.width; ++i)
    write(place, shape_.keys + i, row[i]);
}

void OpenRows::forget_row(uint32_t place) {
  for (size_t i = 0; i < shape_.width; ++i)
    forget(place, shape_.keys + i);
}

void OpenRows::read(uint32_t place, std::span<Value> row) const {
  CLEW_ASSERT(row.size() == shape_.width);
  const uint64_t* const word = words(place) + 1 + shape_.keys;
  const uint8_t* const tag = tags(place) + 1 + shape_.keys;
  for (size_t i = 0; i < row.size(); ++i) {
    switch (static_cast<Form>(tag[i])) {
      case Form::Null:
        row[i] = std::monostate{};
        break;
      case Form::Signed:
        row[i] = static_cast<int64_t>(word[i]);
        break;
      case Form::Unsigned:
        row[i] = word[i];
        break;
      case Form::Float:
        row[i] = std::bit_cast<double>(word[i]);
        break;
      case Form::Shared:
        row[i] = pool_.at(static_cast<uint32_t>(word[i]));
        break;
    }
  }
}

// --- keys ----------------------------------------------------------------------------------------

bool OpenRows::has_key(uint32_t place, std::span<const Value> key) const {
  const uint64_t* const word = words(place) + 1;
  const uint8_t* const tag = tags(place) + 1;
  for (size_t i = 0; i < key.size(); ++i) {
    const auto* const number = std::get_if<uint64_t>(&key[i]);
    const bool is_number = static_cast<Form>(tag[i]) == Form::Unsigned;
    if (is_number != (number != nullptr)) return false;
    if (is_number && word[i] != *number) return false;
    if (!is_number && pool_.at(static_cast<uint32_t>(word[i])) != key[i]) return false;
  }
  return true;
}

uint32_t OpenRows::find(std::span<const Value> key, uint32_t hash) const {
  const size_t mask = slots_.size() - 1;
  for (size_t at = hash & mask; slots_[at].place != kNone; at = (at + 1) & mask) {
    if (slots_[at].hash == hash && has_key(slots_[at].place, key)) return slots_[at].place;
  }
  return kNone;
}

void OpenRows::grow() {
  std::vector<Slot> old(slots_.size() * 2);
  std::swap(old, slots_);
  const size_t mask = slots_.size() - 1;
  for (const Slot& slot : old) {
    if (slot.place == kNone) continue;
    size_t at = slot.hash & mask;
    while (slots_[at].place != kNone)
      at = (at + 1) & mask;
    slots_[at] = slot;
  }
}

uint32_t OpenRows::add(std::span<const Value> key, uint32_t hash) {
  if (4 * (used_slots_ + 1) > 3 * slots_.size()) grow();
  ++used_slots_;
  uint32_t place = places_;
  if (free_.empty()) {
    if (place % kRowsOfBlock == 0)
      blocks_.push_back(std::make_unique<uint64_t[]>(kRowsOfBlock * row_words_));
    ++places_;
  } else {
    place = free_.back();
    free_.pop_back();
  }
  for (size_t i = 0; i < shape_.keys; ++i)
    write(place, i, key[i]);
  const size_t mask = slots_.size() - 1;
  size_t at = hash & mask;
  while (slots_[at].place != kNone)
    at = (at + 1) & mask;
  slots_[at] = {.hash = hash, .place = place};
  return place;
}

// Those behind it that would not be found over the gap move into it.
void OpenRows::remove_slot(size_t slot) {
  const size_t mask = slots_.size() - 1;
  for (size_t at = (slot + 1) & mask; slots_[at].place != kNone; at = (at + 1) & mask) {
    const size_t home = slots_[at].hash & mask;
    const bool is_found_over_it = ((at - home) & mask) < ((at - slot) & mask);
    if (is_found_over_it) continue;
    slots_[slot] = slots_[at];
    slot = at;
  }
  slots_[slot] = {};
  --used_slots_;
}

void OpenRows::remove(uint32_t place) {
  std::vector<Value> key(shape_.keys);
  for (size_t i = 0; i < shape_.keys; ++i) {
    const uint64_t word = words(place)[1 + i];
    const bool is_shared = static_cast<Form>(tags(place)[1 + i]) == Form::Shared;
    key[i] = is_shared ? pool_.at(static_cast<uint32_t>(word)) : Value(word);
  }
  const size_t mask = slots_.size() - 1;
  size_t at = static_cast<uint32_t>(hash_of_key(key, seed_)) & mask;
  while (slots_[at].place != place)
    at = (at + 1) & mask;
  remove_slot(at);
  for (size_t i = 0; i < shape_.keys + shape_.width; ++i)
    forget(place, i);
  set_state(place, State::Free);
  free_.push_back(place);
}

// --- begins and ends -----------------------------------------------------------------------------

bool OpenRows::has_room() const {
  return open_ < limits_.rows && pool_.bytes() < limits_.value_bytes;
}

void OpenRows::begin(std::span<const Value> key, int64_t time_ns, std::span<const Value> row) {
  CLEW_ASSERT(key.size() == shape_.keys && row.size() == shape_.width);
  if (!is_key(key)) return;
  const auto hash = static_cast<uint32_t>(hash_of_key(key, seed_));
  const uint32_t found = find(key, hash);
  if (found != kNone) return begin_again(found, time_ns, row);
  if (!has_room()) {
    ++counts_.no_room;
    return;
  }
  const uint32_t place = add(key, hash);
  write_row(place, time_ns, row);
  set_state(place, State::Open);
  ++open_;
}

void OpenRows::begin_again(uint32_t place, int64_t time_ns, std::span<const Value> row) {
  const State before = state(place);
  if (before == State::Open) {
    ++counts_.again;
    if (time_ns < time_of(place)) return;  // It was over when the later one began.
    forget_row(place);
    return write_row(place, time_ns, row);
  }
  if (time_ns <= time_of(place)) {  // Its end has come before it.
    set_state(place, State::Ended);
    return;
  }
  if (!has_room()) {
    ++counts_.no_room;
    return;
  }
  if (before == State::EndedUnseen) ++counts_.ended_unseen;
  write_row(place, time_ns, row);
  set_state(place, State::Open);
  ++open_;
}

void OpenRows::end(std::span<const Value> key, int64_t time_ns) {
  CLEW_ASSERT(key.size() == shape_.keys);
  if (!is_key(key)) return;
  const auto hash = static_cast<uint32_t>(hash_of_key(key, seed_));
  uint32_t place = find(key, hash);
  if (place != kNone) return end_again(place, time_ns);
  place = add(key, hash);
  set_state(place, State::EndedUnseen);
  note_end(place, time_ns);
}

void OpenRows::end_again(uint32_t place, int64_t time_ns) {
  if (state(place) == State::Open) {
    if (time_ns < time_of(place)) return;  // Of one before it.
    forget_row(place);
    --open_;
    set_state(place, State::Ended);
    return note_end(place, time_ns);
  }
  if (state(place) == State::EndedUnseen) ++counts_.ended_unseen;
  set_state(place, State::EndedUnseen);
  note_end(place, std::max(time_ns, time_of(place)));
}

// Where too many are known, or their keys take too much, the first ones are forgotten before their
// time.
void OpenRows::note_end(uint32_t place, int64_t time_ns) {
  words(place)[0] = static_cast<uint64_t>(time_ns);
  ends_.emplace_back(time_ns, place);
  while (ends_.size() > limits_.ended || (!ends_.empty() && pool_.bytes() > limits_.value_bytes))
    forget_first_end();
}

void OpenRows::pass(int64_t until_ns) {
  while (!ends_.empty() && ends_.front().first < until_ns)
    forget_first_end();
}

void OpenRows::drain() {
  while (!ends_.empty())
    forget_first_end();
}

void OpenRows::forget_first_end() {
  const auto [time, place] = ends_.front();
  ends_.pop_front();
  const State now = state(place);
  const bool is_ended = now == State::Ended || now == State::EndedUnseen;
  if (!is_ended || time_of(place) != time) return;  // It was begun, or ended, again.
  if (now == State::EndedUnseen) ++counts_.ended_unseen;
  remove(place);
}

// --- what is open --------------------------------------------------------------------------------

std::vector<uint32_t> OpenRows::begun_until(int64_t time_ns) const {
  std::vector<uint32_t> found;
  for (uint32_t place = 0; place < places_; ++place) {
    if (state(place) == State::Open && time_of(place) <= time_ns) found.push_back(place);
  }
  std::sort(found.begin(), found.end(), [this](uint32_t a, uint32_t b) {
    return std::pair(time_of(a), a) < std::pair(time_of(b), b);
  });
  return found;
}

size_t OpenRows::bytes() const {
  return blocks_.size() * kRowsOfBlock * row_words_ * sizeof(uint64_t) +
         slots_.capacity() * sizeof(Slot) + free_.capacity() * sizeof(uint32_t) +
         ends_.size() * sizeof(ends_[0]) + pool_.bytes();
}

}  // namespace clew::stream

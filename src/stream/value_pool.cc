// SPDX-License-Identifier: Apache-2.0
#include "stream/value_pool.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "aggregate/hash.h"
#include "base/assert.h"
#include "stream/held_rows.h"

namespace clew::stream {
namespace {

using aggregate::Value;

uint64_t hash_of_held_text(uint64_t hash, std::string_view text) {
  hash = aggregate::hash_step(hash, text.size());
  for (size_t at = 0; at < text.size(); at += sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, text.data() + at, std::min(sizeof word, text.size() - at));
    hash = aggregate::hash_step(hash, word);
  }
  return hash;
}

// Frames that have been given their names have no address.
uint64_t hash_of(const Value& value, uint64_t seed) {
  const auto* const stack = std::get_if<aggregate::Stack>(&value);
  if (stack == nullptr) return hash_of_key({&value, 1}, seed);
  uint64_t hash = seed;
  for (const aggregate::Frame& frame : stack->frames) {
    for (const uint64_t word : {frame.address, frame.offset, uint64_t{frame.line}})
      hash = aggregate::hash_step(hash, word);
    hash = hash_of_held_text(hash_of_held_text(hash, frame.symbol), frame.module);
  }
  return hash;
}

// With what finds it. The same of a value and of its copy.
size_t bytes_of(const Value& value) {
  constexpr size_t kEntryBytes = 128;
  size_t bytes = kEntryBytes;
  if (const auto* const text = std::get_if<std::string>(&value)) bytes += text->size();
  if (const auto* const stack = std::get_if<aggregate::Stack>(&value)) {
    for (const aggregate::Frame& frame : stack->frames)
      bytes += sizeof(frame) + frame.symbol.size() + frame.module.size() + frame.file.size();
  }
  return bytes;
}

}  // namespace

std::optional<uint32_t> ValuePool::find(const Value& value, uint64_t hash) const {
  const auto [begin, end] = by_hash_.equal_range(hash);
  for (auto each = begin; each != end; ++each) {
    if (all_[each->second].value == value) return each->second;
  }
  return std::nullopt;
}

std::optional<uint32_t> ValuePool::find(const Value& value) const {
  return find(value, hash_of(value, seed_));
}

uint32_t ValuePool::use(const Value& value) {
  const uint64_t hash = hash_of(value, seed_);
  std::optional<uint32_t> number = find(value, hash);
  if (!number) {
    number = free_.empty() ? static_cast<uint32_t>(all_.size()) : free_.back();
    if (free_.empty()) {
      all_.emplace_back();
    } else {
      free_.pop_back();
    }
    all_[*number] = {.value = value, .hash = hash, .uses = 0};
    by_hash_.emplace(hash, *number);
    bytes_ += bytes_of(value);
  }
  ++all_[*number].uses;
  return *number;
}

void ValuePool::leave(uint32_t number) {
  Entry& entry = all_[number];
  CLEW_ASSERT(entry.uses != 0);
  if (--entry.uses != 0) return;
  const auto [begin, end] = by_hash_.equal_range(entry.hash);
  for (auto each = begin; each != end; ++each) {
    if (each->second != number) continue;
    by_hash_.erase(each);
    break;
  }
  bytes_ -= bytes_of(entry.value);
  entry.value = {};
  free_.push_back(number);
}

}  // namespace clew::stream

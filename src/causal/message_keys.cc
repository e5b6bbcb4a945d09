// SPDX-License-Identifier: Apache-2.0
#include "causal/message_keys.h"

#include <array>
#include <iterator>

namespace clew::causal {
namespace {

constexpr size_t kTextMax = 4096;
constexpr size_t kTokenDigits = 32;

ContextKey key_of_text(uint64_t number) {
  return {.object = number, .kind = ContextKey::Kind::Text};
}

std::optional<uint64_t> digit_of(char c) {
  if (c >= '0' && c <= '9') return static_cast<uint64_t>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<uint64_t>(c - 'a' + 10);
  return std::nullopt;
}

bool is_token(std::string_view text) {
  if (text.size() != kTokenDigits) return false;
  for (const char c : text) {
    if (!digit_of(c)) return false;
  }
  return true;
}

std::optional<ContextKey> key_of_digits(std::string_view text) {
  std::array<uint64_t, 2> words{};
  for (size_t i = 0; i < kTokenDigits; ++i) {
    uint64_t& word = words[i / (kTokenDigits / 2)];
    word = word << 4 | *digit_of(text[i]);
  }
  return key_of_token(words[0], words[1]);
}

bool can_be_key(std::string_view text) {
  return !text.empty() && text.size() <= kTextMax;
}

}  // namespace

std::optional<ContextKey> key_of_token(uint64_t high, uint64_t low) {
  if (high == 0 && low == 0) return std::nullopt;
  return ContextKey{.object = low, .kind = ContextKey::Kind::Token, .high = high};
}

std::optional<ContextKey> MessageKeys::sent(std::string_view text) {
  if (!can_be_key(text)) return std::nullopt;
  if (is_token(text)) return key_of_digits(text);
  const auto known = known_.find(text);
  if (known != known_.end()) {
    ages_.splice(ages_.end(), ages_, known->second.age);
    return key_of_text(known->second.number);
  }
  if (known_.size() >= limit_) {
    const auto oldest = known_.find(ages_.front());
    graph_.forget(key_of_text(oldest->second.number));
    known_.erase(oldest);
    ages_.pop_front();
  }
  ages_.emplace_back(text);
  known_[ages_.back()] = {.number = ++last_, .age = std::prev(ages_.end())};
  return key_of_text(last_);
}

std::optional<ContextKey> MessageKeys::received(std::string_view text) const {
  if (!can_be_key(text)) return std::nullopt;
  if (is_token(text)) return key_of_digits(text);
  const auto known = known_.find(text);
  return key_of_text(known == known_.end() ? 0 : known->second.number);
}

}  // namespace clew::causal

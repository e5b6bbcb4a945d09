// SPDX-License-Identifier: Apache-2.0
#include "cluster/pattern_within.h"

#include <bitset>
#include <optional>
#include <vector>

#include "target/pattern.h"

namespace clew::cluster {
namespace {

using ByteSet = std::bitset<256>;

// One byte out of a set, or, without one, any run of bytes.
using Part = std::optional<ByteSet>;

ByteSet set_of(unsigned char byte) {
  return ByteSet().set(byte);
}

// Of "[…]", which is one: target::Pattern says so.
ByteSet set_of(std::string_view text) {
  text = text.substr(1, text.size() - 2);
  const bool is_negated = text[0] == '!' || text[0] == '^';
  if (is_negated) text.remove_prefix(1);
  ByteSet set;
  for (size_t at = 0; at < text.size();) {
    const bool is_range = at + 2 < text.size() && text[at + 1] == '-';
    const auto low = static_cast<unsigned char>(text[at]);
    const auto high = static_cast<unsigned char>(is_range ? text[at + 2] : text[at]);
    for (unsigned byte = low; byte <= high; ++byte)
      set.set(byte);
    at += is_range ? 3 : 1;
  }
  return is_negated ? ~set : set;
}

// Behind the bracket that closes the set which opens at `open`.
size_t end_of_set(std::string_view text, size_t open) {
  size_t first = open + 1;
  if (first < text.size() && (text[first] == '!' || text[first] == '^')) ++first;
  // One right behind the opening stands for itself.
  return text.find(']', first + 1) + 1;
}

std::vector<Part> parts_of(std::string_view text) {
  std::vector<Part> parts;
  for (size_t at = 0; at < text.size();) {
    const size_t end = text[at] == '[' ? end_of_set(text, at) : at + 1;
    if (text[at] == '*') {
      parts.emplace_back();
    } else if (text[at] == '?') {
      parts.emplace_back(ByteSet().set());
    } else if (text[at] == '[') {
      parts.emplace_back(set_of(text.substr(at, end - at)));
    } else {
      parts.emplace_back(set_of(static_cast<unsigned char>(text[at])));
    }
    at = end;
  }
  return parts;
}

bool takes(const Part& allowed, const Part& wanted) {
  return allowed && wanted && (*wanted & ~*allowed).none();
}

}  // namespace

// As a pattern matches a name, over the parts of the other one: a run takes any of them, runs, too.
bool is_within(std::string_view wanted, std::string_view allowed) {
  if (!target::Pattern::compile(wanted) || !target::Pattern::compile(allowed)) return false;
  const std::vector<Part> takers = parts_of(allowed);
  const std::vector<Part> taken = parts_of(wanted);
  size_t taker = 0;
  size_t at = 0;
  size_t run = takers.size();  // No run yet.
  size_t run_at = 0;
  while (at < taken.size()) {
    if (taker < takers.size() && !takers[taker]) {
      run = taker++;
      run_at = at;
    } else if (taker < takers.size() && takes(takers[taker], taken[at])) {
      ++taker;
      ++at;
    } else if (run < takers.size()) {
      taker = run + 1;
      at = ++run_at;
    } else {
      return false;
    }
  }
  while (taker < takers.size() && !takers[taker])
    ++taker;
  return taker == takers.size();
}

}  // namespace clew::cluster

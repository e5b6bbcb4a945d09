// SPDX-License-Identifier: Apache-2.0
#include "cluster/local_log.h"

#include <algorithm>

#include <fmt/format.h>

namespace clew::cluster {
namespace {

constexpr size_t kIdsMax = 65'536;
constexpr size_t kPutsMax = 64;

size_t size_of(const Entry& entry) {
  return entry.subject.size() + entry.bytes.size();
}

}  // namespace

Expected<uint64_t> LocalLog::append(std::string_view subject, std::string_view id,
                                    std::span<const std::byte> bytes) {
  if (!id.empty()) {
    const auto known = sequences_.find(std::string(id));
    if (known != sequences_.end()) return known->second;
  }
  Entry entry{.sequence = last_ + 1,
              .subject = std::string(subject),
              .bytes = Bytes(bytes.begin(), bytes.end())};
  if (size_of(entry) > most_bytes_ - std::min(bytes_, most_bytes_))
    return fail(ErrorCode::Limit, fmt::format("log '{}' is full: {} bytes", name_, most_bytes_));
  bytes_ += size_of(entry);
  entries_.push_back(std::move(entry));
  ++last_;
  if (!id.empty()) remember(id);
  return last_;
}

std::vector<Entry> LocalLog::read(uint64_t after, size_t most) const {
  std::vector<Entry> found;
  const uint64_t first = last_ - entries_.size() + 1;
  size_t bytes = 0;
  for (size_t i = after < first ? 0 : after - first + 1; i < entries_.size(); ++i) {
    if (found.size() == most || (!found.empty() && bytes > kReadBytesMax)) break;
    found.push_back(entries_[i]);
    bytes += size_of(entries_[i]);
  }
  return found;
}

void LocalLog::forget(uint64_t up_to) {
  while (!entries_.empty() && entries_.front().sequence <= up_to) {
    bytes_ -= size_of(entries_.front());
    entries_.pop_front();
  }
}

void LocalLog::lose_end(uint64_t entries, bool knows_ids) {
  for (; entries != 0 && !entries_.empty(); --entries, --last_) {
    bytes_ -= size_of(entries_.back());
    entries_.pop_back();
  }
  if (!knows_ids) std::erase_if(sequences_, [this](const auto& id) { return id.second > last_; });
}

void LocalLog::remember(std::string_view id) {
  sequences_.emplace(id, last_);
  ids_.emplace_back(id);
  if (ids_.size() <= kIdsMax) return;
  sequences_.erase(ids_.front());
  ids_.pop_front();
}

std::optional<Revised> LocalKeys::get(std::string_view key) const {
  const auto found = values_.find(key);
  if (found == values_.end()) return std::nullopt;
  return found->second;
}

Expected<uint64_t> LocalKeys::put(std::string_view key, std::span<const std::byte> bytes,
                                  uint64_t revision) {
  const auto found = values_.find(key);
  const uint64_t present = found == values_.end() ? 0 : found->second.revision;
  if (present != revision) {
    return fail(ErrorCode::Refused,
                fmt::format("key '{}' has revision {} and not {}", key, present, revision));
  }
  ++last_;
  before_.push_back({.key = std::string(key), .value = get(key)});
  if (before_.size() > kPutsMax) before_.pop_front();
  values_.insert_or_assign(std::string(key),
                           Revised{.revision = last_, .bytes = Bytes(bytes.begin(), bytes.end())});
  return last_;
}

void LocalKeys::lose_end(uint64_t puts) {
  for (; puts != 0 && !before_.empty(); --puts, --last_) {
    Before& before = before_.back();
    if (before.value) {
      values_.insert_or_assign(before.key, std::move(*before.value));
    } else {
      values_.erase(before.key);
    }
    before_.pop_back();
  }
}

}  // namespace clew::cluster

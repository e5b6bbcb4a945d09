// SPDX-License-Identifier: Apache-2.0
#include "causal/streams.h"

#include <algorithm>
#include <iterator>

namespace clew::causal {
namespace {

bool overlap(ByteRange a, ByteRange b) {
  return is_before(a.begin, b.end) && is_before(b.begin, a.end);
}

}  // namespace

Streams::Stream& Streams::stream_of(const StreamKey& key) {
  const auto known = streams_.find(key);
  if (known != streams_.end()) {
    ages_.splice(ages_.end(), ages_, known->second.age);
    return known->second;
  }
  if (streams_.size() >= limits_.streams) {
    const auto oldest = streams_.find(ages_.front());
    for (const Sent& sent : oldest->second.sent)
      graph_.forget(sent.key);
    streams_.erase(oldest);
    ages_.pop_front();
  }
  ages_.push_back(key);
  Stream& made = streams_[key];
  made.age = std::prev(ages_.end());
  return made;
}

std::optional<ContextKey> Streams::send(const StreamKey& key, ByteRange bytes, int64_t pid) {
  Stream& stream = stream_of(key);
  if (!stream.sent.empty() && is_before(bytes.begin, stream.sent.back().bytes.end)) {
    for (const Sent& sent : stream.sent)
      graph_.forget(sent.key);
    stream.sent.clear();
    return std::nullopt;
  }
  // What is in a pipe may be read by who is not there yet.
  const bool waits = stream.has_reader || pid != 0;
  if (stream.sent.size() >= (waits ? limits_.ranges : limits_.unread)) {
    graph_.forget(stream.sent.front().key);
    stream.sent.pop_front();
  }
  const ContextKey made{.pid = pid, .object = ++last_key_, .kind = ContextKey::Kind::Bytes};
  stream.sent.push_back({.bytes = bytes, .key = made});
  return made;
}

std::vector<ContextKey> Streams::receive(const StreamKey& key, ByteRange bytes) {
  Stream& stream = stream_of(key);
  stream.has_reader = true;
  std::vector<ContextKey> all;
  for (const Sent& sent : stream.sent) {
    if (overlap(sent.bytes, bytes)) all.push_back(sent.key);
  }
  return all;
}

bool Streams::are_all(const StreamKey& key, ByteRange bytes,
                      const std::function<bool(const ContextKey&)>& is_so) const {
  const auto found = streams_.find(key);
  if (found == streams_.end()) return false;
  uint32_t at = bytes.begin;
  for (const Sent& sent : found->second.sent) {
    if (!overlap(sent.bytes, bytes)) continue;
    if (is_before(at, sent.bytes.begin) || !is_so(sent.key)) return false;
    at = sent.bytes.end;
  }
  return !is_before(at, bytes.end);
}

void Streams::drop(const StreamKey& key, ByteRange bytes) {
  const auto found = streams_.find(key);
  if (found == streams_.end()) return;
  std::deque<Sent>& sent = found->second.sent;
  while (!sent.empty() && !is_before(bytes.end, sent.front().bytes.end)) {
    graph_.forget(sent.front().key);
    sent.pop_front();
  }
}

void Streams::renew(const StreamKey& key) {
  forget(key);
  forget(key.reversed());
}

void Streams::forget(const StreamKey& key) {
  const auto found = streams_.find(key);
  if (found == streams_.end()) return;
  for (const Sent& sent : found->second.sent)
    graph_.forget(sent.key);
  found->second.sent.clear();
}

void Streams::end(const StreamKey& key) {
  for (const StreamKey& one : {key, key.reversed()}) {
    forget(one);
    const auto found = streams_.find(one);
    if (found == streams_.end()) continue;
    ages_.erase(found->second.age);
    streams_.erase(found);
  }
}

void Streams::drop_unread(const StreamKey& key) {
  const auto found = streams_.find(key);
  if (found != streams_.end() && !found->second.has_reader) forget(key);
}

bool Streams::has(const StreamKey& key, ByteRange bytes) const {
  const auto found = streams_.find(key);
  if (found == streams_.end()) return false;
  const std::deque<Sent>& sent = found->second.sent;
  const ByteRange last{.begin = bytes.end - 1, .end = bytes.end};
  return std::any_of(sent.begin(), sent.end(),
                     [&](const Sent& each) { return overlap(each.bytes, last); });
}

void Streams::lose() {
  streams_.clear();
  ages_.clear();
}

}  // namespace clew::causal

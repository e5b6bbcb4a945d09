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

ContextKey Streams::send(const StreamKey& key, ByteRange bytes) {
  Stream& stream = stream_of(key);
  const size_t most = stream.has_reader ? limits_.ranges : limits_.unread;
  // Bytes that go back begin another connection of the same ends.
  while (!stream.sent.empty() &&
         (stream.sent.size() >= most || is_before(bytes.begin, stream.sent.back().bytes.end))) {
    const bool is_old = !is_before(bytes.begin, stream.sent.back().bytes.end);
    graph_.forget(is_old ? stream.sent.front().key : stream.sent.back().key);
    if (is_old) {
      stream.sent.pop_front();
    } else {
      stream.sent.pop_back();
    }
  }
  const ContextKey made{.object = ++last_key_, .kind = ContextKey::Kind::Bytes};
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

void Streams::drop(const StreamKey& key, ByteRange bytes) {
  const auto found = streams_.find(key);
  if (found == streams_.end()) return;
  std::deque<Sent>& sent = found->second.sent;
  while (!sent.empty() && !is_before(bytes.end, sent.front().bytes.end)) {
    graph_.forget(sent.front().key);
    sent.pop_front();
  }
}

void Streams::drop_unread(const StreamKey& key) {
  const auto found = streams_.find(key);
  if (found == streams_.end() || found->second.has_reader) return;
  for (const Sent& sent : found->second.sent)
    graph_.forget(sent.key);
  found->second.sent.clear();
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

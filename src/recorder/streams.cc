// SPDX-License-Identifier: Apache-2.0
#include "recorder/streams.h"

#include <algorithm>
#include <string>
#include <utility>

#include "recorder/history.h"

namespace clew::recorder {

namespace {

constexpr int32_t kErrorMax = 4095;  // Linux, MAX_ERRNO.

// Bytes of one direction, from the newest call back.
class Direction {
 public:
  Direction(uint64_t all, bool is_sure) : left_(all), is_sure_(is_sure) {}

  void take(StreamCall& call) {
    const bool is_apart = call.call.ended <= oldest_;
    oldest_ = std::min(oldest_, call.call.began);
    const bool says_how_many =
        call.call.transfer == abi::Transfer::Sends || call.call.transfer == abi::Transfer::Receives;
    const int32_t result = call.call.result.value_or(0);
    // Who waits for bytes has none yet.
    const bool waits = !call.call.result && call.call.transfer == abi::Transfer::Receives;
    const bool has_failed = result < 0 && result >= -kErrorMax;
    if (has_failed || waits || call.call.transfer == abi::Transfer::Peeks) return;
    const auto count = static_cast<uint64_t>(result);
    is_sure_ =
        is_sure_ && says_how_many && call.call.result && is_apart && result >= 0 && count <= left_;
    if (!is_sure_ || count == 0) return;
    call.bytes = StreamBytes{left_ - count, left_};
    left_ -= count;
  }

 private:
  uint64_t left_;  // Bytes in front of those that have places.
  bool is_sure_;
  uint64_t oldest_ = UINT64_MAX;
};

struct Directions {
  Direction sent;
  Direction received;
};

struct Descriptor {
  size_t stream = 0;
  bool is_over = false;  // What is older was another one.
};

// The descriptor that the call opens.
std::optional<uint32_t> opened_by(const TransferCall& call) {
  if (call.transfer == abi::Transfer::Connects) return call.descriptor;
  if (call.transfer != abi::Transfer::Accepts || call.result.value_or(-1) < 0) return std::nullopt;
  return static_cast<uint32_t>(*call.result);
}

// The moments when descriptors were opened for the last time.
std::map<uint32_t, uint64_t> openings(const std::vector<StreamCall>& calls) {
  std::map<uint32_t, uint64_t> opened;
  for (const StreamCall& one : calls) {
    if (const auto descriptor = opened_by(one.call)) opened[*descriptor] = one.call.began;
  }
  return opened;
}

}  // namespace

void find_bytes(const Snap& snap, uint64_t known_from, std::vector<StreamCall>& calls) {
  const std::map<uint32_t, uint64_t> opened = openings(calls);
  std::map<uint32_t, Descriptor> descriptors;
  std::map<std::pair<std::string, std::string>, Directions> streams;  // Of one all duplicates.
  const auto directions_of = [&](const SnapStream& stream) -> Directions& {
    const auto at = opened.find(stream.descriptor);
    const bool is_sure = snap.forked == 0 || (at != opened.end() && at->second > snap.forked);
    const Directions made = {{stream.sent, is_sure}, {stream.received, is_sure}};
    return streams.emplace(std::pair(stream.own, stream.peer), made).first->second;
  };
  for (size_t i = 0; i < snap.streams.size(); ++i)
    descriptors.emplace(snap.streams[i].descriptor, Descriptor{i});
  for (auto call = calls.rbegin(); call != calls.rend(); ++call) {
    if (call->call.began < known_from) break;
    const auto opens = opened_by(call->call);
    const auto found = descriptors.find(opens.value_or(call->call.descriptor));
    if (found == descriptors.end() || found->second.is_over) continue;
    if (opens || call->call.transfer == abi::Transfer::Closes) {
      found->second.is_over = true;
    } else if (call->call.transfer != abi::Transfer::Accepts) {
      call->stream = found->second.stream;
      Directions& directions = directions_of(snap.streams[found->second.stream]);
      (is_sending(call->call.transfer) ? directions.sent : directions.received).take(*call);
    }
  }
}

std::vector<StreamCall> stream_calls(const SnapModules& modules, const Snap& snap) {
  std::vector<StreamCall> calls;
  uint64_t known_from = 0;
  for (size_t i = 0; i < snap.threads.size(); ++i) {
    const Records records = records_of(modules, snap, snap.threads[i]);
    if (snap.threads[i].slot != kNoSlot) known_from = std::max(known_from, records.notes_from);
    for (TransferCall& call : transfers_of(records.notes))
      calls.push_back({.thread = i, .call = call});
  }
  std::stable_sort(calls.begin(), calls.end(), [](const StreamCall& one, const StreamCall& other) {
    return one.call.began < other.call.began;
  });
  find_bytes(snap, known_from, calls);
  return calls;
}

}  // namespace clew::recorder

// SPDX-License-Identifier: Apache-2.0
#include "recorder/streams.h"

#include <algorithm>
#include <utility>

#include "recorder/history.h"

namespace clew::recorder {

namespace {

constexpr int32_t kErrorMax = 4095;  // Linux, MAX_ERRNO.

// One descriptor's calls, from the newest one back.
class StreamReader {
 public:
  StreamReader(const SnapStream& stream, size_t number)
      : number_(number), sent_(stream.sent), received_(stream.received) {}

  void take(StreamCall& call) {
    if (is_over_) return;
    if (call.call.transfer == abi::Transfer::Closes) {
      is_over_ = true;
      return;
    }
    call.stream = number_;
    (is_sending(call.call.transfer) ? sent_ : received_).take(call);
  }

 private:
  struct Direction {
    explicit Direction(uint64_t all) : left(all) {}

    void take(StreamCall& call) {
      const bool is_apart = call.call.ended <= oldest;
      oldest = std::min(oldest, call.call.began);
      const bool says_how_many = call.call.transfer == abi::Transfer::Sends ||
                                 call.call.transfer == abi::Transfer::Receives;
      const int32_t result = call.call.result.value_or(0);
      // Who waits for bytes has none yet.
      const bool waits = !call.call.result && call.call.transfer == abi::Transfer::Receives;
      const bool has_failed = result < 0 && result >= -kErrorMax;
      if (has_failed || waits || call.call.transfer == abi::Transfer::Peeks) return;
      const auto count = static_cast<uint64_t>(result);
      is_sure =
          is_sure && says_how_many && call.call.result && is_apart && result >= 0 && count <= left;
      if (!is_sure || count == 0) return;
      call.bytes = StreamBytes{left - count, left};
      left -= count;
    }

    uint64_t left;  // Bytes in front of those that have places.
    uint64_t oldest = UINT64_MAX;
    bool is_sure = true;
  };

  size_t number_;
  bool is_over_ = false;
  Direction sent_;
  Direction received_;
};

}  // namespace

void find_bytes(const Snap& snap, uint64_t known_from, std::vector<StreamCall>& calls) {
  std::map<uint32_t, StreamReader> readers;
  for (size_t i = 0; i < snap.streams.size(); ++i)
    readers.emplace(snap.streams[i].descriptor, StreamReader(snap.streams[i], i));
  for (auto call = calls.rbegin(); call != calls.rend(); ++call) {
    if (call->call.began < known_from) break;
    const auto reader = readers.find(call->call.descriptor);
    if (reader != readers.end()) reader->second.take(*call);
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

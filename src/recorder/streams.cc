// SPDX-License-Identifier: Apache-2.0
#include "recorder/streams.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include <sys/syscall.h>

#include "recorder/history.h"

namespace clew::recorder {

namespace {

// Bytes of one direction, from the newest call back.
class OneWay {
 public:
  OneWay(uint64_t all, bool is_known) : left_(all), is_known_(is_known) {}

  // False when it is no call of this stream, which has not so many bytes.
  bool take(StreamCall& call) {
    const bool is_apart = call.call.ended <= oldest_;
    oldest_ = std::min(oldest_, call.call.began);
    const bool says_how_many =
        call.call.transfer == abi::Transfer::Sends || call.call.transfer == abi::Transfer::Receives;
    const int32_t result = call.call.result.value_or(0);
    const bool has_failed = call.call.result == -1;
    if (has_failed || call.waits || call.call.transfer == abi::Transfer::Peeks) return true;
    const auto count = static_cast<uint64_t>(result);
    is_known_ = is_known_ && says_how_many && call.call.result && is_apart && result >= 0;
    if (!is_known_ || count == 0) return true;
    if (count > left_) return is_known_ = false;
    call.bytes = StreamBytes{left_ - count, left_};
    left_ -= count;
    placed_.push_back(&call);
    return true;
  }

  // In front of it there was no stream.
  void begin() {
    for (StreamCall* const call : placed_) {
      call->is_sure = is_known_ && left_ == 0;
      if (left_ != 0) call->bytes.reset();
    }
  }

 private:
  uint64_t left_;  // Bytes in front of those that have places.
  bool is_known_;
  uint64_t oldest_ = UINT64_MAX;
  std::vector<StreamCall*> placed_{};
};

struct BothWays {
  OneWay sent;
  OneWay received;
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
  std::map<std::pair<std::string, std::string>, BothWays> streams;  // Of one all duplicates.
  const auto directions_of = [&](const SnapStream& stream) -> BothWays& {
    const auto at = opened.find(stream.descriptor);
    const bool is_own = snap.forked == 0 || (at != opened.end() && at->second > snap.forked);
    const BothWays made = {{stream.sent, is_own}, {stream.received, is_own}};
    return streams.emplace(std::pair(stream.own, stream.peer), made).first->second;
  };
  for (size_t i = 0; i < snap.streams.size(); ++i)
    descriptors.emplace(snap.streams[i].descriptor, Descriptor{i});
  for (auto call = calls.rbegin(); call != calls.rend(); ++call) {
    if (call->call.began < known_from) break;
    const auto opens = opened_by(call->call);
    const auto found = descriptors.find(opens.value_or(call->call.descriptor));
    if (found == descriptors.end() || found->second.is_over) continue;
    Descriptor& descriptor = found->second;
    BothWays& directions = directions_of(snap.streams[descriptor.stream]);
    if (opens) {
      descriptor.is_over = true;
      directions.sent.begin();
      directions.received.begin();
    } else if (call->call.transfer == abi::Transfer::Closes) {
      descriptor.is_over = true;
    } else if (moves_bytes(call->call.transfer)) {
      OneWay& direction = is_sending(call->call.transfer) ? directions.sent : directions.received;
      descriptor.is_over = !direction.take(*call);
      if (!descriptor.is_over) call->stream = descriptor.stream;
    }
  }
}

namespace {

// The thread has done nothing since the call began, and the kernel has given it nothing yet. A
// number of its own is what it has given, or that of the call, which is to be made again.
bool waits(const TransferCall& call, const Records& records, const user_regs_struct& registers) {
  constexpr std::array<uint64_t, 4> kReceiving = {SYS_read, SYS_readv, SYS_recvfrom, SYS_recvmsg};
  const bool is_in_it =
      std::find(kReceiving.begin(), kReceiving.end(), registers.orig_rax) != kReceiving.end();
  return call.transfer == abi::Transfer::Receives && !call.result && is_in_it &&
         call.record == records.words.size() && static_cast<int64_t>(registers.rax) <= 0;
}

}  // namespace

std::vector<StreamCall> stream_calls(const SnapModules& modules, const Snap& snap) {
  std::vector<StreamCall> calls;
  uint64_t known_from = 0;
  for (size_t i = 0; i < snap.threads.size(); ++i) {
    const Records records = records_of(modules, snap, snap.threads[i]);
    if (snap.threads[i].slot != kNoSlot) known_from = std::max(known_from, records.notes_from);
    for (const TransferCall& call : transfers_of(records)) {
      calls.push_back(
          {.thread = i, .call = call, .waits = waits(call, records, snap.threads[i].registers)});
    }
  }
  std::stable_sort(calls.begin(), calls.end(), [](const StreamCall& one, const StreamCall& other) {
    return one.call.began < other.call.began;
  });
  find_bytes(snap, known_from, calls);
  return calls;
}

}  // namespace clew::recorder

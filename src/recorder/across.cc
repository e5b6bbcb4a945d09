// SPDX-License-Identifier: Apache-2.0
#include "recorder/across.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

namespace clew::recorder {

namespace {

struct Position {
  size_t snap = 0;
  size_t thread = 0;
  size_t line = 0;
  size_t transfer = 0;
};

struct Sender {
  Position place;
  bool is_sure = false;
};

struct Sending {
  StreamBytes bytes;
  bool is_sure = false;
  Position place;
};

bool is_loopback(const std::string& address) {
  return address.starts_with("127.") || address.starts_with("[::1]");
}

// The name of a direction of a connection: alike at both ends. Addresses of a machine's own are
// those of one network.
std::string direction(const Snap& snap, const std::string& from, const std::string& to) {
  const bool is_own = is_loopback(from) || is_loopback(to);
  return (is_own ? snap.network : std::string()) + " " + from + " " + to;
}

// All that is sent, by direction, and there by its place in it.
class Sendings {
 public:
  explicit Sendings(std::span<const ShownSnap> snaps) : snaps_(snaps) {
    for (size_t snap = 0; snap < snaps.size(); ++snap) {
      for (size_t thread = 0; thread < snaps[snap].shown.threads.size(); ++thread)
        add({.snap = snap, .thread = thread});
    }
    for (auto& [name, sendings] : by_direction_) {
      std::sort(sendings.begin(), sendings.end(), [](const Sending& one, const Sending& other) {
        return one.bytes.begin < other.bytes.begin;
      });
    }
  }

  // Who has sent the last byte of what was received.
  [[nodiscard]] std::optional<Sender> of(size_t snap, const ShownTransfer& received) const {
    if (is_sending(received.transfer) || !received.stream || !received.bytes) return std::nullopt;
    const Snap& own = snaps_[snap].snap;
    const SnapStream& stream = own.streams[*received.stream];
    const auto found = by_direction_.find(direction(own, stream.peer, stream.own));
    if (found == by_direction_.end()) return std::nullopt;
    const uint64_t last = received.bytes->end - 1;
    const auto behind =
        std::upper_bound(found->second.begin(), found->second.end(), last,
                         [](uint64_t at, const Sending& one) { return at < one.bytes.begin; });
    if (behind == found->second.begin() || last >= std::prev(behind)->bytes.end)
      return std::nullopt;
    return Sender{std::prev(behind)->place, std::prev(behind)->is_sure && received.is_sure};
  }

 private:
  void add(Position place) {
    const ShownSnap& snap = snaps_[place.snap];
    const std::vector<ShownLine>& lines = snap.shown.threads[place.thread].lines;
    for (place.line = 0; place.line < lines.size(); ++place.line) {
      const std::vector<ShownTransfer>& transfers = lines[place.line].transfers;
      for (place.transfer = 0; place.transfer < transfers.size(); ++place.transfer) {
        const ShownTransfer& one = transfers[place.transfer];
        if (!is_sending(one.transfer) || !one.stream || !one.bytes) continue;
        const SnapStream& stream = snap.snap.streams[*one.stream];
        by_direction_[direction(snap.snap, stream.own, stream.peer)].push_back(
            {*one.bytes, one.is_sure, place});
      }
    }
  }

  std::span<const ShownSnap> snaps_;
  std::map<std::string, std::vector<Sending>> by_direction_;
};

}  // namespace

std::vector<Leg> across(std::span<const ShownSnap> snaps, size_t thread, size_t last) {
  const Sendings sendings(snaps);
  std::vector<Leg> legs;
  std::optional<Sender> at =
      Sender{{.thread = thread, .line = snaps.front().shown.threads[thread].lines.size()}, true};
  while (at && last != 0) {
    const Position place = at->place;
    const std::vector<ShownLine>& lines = snaps[place.snap].shown.threads[place.thread].lines;
    Leg leg{.snap = place.snap,
            .thread = place.thread,
            .begin = place.line,
            .end = std::min(place.line + 1, lines.size()),
            .is_sure = at->is_sure};
    // Of the line that sends, what stands in front of that.
    size_t transfers = place.line < lines.size() ? place.transfer : 0;
    std::optional<Sender> from;
    while (!from) {
      while (transfers != 0 && !from)
        from = sendings.of(place.snap, lines[leg.begin].transfers[--transfers]);
      if (from || leg.begin == 0 || leg.end - leg.begin >= last) break;
      transfers = lines[--leg.begin].transfers.size();
    }
    last -= std::min(last, leg.end - leg.begin);
    if (leg.end != leg.begin) legs.push_back(leg);
    at = from;
  }
  std::reverse(legs.begin(), legs.end());
  return legs;
}

}  // namespace clew::recorder

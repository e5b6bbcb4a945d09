// SPDX-License-Identifier: Apache-2.0
// What a node sends of one query: its partials, one behind the other, to the log, and each until
// the bus has said that it is there. So whoever reads them knows that none is missing before one.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cluster/bus.h"
#include "cluster/clock.h"
#include "cluster/spill.h"
#include "cluster/subjects.h"

namespace clew::cluster {

class Outbox {
 public:
  // `round`: a number that nobody has sent these with, if somebody has sent them before.
  explicit Outbox(Spill spill, uint64_t round = 0) : spill_(std::move(spill)), round_(round) {}

  [[nodiscard]] Spill& spill() { return spill_; }
  [[nodiscard]] const Spill& spill() const { return spill_; }

  // Some of what waits. Whether something was sent, or given up.
  // `log`: which one is there, as a root says; 0: it is not known, and nothing can be sent.
  // `until_ns`: behind this moment nothing is begun but the first (CLOCK_MONOTONIC).
  bool send(Bus& bus, const Subjects& subjects, const Clock& clock, uint64_t log, int64_t until_ns);
  // These are wanted once more, and what was said of them holds no more.
  void send_again(const std::vector<PaneRange>& panes);
  // This pane and all before it were sent, of those that were there.
  [[nodiscard]] Pane sent() const { return sent_; }
  // The last entry of the log that was told.
  [[nodiscard]] uint64_t sequence() const { return sequence_; }
  // Why the last one was not taken, since the last time.
  std::optional<Error> take_refusal() { return std::exchange(refusal_, std::nullopt); }
  // More waits: not before this moment (CLOCK_MONOTONIC).
  [[nodiscard]] int64_t next_ns() const { return next_ns_; }

 private:
  // Its table in parts.
  bool append(Bus& bus, const Subjects& subjects, Partial partial, const Bytes& table);

  Spill spill_;
  // A part of ids: what comes again has others, as the bus may know those of what it has lost.
  uint64_t round_;
  Pane sent_ = std::numeric_limits<Pane>::min();
  uint64_t sequence_ = 0;
  std::optional<Error> refusal_;
  int64_t next_ns_ = 0;
};

}  // namespace clew::cluster

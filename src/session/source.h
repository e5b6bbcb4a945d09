// SPDX-License-Identifier: Apache-2.0
// Where the events and counts of a query come from: the traced processes, the kernel, a file of
// an earlier session, or a fake one of a test. A source is armed by who makes it; session.h drives
// it from then on. All functions are called by one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <poll.h>

#include "aggregate/table.h"
#include "base/error.h"
#include "collect/event_batch.h"
#include "collect/losses.h"
#include "plan/root.h"

namespace clew::session {

class Source {
 public:
  Source() = default;
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;
  virtual ~Source() = default;

  // Columns and the answer's last steps; the same for each source of a session.
  virtual plan::Root& root() = 0;
  // Nothing more can come from it.
  [[nodiscard]] virtual bool gone() const = 0;

  // --- the window of time of a session that has several members: begin_window() of all sources,
  // start() of all, settle_window() of all; at the end stop(). A session of one member has no
  // window: start() alone, and it ends by detach(). Ticks are of the time stamp counter.
  virtual void begin_window() {}
  // What happens from now on counts. `begin_ticks`: when the window began, 0 without one.
  virtual Expected<void> start(uint64_t /*begin_ticks*/) { return {}; }
  virtual void settle_window() {}
  virtual void stop(uint64_t /*end_ticks*/) {}

  // --- while it runs
  // What becomes readable when it wants a turn before its patience is over.
  virtual void add_descriptors(std::vector<pollfd>& /*descriptors*/) {}
  // How long it may be left alone. May itself wait some milliseconds for what has no descriptor.
  virtual std::chrono::nanoseconds patience() = 0;
  // Its turn: takes over what cannot wait.
  virtual Expected<void> turn() { return {}; }
  // Five times a second.
  virtual void keep_house() {}
  // Takes out probes whose hits ran out of fuel; each is told once.
  virtual std::vector<collect::DisarmedProbe> disarm_spinning() { return {}; }

  // --- single events
  [[nodiscard]] virtual bool has_events() const = 0;
  // They are in the order of their times; they need no merge with others.
  [[nodiscard]] virtual bool is_in_order() const { return false; }
  // The clock of its events: ticks, or ns of CLOCK_MONOTONIC.
  [[nodiscard]] virtual uint64_t now() const = 0;
  // Adds the events since the last call. Event::process: the number of the member that it comes
  // from (numbers.h), then abi::SlotControl::process.
  virtual Expected<void> read_events(collect::EventBatch& round) = 0;
  // The rows of one of them.
  virtual std::vector<aggregate::Row> take_event(const collect::Event& event) = 0;
  // How many hits passed the filters so far (plans with `for N events`).
  virtual uint64_t passed() = 0;

  // --- counts: of the interval that ends now, or of the whole session
  virtual Expected<aggregate::Table> interval() = 0;
  virtual Expected<aggregate::Table> total() = 0;

  // The rows of one of the tracer's own query sources (begin, end, tick), which happens now.
  virtual std::vector<aggregate::Row> fire(uint16_t /*source*/, int64_t /*monotonic_ns*/) {
    return {};
  }
  // Looks for calls that have not returned, once: the losses count them, and with `including open`
  // they belong to the answer. Rows: of single events.
  virtual std::vector<aggregate::Row> take_open_calls(uint64_t /*end_ticks*/) { return {}; }

  // Takes the probes out; what was counted stays readable. Called once for each.
  virtual Expected<void> detach() { return {}; }
  virtual collect::Losses losses() = 0;
};

}  // namespace clew::session

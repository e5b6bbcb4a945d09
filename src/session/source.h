// SPDX-License-Identifier: Apache-2.0
// Where the events and counts of a query come from: the traced processes, the kernel, a file of
// an earlier session, or a fake one of a test. A source is armed by who makes it; session.h drives
// it from then on. All functions are called by one thread.
#pragma once

#include <cstdint>

#include "aggregate/table.h"
#include "answer/row_batch.h"
#include "base/error.h"
#include "collect/event_batch.h"
#include "collect/losses.h"
#include "session/driven.h"

namespace clew::session {

class Source : public Driven {
 public:
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

  // --- single events
  [[nodiscard]] virtual bool has_events() const = 0;
  // They are in the order of their times; they need no merge with others.
  [[nodiscard]] virtual bool is_in_order() const { return false; }
  // The clock of its events: ticks, or ns of CLOCK_MONOTONIC.
  [[nodiscard]] virtual uint64_t now() const = 0;
  // Adds the events since the last call.
  virtual Expected<void> read_events(collect::EventBatch& round) = 0;
  // Adds the rows of some of them, all of one member. Here and below, rows have the query's values;
  // a query that counts has none.
  virtual void take_events(const collect::EventBatch& events, collect::EventRange range,
                           answer::RowBatch& rows) = 0;
  // How many hits passed the filters so far (plans with `for N events`).
  virtual uint64_t passed() = 0;

  // --- counts: of the interval that ends now, or of the whole session
  virtual Expected<aggregate::Table> interval() = 0;
  virtual Expected<aggregate::Table> total() = 0;

  // One of the tracer's own query sources (begin, end, tick), which happens now.
  virtual void fire(uint16_t /*source*/, int64_t /*monotonic_ns*/, answer::RowBatch& /*rows*/) {}
  // Looks for calls that have not returned, once: the losses count them, and with `including open`
  // they belong to the answer.
  virtual void take_open_calls(uint64_t /*end_ticks*/, answer::RowBatch& /*rows*/) {}

  // Takes the probes out; what was counted stays readable. Called once for each.
  virtual Expected<void> detach() { return {}; }
  virtual collect::Losses losses() = 0;
};

}  // namespace clew::session

// SPDX-License-Identifier: Apache-2.0
// What a session traces while it runs: a process (tracee.h), or the kernel
// (kernel/kernel_tracee.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "aggregate/table.h"
#include "base/error.h"
#include "collect/event_batch.h"
#include "collect/losses.h"
#include "plan/root.h"

namespace clew::engine {

class Traced {
 public:
  Traced() = default;
  Traced(const Traced&) = delete;
  Traced& operator=(const Traced&) = delete;
  virtual ~Traced() = default;

  virtual plan::Root& root() = 0;
  // Nothing more can come from it.
  [[nodiscard]] virtual bool gone() const = 0;
  // Housekeeping between answers.
  virtual void keep_house() = 0;
  // Takes out probes whose hits ran out of fuel; each is told once.
  virtual std::vector<collect::DisarmedProbe> disarm_spinning() { return {}; }
  // Adds the events since the last call; its own index goes into their processes.
  virtual void read_events(collect::EventBatch& round) = 0;
  // The rows of one of them.
  virtual std::vector<aggregate::Row> take_event(const collect::Event& event) = 0;
  // How many hits passed the filters so far (plans with for N events).
  virtual uint64_t passed() = 0;
  // The counts of the interval that ends now, or of the whole session.
  virtual Expected<aggregate::Table> interval() = 0;
  virtual Expected<aggregate::Table> total() = 0;
  // The rows of one of the tracer's own sources.
  virtual std::vector<aggregate::Row> fire(uint16_t source, int64_t monotonic_ns) = 0;
  // Looks for calls that have not returned, once: the losses count them, and with `including open`
  // they belong to the answer. Rows: of single events.
  virtual std::vector<aggregate::Row> take_open_calls(uint64_t /*end_ticks*/) { return {}; }
  [[nodiscard]] virtual std::string host() = 0;
  // Takes the probes out; what was counted stays readable.
  virtual Expected<void> detach() = 0;
  virtual collect::Losses losses() = 0;
};

}  // namespace clew::engine

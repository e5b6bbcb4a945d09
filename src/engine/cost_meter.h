// SPDX-License-Identifier: Apache-2.0
// Measures what a session costs: samples of the CPU time of the traced processes, and the CPU time
// of Clew. docs/decisions/budget.md says why samples, and what they do not see.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/error.h"
#include "collect/cost.h"
#include "engine/probe_costs.h"
#include "kernel/cpu_samples.h"

namespace clew::engine {

class CostMeter {
 public:
  // `max_overhead`: 0 to 1. Where the kernel lets us see no CPU time, this is an error with a
  // bound, and without one the cost is not known.
  static Expected<CostMeter> open(std::optional<double> max_overhead);

  // The session begins.
  void begin();
  void read(const std::function<void(const kernel::CpuSample&)>& take);
  // Nothing is sampled any more.
  void end();
  // It is, or was until the end.
  [[nodiscard]] bool is_measuring() const { return unmeasured_.empty(); }
  [[nodiscard]] std::optional<OverheadBound> bound() const;
  // What is known of the session, but for its processes.
  [[nodiscard]] collect::Cost cost() const;

 private:
  using Time = std::chrono::steady_clock;

  std::optional<double> max_overhead_;
  uint32_t hz_ = 0;
  std::optional<kernel::CpuSamples> samples_;
  uint64_t lost_ = 0;  // By the end.
  std::string unmeasured_;
  Time::time_point begin_ = Time::now();
  int64_t own_begin_ns_ = 0;
};

}  // namespace clew::engine

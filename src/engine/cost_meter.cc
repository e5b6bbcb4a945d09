// SPDX-License-Identifier: Apache-2.0
#include "engine/cost_meter.h"

#include <ctime>
#include <utility>

#include <fmt/format.h>

#include "base/clock_ns.h"
#include "base/log.h"

namespace clew::engine {
namespace {

// Primes, so that they do not go with what programs do periodically. A bound is to be decided soon.
constexpr uint32_t kUsualHz = 97;
constexpr uint32_t kBoundHz = 199;

}  // namespace

Expected<CostMeter> CostMeter::open(std::optional<double> max_overhead) {
  CostMeter meter;
  meter.max_overhead_ = max_overhead;
  auto samples = kernel::CpuSamples::open(max_overhead ? kBoundHz : kUsualHz);
  if (samples) {
    meter.samples_ = std::move(*samples);
    return meter;
  }
  if (max_overhead) {
    return fail(ErrorCode::Refused,
                fmt::format("--max-overhead samples the CPU time of processes, which is not "
                            "allowed here ({}): it needs root, CAP_PERFMON, or "
                            "kernel.perf_event_paranoid of 0 or less",
                            samples.error().message));
  }
  meter.unmeasured_ = samples.error().message;
  log_step(0, "the cost of the session is not measured: {}", meter.unmeasured_);
  return meter;
}

void CostMeter::begin() {
  if (samples_) samples_->read([](const kernel::CpuSample&) {});
  begin_ = Time::now();
  own_begin_ns_ = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

void CostMeter::read(const std::function<void(const kernel::CpuSample&)>& take) {
  if (samples_) samples_->read(take);
}

std::optional<OverheadBound> CostMeter::bound() const {
  if (!max_overhead_) return std::nullopt;
  return OverheadBound{.share = *max_overhead_, .begin = begin_};
}

collect::Cost CostMeter::cost() const {
  constexpr double kMsNs = 1e6;
  return {
      .samples_a_second = !samples_ ? 0 : (max_overhead_ ? kBoundHz : kUsualHz),
      .unmeasured = unmeasured_,
      .processes = {},
      .samples_lost = samples_ ? samples_->lost() : 0,
      .own_cpu_ms = static_cast<double>(clock_ns(CLOCK_PROCESS_CPUTIME_ID) - own_begin_ns_) / kMsNs,
      .own_ms = std::chrono::duration<double, std::milli>(Time::now() - begin_).count(),
      .bound = max_overhead_.value_or(0)};
}

}  // namespace clew::engine

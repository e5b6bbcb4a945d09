// SPDX-License-Identifier: Apache-2.0
#include "engine/cost_meter.h"

#include <algorithm>
#include <ctime>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "base/clock_ns.h"
#include "base/log.h"

namespace clew::engine {
namespace {

// Primes, so that they do not go with what programs do periodically. A bound is to be decided soon.
constexpr uint32_t kUsualHz = 97;
constexpr uint32_t kBoundHz = 199;
// Of large machines each CPU gives less, so that all together interrupt and are read as often as so
// many CPUs would.
constexpr uint32_t kUsualCpus = 16;
constexpr uint32_t kBoundCpus = 64;

uint32_t samples_of_a_cpu(bool has_bound) {
  const auto cpus = static_cast<uint32_t>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
  const uint32_t hz = has_bound ? kBoundHz : kUsualHz;
  const uint32_t full = has_bound ? kBoundCpus : kUsualCpus;
  return cpus <= full ? hz : std::max(1U, hz * full / cpus);
}

}  // namespace

Expected<CostMeter> CostMeter::open(std::optional<double> max_overhead) {
  CostMeter meter;
  meter.max_overhead_ = max_overhead;
  meter.hz_ = samples_of_a_cpu(max_overhead.has_value());
  auto samples = kernel::CpuSamples::open(meter.hz_);
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

void CostMeter::end() {
  if (!samples_) return;
  lost_ = samples_->lost();
  samples_.reset();
}

std::optional<OverheadBound> CostMeter::bound() const {
  if (!max_overhead_) return std::nullopt;
  return OverheadBound{.share = *max_overhead_, .begin = begin_};
}

collect::Cost CostMeter::cost() const {
  constexpr double kMsNs = 1e6;
  return {
      .samples_a_second = is_measuring() ? hz_ : 0,
      .unmeasured = unmeasured_,
      .processes = {},
      .samples_lost = samples_ ? samples_->lost() : lost_,
      .own_cpu_ms = static_cast<double>(clock_ns(CLOCK_PROCESS_CPUTIME_ID) - own_begin_ns_) / kMsNs,
      .own_ms = std::chrono::duration<double, std::milli>(Time::now() - begin_).count(),
      .bound = max_overhead_.value_or(0)};
}

}  // namespace clew::engine

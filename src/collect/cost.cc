// SPDX-License-Identifier: Apache-2.0
#include "collect/cost.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace clew::collect {
namespace {

// The middle of Wilson's interval, and `sign` times half of its width.
double wilson(const ShareSamples& samples, double deviations, double sign) {
  if (samples.all == 0) return sign < 0 ? 0 : 1;
  const auto count = static_cast<double>(samples.all);
  const double share = samples.share();
  const double square = deviations * deviations;
  const double middle = share + square / (2 * count);
  const double half =
      deviations * std::sqrt(share * (1 - share) / count + square / (4 * count * count));
  return std::clamp((middle + sign * half) / (1 + square / count), 0.0, 1.0);
}

constexpr double kWorthALine = 0.01;
constexpr uint64_t kSamplesShownMin = 5;
constexpr double kShownDeviations = 1.96;  // 95 % of the time the share is in the interval.

std::string percent(double share) {
  return fmt::format("{:.1f} %", 100 * share);
}

bool costs_less(const ProcessCost& one, const ProcessCost& other) {
  return one.samples.share() < other.samples.share();
}

// "process 17", "12 processes"
std::string who(const Cost& cost) {
  const uint64_t count = cost.processes.size() + cost.other_processes;
  return count == 1 && !cost.processes.empty()
             ? fmt::format("process {}", cost.processes[0].process)
             : fmt::format("{} processes", count);
}

std::string describe_share(const Cost& cost) {
  const ShareSamples whole = cost.whole();
  if (whole.all == 0) return fmt::format("{} took no CPU time that was seen", who(cost));
  std::string text = fmt::format(
      "probes took {} of the CPU time of {} ({:.1f} to {}: {} of {} samples), not counting the "
      "kernel's for them",
      percent(whole.share()), who(cost), 100 * whole.at_least(kShownDeviations),
      percent(whole.at_most(kShownDeviations)), whole.probes, whole.all);
  if (cost.processes.size() > 1) {
    const ProcessCost& most =
        *std::max_element(cost.processes.begin(), cost.processes.end(), costs_less);
    text += fmt::format(", {} of process {}", percent(most.samples.share()), most.process);
  }
  if (cost.bound != 0) text += fmt::format(", of {:g} % at most", 100 * cost.bound);
  return text;
}

}  // namespace

double ShareSamples::share() const {
  return all == 0 ? 0 : static_cast<double>(std::min(probes, all)) / static_cast<double>(all);
}

double ShareSamples::at_least(double deviations) const {
  return wilson(*this, deviations, -1);
}

double ShareSamples::at_most(double deviations) const {
  return wilson(*this, deviations, 1);
}

void Cost::merge(const Cost& other) {
  samples_a_second = std::max(samples_a_second, other.samples_a_second);
  if (unmeasured.empty()) unmeasured = other.unmeasured;
  processes.insert(processes.end(), other.processes.begin(), other.processes.end());
  others += other.others;
  other_processes += other.other_processes;
  samples_lost += other.samples_lost;
  own_cpu_ms = std::max(own_cpu_ms, other.own_cpu_ms);
  own_ms = std::max(own_ms, other.own_ms);
  stops += other.stops;
  stopped_ms += other.stopped_ms;
  bound = std::max(bound, other.bound);
}

void Cost::keep_hottest(size_t most) {
  std::stable_sort(processes.begin(), processes.end(),
                   [](const ProcessCost& one, const ProcessCost& other) {
                     return one.samples.probes > other.samples.probes;
                   });
  while (!processes.empty() && (processes.size() > most || processes.back().samples.probes == 0)) {
    others += processes.back().samples;
    ++other_processes;
    processes.pop_back();
  }
}

ShareSamples Cost::whole() const {
  ShareSamples sum = others;
  for (const ProcessCost& process : processes)
    sum += process.samples;
  return sum;
}

std::string describe(const Cost& cost) {
  const bool is_worth_it =
      std::any_of(cost.processes.begin(), cost.processes.end(), [](const ProcessCost& process) {
        return process.samples.probes >= kSamplesShownMin &&
               process.samples.at_least(kShownDeviations) >= kWorthALine;
      });
  if (cost.processes.empty() || (!is_worth_it && cost.bound == 0)) return "";
  std::string text = describe_share(cost);
  if (cost.own_ms > 0)
    text += fmt::format("; Clew took {} of a CPU", percent(cost.own_cpu_ms / cost.own_ms));
  return text + fmt::format("; stopped {} {}, {:.1f} ms in all", cost.stops,
                            cost.stops == 1 ? "time" : "times", cost.stopped_ms);
}

}  // namespace clew::collect

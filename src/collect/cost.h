// SPDX-License-Identifier: Apache-2.0
// What a session costs: the CPU time of its processes that its probes take, that of Clew, and how
// long the processes stood still. The first is measured by samples of the CPUs' clocks
// (kernel/cpu_samples.h): a sample in the code of a probe, or in the runtime that it called, is the
// probe's. What the kernel does for a probe (uprobes, sources in the kernel, page faults) is not in
// it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace clew::collect {

// Of `all` samples `probes` are a draw from a binomial distribution, so the share lies in Wilson's
// interval (E. B. Wilson, 1927), which is right for few samples and for shares near 0, too.
struct ShareSamples {
  uint64_t probes = 0;
  uint64_t all = 0;

  // 0 to 1, and 0 where there are none.
  [[nodiscard]] double share() const;
  // Of Wilson's interval, so many standard deviations wide to each side.
  [[nodiscard]] double at_least(double deviations) const;
  [[nodiscard]] double at_most(double deviations) const;
  ShareSamples& operator+=(const ShareSamples& more) {
    probes += more.probes;
    all += more.all;
    return *this;
  }
  bool operator==(const ShareSamples&) const = default;
};

struct FunctionCost {
  std::string function{};
  uint64_t samples = 0;  // In its probes.
  bool operator==(const FunctionCost&) const = default;
};

struct ProcessCost {
  int32_t process = 0;   // Pid; its children are counted with it where they are traced.
  ShareSamples samples;  // In user code and in the kernel.
  std::vector<FunctionCost> functions{};  // Some of those that have most, in this order.
  bool operator==(const ProcessCost&) const = default;
};

struct Cost {
  uint32_t samples_a_second = 0;  // Of each CPU; 0: the CPU time was not measured,
  std::string unmeasured{};       // and why.
  std::vector<ProcessCost> processes{};
  ShareSamples others{};         // Of processes that are in no row of their own,
  uint64_t other_processes = 0;  // so many.
  uint64_t samples_lost = 0;     // For which there was no room: as likely in probes as others.
  double own_cpu_ms = 0;         // CPU time of Clew, from arming on,
  double own_ms = 0;             // in this time.
  uint64_t stops = 0;            // Of all processes: to arm, to take out, to leave.
  double stopped_ms = 0;         // For how long each stood still, added up.
  double bound = 0;              // --max-overhead, 0 to 1; 0: none.

  // Appends the processes; counters: the sum; times and rates of the session: the maximum.
  void merge(const Cost& other);
  // Of processes that have ended there may be any number: those that have no sample in probes, or
  // fewer than the first so many, become `others`.
  void keep_hottest(size_t most);
  // Of all processes together.
  [[nodiscard]] ShareSamples whole() const;
  bool operator==(const Cost&) const = default;
};

// One line for people without its end; empty where there is nothing worth a line: no bound was
// wanted, and the probes surely take less than a hundredth of any process.
std::string describe(const Cost& cost);

}  // namespace clew::collect

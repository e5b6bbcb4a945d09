// SPDX-License-Identifier: Apache-2.0
#include "engine/overhead.h"

#include <algorithm>
#include <numeric>

namespace clew::engine {
namespace {

// A bound is judged again and again while a session runs, some 200 times an hour by samples that
// are new: three deviations would be wrong once in four hours, four once in a week.
constexpr double kSureDeviations = 4;
constexpr uint64_t kSureSamples = 5;

}  // namespace

bool exceeds(const collect::ShareSamples& samples, double bound) {
  return samples.probes >= kSureSamples && samples.at_least(kSureDeviations) > bound;
}

std::vector<size_t> to_take_out(std::span<const uint64_t> by_function,
                                const collect::ShareSamples& samples, double bound) {
  std::vector<size_t> order(by_function.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return by_function[a] > by_function[b]; });
  std::vector<size_t> leaving;
  uint64_t left = samples.probes;
  for (const size_t function : order) {
    const bool holds = static_cast<double>(left) <= bound * static_cast<double>(samples.all);
    if (holds || by_function[function] == 0) break;
    leaving.push_back(function);
    left -= std::min(left, by_function[function]);
  }
  return leaving;
}

}  // namespace clew::engine

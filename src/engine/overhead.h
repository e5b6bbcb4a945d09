// SPDX-License-Identifier: Apache-2.0
// Whether samples of a process's CPU time say that its probes take more than a bound allows, and
// which functions have to go so that it holds. Pure: samples are counts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "collect/cost.h"

namespace clew::engine {

// It is sure that more than `bound` (0 to 1) goes to probes: by four standard deviations, and by
// five samples at least.
[[nodiscard]] bool exceeds(const collect::ShareSamples& samples, double bound);

// Indices of functions that have to go, the hottest first, so that what is left is expected to hold
// the bound. `by_function`: samples in the probes of each.
[[nodiscard]] std::vector<size_t> to_take_out(std::span<const uint64_t> by_function,
                                              const collect::ShareSamples& samples, double bound);

}  // namespace clew::engine

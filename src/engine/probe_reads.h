// SPDX-License-Identifier: Apache-2.0
// What a probe's program looks at of the state at a function's entry, as the window planner asks.
#pragma once

#include "code/probe_reads.h"
#include "isa/program.h"

namespace clew::engine {

code::ProbeReads probe_reads(const isa::Program& program);

}  // namespace clew::engine

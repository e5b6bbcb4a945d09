// SPDX-License-Identifier: Apache-2.0
// Reads the aggregations of a session out of its tables, while programs write to them
// (abi/machine/tables.h). Internal to machine_session.
#pragma once

#include <cstdint>
#include <vector>

#include "kernel/machine_session.h"
#include "kernel/maps.h"

namespace clew::kernel {

// All keys, merged over CPUs; with `takes`, what is returned is also taken out: every update is in
// exactly one result.
std::vector<MachineAggregate> read_aggregation(const MachineMaps& maps, uint32_t aggregation,
                                               bool takes);

}  // namespace clew::kernel

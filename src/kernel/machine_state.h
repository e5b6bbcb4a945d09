// SPDX-License-Identifier: Apache-2.0
// The memory of a D session, for others who work on it: processes whose probes run inline map the
// very arrays of the kernel's programs.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "abi/machine/process.h"
#include "abi/machine/tables.h"

namespace clew::kernel {

// A map that user space can map, from offset 0 on.
struct MachineStateArray {
  int map = -1;             // Borrowed from the session.
  uint64_t size_bytes = 0;  // Whole pages.
};

struct MachineState {
  MachineStateArray shared;
  MachineStateArray globals;
  MachineStateArray dynamic;
  MachineStateArray aggregates;
  // Who runs programs elsewhere gets copies of these: the tracer reads them, too. Valid while the
  // session lives.
  std::span<const uint8_t> variables;     // MachineVariable[]
  std::span<const uint8_t> aggregations;  // MachineAggregationTable[]
  std::span<const abi::MachineEnabled> enablings;
  std::span<const uint8_t> names;
  std::vector<uint8_t> literals;
  // The numbers of the session; addresses, `pid` and what else differs by process are 0.
  abi::MachineProcess process{};
};

}  // namespace clew::kernel
